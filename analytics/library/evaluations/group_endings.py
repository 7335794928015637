"""The tables beside the expiry of offsets that need no Spark: endings of groups, and requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.evaluate.expiration.commit_requests import commit_requests
from analytics.evaluate.expiration.group_endings import (
    Cleanups,
    EndingTables,
    endings,
    group_tombstones,
)
from analytics.evaluate.expiration.retention import ASSUMED
from analytics.library.replayed.kept_evaluations import keep_evaluations
from analytics.library.replayed.records_at import records_at
from analytics.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.evaluate.expiration.retention import Retention
    from analytics.evaluate.expiration.tables import ExpirationQuestion
    from analytics.library.replayed.replayed_workspace import ReplayedWorkspace

_GROUP_RECORDS = ("group_metadata", "consumer_group_metadata", "streams_group_metadata")
_COLUMNS = ("partition", "offset", "timestamp", "is_tombstone", "key")


def companions_of(
    state: ReplayedWorkspace,
    removals: pa.Table,
    question: ExpirationQuestion,
    out: str | None,
    *,
    with_requests: bool,
) -> dict[str, pa.Table]:
    """Return `group_endings`, and `commit_requests` where it is asked for.

    Args:
        state: Says the instant.
        removals: The table `offset_removals`.
        question: Has rules and retention.
        out: A workspace, in which both are kept; None for none.
        with_requests: Whether `commit_requests` is shown.
    """
    tables, retention = state.tables, question.retention
    committed = tables.read(
        "committed_offsets", ["group_id", "commit_timestamp", "expire_timestamp"]
    )
    known = EndingTables(
        removals,
        committed,
        tables.read("pending_offsets"),
        tables.read("groups"),
        group_tombstones(records_at(state, name, _COLUMNS) for name in _GROUP_RECORDS),
    )
    is_assumed = retention.otherwise.source == ASSUMED
    cleanups = Cleanups(_interval(retention), is_assumed, question.audit, question.as_of_ms)
    found = {"group_endings": endings(known, cleanups)}
    if with_requests or out is not None:
        found["commit_requests"] = commit_requests(
            committed, question.era, retention.otherwise.retention_ms, is_assumed=is_assumed
        )
    if out is not None:
        keep_evaluations(Workspace(out), found, state)
    return found


def _interval(retention: Retention) -> int:
    """Return the longest check interval: where coordinators differ, none is late before that."""
    every = (retention.otherwise, *retention.of_partitions.values())
    return max(each.check_interval_ms for each in every)
