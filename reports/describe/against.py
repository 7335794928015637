"""A saved output of Kafka's tool held against our rows.

Every row of either side counts. Cells that no dump shows at that instant are not compared, and
are counted. Groups that Kafka's tools cannot describe are never in a saved output.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.answer import rows_of
from reports.describe.groups import Source, only_groups, read_partitions
from reports.describe.tool_output import (
    CONSUMER,
    HEADS,
    KEYS,
    OFFSETS,
    SHARE,
    STREAMS,
    SavedOutput,
    View,
)
from reports.layout.cells import with_values
from reports.row_formats import Section, Text, render, rendered
from schemas.releases import release_key

SHOWN_AT_MOST = 20
UNRECORDED = ("PreparingRebalance", "CompletingRebalance")
"""States of classic groups that leave no record."""
UNVALIDATED = "NotReady"
"""What 4.1 takes a streams group for that it has loaded, until a member's next heartbeat."""
AROUND = frozenset({"log_end_offset", "lag", "offset_lag", "coordinator"})
"""Columns that the internal topics alone do not tell: not compared where nothing else does."""
_OF_STATE = frozenset({"state", "assignment_strategy"})
_LISTS = frozenset({"assignment", "assignments", "current_assignment", "target_assignment"})
_IN_PARENTHESES = re.compile(r"([^(),\s]*)\(([^()]*)\)")
_OF_TOPIC = re.compile(r"([\w.-]+):(\d+(?:,\d+(?![\w.:-]))*)", re.ASCII)
_HEADS = {"row": "ROW", "column": "COLUMN", "kafka": "KAFKA'S TOOL", "here": "HERE"}
CONSUMER_PROTOCOLS = ("", "consumer")
"""What kafka-consumer-groups lists groups of; connectors have another."""
REPARTITION = "-repartition"
"""How Kafka Streams ends the names of topics between its own subtopologies."""
Row = Mapping[str, Any]

EMPTY_ID = "Kafka's tools refuse the empty group id"
NUL = "no command line can name a group with a NUL in it"
_NO_COMMITS = "tools of old releases print nothing of a group without committed offsets"

_NEVER_COMMITTED: Final = "never_committed"
_KEY: Final = ("group", "topic", "partition")


@dataclass
class Comparison:
    """What came out.

    Attributes:
        total: Rows of either side.
        equal: Those that are on both sides with equal cells.
        differing: Key, column, the tool's value, ours; column None where one side has no row.
        not_compared: How many cells of a column were left out, by the column's head.
        refused: Groups that the saved output lacks, as the tool cannot describe them, with why.
    """

    total: int = 0
    equal: int = 0
    differing: list[tuple[str, str | None, Any, Any]] = field(default_factory=list)
    not_compared: Counter[str] = field(default_factory=Counter)
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Whether every row is equal."""
        return self.equal == self.total


def compare(
    saved: SavedOutput, view: View, ours: Iterable[Row], around: frozenset[str] = AROUND
) -> Comparison:
    """Hold a saved output against the rows of the same view.

    Args:
        saved: What the tool printed.
        view: What it printed of which groups.
        ours: Rows with every column of the view.
        around: Columns that are compared only where we know them.
    """
    keys = [name for name in KEYS[view] if name in saved.columns]
    theirs_by_key = _by_key(saved.rows, keys)
    ours_by_key = _by_key(ours, keys)
    result = Comparison()
    for key in sorted({*theirs_by_key, *ours_by_key}):
        theirs, mine = theirs_by_key.get(key, []), ours_by_key.get(key, [])
        for place in range(max(len(theirs), len(mine))):
            result.total += 1
            pair = [rows[place] if place < len(rows) else None for rows in (theirs, mine)]
            _compare_rows(" ".join(key), pair, saved.columns, around, result)
    return result


def _by_key(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple("-" if row[name] is None else str(row[name]) for name in keys)].append(row)
    return found


def _compare_rows(
    key: str,
    pair: Sequence[Row | None],
    names: Sequence[str],
    around: frozenset[str],
    result: Comparison,
) -> None:
    theirs, ours = pair
    if theirs is None or ours is None:
        there = "a row", "no row"
        result.differing.append((key, None, *(there if ours is None else there[::-1])))
        return
    before = len(result.differing)
    for name in names:
        if name not in theirs:
            # Printed for groups with such members only; for others there is nothing to compare.
            continue
        if _is_unknown(name, theirs, ours, around):
            result.not_compared[HEADS[name]] += 1
        elif _value(name, theirs[name]) != _value(name, ours[name]) and not _are_nameless(
            name, theirs[name], ours[name]
        ):
            result.differing.append((key, HEADS[name], theirs[name], ours[name]))
    result.equal += len(result.differing) == before


def _is_unknown(name: str, theirs: Row, ours: Row, around: frozenset[str]) -> bool:
    """Return whether nothing in a dump tells what the tool printed."""
    if name in around and ours[name] is None:
        return theirs[name] is not None
    if name not in _OF_STATE:
        return False
    is_rebalancing = theirs.get("state") in UNRECORDED and ours["group_type"] == "classic"
    return is_rebalancing or (name == "state" and ours["state"] == UNVALIDATED)


def _value(name: str, value: object) -> object:
    """Return what a cell means: blanks and the order in lists mean nothing."""
    if value is None or value == "":
        return None
    text = str(value).rstrip(" ")
    if name == "coordinator":
        return " ".join(text.split())
    if name in _LISTS:
        given = _partitions(text) if name != "assignments" else []
        return given or sorted(re.split(r"[;,]?\s+|[;,](?=[^\d\]])", text.strip().rstrip(";")))
    return text


def _partitions(text: str) -> list[str]:
    """Return each partition of a list by itself.

    Before 4.0 the tools write `topic(0,1)`, since then `topic:0,1`, that of 4.0 for share groups
    `topic:0,topic:1`: a tool of one release may have asked a broker of another.
    """
    lists = _OF_TOPIC.findall(_IN_PARENTHESES.sub(r"\1:\2", text))
    return sorted(f"{topic}:{number}" for topic, numbers in lists for number in numbers.split(","))


def _are_nameless(name: str, theirs: object, ours: object) -> bool:
    """Return whether lists are equal but for topics' names, which 3.8 and 3.9 leave out."""
    if name != "assignment" or theirs is None or ours is None:
        return False
    lists = [_IN_PARENTHESES.findall(str(each)) for each in (theirs, ours)]
    if not lists[0] or any(topic for topic, _ in lists[0]):
        return False
    numbers = [sorted(sorted(each.split(",")) for _, each in found) for found in lists]
    return numbers[0] == numbers[1]


def render_comparison(result: Comparison, output_format: str, said: Mapping[str, Any]) -> Text:
    """Return the verdict, and the rows that differ: in text the first of them.

    Args:
        result: What came out.
        output_format: ``text``, ``json``, ``csv`` or ``markdown``.
        said: What the JSON object has beside.
    """
    differing = pa.Table.from_pylist(
        [
            {
                name: None if cell is None else str(cell)
                for name, cell in zip(_HEADS, row, strict=True)
            }
            for row in result.differing
        ],
        pa.schema([(name, pa.string()) for name in _HEADS]),
    )
    if output_format == "json":
        counts = {
            "equal": result.equal,
            "total": result.total,
            "not_compared": dict(result.not_compared),
            "groups_not_compared": dict(result.refused),
        }
        return rendered([Section(differing, _HEADS)], output_format, {**said, **counts})
    if output_format == "csv":
        return rendered([Section(differing, _HEADS)], output_format, said)
    lines = [f"{result.equal:,} of {result.total:,} rows equal"]
    if result.not_compared:
        cells = ", ".join(f"{head} {count:,}" for head, count in result.not_compared.items())
        lines.append(f"cells that no dump shows at that instant, not compared: {cells}")
    lines += [
        f"group {group!r} is not compared: {why}" for group, why in sorted(result.refused.items())
    ]
    if result.differing:
        first = Section(differing.slice(0, SHOWN_AT_MOST), _HEADS)
        lines += ["", render([first], output_format, said)]
        if len(result.differing) > SHOWN_AT_MOST:
            lines.append(f"and {len(result.differing) - SHOWN_AT_MOST:,} more")
    return "\n".join(lines)


def view_of(saved: SavedOutput, source: Source) -> View:
    """Return what a tool printed of which groups, by the columns and by the types of the groups.

    Args:
        saved: With at least one of `views`.
        source: Tables at the instant asked about.
    """
    groups = saved.group_names

    def number_named(view: View) -> int:
        """Return how many of the groups are of the types that a tool describes."""
        return len(groups & set(source.groups_of(view.family)["group_id"].to_pylist()))

    return max(saved.views, key=number_named)


def printed_rows(
    saved: SavedOutput,
    view: View,
    source: Source,
    release: str,
    lag: pa.Table | None = None,
) -> pa.Table:
    """Return the rows that the tool prints of a view, as far as we know them.

    Args:
        saved: Says how much is printed.
        view: What is printed of which groups.
        source: Tables at the instant asked about.
        release: Of the tool.
        lag: The table `lag`: its numbers stand instead of those of `describe`.
    """
    is_verbose = "target_assignment_epoch" in saved.columns
    rows = rows_of(view, source, release, verbose=is_verbose)
    if lag is not None:
        rows = _with_numbers(rows, view, source.groups_of(view.family), lag)
    return _shown_by_kafka(rows, view, source, saved, release)


def compare_rows(
    saved: SavedOutput,
    view: View,
    rows: pa.Table,
    source: Source,
    release: str,
    *,
    not_described: Mapping[str, str],
    topics: Collection[str] | None,
) -> Comparison:
    """Hold a saved output against our rows, without what either side cannot have.

    Args:
        saved: What the tool printed.
        view: What it printed of which groups.
        rows: Ours, as `printed_rows` returns them.
        source: Tables at the instant asked about.
        release: Of the tool.
        not_described: Why groups that only the tool has rows of may have been there, by group.
        topics: Those that exist; None where that is not known.
    """
    groups = saved.group_names
    refused = dict(not_described)
    saved = saved.only(groups - refused.keys())
    absent = set(rows["group"].to_pylist()) - groups
    if absent:
        found = refused_by_kafka(view, source, topics, is_old=saved.is_old)
        refused |= {group: why for group, why in found.items() if group in absent}
        rows = rows.filter(pc.invert(pc.is_in(rows["group"], pa.array(refused, pa.string()))))
    around = AROUND | {"start_offset"} if _is_4_0(view, release) else AROUND
    result = compare(saved, view, rows.to_pylist(), around)
    return replace(result, refused=refused)


def _shown_by_kafka(
    rows: pa.Table, view: View, source: Source, saved: SavedOutput, release: str
) -> pa.Table:
    """Leave out the rows that Kafka's tool does not print, though the coordinator knows them."""
    if view.family == CONSUMER:
        protocols = pc.fill_null(source.groups["protocol_type"], "")
        known = source.groups.filter(pc.is_in(protocols, pa.array(CONSUMER_PROTOCOLS)))
        return rows.filter(pc.is_in(rows["group"], known["group_id"].combine_chunks()))
    if view.what == OFFSETS and view.family == STREAMS:
        read = read_partitions(source).rename_columns(["group", "topic", "partition"])
        rows = rows.join(read, ["group", "topic", "partition"], join_type="left semi")
        return rows if _are_inner_commits_shown(saved, release) else _as_4_1(rows)
    return _as_4_0(rows, source) if _is_4_0(view, release) else rows


def _is_4_0(view: View, release: str) -> bool:
    """Return whether the tool prints lengths of logs as START-OFFSET, as that of 4.0 does."""
    return view == View(SHARE, OFFSETS) and release_key(release) < (4, 1)


def _are_inner_commits_shown(saved: SavedOutput, release: str) -> bool:
    """Return whether the tool shows commits of repartition topics: that of 4.1 does not."""
    inner = [row for row in saved.rows if (row["topic"] or "").endswith(REPARTITION)]
    if "current_offset" in saved.columns and inner:
        return any(row["current_offset"] is not None for row in inner)
    return release_key(release) >= (4, 2)


def _as_4_1(rows: pa.Table) -> pa.Table:
    """Return offsets of streams groups as 4.1 has them: commits of source topics alone."""
    is_inner = pc.ends_with(rows["topic"], REPARTITION)
    for name in ("current_offset", "leader_epoch"):
        kept = pc.if_else(is_inner, pa.scalar(None, rows[name].type), rows[name])
        rows = with_values(rows, name, kept)
    return rows


def _as_4_0(rows: pa.Table, source: Source) -> pa.Table:
    """Return offsets of share groups as 4.0 has them: the length of each log a member reads."""
    given = only_groups(source.assignments, source.groups_of(SHARE))
    given = given.rename_columns(
        ["group" if name == "group_id" else name for name in given.column_names]
    )
    keys = ["group", "topic", "partition"]
    owned = given.filter(pc.equal(given["kind"], "current")).select(keys)
    rows = owned.group_by(keys).aggregate([])
    rows = rows.join(source.ends, ["topic", "partition"], join_type="left outer")
    length = pc.subtract(rows["log_end_offset"], rows["log_start_offset"])
    return rows.append_column("start_offset", length)


def refused_by_kafka(
    view: View,
    source: Source,
    topics: Collection[str] | None = None,
    *,
    is_old: bool = False,
) -> dict[str, str]:
    """Return the groups that a tool cannot describe in a view, each with why.

    Args:
        view: What is described.
        source: Tables at the instant asked about.
        topics: Those that exist; None where that is not known.
        is_old: The tool is of a release that prints no column GROUP.
    """
    found: dict[str, str] = {}
    if is_old and view == View(CONSUMER, OFFSETS):
        committed = set(source.committed["group_id"].to_pylist())
        found |= dict.fromkeys({*source.groups["group_id"].to_pylist()} - committed, _NO_COMMITS)
    if view == View(CONSUMER, OFFSETS) and topics is not None:
        for each in source.assignments.select(["group_id", "topic"]).to_pylist():
            if each["topic"] is not None and each["topic"] not in topics:
                found[each["group_id"]] = (
                    f"the tool fails as topic {each['topic']}, which a member owns, does not exist"
                )
    if view.family == CONSUMER:
        for each in _unread_by_kafka(source):
            found[each] = "the tool fails as it cannot read what a member was given"
    for group in source.groups["group_id"].to_pylist():
        if not group:
            found[group] = EMPTY_ID
        elif "\0" in group:
            found[group] = NUL
    return found


def _unread_by_kafka(source: Source) -> list[str]:
    members = source.members
    refused = pc.or_(
        pc.is_valid(members["assignment_fields_written"]), pc.is_valid(members["unread"])
    )
    groups: list[str] = members.filter(refused)["group_id"].to_pylist()
    return groups


def _with_numbers(rows: pa.Table, view: View, groups: pa.Table, lag: pa.Table) -> pa.Table:
    """Return the rows of a view with the numbers that the table `lag` has.

    Args:
        rows: Of `describe`: whose a partition is, and what a client said of itself.
        view: Offsets of consumer or of streams groups.
        groups: The groups that the tool describes: `group_id`.
        lag: The table `lag`.

    Returns:
        `current_offset`, `log_end_offset` and `lag` (`offset_lag`) from `lag`, everything else from
        `rows`. What only `rows` has is left out, and what only `lag` has has nothing but these
        numbers: a comparison finds either.
    """
    ours = lag.filter(pc.is_in(lag["group_id"], groups["group_id"].combine_chunks()))
    numbers = _as_printed(ours, is_streams=view.family == STREAMS)
    beside = [
        name for name in rows.column_names if name in _KEY or name not in numbers.schema.names
    ]
    found = numbers.join(rows.select(beside), list(_KEY), join_type="left outer")
    return found.select(rows.column_names)


def _as_printed(lag: pa.Table, *, is_streams: bool) -> pa.Table:
    """Return what Kafka's tool prints of these numbers, a row for each partition of a group.

    It has no row for what is neither committed nor owned. Of what was never committed
    kafka-consumer-groups prints no lag, kafka-streams-groups what the log holds.
    """
    is_there = pc.or_(pc.not_equal(lag["kind"], _NEVER_COMMITTED), pc.is_valid(lag["owners"]))
    there = lag.filter(is_there)
    number = there["lag"]
    if not is_streams:
        number = pc.if_else(pc.is_valid(there["committed_offset"]), number, None)
    return pa.table(
        {
            "group": there["group_id"],
            "topic": there["topic"],
            "partition": there["partition"],
            "current_offset": there["committed_offset"],
            "log_end_offset": there["log_end_offset"],
            "offset_lag" if is_streams else "lag": number,
        }
    )
