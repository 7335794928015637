"""The tables about balance, made of a replayed workspace, some groups at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import table_of
from analytics.gaps.workspace_parts import are_some_topics
from analytics.questions.balance.cases.partition_counts import (
    counts_in_records,
    highest_seen,
    partition_counts,
)
from analytics.questions.balance.cases.subscriptions import resolved_expressions, subtopologies
from analytics.questions.balance.cases.topic_sizes import TOLD_BY, topic_sizes
from analytics.questions.balance.evaluated import JudgedCases, judged, tables_of
from analytics.questions.balance.tables import Topics, cases_ever, cases_now
from analytics.replay.log.losses_at import leading
from analytics.replay.metadata.metadata_log import AROUND
from analytics.replayed.records_at import CountedRecords
from analytics.replayed.whole_groups import (
    GroupPart,
    frame_of,
    group_buckets,
    group_parts,
    stored_rows,
)
from analytics.tables.stored_tables import StoredTables
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.questions.balance.held_in_epochs import HeldInEpochs
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.evaluation_rules import BalanceRules

_THREADS: Final = 2
"""Much of a part is work of one core."""

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
_COMMITTED: Final = ("committed_offsets", "pending_offsets")
HISTORY: Final = "offset_history"
_OF_METADATA: Final = ("topic", "offset", "timestamp", "segment")
_KEYED: Final = ("partition", "offset", "is_tombstone", "key", "value")
_COUNTED: Final = ("consumer_group_partition_metadata", "share_group_partition_metadata")
NEEDS: Final = (*_NOW, *_COMMITTED, "topics")


def tables_now(
    state: ReplayedWorkspace, rules: BalanceRules, gaps: Mapping[str, str]
) -> dict[str, pa.Table]:
    """Return both tables of the groups at the instant.

    Args:
        state: A replayed workspace.
        rules: Bands.
        gaps: Groups of which the dump lacks records that may matter, with why.
    """
    records = CountedRecords(state)
    topics, of_topics = _topics(state), _topics_of(state, records)
    compacted = _compacted_until(state)
    cases = (
        cases_now({**bucket, "topics": topics}, of_topics, compacted)
        for bucket in _buckets(state, _NOW)
    )
    return tables_of([judged(each, rules, gaps) for each in cases])


def tables_ever(
    state: ReplayedWorkspace, held: HeldInEpochs, rules: BalanceRules, gaps: Mapping[str, str]
) -> dict[str, pa.Table]:
    """Return both tables of the groups in every epoch.

    Args:
        state: A replayed workspace.
        held: What members held.
        rules: Bands.
        gaps: Groups of which the dump lacks records that may matter, with why.
    """
    records, tables = CountedRecords(state), state.tables
    topics, of_topics = _topics(state), _topics_of(state, records)
    sizes = topic_sizes(_metadata(records), of_topics.counts)
    compacted = _compacted_until(state)

    def judged_part(part: GroupPart) -> JudgedCases:
        found = part()
        some = held.of(found)
        there = some.select("group_id").unique()
        mine = {name: found[name].join(there, on="group_id", how="semi") for name in stored}
        cases = cases_ever({**mine, "topics": topics, "held": some}, of_topics, sizes, compacted)
        return judged(cases, rules, gaps)

    stored = {name: stored_rows(tables, name, columns) for name, columns in _EVER.items()}
    wanted = pc.field("advance") > 0
    if are_some_topics(state.manifest, tables.selection):
        wanted = pc.scalar(value=False)
    stored["commits"] = stored_rows(tables, HISTORY, _COMMITS, wanted)
    with (
        group_parts({**held.rows(), **stored}, held.parts) as parts,
        ThreadPoolExecutor(_THREADS) as threads,
    ):
        found = list(threads.map(judged_part, parts))
    return tables_of(found)


def _buckets(
    state: ReplayedWorkspace, needed: Mapping[str, tuple[str, ...]]
) -> Iterator[dict[str, pl.DataFrame]]:
    """Yield tables of whole groups, with the commits that advanced anything as `commits`.

    Where offsets of some topics only are looked at, there are none: a member's share of the work is
    of all that it reads.
    """
    tables = state.tables
    # What commits advanced takes longer to find out than all else: it is told where it is there.
    if not tables.has(HISTORY) or are_some_topics(state.manifest, tables.selection):
        nothing = table_of(HISTORY, []).select(_COMMITS)
        for bucket in group_buckets(tables, needed):
            yield {**bucket, "commits": frame_of(nothing)}
        return
    for bucket in group_buckets(tables, {**needed, HISTORY: _COMMITS}):
        yield {**bucket, "commits": bucket[HISTORY].filter(pl.col("advance") > 0)}


def _compacted_until(state: ReplayedWorkspace) -> dict[int, int]:
    """Return by partition of the offsets topic the offset before which compaction took records."""
    return {
        each["partition"]: each["complete_from"]
        for each in leading(state.manifest)
        if each["topic"] == CONSUMER_OFFSETS and each.get("complete_from")
    }


def _topics(state: ReplayedWorkspace) -> pl.DataFrame:
    return frame_of(state.tables.read("topics"))


def _topics_of(state: ReplayedWorkspace, records: CountedRecords) -> Topics:
    told = (records.rows(name, {"topics": "value.topics"}) for name in _COUNTED)
    counts = partition_counts(
        _topics(state), counts_in_records(told), highest_seen(_used_partitions(state.tables))
    )
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
        yield frame_of(piece).with_columns(pl.coalesce("topic", "topic_id").alias("topic"))
    for name in _COMMITTED:
        for piece in tables.pieces(name, ("topic", "partition"), pc.scalar(value=True)):
            yield frame_of(piece)


def _metadata(records: CountedRecords) -> dict[str, pl.DataFrame]:
    plain = {each: each for each in _OF_METADATA}
    return {
        **{name: records.rows(name, plain, CLUSTER_METADATA) for name in AROUND},
        **{
            name: records.rows(name, {**plain, "value": "value"}, CLUSTER_METADATA)
            for name in TOLD_BY
        },
    }
