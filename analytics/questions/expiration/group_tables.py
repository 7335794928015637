"""What became of groups whose offsets expired, and which requests committed what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.engine.part_runs import PartAnswer
from analytics.questions.expiration.commit_requests import commit_requests
from analytics.questions.expiration.group_endings import (
    Cleanups,
    EndingTables,
    endings,
    group_tombstones,
)
from analytics.questions.expiration.retention import ASSUMED
from analytics.questions.marks import marked
from analytics.replay.log.arrow_rows import arrow_rows, polars_rows
from analytics.replayed.records_at import records_at
from analytics.replayed.whole_groups import group_reads
from analytics.tables.parted_table import BY_GROUP, PartedTable, by_group

if TYPE_CHECKING:
    from analytics.questions.expiration.retention import Retention
    from analytics.questions.expiration.tables import ExpirationQuestion
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.expiration_rules import ExpirationRules

_GROUP_RECORDS = ("group_metadata", "consumer_group_metadata", "streams_group_metadata")
_OF_REQUESTS = ("group_id", "commit_timestamp", "expire_timestamp")
_NEEDED: Final = {
    "committed_offsets": (*_OF_REQUESTS, "missing"),
    "groups": ("group_id", "missing"),
}
"""What is read of each group."""
REQUESTS: Final = "commit_requests"
AT_ONCE: Final = 1_000_000
"""So many rows of whole groups are looked at together, about."""
_COLUMNS = ("partition", "offset", "timestamp", "is_tombstone", "key")


def group_tables(
    state: ReplayedWorkspace,
    removals: pa.Table,
    question: ExpirationQuestion,
    *,
    with_requests: bool,
) -> dict[str, PartedTable]:
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
    found = {"group_endings": PartedTable.held(endings(known, cleanups))}
    if with_requests:
        work = partial(requests_of_part, question.era, retention.otherwise.retention_ms, is_assumed)
        parts = group_reads(tables, _NEEDED, AT_ONCE)
        found |= state.runner.run(work, parts, {REQUESTS: BY_GROUP}).tables
    return found


def requests_of_part(
    era: ExpirationRules,
    retention_ms: int,
    is_assumed: bool,  # noqa: FBT001 - sent to tasks
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    """Return `commit_requests` of some whole groups.

    Args:
        era: Whose table it is.
        retention_ms: The broker's retention, in milliseconds.
        is_assumed: Whether that is only assumed.
        rows: `_NEEDED` of theirs.
    """
    committed = arrow_rows(rows["committed_offsets"].select(_OF_REQUESTS))
    requests = commit_requests(committed, era, retention_ms, is_assumed=is_assumed)
    of_groups = pl.concat(each.select("group_id", "missing") for each in rows.values())
    found = marked(requests, arrow_rows(of_groups), ["group_id"])
    return PartAnswer({REQUESTS: by_group(polars_rows(found))})


def _interval(retention: Retention) -> int:
    """Return the longest check interval: where coordinators differ, none is late before that."""
    every = (retention.otherwise, *retention.of_partitions.values())
    return max(each.check_interval_ms for each in every)
