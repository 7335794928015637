"""Topics of a page, one view each: who reads it, how far behind, what it holds, what is deleted.

There may be any number of topics, readers and partitions: of each kind the worst few are kept while
tables go by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.groups import records_committed
from reports.layout.section import first_of_each
from reports.page.model import Cell, Clause, Fact, Figure, Grid, TopicView
from reports.page.rows import (
    LONGEST_SENTENCE,
    Shown,
    at,
    cell_text,
    columns_of,
    doubt_said,
    figure,
    grid_of,
    harmless,
    labels,
    name_cell,
    name_cut,
    of_so_many,
    read_of,
    topic_anchor,
)
from reports.page.topic_lags import is_of_lags, lags_of_topic
from reports.page.workspace_tables import WorkspaceTables, fulfilling, is_one_of
from reports.plain_text import count
from schemas import CLUSTER_METADATA
from schemas.finding_rules import SEVERITIES
from schemas.shown import SIGNS_OF_BOUNDS

MOST_TOPICS: Final = 40
"""So many topics have a view: those with the worst findings, then those with the largest lags."""
MOST_DRAWN: Final = 12
"""So many of them have a chart."""
_MOST_READERS, _MOST_LAGS, _MOST_FINDINGS = 12, 12, 8
_MOST_LINES, _MOST_POINTS = 5, 80
_VIEW: Final = "page_of_topic"
_READERS: Final = columns_of("topic_readers", _VIEW)
_LAGS: Final = columns_of("lag", _VIEW)
_MARKS: Final = ("complete", "missing")
_NO_SEVERITY: Final = "neutral"
_DAY: Final = timedelta(days=1)
_RETENTION_SETTINGS: Final = ("cleanup.policy", "retention.ms", "retention.bytes")
"""Settings of a topic that say what is deleted when."""
_DRAWN: Final = (
    *("group_id", "topic", "partition", "event", "advance", "committed_offset"),
    *("effective_timestamp", *_MARKS),
)
_UNKNOWN: Final = "cannot tell"
_INTERPOLATED: Final = "interpolated"
_AT_LEAST: Final = SIGNS_OF_BOUNDS["at_least"]
_NEARLY: Final = SIGNS_OF_BOUNDS[_INTERPOLATED]
_BETWEEN: Final = (
    "The chart has what groups committed. How far behind they were is shown as of the end alone: "
    "nothing tells where the log ended at other times."
)


def topics_of(
    read: WorkspaceTables, stories: frozenset[str], on_page: frozenset[str]
) -> tuple[tuple[TopicView, ...], str]:
    """Return the views of topics, those with the worst findings first, and how many have none.

    Args:
        read: `lag`, `topic_readers`, `findings`, `configs`, `data_segments`; `offset_history` of
            the groups that the page shows.
        stories: Groups that have a story to lead to.
        on_page: Findings that the page shows, to lead to.
    """
    sums = _sums(read)
    names = sums["topic"].to_list()[:MOST_TOPICS]
    if not names:
        return (), ""
    of_topics = _OfTopics(
        readers=_first_of_each(
            read, "topic_readers", [*read_of(_READERS), *_MARKS], names, _MOST_READERS
        ),
        lags=_first_of_each(read, "lag", [*read_of(_LAGS), *_MARKS], names, _MOST_LAGS, by="lag"),
        findings=_first_of_each(
            read, "findings", ["finding_id", "severity", "message"], names, _MOST_FINDINGS
        ),
        sizes=_sizes(read, names),
        settings=_settings(read, names),
        stories=stories,
        on_page=on_page,
    )
    readers = dict(zip(sums["topic"].to_list(), sums["readers"].to_list(), strict=True))
    figures = {
        name: (
            *lags_of_topic(read, name, of_topics.lags.get(name)),
            *_figures(read, name, readers[name]),
        )
        for name in names[:MOST_DRAWN]
    }
    views = tuple(
        _view(row, of_topics, figures.get(row["topic"], ()))
        for row in sums.head(MOST_TOPICS).iter_rows(named=True)
    )
    more = sums.height - len(views)
    return views, f"{count(more, 'more topic')} in evaluations/topic_readers" if more > 0 else ""


@dataclass(frozen=True)
class _OfTopics:
    """What is shown of all topics: rows by topic.

    Attributes:
        readers: First rows of `topic_readers`.
        lags: Rows of `lag`, the largest lags first.
        findings: The worst findings.
        sizes: What their files hold, in words.
        settings: What is set for them, in words.
        stories: Groups that have a story.
        on_page: Findings that the page shows.
    """

    readers: Mapping[str, pa.Table]
    lags: Mapping[str, pa.Table]
    findings: Mapping[str, pa.Table]
    sizes: Mapping[str, Sequence[Fact]]
    settings: Mapping[str, str]
    stories: frozenset[str]
    on_page: frozenset[str]


def _view(row: Mapping[str, Any], of_topics: _OfTopics, figures: tuple[Figure, ...]) -> TopicView:
    topic = row["topic"]
    anchor = topic_anchor(topic)
    findings = of_topics.findings.get(topic)
    rank = row["rank"]
    return TopicView(
        anchor=anchor,
        topic=name_cell(topic),
        severity=_NO_SEVERITY if rank is None else SEVERITIES[rank],
        facts=(
            *_facts(row),
            *of_topics.sizes.get(topic, _NO_SIZES),
            Fact("Set for the topic", Cell(of_topics.settings[topic])),
        ),
        findings=() if findings is None else tuple(_clauses(findings, of_topics.on_page)),
        notes=(_BETWEEN,) if figures and not any(map(is_of_lags, figures)) else (),
        figures=figures,
        grids=tuple(_grids(row, anchor, of_topics)),
    )


def _facts(row: Mapping[str, Any]) -> Iterator[Fact]:
    yield Fact("Groups that read it, or did", Cell(f"{row['readers']:,}"))
    if row["partitions"]:
        unknown = row["unknown"]
        sign = f"{_AT_LEAST if unknown else ''}{_NEARLY if row['near'] else ''}"
        known = f"{sign}{row['lag']:,}" if unknown < row["partitions"] else _UNKNOWN
        yield Fact("Lag, of all groups", Cell(known))
        if unknown:
            pairs = count(
                row["partitions"], "pair of group and partition", "pairs of group and partition"
            )
            beyond = row["beyond"]
            of_them = f", {beyond:,} of them with an offset beyond the end" if beyond else ""
            yield Fact("Lag not known", Cell(f"{unknown:,} of {pairs}{of_them}"))


def _grids(row: Mapping[str, Any], anchor: str, of_topics: _OfTopics) -> Iterator[Grid]:
    topic = row["topic"]
    yield from _grid(
        (f"{anchor}-readers", "Groups that read it, or did", "evaluations/topic_readers"),
        of_topics.readers.get(topic),
        _READERS,
        of_topics.stories,
        row["readers"],
    )
    yield from _grid(
        (f"{anchor}-lag", "Partitions, the largest lag first", "evaluations/lag"),
        of_topics.lags.get(topic),
        _LAGS,
        of_topics.stories,
        row["partitions"],
    )


def _grid(
    names: tuple[str, str, str],
    rows: pa.Table | None,
    columns: Sequence[Shown],
    stories: frozenset[str],
    number: int,
) -> Iterator[Grid]:
    """Yield a table by its anchor, caption and source; nothing where it has no rows."""
    if rows is not None:
        anchor, caption, source = names
        made = grid_of(
            anchor, caption, rows, columns, top=rows.num_rows, source=source, stories=stories
        )
        yield of_so_many(made, number, source)


def _clauses(findings: pa.Table, on_page: frozenset[str]) -> Iterator[Clause]:
    for each in findings.to_pylist():
        name = each["finding_id"]
        yield Clause(
            name_cut(each["message"], LONGEST_SENTENCE),
            f"#finding-{name}" if name in on_page else "",
            each["severity"],
        )


# Which topics there are, and what of tables is kept of those that are shown.


def _pieces(read: WorkspaceTables, name: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table in any order; at least once."""
    for each in read.scan(name, columns):
        yield pl.DataFrame(pl.from_arrow(each)).with_columns(pl.col("topic").cast(pl.String))


def _sums(read: WorkspaceTables) -> pl.DataFrame:
    """Return a row for each topic, those with the worst findings first, then the largest lags.

    Returns:
        `topic`, `readers`, `partitions` (pairs of group and partition), `lag` (of those where it
        is known), `unknown` (of how many it is not: what somebody has to read whose committed
        offset is beyond the end is not known, either), `beyond` (of how many of these the offset
        is), `near` (of how many it is, with an end that is interpolated), `rank` (of the worst
        finding; null where there is none).
    """
    lag, bound = pl.col("lag").cast(pl.Int64), pl.col("log_end_bound").cast(pl.String)
    is_known = (lag >= 0).fill_null(value=False)
    lags = _added(
        each.group_by("topic").agg(
            pl.len().cast(pl.Int64).alias("partitions"),
            lag.filter(is_known).sum().alias("lag"),
            (~is_known).sum().cast(pl.Int64).alias("unknown"),
            (lag < 0).sum().cast(pl.Int64).alias("beyond"),
            ((bound == _INTERPOLATED) & is_known)
            .fill_null(value=False)
            .sum()
            .cast(pl.Int64)
            .alias("near"),
        )
        for each in _pieces(read, "lag", ["topic", "lag", "log_end_bound"])
    )
    readers = _added(
        each.group_by("topic").agg(pl.len().cast(pl.Int64).alias("readers"))
        for each in _pieces(read, "topic_readers", ["topic"])
    )
    place = (
        pl.col("severity")
        .cast(pl.String)
        .replace_strict(
            {name: number for number, name in enumerate(SEVERITIES)}, return_dtype=pl.Int64
        )
    )
    worst = _folded(
        (
            each.filter(pl.col("topic").is_not_null())
            .group_by("topic")
            .agg(place.min().alias("rank"))
            for each in _pieces(read, "findings", ["topic", "severity"])
        ),
        pl.col("rank").min(),
    )
    known = lags.join(readers, on="topic", how="full", coalesce=True)
    rows = known.join(worst, on="topic", how="left").with_columns(
        pl.col("readers", "partitions", "lag", "unknown", "beyond", "near").fill_null(0)
    )
    order = ["rank", "lag", "topic"]
    return rows.sort(order, descending=[False, True, False], nulls_last=True)


def _added(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return sums by topic, of rows that go by."""
    return _folded(parts, pl.exclude("topic").sum())


def _folded(parts: Iterable[pl.DataFrame], how: pl.Expr) -> pl.DataFrame:
    """Return one row a topic of parts with one row a topic each; there is one part at least."""
    return reduce(
        lambda held, part: pl.concat([held, part]).group_by("topic").agg(how),
        parts,
    )


def _first_of_each(
    read: WorkspaceTables,
    name: str,
    columns: Sequence[str],
    topics: Sequence[str],
    most: int,
    by: str | None = None,
) -> dict[str, pa.Table]:
    """Return so many rows of each topic: the first, or those that have the most of a column."""
    if not read.has(name):
        return {}
    is_of = is_one_of("topic", topics)
    order = None if by is None else [(by, "descending"), ("group_id", "ascending")]

    def first_of(pieces: Iterable[pa.Table]) -> pa.Table:
        return first_of_each((fulfilling(each, is_of) for each in pieces), "topic", most, order)

    telling = ["topic"] if by is None else ["topic", by, "group_id"]
    first = read.folded(name, first_of, telling, columns)
    return {
        topic: first.filter(pc.field("topic") == topic)
        for topic in pc.unique(first["topic"]).to_pylist()
    }


# What a topic holds, how it grows, and what is set for it.

_GROWTH: Final = "Bytes a day, of what is kept"
_NO_SIZES: Final = (
    Fact("Bytes", Cell(f"{_UNKNOWN}: its log directories are not in the dump")),
    Fact(_GROWTH, Cell(f"{_UNKNOWN}: its log directories are not in the dump")),
)
_COMPACT: Final = "compact"
_BROKERS_POLICY: Final = "log.cleanup.policy"
_DELETE: Final = "delete"
"""The policy of a topic for which none is set."""


def _sizes(read: WorkspaceTables, topics: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
    """Return by topic what the largest copy of each partition holds, and how fast it grew."""
    columns = ["topic", "partition", "copy", "base_offset", "size_bytes", "largest_timestamp"]
    rows = read.rows("data_segments", [*columns, "is_largest"], is_one_of("topic", topics))
    if not rows.num_rows:
        return {}
    files = pl.DataFrame(pl.from_arrow(rows)).sort(*columns[:4])
    log = columns[:3]
    # Of a file that is done: all between the newest records of two of them is in those behind.
    is_done = pl.col("is_largest") & pl.col("largest_timestamp").is_not_null()
    done = files.filter(is_done).with_columns(
        pl.col("largest_timestamp").cast(pl.Datetime("us", "UTC"))
    )
    grown = done.group_by(log).agg(
        (pl.col("size_bytes").sum() - pl.col("size_bytes").first()).alias("grown"),
        (pl.col("largest_timestamp").last() - pl.col("largest_timestamp").first()).alias("took"),
    )
    logs = files.group_by(log).agg(
        pl.col("size_bytes").sum().alias("bytes"), pl.len().cast(pl.Int64).alias("files")
    )
    largest = (
        logs.join(grown, on=log, how="left")
        .sort("bytes", "copy", descending=[True, False])
        .unique(log[:2], keep="first", maintain_order=True)
    )
    policies = _policies(read, topics)
    return {
        str(topic): _facts_of_files(mine, policies[str(topic)])
        for (topic,), mine in largest.group_by("topic")
    }


def _facts_of_files(logs: pl.DataFrame, policy: str | None) -> tuple[Fact, ...]:
    size, files = int(logs["bytes"].sum()), int(logs["files"].sum())
    held = (
        f"{cell_text(size, 'bytes')} in {count(files, 'file')} of {count(logs.height, 'partition')}"
    )
    return (
        Fact("Bytes, of one copy", Cell(held)),
        Fact(_GROWTH, Cell(_rate(logs, policy))),
    )


def _rate(logs: pl.DataFrame, policy: str | None) -> str:
    """Return how many bytes a day came; at least, where compaction may have taken some.

    Args:
        logs: A row a partition: `grown`, `took`.
        policy: `cleanup.policy`; null where it is not known.
    """
    if policy is not None and _COMPACT in policy:
        return f"{_UNKNOWN}: compaction takes bytes out of files that are done"
    known = logs.filter(pl.col("took") > timedelta(0))
    if not known.height:
        return f"{_UNKNOWN}: no partition has two files that are done, whose times would tell"
    rates = known.select(pl.col("grown") / (pl.col("took") / _DAY)).to_series()
    whys = []
    if known.height < logs.height:
        whys.append(f"of {known.height:,} of {count(logs.height, 'partition')}")
    if policy is None:
        whys.append("compaction may have taken more: cleanup.policy is not known")
    sign, why = (_AT_LEAST, f" ({'; '.join(whys)})") if whys else ("", "")
    return f"{sign}{cell_text(round(float(rates.sum())), 'bytes')}{why}"


def _policies(read: WorkspaceTables, topics: Sequence[str]) -> dict[str, str | None]:
    """Return by topic its `cleanup.policy`; null where only the metadata log would tell it."""
    is_of_brokers = (pl.col("resource_type") == "broker") & (pl.col("name") == _BROKERS_POLICY)
    of_brokers = read.rows("configs", ["resource_type", "name", "value"], is_of_brokers)
    otherwise = _DELETE if _has_metadata_log(read) else None
    if any(_COMPACT in (each or "") for each in of_brokers["value"].to_pylist()):
        otherwise = _COMPACT
    policies: dict[str, str | None] = dict.fromkeys(topics, otherwise)
    for each in _configs(read, topics):
        if each["name"] == _RETENTION_SETTINGS[0]:
            policies[each["resource"]] = each["value"]
    return policies


def _has_metadata_log(read: WorkspaceTables) -> bool:
    return any(each["topic"] == CLUSTER_METADATA for each in read.manifest["partitions"])


def _configs(read: WorkspaceTables, topics: Sequence[str]) -> list[dict[str, Any]]:
    is_of = (pl.col("resource_type") == "topic") & is_one_of("resource", topics)
    columns = ["resource_type", "resource", "name", "value", *_MARKS]
    rows: list[dict[str, Any]] = read.rows("configs", columns, is_of).to_pylist()
    return rows


def _settings(read: WorkspaceTables, topics: Sequence[str]) -> dict[str, str]:
    """Return by topic what of `_RETENTION_SETTINGS` is set for it, or that nothing is or tells."""
    nothing = (
        "no retention of its own in the metadata log that was read"
        if _has_metadata_log(read)
        else f"{_UNKNOWN}: the metadata log is not in the dump"
    )
    found: dict[str, list[str]] = {}
    for each in _configs(read, topics):
        if each["name"] in _RETENTION_SETTINGS:
            doubt = f" ({_UNKNOWN}: {each['missing']})" if each["complete"] is False else ""
            found.setdefault(each["resource"], []).append(f"{each['name']}={each['value']}{doubt}")
    return {each: harmless(", ".join(found.get(each, ())) or nothing) for each in topics}


# How far groups' commits came.


def _figures(read: WorkspaceTables, topic: str, readers: int) -> Iterator[Figure]:
    """Yield a chart of the groups with the most commits, of those that the page shows.

    Args:
        read: `offset_history` of these groups.
        topic: Whose.
        readers: How many groups read it, or did.
    """
    if not read.has("offset_history"):
        return
    history = read.rows("offset_history", _DRAWN, pl.col("topic") == topic)
    commits = history.filter(
        pc.field("committed_offset").is_valid() & pc.field("effective_timestamp").is_valid()
    )
    if not commits.num_rows:
        return
    rows = pl.DataFrame(
        pl.from_arrow(commits.select(["group_id", "advance", "effective_timestamp"]))
    )
    rows = rows.with_columns(pl.col("group_id").cast(pl.String))
    most = rows.group_by("group_id").len().sort("len", "group_id", descending=[True, False])
    groups = sorted(most["group_id"].head(_MOST_LINES).to_list())
    named = labels(groups)
    lines = [line for group in groups for line in _line(rows, group, named[group])]
    first = max(lines, key=lambda row: int(row["records"]))
    number = max(readers, most.height)
    drawn = f"Of {len(groups):,} of {count(number, 'group')}, those that are drawn, "
    says = (
        f"{drawn if len(groups) < number else ''}{first['group']} came furthest: "
        f"{count(first['records'], 'record')} by {first['at']}.{doubt_said(commits)}"
    )
    yield from figure(
        f"{topic_anchor(topic)}-committed",
        "Records that groups' commits have passed since the first one here (UTC)",
        says,
        lines,
        records_committed,
    )


def _line(rows: pl.DataFrame, group: str, name: str) -> list[dict[str, Any]]:
    mine = rows.filter(pl.col("group_id") == group).sort("effective_timestamp")
    passed = mine.select(
        "effective_timestamp", pl.col("advance").fill_null(0).cum_sum().alias("records")
    ).unique("effective_timestamp", keep="last", maintain_order=True)
    step = max(1, -(-passed.height // _MOST_POINTS))
    few = pl.concat([passed.gather_every(step), passed.tail(1)]).unique(maintain_order=True)
    return [
        {"group": harmless(name), "at": at(time), "records": records}
        for time, records in few.iter_rows()
    ]
