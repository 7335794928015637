"""What became of groups whose offsets expired, and which requests committed what is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.expiration.commit_requests import commit_requests
from analytics.questions.expiration.group_endings import (
    Cleanups,
    EndingTables,
    endings,
    group_tombstones,
)
from analytics.questions.expiration.retention import ASSUMED
from analytics.questions.marks import marked
from analytics.replayed.records_at import records_at

if TYPE_CHECKING:
    from analytics.questions.expiration.retention import Retention
    from analytics.questions.expiration.tables import ExpirationQuestion
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_GROUP_RECORDS = ("group_metadata", "consumer_group_metadata", "streams_group_metadata")
_OF_REQUESTS = ("group_id", "commit_timestamp", "expire_timestamp")
_COLUMNS = ("partition", "offset", "timestamp", "is_tombstone", "key")


def group_tables(
    state: ReplayedWorkspace,
    removals: pa.Table,
    question: ExpirationQuestion,
    *,
    with_requests: bool,
) -> dict[str, pa.Table]:
    """Return `group_endings`, and `commit_requests` where it is asked for.

    Args:
        state: Says the instant.
        removals: The table `offset_removals`.
        question: Has rules and retention.
        with_requests: Whether `commit_requests` is wanted.
    """
    tables, retention = state.tables, question.retention
    # Of a great many groups few lost an offset.
    lost = pc.field("group_id").isin(pc.unique(removals["group_id"]))
    gone = pc.field("is_tombstone")
    known = EndingTables(
        removals,
        tables.read("committed_offsets", ["group_id"], lost),
        tables.read("pending_offsets", where=lost),
        tables.read("groups", where=lost),
        group_tombstones(records_at(state, name, _COLUMNS, gone) for name in _GROUP_RECORDS),
    )
    is_assumed = retention.otherwise.source == ASSUMED
    cleanups = Cleanups(_interval(retention), is_assumed, question.audit, question.as_of_ms)
    found = {"group_endings": endings(known, cleanups)}
    if with_requests:
        committed = tables.read("committed_offsets", _OF_REQUESTS)
        requests = commit_requests(
            committed, question.era, retention.otherwise.retention_ms, is_assumed=is_assumed
        )
        of_groups = pa.concat_tables(
            tables.read(name, ["group_id", "missing"]) for name in ("committed_offsets", "groups")
        )
        found["commit_requests"] = marked(requests, of_groups, ["group_id"])
    return found


def _interval(retention: Retention) -> int:
    """Return the longest check interval: where coordinators differ, none is late before that."""
    every = (retention.otherwise, *retention.of_partitions.values())
    return max(each.check_interval_ms for each in every)
