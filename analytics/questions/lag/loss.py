"""When retention overtakes what is left to read: the instant from which the next record is gone.

Brokers delete whole segments, the oldest first (``UnifiedLog.deleteOldSegments``): by time, once
the newest record of a segment is older than `retention.ms`; by size, once what lies after it is at
least `retention.bytes`. They look every `log.retention.check.interval.ms`. The segment that is
written ends later than it does now. By size an instant rests on the log growing as it did.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXACT, AT_LEAST, AT_MOST = "exact", "at_least", "at_most"
ESTIMATED, NEVER, NOTHING, UNKNOWN = "estimated", "never", "nothing", "unknown"
BY_TIME, BY_SIZE = "time", "size"
NO_SEGMENTS: Final = "the files of the log are not in the dump"
NOT_LOCAL: Final = "the dump lacks the segment of the committed offset"
NO_TIMES: Final = "nothing tells how old the newest record of its segments is"
NO_GROWTH: Final = "nothing tells how fast the log grows"
NOT_NOW: Final = "files tell of the end of the dump only"
NO_CONFIGS: Final = "the dump does not tell the topic's settings"
KEEPS: Final = "nothing is deleted by time or size"
_MICROS: Final = 1000

LOSS = pa.schema(
    [
        ("loss_at", pa.timestamp("us", "UTC")),
        ("loss_in_ms", pa.int64()),
        ("loss_in_bound", pa.string()),
        ("loss_by", pa.string()),
        ("loss_basis", pa.string()),
    ]
)


@dataclass(frozen=True)
class TopicRetention:
    """How long a topic keeps its records.

    Attributes:
        ms: `retention.ms`; None where nothing is deleted by time.
        size: `retention.bytes`, of a partition; None where nothing is deleted by size.
        said: What is in force and where that is from, in words.
        why_unknown: Why neither is known, in words; else None.
    """

    ms: int | None = None
    size: int | None = None
    said: str = ""
    why_unknown: str | None = None


@dataclass(frozen=True)
class Loss:
    """When the next record to read is deleted.

    Attributes:
        bound: How `at_ms` is meant.
        at_ms: In epoch milliseconds; None where it never comes, or is not known.
        by: `BY_TIME` or `BY_SIZE`.
        basis: What it rests on, or why it is not known.
    """

    bound: str
    at_ms: int | None = None
    by: str | None = None
    basis: str | None = None


@dataclass(frozen=True)
class LogFiles:
    """The segments of a log, in order.

    Attributes:
        bases: Their base offsets.
        sizes: In bytes.
        newest_ms: The newest timestamp known of each; -1 where none is.
        are_newest: Whether no record of it can be newer.
    """

    bases: NDArray[np.int64]
    sizes: NDArray[np.int64]
    newest_ms: NDArray[np.int64]
    are_newest: NDArray[np.bool_]

    def growth(self) -> float | None:
        """Return the bytes a millisecond by which the log grew, None where its files do not tell.

        From the newest record of the first segment to that of the last.
        """
        if len(self.bases) < 2 or (self.newest_ms < 0).any():
            return None
        took = int(self.newest_ms[-1] - self.newest_ms[0])
        grown = int(self.sizes[1:].sum())
        return grown / took if took > 0 and grown > 0 else None


def files_of(segments: pa.Table) -> dict[tuple[str, int], LogFiles]:
    """Return the files of each partition.

    Args:
        segments: `topic`, `partition`, `base_offset`, `size_bytes`, `largest_timestamp`,
            `is_largest`.
    """
    rows = segments.sort_by([(name, "ascending") for name in ("topic", "partition", "base_offset")])
    newest = pc.fill_null(pc.cast(rows["largest_timestamp"], pa.int64()), -_MICROS).to_numpy()
    columns = [
        rows["base_offset"].to_numpy(),
        rows["size_bytes"].to_numpy(),
        newest // _MICROS,
        rows["is_largest"].to_numpy(),
    ]
    places: dict[tuple[str, int], list[int]] = {}
    for row, key in enumerate(
        zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True)
    ):
        places.setdefault(key, []).append(row)
    return {
        key: LogFiles(*(column[found[0] : found[-1] + 1] for column in columns))
        for key, found in places.items()
    }


def losses(
    rows: pa.Table,
    files: Mapping[tuple[str, int], LogFiles],
    retention: Mapping[str, TopicRetention],
    as_of_ms: int,
    *,
    is_end: bool,
) -> pa.Table:
    """Return the columns of `LOSS` for each row.

    Args:
        rows: `topic`, `partition`, `committed_offset`, `log_start_offset`, `records_to_read`.
        files: Of logs, by topic and partition.
        retention: By topic; one that is not there is not known.
        as_of_ms: The instant.
        is_end: It is the end of the dump: files tell of no other instant.
    """
    left = pc.fill_null(rows["records_to_read"], -1).to_numpy()
    # Most rows say the same: each of these is there once.
    found = [Loss(UNKNOWN), Loss(NOTHING), Loss(UNKNOWN, basis=NOT_NOW)]
    whose = np.select([left < 0, left == 0], [0, 1], 2)
    if is_end:
        behind = np.flatnonzero(left > 0)
        whose[behind] = _of_segments(rows.take(pa.array(behind)), files, retention, as_of_ms, found)
    columns = {
        "loss_at": [None if each.at_ms is None else each.at_ms * _MICROS for each in found],
        "loss_in_ms": [None if each.at_ms is None else each.at_ms - as_of_ms for each in found],
        "loss_in_bound": [each.bound for each in found],
        "loss_by": [each.by for each in found],
        "loss_basis": [each.basis for each in found],
    }
    told = pa.table([pa.array(columns[one.name], one.type) for one in LOSS], schema=LOSS)
    return told.take(pa.array(whose))


def _of_segments(
    rows: pa.Table,
    files: Mapping[tuple[str, int], LogFiles],
    retention: Mapping[str, TopicRetention],
    as_of_ms: int,
    found: list[Loss],
) -> list[int]:
    """Return which of the losses each row has; new ones are added to them."""
    told: dict[tuple[str, int, int], int] = {}
    bases = {key: log.bases.tolist() for key, log in files.items()}
    names = ("topic", "partition", "committed_offset", "log_start_offset")
    whose = []
    for topic, partition, offset, start in zip(
        *(rows[name].to_pylist() for name in names), strict=True
    ):
        position = max(offset or 0, start or 0)
        # All that is in the same segment goes with it.
        key = topic, partition, bisect_right(bases.get((topic, partition), ()), position)
        if key not in told:
            log = files.get((topic, partition))
            kept = retention.get(topic, TopicRetention(why_unknown=NO_CONFIGS))
            told[key] = len(found)
            found.append(loss_of(position, log, kept, as_of_ms, start))
        whose.append(told[key])
    return whose


def loss_of(
    position: int,
    log: LogFiles | None,
    kept: TopicRetention,
    as_of_ms: int,
    start: int | None = 0,
) -> Loss:
    """Return when the record at an offset is deleted.

    Where the log starts before the first file that is there, others wait to be deleted first.
    """
    if kept.why_unknown is not None:
        return Loss(UNKNOWN, basis=kept.why_unknown)
    if kept.ms is None and kept.size is None:
        return Loss(NEVER, basis=kept.said or KEEPS)
    if log is None or not len(log.bases):
        return Loss(UNKNOWN, basis=NO_SEGMENTS)
    place = int(np.searchsorted(log.bases, position, side="right")) - 1
    if place < 0:
        return Loss(UNKNOWN, basis=NOT_LOCAL)
    is_whole = start is not None and start >= int(log.bases[0])
    by_time = None if kept.ms is None else _by_time(place, log, kept, is_whole=is_whole)
    by_size = None if kept.size is None else _by_size(place, log, kept.size, kept.said, as_of_ms)
    if by_time is None or by_size is None:
        return by_time or by_size or Loss(NEVER, basis=KEEPS)
    return _earlier(by_time, by_size)


def _by_time(place: int, log: LogFiles, kept: TopicRetention, *, is_whole: bool) -> Loss:
    newest = log.newest_ms[: place + 1]
    if (newest < 0).any():
        return Loss(UNKNOWN, basis=NO_TIMES)
    # A segment waits for those before it.
    at = int(newest.max()) + (kept.ms or 0)
    is_closed = place + 1 < len(log.bases)
    is_sure = is_whole and is_closed and bool(log.are_newest[: place + 1].all())
    return Loss(EXACT if is_sure else AT_LEAST, at, BY_TIME, kept.said)


def _by_size(place: int, log: LogFiles, size: int, said: str, as_of_ms: int) -> Loss:
    missing = size - int(log.sizes[place + 1 :].sum())
    if missing <= 0 and place + 1 < len(log.bases):
        return Loss(EXACT, as_of_ms, BY_SIZE, said)
    growth = log.growth()
    if growth is None:
        return Loss(UNKNOWN, basis=NO_GROWTH)
    return Loss(ESTIMATED, as_of_ms + round(max(missing, 0) / growth), BY_SIZE, said)


def _earlier(by_time: Loss, by_size: Loss) -> Loss:
    """Return which comes first, as far as both are known."""
    if by_size.bound == EXACT:
        return by_size
    if by_time.bound == UNKNOWN or by_time.at_ms is None:
        return by_time
    if by_size.at_ms is None:
        if by_time.bound == EXACT:
            return Loss(AT_MOST, by_time.at_ms, BY_TIME, by_time.basis)
        return by_size
    if by_size.at_ms < by_time.at_ms:
        return by_size
    bound = AT_MOST if by_time.bound == EXACT else by_time.bound
    return Loss(bound, by_time.at_ms, BY_TIME, by_time.basis)
