"""Charts: well-formed, alone in their page, the same every time, harmless whatever is in them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib.resources import files

import altair as alt
import pytest
from altair.utils.schemapi import SchemaValidationError, debug_mode

from reports.charts import look
from reports.charts.groups import (
    committed_offsets,
    lags_over_time,
    members_over_time,
    ownership,
    rebalances_over_time,
    records_committed,
    spread_of_partitions,
)
from reports.charts.offsets import (
    delivery_counts,
    expiry_calendar,
    largest_lags,
    log_bytes,
    removals_timeline,
    retention_matrix,
    share_window,
)
from reports.incident_axis import incident_over_time
from reports.page.groups import sparkline
from reports.page.rows import labels
from reports.page.trend import run_by_run

NAMES = ("<script>alert(1)</script>", "a&b<i>'\"")
TIMES = ("2026-11-21T09:20:36.059Z", "2026-11-22T09:20:36.059Z")
PAIRS = [*zip(NAMES, TIMES, strict=True)]
STARTS = [{"place": name, "start": 2} for name in NAMES]

DRAWN: dict[str, Callable[[str], str]] = {
    "committed_offsets": lambda name: committed_offsets(
        [{"place": group, "at": at, "offset": n} for n, (group, at) in enumerate(PAIRS)],
        [{"at": TIMES[0], "offset": 1, "what": "went back"}],
        [{"at": TIMES[1]}],
        [{"offset": 3, "from": TIMES[0], "to": TIMES[1]}],
        name,
    ),
    "delivery_counts": lambda name: delivery_counts(
        [
            {"place": group, "deliveries": 2, "records": 4, "label": "4", "state": "AVAILABLE"}
            for group in NAMES
        ],
        name,
    ),
    "expiry_calendar": lambda name: expiry_calendar(
        [{"group": group, "at": at, "status": "scheduled"} for group, at in PAIRS], name
    ),
    "incident_over_time": lambda name: incident_over_time(
        NAMES,
        [{"lane": NAMES[0], "from": TIMES[0], "to": TIMES[1]}],
        [{"lane": NAMES[1], "at": TIMES[0], "what": each} for each in ("election", "lost")],
        TIMES,
        name,
        is_broad=True,
    ),
    "lags_over_time": lambda name: lags_over_time(
        [{"group": group, "at": at, "lag": 7} for group, at in PAIRS], name
    ),
    "largest_lags": lambda name: largest_lags(
        [{"place": group, "lag": 7, "label": "7"} for group in NAMES], name
    ),
    "log_bytes": lambda name: log_bytes(
        [{"place": group, "part": "clean", "bytes": 7} for group in NAMES], name
    ),
    "members_over_time": lambda name: members_over_time(
        [{"group": group, "at": at, "members": 1} for group, at in PAIRS], name
    ),
    "ownership": lambda name: ownership(
        [
            {"member": group, "partition": group, "from": TIMES[0], "to": TIMES[1]}
            for group in NAMES
        ],
        name,
    ),
    "rebalances_over_time": lambda name: rebalances_over_time(
        [{"group": group, "at": at} for group, at in PAIRS],
        [{"group": NAMES[0], "from": TIMES[0], "to": TIMES[1]}],
        name,
    ),
    "records_committed": lambda name: records_committed(
        [{"group": group, "at": at, "records": 7} for group, at in PAIRS], name
    ),
    "removals_timeline": lambda name: removals_timeline(
        [{"at": at, "cause": group, "verdict": group} for group, at in PAIRS], name
    ),
    "retention_matrix": lambda name: retention_matrix(
        [{"group": group, "retention": "7 d", "verdict": "safe"} for group in NAMES], name
    ),
    "run_by_run": lambda name: run_by_run(
        [
            {"series": group, "at": at, "value": 7, "is_bound": is_bound}
            for group, at in PAIRS
            for is_bound in (False, True)
        ],
        name,
    ),
    "share_window": lambda name: share_window(
        [{"place": group, "first": 2, "beyond": 9, "state": "ARCHIVED"} for group in NAMES],
        STARTS,
        name,
    ),
    "spread_of_partitions": lambda name: spread_of_partitions(
        [
            {"group": group, "fewest": 1, "mean": 1.5, "most": 2, "verdict": "even"}
            for group in NAMES
        ],
        name,
    ),
}


@pytest.mark.parametrize("chart", DRAWN)
def test_a_chart_is_an_image_of_its_own(chart: str) -> None:
    svg = DRAWN[chart]("first")
    root = ET.fromstring(svg)
    tags = {each.tag.rpartition("}")[2] for each in root.iter()}
    assert tags <= {"svg", "g", "path", "line", "text", "rect", "defs", "clipPath", "circle"}
    texts = {"".join(each.itertext()) for each in root.iter() if each.tag.endswith("text")}
    assert [each for each in texts if each in NAMES or each.startswith("<script")]
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert all(str(each).startswith("first-") for each in ids)
    assert len(ids) == len(set(ids))
    assert DRAWN[chart]("first") == svg
    assert DRAWN[chart]("second").count("NaN") == 0


@pytest.mark.parametrize("chart", DRAWN)
def test_parts_of_a_chart_are_what_vega_lite_has(chart: str) -> None:
    # What commands leave out, as it takes long.
    drawn = DRAWN[chart]("first")
    with debug_mode(arg=True):
        assert DRAWN[chart]("first") == drawn


def test_a_part_that_vega_lite_lacks_would_be_seen() -> None:
    alt.Axis(colour=1)
    with debug_mode(arg=True), pytest.raises(SchemaValidationError):
        alt.Axis(colour=1)


def _circles(svg: str) -> int:
    # Vega draws a filled circle as a path of two arcs.
    return sum(
        str(each.get("d")).count("A") >= 2
        for each in ET.fromstring(svg).iter()
        if each.tag.endswith("path")
    )


def test_an_offset_with_one_value_is_a_point_and_one_that_moved_a_line() -> None:
    def drawn(*offsets: int) -> str:
        rows = [
            {"place": "orders-0", "at": at, "offset": n}
            for at, n in zip(TIMES, offsets, strict=False)
        ]
        return committed_offsets(rows, [], [], [], "one")

    assert _circles(drawn(7)) == _circles(drawn(7, 7)) > _circles(drawn(7, 9))


def test_what_was_lost_with_its_line_is_dashed_beside_what_survived() -> None:
    rows = [{"place": "orders-0", "at": at, "offset": 7} for at in TIMES]
    lost = [{"offset": 9, "from": TIMES[0], "to": TIMES[1]}]
    svg = committed_offsets(rows, [], [], lost, "lost")
    dashed = [each for each in ET.fromstring(svg).iter() if each.get("stroke-dasharray") == "2,3"]
    assert len(dashed) == 1
    assert "on the lost line" in svg
    assert "on the lost line" not in committed_offsets(rows, [], [], [], "none")


def test_a_sparkline_goes_from_the_first_to_the_last_point() -> None:
    root = ET.fromstring(sparkline([(0, 5), (10, 5), (20, 9)]))
    assert root[0].get("d") == "M2 18H48V18H94V2"


def test_a_sparkline_of_many_points_keeps_its_lowest_and_highest() -> None:
    points = [(n, 100 + (n == 777) * 50 - (n == 333) * 50) for n in range(2000)]
    path = str(ET.fromstring(sparkline(points))[0].get("d"))
    assert "V2H" in path
    assert "V18H" in path
    assert len(path) < 1000


def test_names_on_an_axis_are_short_and_still_told_apart() -> None:
    names = [f"{'long' * 20}-{n}-{'end' * 20}" for n in range(12)]
    short = labels(names)
    assert len(set(short.values())) == len(names)
    assert max(map(len, short.values())) <= look.LONGEST_LABEL


def test_every_colour_has_a_lighter_one_where_the_page_is_dark() -> None:
    style = files("reports.page").joinpath("templates/page.css").read_text("utf-8")
    dark = style[style.index("Colours of reports/charts/look.py") :]
    for colour in (look.INK, look.SOFT, look.LINE, *look.SERIES):
        assert f'[fill="{colour}"]' in dark
        assert f'[stroke="{colour}"]' in dark
