"""The tables that `describe` makes its rows of, read from a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.coordinators import coordinators
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.share.backlog.share_lag import with_share_lag
from analytics.replayed.end_offsets import end_offsets_at
from analytics.replayed.records_at import records_at
from analytics.tables.stored_tables import StoredTables
from reports.describe.source import Source, only_groups, without_incomplete

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed

NEEDS = (
    "groups",
    "members",
    "assignments",
    "committed_offsets",
    "share_partitions",
    "topics",
    "partition_leaders",
)
"""The tables that are read."""

_MEMBERS = (
    *("group_id", "member_id", "group_instance_id", "client_id", "client_host", "member_epoch"),
    *("is_classic", "process_id", "topology_epoch", "assignment_fields_written", "missing"),
    "unread",
)
_ASSIGNMENTS = (
    *("group_id", "member_id", "kind", "role", "subtopology_id", "topic", "topic_id"),
    "partition",
)
_COMMITTED = (
    *("group_id", "topic", "partition", "committed_offset", "committed_leader_epoch"),
    *("complete", "missing"),
)
_SHARES = (
    *("group_id", "topic", "topic_id", "partition", "phase", "leader_epoch", "start_offset"),
    "delivery_complete_count",
)


def describe_source(
    replayed: Replayed,
    groups: pa.Table,
    end_offsets: str | None,
    console: Console,
    *,
    is_few: bool = False,
) -> Source:
    """Read what describes the groups.

    Args:
        replayed: At the instant asked about.
        groups: Rows of the table `groups`.
        end_offsets: A side file, or None.
        console: Where it is told which topics have no name.
        is_few: The groups are few, and no rows of others are read.
    """
    tables = replayed.tables
    few = pc.field("group_id").isin(groups["group_id"].combine_chunks()) if is_few else None
    given = only_groups(tables.read("assignments", _ASSIGNMENTS, few), groups)
    shares = only_groups(tables.read("share_partitions", _SHARES, few), groups)
    gone = topics_gone(replayed)
    ends = end_offsets_at(replayed, end_offsets)
    return Source(
        groups=groups,
        members=tables.read("members", _MEMBERS, few),
        assignments=named(_alive(given, gone), console),
        committed=without_incomplete(tables.read("committed_offsets", _COMMITTED, few)),
        shares=with_share_lag(named(_alive(shares, gone), console), ends),
        ends=ends,
        coordinators=coordinators(replayed),
        inputs=subtopology_inputs(replayed),
        lost=lost_offsets(replayed, groups),
    )


def lost_offsets(replayed: Replayed, groups: pa.Table) -> dict[str, str]:
    """Return by group why an offset that is not there may have been committed all the same.

    Args:
        replayed: At the instant asked about.
        groups: Rows of the table `groups`.
    """
    untold = GroupCompleteness(replayed)
    if not untold.losses:
        return {}
    found = {name: untold.lost_offsets(name) for name in groups["group_id"].to_pylist()}
    return {name: why for name, why in found.items() if why is not None}


def bare_source(replayed: Replayed) -> Source:
    """Return a source without groups and offsets, to be given the groups of another moment."""
    none = pa.table({})
    return Source(none, none, none, none, none, none, coordinators(replayed))


def topics_gone(replayed: Replayed) -> pa.Array:
    """Return the ids of topics that were deleted before the instant: a broker leaves them out."""
    topics = StoredTables(replayed.tables.workspace).read(
        "topics", ["topic_id"], pc.field("deleted_at").is_valid()
    )
    return topics["topic_id"].combine_chunks().drop_null()


def _alive(rows: pa.Table, gone: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["topic_id"], gone)))


def named(rows: pa.Table, console: Console) -> pa.Table:
    """Let the id stand for a topic that the dump cannot name."""
    nameless = pc.and_(pc.is_null(rows["topic"]), pc.is_valid(rows["topic_id"]))
    ids = pc.unique(rows.filter(nameless)["topic_id"]).to_pylist()
    for topic_id in ids:
        console.warn(f"the dump has no name for topic {topic_id}: --topic-ids gives it one")
    place = rows.column_names.index("topic")
    return rows.set_column(place, "topic", pc.coalesce(rows["topic"], rows["topic_id"]))


def subtopology_inputs(replayed: Replayed) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the topics that each subtopology of a streams group reads."""
    records = records_at(replayed, "streams_group_topology", ["key", "value"])
    latest: dict[str, Any] = {}
    for key, value in zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True):
        latest[key["group_id"]] = value
    return {
        group: {
            each["subtopology_id"]: (
                *(each["source_topics"] or ()),
                *(topic["name"] for topic in each["repartition_source_topics"] or ()),
            )
            for each in value["subtopologies"] or ()
        }
        for group, value in latest.items()
        if value is not None
    }
