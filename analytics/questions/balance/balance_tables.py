"""The tables about balance, made of a replayed workspace, some groups at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.compute as pc

from analytics.contracts import polars_rows, table_of
from analytics.engine.part_runs import PartAnswer
from analytics.gaps.internal_topics import are_some_topics
from analytics.questions.balance.at_instant import (
    TOLD_BY,
    cases_at,
    counts_in_records,
    has_metadata_log,
    highest_seen,
    partition_counts,
    topic_sizes,
    with_epoch,
    with_progress,
)
from analytics.questions.balance.evaluated import ALTERNATIVES, BALANCE, judged, tables_of
from analytics.questions.balance.through_history import cases_of_history
from analytics.replay.log.ends_at import leading
from analytics.replay.metadata_log import AROUND
from analytics.replayed.group_rows import StoredGroups
from analytics.replayed.records import Records
from analytics.replayed.whole_groups import stored_parts, whole_group_parts
from analytics.tables.parted_table import BY_GROUP, PartedTable, by_group
from analytics.tables.stored_tables import StoredTables
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.questions.balance.through_history import Following, HeldInEpochs
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.evaluation_rules import BalanceRules

# The tables about balance: what each is made of, at an instant or through history.

_NOTHING: Final[Mapping[int, int]] = MappingProxyType({})


@dataclass(frozen=True)
class Topics:
    """What is known of topics and of what groups want of them, of all groups.

    Attributes:
        counts: `partition_counts`.
        expressions: `resolved_expressions`.
        parts: `subtopologies`.
    """

    counts: pl.DataFrame
    expressions: pl.DataFrame
    parts: pl.DataFrame


def cases_now(
    tables: Mapping[str, pl.DataFrame],
    topics: Topics,
    compacted_until: Mapping[int, int] = _NOTHING,
) -> pl.DataFrame:
    """Return the groups with members at an instant, as `case_rows.case_of` reads them.

    Args:
        tables: `groups`, `members`, `assignments`, `topics`, `share_partitions`, `group_epochs`;
            `commits`: rows of `offset_history` as `with_progress` takes them.
        topics: What is known of them.
        compacted_until: As `with_progress` takes it.
    """
    cases = cases_at(tables, topics.counts, topics.expressions, topics.parts)
    dated = with_epoch(cases, tables["group_epochs"])
    return with_progress(dated, tables["commits"], compacted_until)


def cases_ever(
    tables: Mapping[str, pl.DataFrame],
    topics: Topics,
    sizes: pl.DataFrame,
    compacted_until: Mapping[int, int] = _NOTHING,
) -> pl.DataFrame:
    """Return the groups in every epoch in which they had members, likewise.

    Args:
        tables: `topics`, `share_partitions`, `group_epochs`, `commits` as above, and `held`: what
            members held, as `cases_of_history` takes it.
        topics: What is known of them.
        sizes: `topic_sizes`.
        compacted_until: As `with_progress` takes it.
    """
    cases = cases_of_history(
        tables["group_epochs"], tables["held"], sizes, tables, topics.expressions, topics.parts
    )
    return with_progress(cases, tables["commits"], compacted_until)


# What members of groups want, beyond what their own records name.


def resolved_expressions(records: pl.DataFrame) -> pl.DataFrame:
    """Return the topics that regular expressions stand for, as the coordinator resolved them.

    Args:
        records: Of `consumer_group_regular_expression`, cut at the instant: `partition`, `offset`,
            `is_tombstone`, `key`, `value`.

    Returns:
        `group_id`, `subscribed_regex`, `resolved` (list of topic names).
    """
    key, value = pl.col("key").struct, pl.col("value").struct
    named = records.with_columns(
        key.field("group_id"), key.field("regular_expression").alias("subscribed_regex")
    )
    return _in_force(named, ("group_id", "subscribed_regex")).select(
        "group_id", "subscribed_regex", value.field("topics").alias("resolved")
    )


def subtopologies(records: pl.DataFrame) -> pl.DataFrame:
    """Return what each subtopology of a streams group reads.

    Args:
        records: Of `streams_group_topology`, cut at the instant: `partition`, `offset`,
            `is_tombstone`, `key`, `value`.

    Returns:
        `group_id`, `subtopology_id`, `sources` (list of topic names), `by_regex` (boolean: some
        topics are named by regular expressions only).
    """
    named = records.with_columns(pl.col("key").struct.field("group_id"))
    part = pl.col("part").struct
    repartitioned = part.field("repartition_source_topics").list.eval(
        pl.element().struct.field("name")
    )
    return (
        _in_force(named, ("group_id",))
        .select("group_id", pl.col("value").struct.field("subtopologies").alias("part"))
        .explode("part")
        .drop_nulls("part")
        .select(
            "group_id",
            part.field("subtopology_id"),
            pl.concat_list(part.field("source_topics"), repartitioned).alias("sources"),
            (part.field("source_topic_regex").list.len() > 0).alias("by_regex"),
        )
    )


def _in_force(records: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Return the last record of each key that is no tombstone."""
    return (
        records.sort("partition", "offset")
        .group_by("partition", *key, maintain_order=True)
        .last()
        .filter(~pl.col("is_tombstone"))
    )


AT_ONCE: Final = 1_000_000
"""So many rows of whole groups are looked at together, about."""
ORDERS: Final = {BALANCE: BY_GROUP, ALTERNATIVES: BY_GROUP}

_EPOCHS: Final = (
    *("group_id", "group_type", "epoch", "assignment_epoch", "protocol_type", "protocol"),
    *("partitions_assigned", "partitions_moved", "member_count", "life"),
    *("coordinator_partition", "from_offset", "from_timestamp", "to_timestamp"),
)
_COMMITS: Final = (
    *("group_id", "topic", "partition", "advance", "effective_timestamp"),
    "coordinator_partition",
)
_SHARES: Final = ("group_id", "topic", "partition", "phase")
_NOW: Final = {
    "groups": (
        *("group_id", "group_type", "epoch", "assignment_epoch", "protocol_type", "protocol"),
        *("member_count", "missing"),
    ),
    "members": (
        *("group_id", "group_type", "member_id", "group_instance_id", "rack_id", "member_epoch"),
        *("state", "unread", "subscribed_topics", "subscribed_regex"),
    ),
    "assignments": (
        *("group_id", "member_id", "kind", "role", "subtopology_id", "topic", "topic_id"),
        "partition",
    ),
    "share_partitions": _SHARES,
    "group_epochs": _EPOCHS,
}
_EVER: Final = {"share_partitions": _SHARES, "group_epochs": _EPOCHS}
_OF_GROUPS: Final = (*_EVER, "commits")
_COMMITTED: Final = ("committed_offsets", "pending_offsets")
HISTORY: Final = "offset_history"
_OF_METADATA: Final = ("topic", "offset", "timestamp", "segment")
_KEYED: Final = ("partition", "offset", "is_tombstone", "key", "value")
_COUNTED: Final = ("consumer_group_partition_metadata", "share_group_partition_metadata")
NEEDS: Final = (*_NOW, *_COMMITTED, "topics")


@dataclass(frozen=True)
class Judging:
    """What cases are judged by that is the same for all groups.

    Attributes:
        topics: The state table.
        of_topics: What is known of them.
        compacted_until: By partition of the offsets topic the offset before which compaction took
            records.
        rules: Bands.
        gaps: Groups of which the dump lacks records that may matter, with why.
    """

    topics: pl.DataFrame
    of_topics: Topics
    compacted_until: Mapping[int, int]
    rules: BalanceRules
    gaps: Mapping[str, str]

    def tables_of(self, cases: pl.DataFrame) -> PartAnswer:
        """Return both tables of the cases of some whole groups."""
        made = tables_of([judged(cases, self.rules, self.gaps)])
        return PartAnswer({name: by_group(polars_rows(rows)) for name, rows in made.items()})


def tables_now(
    state: ReplayedWorkspace, rules: BalanceRules, gaps: Mapping[str, str]
) -> Mapping[str, PartedTable]:
    """Return both tables of the groups at the instant.

    Args:
        state: A replayed workspace.
        rules: Bands.
        gaps: Groups of which the dump lacks records that may matter, with why.
    """
    judging = _judging(state, Records(state), rules, gaps)
    tables, needed = state.tables, _NOW
    # What commits advanced takes longer to find out than all else: it is told where it is there.
    # Where offsets of some topics only are looked at, there are none: a member's share of the work
    # is of all that it reads.
    if tables.has(HISTORY) and not are_some_topics(state.manifest, tables.selection):
        needed = {**_NOW, HISTORY: _COMMITS}
    work = partial(now_of_part, judging)
    runner = state.runner
    with stored_parts(tables, needed, AT_ONCE, runner.folder) as parts:
        return runner.run(work, parts, ORDERS).tables


def now_of_part(judging: Judging, rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    """Return both tables of some whole groups at the instant.

    Args:
        judging: By what.
        rows: `_NOW` of theirs, and where commits are looked at `_COMMITS` of `HISTORY`.
    """
    commits = polars_rows(table_of(HISTORY, []).select(_COMMITS))
    if HISTORY in rows:
        commits = rows[HISTORY].filter(pl.col("advance") > 0)
    known = {**rows, "topics": judging.topics, "commits": commits}
    return judging.tables_of(cases_now(known, judging.of_topics, judging.compacted_until))


def tables_ever(
    state: ReplayedWorkspace, held: HeldInEpochs, rules: BalanceRules, gaps: Mapping[str, str]
) -> Mapping[str, PartedTable]:
    """Return both tables of the groups in every epoch.

    Args:
        state: A replayed workspace.
        held: What members held.
        rules: Bands.
        gaps: Groups of which the dump lacks records that may matter, with why.
    """
    records, tables = Records(state), state.tables
    judging = _judging(state, records, rules, gaps)
    sizes = topic_sizes(_metadata(records), judging.of_topics.counts)
    stored = {name: StoredGroups(tables, name, columns) for name, columns in _EVER.items()}
    wanted = pc.field("advance") > 0
    if are_some_topics(state.manifest, tables.selection):
        wanted = pc.scalar(value=False)
    stored["commits"] = StoredGroups(tables, HISTORY, _COMMITS, wanted)
    rows = held.count + sum(tables.count(each.name, where=each.where) for each in stored.values())
    at_once = held.at_once(rows, AT_ONCE)
    work = partial(ever_of_part, judging, held.following, sizes)
    runner = state.runner
    with whole_group_parts(
        {**held.records, **stored}, at_once, runner.folder, held.count, runner.run_tasks
    ) as parts:
        return runner.run(work, parts, ORDERS).tables


def ever_of_part(
    judging: Judging, following: Following, sizes: pl.DataFrame, rows: Mapping[str, pl.DataFrame]
) -> PartAnswer:
    """Return both tables of some whole groups in every epoch.

    Args:
        judging: By what.
        following: Finds out what members held.
        sizes: Of `topic_sizes`.
        rows: Records of theirs as `following` takes them, `_EVER`, and commits as `commits`.
    """
    some = following.held_of(rows)
    there = some.select("group_id").unique()
    mine = {name: rows[name].join(there, on="group_id", how="semi") for name in _OF_GROUPS}
    known = {**mine, "topics": judging.topics, "held": some}
    return judging.tables_of(cases_ever(known, judging.of_topics, sizes, judging.compacted_until))


def _judging(
    state: ReplayedWorkspace,
    records: Records,
    rules: BalanceRules,
    gaps: Mapping[str, str],
) -> Judging:
    of_topics = _topics_of(state, records)
    return Judging(_topics(state), of_topics, _compacted_until(state), rules, gaps)


def _compacted_until(state: ReplayedWorkspace) -> dict[int, int]:
    """Return by partition of the offsets topic the offset before which compaction took records."""
    return {
        each["partition"]: start
        for each in leading(state.manifest)
        if each["topic"] == CONSUMER_OFFSETS and (start := each.get("complete_from"))
    }


def _topics(state: ReplayedWorkspace) -> pl.DataFrame:
    return polars_rows(state.tables.read("topics"))


def _topics_of(state: ReplayedWorkspace, records: Records) -> Topics:
    # How many partitions a topic has any group may show, whichever are asked about.
    everything = state.of_everything
    every = Records(everything)
    in_records = (every.rows(name, {"topics": "value.topics"}) for name in _COUNTED)
    topics = _topics(state)
    used = () if has_metadata_log(topics) else _used_partitions(everything.tables)
    counts = partition_counts(topics, counts_in_records(in_records), highest_seen(used))
    keyed = {each: each for each in _KEYED}
    return Topics(
        counts,
        resolved_expressions(records.rows("consumer_group_regular_expression", keyed)),
        subtopologies(records.rows("streams_group_topology", keyed)),
    )


def _used_partitions(tables: StoredTables) -> Iterator[pl.DataFrame]:
    """Yield topics and partitions that members have, or that offsets are committed for."""
    columns = ("topic", "topic_id", "partition")
    for piece in tables.pieces("assignments", columns, pc.field("subtopology_id").is_null()):
        yield polars_rows(piece).with_columns(pl.coalesce("topic", "topic_id").alias("topic"))
    for name in _COMMITTED:
        for piece in tables.pieces(name, ("topic", "partition"), pc.scalar(value=True)):
            yield polars_rows(piece)


def _metadata(records: Records) -> dict[str, pl.DataFrame]:
    plain = {each: each for each in _OF_METADATA}
    return {
        **{name: records.rows(name, plain, CLUSTER_METADATA) for name in AROUND},
        **{
            name: records.rows(name, {**plain, "value": "value"}, CLUSTER_METADATA)
            for name in TOLD_BY
        },
    }
