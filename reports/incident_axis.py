"""The whole incident on one time axis: what copies hold, elections, losses, recoveries.

An incident on one time axis: copies of brokers, elections, and what befell each group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import pyarrow as pa

from reports.charts.look import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    ROW,
    SOFT,
    data,
    names,
    shapes,
    svg_of,
    times,
    utc,
)
from reports.page.model import Figure
from reports.page.rows import at, dicts, labels
from reports.plain_text import count
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from schemas.evaluation_rules import harmless_verdicts

if TYPE_CHECKING:
    from schemas.manifest import Manifest


_NARROW: Final = 200
_BROAD: Final = 960
"""Widths in which it is drawn, for a telephone and for a screen: text is legible on both."""
_ENLARGED: Final = 1.4
MARKS: Final = {
    "election": INK,
    "last commit that was lost": BLUE,
    "lost": ORANGE,
    "something else happened": PINK,
    "cannot tell": GREY,
    "commits are back where they were": GREEN,
}
"""Colours of what is marked, in the order of the legend."""


def incident_over_time(
    lanes: Sequence[str],
    logs: Sequence[Row],
    marks: Sequence[Row],
    span: tuple[str, str],
    anchor: str,
    *,
    is_broad: bool,
) -> str:
    """Return a row a copy and a group: bars of what logs hold, and marks of what happened.

    Args:
        lanes: Names of the rows, in order.
        logs: `lane`, `from`, `to` (ISO 8601): the first and the last record of a stretch.
        marks: `lane`, `at` (ISO 8601), `what` (of `MARKS`).
        span: From when to when the axis goes (ISO 8601).
        anchor: Of the figure.
        is_broad: It is for a screen; otherwise for a telephone.
    """
    y = alt.Y("lane:N", sort=None, scale=alt.Scale(domain=list(lanes)), axis=names())
    scale = utc()
    scale.domain = list(span)
    axis = times(span)
    if is_broad:
        axis.tickCount = 12
    x = alt.X("at:T", scale=scale, axis=axis)
    kinds = [each for each in MARKS if each in {row["what"] for row in marks}]
    colours = alt.Scale(domain=kinds, range=[MARKS[each] for each in kinds])
    layers: list[alt.Chart] = []
    if logs:
        bars = alt.Chart(data(logs)).mark_bar(color=BLUE, opacity=0.35, height=10, clip=True)
        layers.append(bars.encode(x=alt.X("from:T", scale=scale, axis=axis), x2="to:T", y=y))
        # A log of one record is a point: no bar is there to be seen.
        ends = [{"lane": row["lane"], "at": row[end]} for row in logs for end in ("from", "to")]
        points = alt.Chart(data(ends)).mark_tick(color=BLUE, thickness=2, height=14, clip=True)
        layers.append(points.encode(x=x, y=y))
    elections = [row for row in marks if row["what"] == "election"]
    if elections:
        rules = alt.Chart(data(elections)).mark_rule(color=SOFT, strokeDash=[4, 4], clip=True)
        layers.append(rules.encode(x=x))
    shown = alt.Chart(data(marks)).mark_point(filled=True, size=70, opacity=0.9, clip=True)
    layers.append(
        shown.encode(
            x=x,
            y=y,
            color=alt.Color("what:N", scale=colours),
            shape=alt.Shape("what:N", scale=shapes(kinds)),
        )
    )
    chart = alt.layer(*layers)
    return svg_of(
        chart,
        anchor,
        height=ROW * max(2, len(lanes)),
        width=_BROAD if is_broad else _NARROW,
        legend_columns=len(kinds) if is_broad else 1,
        enlarged=_ENLARGED,
    )


_MOST_GROUPS: Final = 12
_MOST_COPIES: Final = 8
_MOST_ELECTIONS: Final = 60
_MOST_MARKS: Final = 400
_OF_COORDINATORS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE)
_ELECTIONS: Final = "elections"
_MARGIN: Final = 0.02
"""Of the time that is drawn: the first mark stands within it."""
_LOST: Final = "lost_by_election"
_CANNOT_TELL: Final = "cannot_tell"
Row = Mapping[str, Any]
Place = tuple[str, str | None, int | None]


@dataclass(frozen=True)
class AxisRows:
    """What is drawn.

    Attributes:
        begin: The instant before the incident,
        end: and the instant after it.
        groups: Those that it cost most, in order.
        causes: Rows of `incident_causes`.
        verdicts: `offset_verdicts` of these groups in the time.
        history: `offset_history` of these groups.
        epochs: `coordinator_epochs`.
    """

    begin: datetime
    end: datetime
    groups: Sequence[str]
    causes: Sequence[Row]
    verdicts: pa.Table
    history: pa.Table
    epochs: pa.Table


def axis_of(rows: AxisRows, manifest: Manifest) -> tuple[Figure, ...]:
    """Return the chart; nothing where there is nothing to draw."""
    groups = list(rows.groups[:_MOST_GROUPS])
    happened = [
        row
        for row in dicts(
            rows.verdicts, "group_id", "topic", "partition", "verdict", "at", "was", "committed_at"
        )
        if row["group_id"] in groups
        and row["at"] is not None
        and row["verdict"] not in harmless_verdicts()
    ][:_MOST_MARKS]
    logs = logs_of(manifest)
    elections = list(_elections(rows))
    begin = _begin(rows, happened)
    named = labels([*logs, *groups])
    marks = [
        *({"lane": _ELECTIONS, "at": at(each), "what": "election"} for each in elections),
        *_marks(happened, rows.history, named),
    ]
    if not marks:
        return ()
    bars = [
        {"lane": named[copy], "from": at(max(first, begin)), "to": at(min(last, rows.end))}
        for copy in logs
        for first, last in stretches_of(manifest, copy)
        if last >= begin and first <= rows.end
    ]
    lanes = [
        *(named[each] for each in logs),
        *([_ELECTIONS] if elections else []),
        *(named[each] for each in groups),
    ]
    anchor = "incident-axis"
    span = at(begin), at(rows.end)
    svg = incident_over_time(lanes, bars, marks, span, anchor, is_broad=False)
    broad = incident_over_time(lanes, bars, marks, span, f"{anchor}-broad", is_broad=True)
    says = _description(logs, elections, happened, marks)
    return (Figure(anchor, "The incident on one time axis (UTC)", says, svg, broad),)


def logs_of(manifest: Manifest) -> dict[str, tuple[datetime, datetime]]:
    """Return the times of the first and the last record of internal topics, by copy."""
    found: dict[str, tuple[datetime, datetime]] = {}
    for each in manifest["partitions"]:
        copy, first, last = each["copy"], each["first_timestamp"], each["last_timestamp"]
        if copy is None or first is None or last is None or each["topic"] not in _OF_COORDINATORS:
            continue
        times = datetime.fromisoformat(first), datetime.fromisoformat(last)
        known = found.get(copy, times)
        found[copy] = min(known[0], times[0]), max(known[1], times[1])
    return dict(sorted(found.items())[:_MOST_COPIES])


def stretches_of(manifest: Manifest, copy: str) -> list[tuple[datetime, datetime]]:
    """Return from when to when a copy has records of internal topics, leader by leader.

    Between two leaders there may have been none, and no broker that answered.
    """
    spans = sorted(
        (first, last)
        for each in manifest["partitions"]
        if each["copy"] == copy and each["topic"] in _OF_COORDINATORS
        for _, first, last in each.get("epoch_times") or ()
    )
    if not spans:
        return [logs_of(manifest)[copy]]
    joined = [spans[0]]
    for first, last in spans[1:]:
        if first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return [(_time(first), _time(last)) for first, last in joined]


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _elections(rows: AxisRows) -> Iterator[datetime]:
    """Yield when leaders of internal partitions were elected in the time, each once."""
    told = rows.epochs["elected_at"].to_pylist() if rows.epochs.num_rows else []
    ends = [each[name] for each in rows.causes for name in ("elected_from", "elected_to")]
    known = sorted({each for each in (*told, *ends) if each is not None})
    yield from [each for each in known if rows.begin <= each <= rows.end][:_MOST_ELECTIONS]


def _begin(rows: AxisRows, happened: Sequence[Row]) -> datetime:
    """Return from when on is drawn: what was lost is on the axis."""
    committed = [each["committed_at"] for each in happened if each["verdict"] == _LOST]
    last = [each["last_record_at"] for each in rows.causes]
    known = (rows.begin, *committed, *last)
    first: datetime = min(each for each in known if each is not None)
    return first - (rows.end - first) * _MARGIN


def _marks(
    happened: Sequence[Row], history: pa.Table, named: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    for row in happened:
        lane = named[row["group_id"]]
        if row["verdict"] == _LOST and row["committed_at"] is not None:
            last = at(row["committed_at"])
            yield {"lane": lane, "at": last, "what": "last commit that was lost"}
        words = {_LOST: "lost", _CANNOT_TELL: "cannot tell"}
        what = words.get(row["verdict"], "something else happened")
        yield {"lane": lane, "at": at(row["at"]), "what": what}
    for group, time in _recoveries(happened, history):
        yield {"lane": named[group], "at": at(time), "what": "commits are back where they were"}


def _recoveries(happened: Sequence[Row], history: pa.Table) -> Iterator[tuple[str, datetime]]:
    """Yield when a group first committed again what an election took, or a later offset."""
    lost = {_place(row): row for row in happened if row["verdict"] == _LOST and row["was"]}
    columns = ("group_id", "topic", "partition", "committed_offset", "effective_timestamp")
    known = dicts(history, *columns) if history.num_rows else []
    timed = [row for row in known if row["effective_timestamp"] is not None]
    for row in sorted(timed, key=lambda each: each["effective_timestamp"]):
        loss = lost.get(_place(row))
        if (
            loss is not None
            and row["committed_offset"] is not None
            and row["effective_timestamp"] > loss["at"]
            and row["committed_offset"] >= loss["was"]
        ):
            del lost[_place(row)]
            yield row["group_id"], row["effective_timestamp"]


def _place(row: Row) -> Place:
    return row["group_id"], row["topic"], row["partition"]


def _description(
    logs: Mapping[str, tuple[datetime, datetime]],
    elections: Sequence[datetime],
    happened: Sequence[Row],
    marks: Sequence[Row],
) -> str:
    """Return the same in words, for who does not see it."""
    told = [
        f"{copy} has records of internal topics from {at(first)} to {at(last)}."
        for copy, (first, last) in logs.items()
    ]
    if elections:
        leaders = count(len(elections), "time")
        told.append(f"Leaders were elected at {leaders}, from {at(elections[0])} on.")
    lost = [row for row in happened if row["verdict"] == _LOST]
    back = sum(1 for row in marks if row["what"] == "commits are back where they were")
    if lost:
        groups = count(len({row["group_id"] for row in lost}), "group")
        offsets = count(sum(row["topic"] is not None for row in lost), "offset")
        told.append(f"{groups} lost {offsets} by elections; {back:,} of them were reached again.")
    return " ".join(told)
