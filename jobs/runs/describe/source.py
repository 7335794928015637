"""The tables that `describe` makes its rows of, read from a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.coordinators import coordinators
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.share.backlog.share_lag import with_share_lag
from analytics.replayed.end_offsets import end_offsets_at
from analytics.replayed.subtopology_inputs import subtopology_inputs
from analytics.replayed.topic_names import topics_gone, with_names
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
    (given, unnamed), (shares, others) = (
        with_names(_alive(rows, gone)) for rows in (given, shares)
    )
    for each in dict.fromkeys((*unnamed, *others)):
        console.warn(each)
    ends = end_offsets_at(replayed, end_offsets)
    return Source(
        groups=groups,
        members=tables.read("members", _MEMBERS, few),
        assignments=given,
        committed=without_incomplete(tables.read("committed_offsets", _COMMITTED, few)),
        shares=with_share_lag(shares, ends),
        ends=ends,
        coordinators=coordinators(replayed),
        inputs=subtopology_inputs(replayed),
        lost=GroupCompleteness(replayed).lost_offsets_of(groups),
    )


def bare_source(replayed: Replayed) -> Source:
    """Return a source without groups and offsets, to be given the groups of another moment."""
    none = pa.table({})
    return Source(none, none, none, none, none, none, coordinators(replayed))


def _alive(rows: pa.Table, gone: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["topic_id"], gone)))
