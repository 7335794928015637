"""What a running cluster answered to `snapshot`, as far as it holds at the instant asked about.

Where logs end and who leads is of the snapshot's instant: it holds at the end of the dump alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa

from analytics.replay.dump.coverage import last_snapshot
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import SnapshotEntry

_FIRST_ENDS: Final = {
    "topic": pl.String,
    "partition": pl.Int32,
    "first_end_offset": pl.Int64,
    "later_end_offset": pl.Int64,
}
"""Where a log ended when a snapshot began, and when all commits had been read."""
_LEADERS: Final = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("leader", pa.int32())],
)


def snapshot_at(state: ReplayedWorkspace) -> SnapshotEntry | None:
    """Return what the cluster answered; None where it did not, or before the end of the dump."""
    return last_snapshot(state.manifest) if state.is_end else None


def answered_ends(state: ReplayedWorkspace) -> Iterator[dict[str, Any]]:
    """Yield `topic`, `partition`, `log_start_offset` and `log_end_offset` of logs.

    Where commits were read that may have come after the first answer, ends are those of the second
    one, when all of them had been read: none of them is beyond its log's end.
    """
    snapshot = snapshot_at(state)
    for topic in snapshot["topics"] if snapshot is not None else ():
        for number, _, start, end, later in topic["partitions"]:
            until = later if _is_later(snapshot) and later is not None else end
            if until is not None:
                yield {
                    "topic": topic["topic"],
                    "partition": number,
                    "log_start_offset": start,
                    "log_end_offset": until,
                }


def with_first_ends(ends: pl.DataFrame, state: ReplayedWorkspace) -> pl.DataFrame:
    """Add where logs ended at first where `answered_ends` has a later answer.

    Args:
        ends: `topic`, `partition`.
        state: A replayed workspace.

    Returns:
        The rows with `first_end_offset` and `later_end_offset`; null where there is one answer.
    """
    snapshot = snapshot_at(state)
    rows = [
        (topic["topic"], number, end, later)
        for topic in (snapshot["topics"] if _is_later(snapshot) and snapshot else ())
        for number, _, _, end, later in topic["partitions"]
        if end is not None and later is not None
    ]
    first = pl.DataFrame(rows, _FIRST_ENDS, orient="row")
    return ends.join(first, ["topic", "partition"], "left", maintain_order="left")


def _is_later(snapshot: SnapshotEntry | None) -> bool:
    return snapshot is not None and snapshot["read_beyond_ends"]


def ends_statement(state: ReplayedWorkspace, end_offsets: str | None) -> tuple[str, ...]:
    """Return a sentence on when logs ended where an answer has them; none where nobody answered.

    Args:
        state: A replayed workspace.
        end_offsets: A file that goes before what the cluster answered.
    """
    snapshot = snapshot_at(state)
    if snapshot is None:
        return ()
    at = snapshot["finished_at"] if _is_later(snapshot) else snapshot["taken_at"]
    unless = "" if end_offsets is None else f", unless {end_offsets} says otherwise"
    return (f"logs of data topics end where the cluster answered at {at}{unless}",)


def without_settings(state: ReplayedWorkspace) -> frozenset[str]:
    """Return the topics whose own settings the cluster did not answer."""
    snapshot = snapshot_at(state)
    topics = snapshot["topics"] if snapshot is not None else ()
    return frozenset(each["topic"] for each in topics if each["settings"] is None)


def coordinator_leaders(state: ReplayedWorkspace) -> pa.Table:
    """Return `topic`, `partition`, `leader` of partitions of `__consumer_offsets`.

    From the metadata log; where the dump has none, as the cluster answered.
    """
    known = state.tables.read("partition_leaders")
    snapshot = snapshot_at(state)
    if known.num_rows or snapshot is None:
        return known
    rows = [
        {"topic": CONSUMER_OFFSETS, "partition": number, "leader": leader}
        for number, leader in _leaders(snapshot)
    ]
    return pa.Table.from_pylist(rows, _LEADERS)


def _leaders(snapshot: SnapshotEntry) -> Iterable[tuple[int | None, int | None]]:
    for topic in snapshot["topics"]:
        if topic["topic"] == CONSUMER_OFFSETS:
            yield from ((each[0], each[1]) for each in topic["partitions"])
