"""What a dump knows of leaders before anything else of it is read: from its metadata log.

Which copy of a partition is read first depends on who led it, so the metadata log goes before the
others. It is small: the controller cuts it at snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from analytics.decode.losses.elections import registered_partitions
from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.batches.walks import walk_segment
from analytics.dump.copies.leadership import NOTHING_KNOWN, Leaders, MadeAt
from analytics.dump.copies.plan import PlanOptions, plan_partition
from analytics.dump.records.leader_records import leader_records
from schemas import CLUSTER_METADATA, COORDINATOR_TOPICS

if TYPE_CHECKING:
    from analytics.dump.files.model import Copy, PartitionCopy

_DAY_MS: Final = 86_400_000

Row = Mapping[str, Any]


def known_leaders(copies: Sequence[Copy]) -> Leaders:
    """Return who led the internal partitions of a dump, and when its copies were made.

    Args:
        copies: As listed.
    """
    logs = [each for copy in copies for each in copy.partitions if each.topic == CLUSTER_METADATA]
    if not logs:
        return NOTHING_KNOWN
    tables = leader_records(plan_partition(logs, copies, PlanOptions()).slices)

    def records(name: str, column: str, values: Iterable[Any]) -> list[Row]:
        chosen = set(values)
        return [each for each in tables[name] if each["value"][column] in chosen]

    registered = registered_partitions(records)
    if not registered:
        return NOTHING_KNOWN
    ends = {each.copy: _end_of(each) for each in logs}
    last = max((time for _, time in ends.values() if time is not None), default=None)
    made_at = {copy.name: _made_at(copy, ends.get(copy.name), last) for copy in copies}
    return Leaders(registered, made_at, last)


def _made_at(copy: Copy, end: tuple[int, int | None] | None, last: int | None) -> MadeAt:
    """Return what tells when a copy was made.

    Args:
        copy: As listed.
        end: End offset and last time of its own metadata log; None where it has none.
        last: Of the last record of any metadata log; a later time by more than a day is no time.
    """
    if end is not None:
        return MadeAt(copy.node_id, *end)
    times = [
        time
        for each in copy.partitions
        if each.topic in COORDINATOR_TOPICS and (time := _end_of(each)[1]) is not None
    ]
    known = [each for each in times if last is None or each <= last + _DAY_MS]
    return MadeAt(copy.node_id, None, max(known, default=None))


def _end_of(partition: PartitionCopy) -> tuple[int, int | None]:
    """Return the end offset of a copy of a log, and the time of its last batch."""
    covered = max((each.base_offset for each in partition.checkpoints), default=0)
    for segment in reversed(partition.logs):
        headers = walk_segment(segment, LogSense(segment.base_offset)).headers
        if len(headers):
            time = int(headers.max_timestamp.max())
            return max(int(headers.last_offset[-1]) + 1, covered), time if time >= 0 else None
    base = max((each.base_offset for each in partition.logs), default=0)
    return max(base, covered), None
