"""What is known of a state that offsets are taken from, or given back to."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.engine.cut_tables import Cut
from analytics.questions.diff.paired import LEFT_OUT_TOPICS
from analytics.questions.restore.data_logs import DataLog, Logs, logs_of
from analytics.questions.restore.plan import COMMITTED, KEY, UNCLEAN, State
from analytics.replay.history.data_partitions import unclean_takeovers
from analytics.replay.metadata.metadata_log import metadata_log
from analytics.replay.metadata.topics import METADATA_LOG, RECORD, SOURCES
from analytics.replayed.end_offsets import end_offsets_at, true_copies
from analytics.replayed.records_at import CutRecords
from analytics.replayed.replayed_workspace import replayed_instant
from analytics.tables.stored_tables import StoredTables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.replayed.replayed_workspace import ReplayedWorkspace

GROUPS = (
    *("group_id", "group_type", "protocol_type", "state", "member_count"),
    *("coordinator_partition", "complete", "missing"),
)
SHARES = (*KEY, "start_offset")


def restore_state(
    state: ReplayedWorkspace,
    incomplete_groups: pa.Table,
    logs: Logs,
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> State:
    """Read what the plan is made of.

    Args:
        state: At its instant.
        incomplete_groups: `group_id`, `reason`: groups of which it does not tell all.
        logs: Of the data partitions.
        left_out: By topic, why the state has no offset of it.
    """
    topics = StoredTables(state.tables.workspace).read(
        "topics", ["topic", "topic_id", "partitions", "deleted_at", "source"]
    )
    return State(
        # A commit below 0 is none: there is nothing to bring back, and nothing that is there.
        committed=state.tables.read(
            "committed_offsets", COMMITTED, pc.is_valid(pc.field("committed_offset"))
        ),
        pending=state.tables.read("pending_offsets", [*KEY, "transactional_id", "missing"]),
        topics=topics_there(topics),
        incomplete_groups=incomplete_groups,
        logs=logs,
        knows_topics=METADATA_LOG in topics["source"].to_pylist(),
        left_out_topics=pa.table(
            {"topic": list(left_out), "left_out": list(left_out.values())}, schema=LEFT_OUT_TOPICS
        ),
    )


def topics_there(topics: pa.Table) -> pa.Table:
    """Return the topics that are there, one row a name, as `State` has them.

    Where sources name different ids, the best of them is believed. A topic that only records of
    groups name, where there is a metadata log that does not have it, was deleted before that log
    begins, or made after it ends: `is_only_named`.

    Args:
        topics: Of the table `topics`: `topic`, `topic_id`, `partitions`, `deleted_at`, `source`.
    """
    named = topics.filter(pc.and_(pc.is_valid(topics["topic"]), pc.is_null(topics["deleted_at"])))
    named = named.append_column("rank", pc.index_in(named["source"], pa.array(SOURCES)))
    names = named.group_by("topic").aggregate([("rank", "min"), ("partitions", "max")])
    best = named.select(["topic", "topic_id", "rank"]).join(names, "topic")
    ids = (
        best.filter(pc.equal(best["rank"], best["rank_min"]))
        .group_by(["topic", "partitions_max", "rank_min"])
        .aggregate([("topic_id", "max"), ("topic_id", "count_distinct")])
    )
    several = pc.greater(ids["topic_id_count_distinct"], 1)
    metadata = topics.filter(pc.equal(topics["source"], METADATA_LOG))["topic"]
    is_only_named = pc.and_(
        pc.equal(ids["rank_min"], SOURCES.index(RECORD)),
        pa.scalar(len(metadata) > 0),
    )
    return pa.table(
        {
            "topic": ids["topic"],
            "topic_id": pc.if_else(several, None, ids["topic_id_max"]),
            "partitions": ids["partitions_max"],
            "has_several_ids": several,
            "is_only_named": is_only_named,
        }
    )


def past_logs(state: ReplayedWorkspace) -> Logs:
    """Return the logs that offsets of the past were committed for, with their epochs.

    A log only grows, so what lies beside the dump serves for every instant before its end.
    """
    return {key: _log(copies) for key, copies in true_copies(state).items()}


def present_logs(state: ReplayedWorkspace, end_offsets: str | None) -> Logs:
    """Return the logs that offsets are brought back to.

    Args:
        state: The present.
        end_offsets: A side file, which goes before what lies beside the dump.
    """
    logs = logs_of(end_offsets_at(state, end_offsets))
    copies = true_copies(state) if state.is_end else {}
    for key, held in copies.items():
        known, beside = logs.get(key, DataLog()), _log(held)
        end = known.log_end_offset if known.log_end_offset is not None else beside.log_end_offset
        logs[key] = DataLog(known.log_start_offset, end, beside.epochs)
    return logs


def unclean_elections(state: ReplayedWorkspace) -> pa.Table:
    """Return the unclean elections of data partitions, as `restore_plan` takes them."""
    instant = replayed_instant(state.as_of, state.frames)
    log = metadata_log(Cut(CutRecords(state), instant).whole())
    topics = StoredTables(state.tables.workspace).read("topics", ["topic", "topic_id"])
    found = unclean_takeovers(log, pl.DataFrame(topics))
    return found.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(UNCLEAN)


def _log(copies: list[Any]) -> DataLog:
    end = min(each["log_end_offset"] for each in copies)
    # A leader writes an epoch down when it begins, a follower with the first record of it.
    epochs = max((each.get("leader_epochs") or () for each in copies), key=len)
    pairs = tuple((int(epoch), int(start)) for epoch, start in epochs)
    return DataLog(log_end_offset=end, epochs=pairs)
