"""The page of a trend: for each cluster what is new, what got worse and when a limit is reached.

One file, in which nothing runs and nothing is loaded.

How numbers of audits changed from run to run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.trend import ClusterLines, Line, lines_of
from reports.charts.look import (
    LINE,
    SERIES,
    Row,
    colours,
    data,
    in_order,
    over_time,
    shapes,
    svg_of,
)
from reports.layout.section import Rows
from reports.page.forms import rendered
from reports.page.model import Cell, Fact, Figure, Grid
from reports.page.rows import (
    at,
    columns_of,
    figure,
    grid_of,
    harmless,
    labels,
    moment,
    name_cell,
    name_cut,
    of_so_many,
)
from reports.plain_text import count, size_of

SOURCE: Final = "trend.json"
_MOST_ROWS: Final = 50
_LONGEST: Final = 400
_TONES: Final = {
    "severity": {"critical": "critical", "warning": "warning", "info": "info"},
    "change": {"new": "warning", "worse": "warning", "better": "good", "gone": "good"},
}
_GRIDS: Final = {
    "runs": ("trend_runs", "Runs, the last one first"),
    "rules": ("trend_rules", "What each rule found in the last run"),
    "findings": ("trend_findings", "Findings that are new or gone"),
    "changed-groups": ("trend_changed_groups", "Groups that came or went"),
    "lag": ("trend_lag", "Groups that are furthest behind, or fell behind the most"),
    "retention": ("trend_retention", "Retention reaches these, if it goes on so"),
    "disks": ("trend_disks", "Disks"),
    "bytes": ("trend_bytes", "Internal topics, the last run first"),
    "groups": ("trend_groups", "Groups by type and state in the last run"),
}
"""The tables of a cluster by their anchor: the contract, and what stands above them."""
_OF_LAST_RUN: Final = ("rules", "lag", "groups")
_LAST_FIRST: Final = ("runs", "bytes")
_LARGE: Final = ("findings", "changed-groups")
"""Tables that may be too large to be held: of each the first rows of a cluster are read."""


@dataclass(frozen=True)
class Column:
    """A list of sentences under a head, and what is said where there are none."""

    head: str
    lines: tuple[Line, ...]
    otherwise: str


@dataclass(frozen=True)
class ClusterPart:
    """What the page has of a cluster.

    Attributes:
        anchor: Its id.
        cluster: Its name.
        instants: Of which instants its last runs are.
        columns: What is new, what got worse, when a limit is reached.
        improved: What is gone or got better.
        cannot_tell: Why some of this cannot be told.
        figures: Charts over all runs.
        grids: Its tables.
    """

    anchor: str
    cluster: Cell
    instants: str
    columns: tuple[Column, ...]
    improved: tuple[Line, ...]
    cannot_tell: tuple[Line, ...]
    figures: tuple[Figure, ...]
    grids: tuple[Grid, ...]


@dataclass(frozen=True)
class TrendPage:
    """The whole page.

    Attributes:
        title: Its title.
        facts: What was compared.
        clusters: A part for each.
        gaps: What cannot be told of runs.
        command: How to make it again.
        exit_code: Of the command.
    """

    title: str
    facts: tuple[Fact, ...]
    clusters: tuple[ClusterPart, ...]
    gaps: tuple[str, ...]
    command: str
    exit_code: int


def trend_page(
    tables: Mapping[str, Rows],
    figures: Mapping[str, Mapping[str, Any]],
    cannot_tell: Sequence[str],
    command: str,
    exit_code: int,
) -> TrendPage:
    """Return the page.

    Args:
        tables: Of a trend, by the names of their contracts.
        figures: Of the answer, by cluster.
        cannot_tell: What cannot be told of runs, a sentence each.
        command: What makes the page again.
        exit_code: Of the command.
    """
    runs = tables["trend_runs"].whole()
    clusters = lines_of(tables, figures)
    return TrendPage(
        title=f"Trend of {count(runs.num_rows, 'audit')}",
        facts=tuple(_facts(runs, len(clusters))),
        clusters=tuple(_part(each, tables) for each in clusters),
        gaps=tuple(harmless(each) for each in cannot_tell),
        command=harmless(command),
        exit_code=exit_code,
    )


def html_of(page: TrendPage) -> str:
    """Return the file."""
    return rendered("trend.html.j2", page)


def _facts(runs: pa.Table, clusters: int) -> Iterator[Fact]:
    yield Fact("Runs", Cell(f"{runs.num_rows:,}"))
    yield Fact("Clusters", Cell(f"{clusters:,}"))
    if runs.num_rows:
        ends = pc.min_max(runs["as_of"]).as_py()
        yield Fact("From", Cell(moment(ends["min"])))
        yield Fact("To", Cell(moment(ends["max"])))


def _part(lines: ClusterLines, tables: Mapping[str, Rows]) -> ClusterPart:
    anchor = f"cluster-{hashlib.sha256(lines.cluster.encode()).hexdigest()[:12]}"
    runs = _of(tables["trend_runs"].whole(), lines.cluster)
    first = "There is one run: nothing shows what changed."
    nothing = first if runs.num_rows == 1 else "Nothing that is known."
    return ClusterPart(
        anchor=anchor,
        cluster=name_cell(lines.cluster),
        instants=lines.instants,
        columns=(
            Column("What is new", _harmless_lines(lines.new), nothing),
            Column("What got worse", _harmless_lines(lines.worse), nothing),
            Column("When a limit is reached", _harmless_lines(lines.limits), nothing),
        ),
        improved=_harmless_lines(lines.improved),
        cannot_tell=_harmless_lines(lines.cannot_tell),
        figures=tuple(_figures(anchor, runs, lines.cluster, tables)),
        grids=tuple(_grids(anchor, lines.cluster, runs, tables)),
    )


def _harmless_lines(lines: Sequence[Line]) -> tuple[Line, ...]:
    return tuple(replace(each, text=name_cut(harmless(each.text), _LONGEST)) for each in lines)


def _of(rows: pa.Table, cluster: str) -> pa.Table:
    return rows.filter(pc.equal(rows["cluster"], cluster))


# Charts over all runs of a cluster.


def _figures(
    anchor: str, runs: pa.Table, cluster: str, tables: Mapping[str, Rows]
) -> Iterator[Figure]:
    listed = runs.to_pylist()
    yield from _figure(
        f"{anchor}-lag-chart", "Lag of all groups, in records", _points(listed, "lag", "lag")
    )
    topics = _of(tables["trend_bytes"].whole(), cluster).to_pylist()
    points = [
        _point(each["as_of"], each["file_bytes"], each["topic"])
        for each in topics
        if each["file_bytes"] is not None
    ]
    yield from _figure(
        f"{anchor}-bytes-chart", "Bytes of the internal topics", points, is_bytes=True
    )
    findings = [
        _point(each["as_of"], each[severity], severity)
        for severity in ("critical", "warning", "info")
        for each in listed
        if each[severity] is not None
    ]
    yield from _figure(f"{anchor}-findings-chart", "Findings", findings)
    groups = _of(tables["trend_groups"].whole(), cluster).to_pylist()
    yield from _figure(f"{anchor}-groups-chart", "Groups by type and state", _groups(groups))
    events = [
        *_points(listed, "rebalances", "rebalances"),
        *_points(listed, "expired_offsets", "expired offsets"),
    ]
    yield from _figure(
        f"{anchor}-events-chart", "Rebalances and expired offsets since the run before", events
    )


def _points(runs: Sequence[Mapping[str, Any]], name: str, series: str) -> list[dict[str, Any]]:
    bound = f"{name.removesuffix('_offsets')}_bound"
    return [
        _point(each["as_of"], each[name], series, is_bound=each[bound] != "exact")
        for each in runs
        if each[name] is not None
    ]


def _point(as_of: Any, value: int, series: str, *, is_bound: bool = False) -> dict[str, Any]:  # noqa: ANN401
    return {"at": at(as_of), "value": value, "series": series, "is_bound": is_bound}


def _groups(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return points of the commonest types and states; where there are none, that is 0."""
    counts: Counter[str] = Counter()
    of_run: dict[Any, Counter[str]] = {}
    for each in rows:
        name = f"{each['group_type']} {each['state']}"
        counts[name] += each["groups"]
        of_run.setdefault(each["as_of"], Counter())[name] += each["groups"]
    names = [name for name, _ in counts.most_common(MOST_SERIES)]
    return [_point(as_of, of_run[as_of][name], name) for name in names for as_of in of_run]


def _figure(
    anchor: str, title: str, points: Sequence[dict[str, Any]], *, is_bytes: bool = False
) -> tuple[Figure, ...]:
    """Return a chart; nothing of fewer than two runs."""
    if len({each["at"] for each in points}) < 2:
        return ()
    short = labels(each["series"] for each in points)
    rows = [{**each, "series": short[each["series"]]} for each in points]
    return figure(anchor, title, _chart_in_words(points, is_bytes=is_bytes), rows, run_by_run)


def _chart_in_words(points: Sequence[Mapping[str, Any]], *, is_bytes: bool) -> str:
    """Return the first and the last value of each series in words."""
    ends: dict[str, list[Mapping[str, Any]]] = {}
    for each in points:
        ends.setdefault(each["series"], []).append(each)
    words = []
    for series, some in ends.items():
        first, last = (
            f"{size_of(each['value']) if is_bytes else format(each['value'], ',')}"
            f"{' (a bound)' if each['is_bound'] else ''}"
            for each in (some[0], some[-1])
        )
        words.append(f"{harmless(series)} from {first} to {last}")
    times = sorted({each["at"] for each in points})
    hollow = " A hollow mark is only a bound." if any(each["is_bound"] for each in points) else ""
    return f"From {times[0]} to {times[-1]}: {'; '.join(words)}.{hollow}"


# Tables of a cluster.


def _grids(anchor: str, cluster: str, runs: pa.Table, tables: Mapping[str, Rows]) -> Iterator[Grid]:
    last = pc.max(runs["as_of"])
    for name, (of, caption) in _GRIDS.items():
        if name in _LARGE:
            rows, number = _first_rows(tables[of], cluster)
        else:
            rows = _of(tables[of].whole(), cluster)
            if name in _OF_LAST_RUN:
                rows = rows.filter(pc.equal(rows["as_of"], last))
            if name in _LAST_FIRST:
                rows = rows.sort_by([("as_of", "descending")])
            number = rows.num_rows
        grid = grid_of(
            f"{anchor}-{name}",
            caption,
            rows,
            columns_of(of, tones=_TONES),
            top=_MOST_ROWS,
            source=SOURCE,
        )
        if rows.num_rows:
            yield of_so_many(grid, number, SOURCE)


def _first_rows(rows: Rows, cluster: str) -> tuple[pa.Table, int]:
    """Return the first rows of a cluster, and how many it has."""
    held = rows.first(0)
    number = 0
    for piece in rows.pieces():
        mine = _of(piece, cluster)
        number += mine.num_rows
        if held.num_rows < _MOST_ROWS and mine.num_rows:
            room = range(min(_MOST_ROWS - held.num_rows, mine.num_rows))
            # A slice would hold the memory of all others, too.
            held = pa.concat_tables([held, mine.take(pa.array(room, pa.int64()))])
    return held, number


_HEIGHT: Final = 150
_WIDTH: Final = 330
_NOT_EXACT: Final = "is_bound"


def run_by_run(rows: Sequence[Row], anchor: str) -> str:
    """Return a line for each series, with a point for each run; a hollow one is only a bound.

    Args:
        rows: `at` (ISO 8601), `value`, `series`, `is_bound`.
        anchor: Of the figure.
    """
    words = in_order(rows, "series")
    axis = alt.Axis(title=None, tickCount=4, format="~s", gridColor=LINE)
    legend = None if len(words) == 1 else alt.Undefined
    color = alt.Color("series:N", scale=colours(words), legend=legend)
    base = alt.Chart(data(rows)).encode(
        x=over_time(rows), y=alt.Y("value:Q", axis=axis, scale=alt.Scale(domainMin=0))
    )
    lines = base.mark_line(strokeWidth=2).encode(color=color)
    shape = alt.Shape("series:N", scale=shapes(words), legend=legend)
    layers: list[alt.Chart] = [lines]
    for is_bound, filled in ((False, True), (True, False)):
        some = [row for row in rows if row[_NOT_EXACT] is is_bound]
        if some:
            points = base.properties(data=data(some)).mark_point(
                filled=filled, size=60, opacity=1, strokeWidth=2
            )
            layers.append(points.encode(color=color, shape=shape))
    return svg_of(alt.layer(*layers), anchor, height=_HEIGHT, width=_WIDTH)


MOST_SERIES: Final = len(SERIES)
"""So many series are told apart."""
