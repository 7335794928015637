"""One copy of a partition, as its files' headers and checkpoints show it: extent, gaps, damage."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from analytics.dump.batches.batch_bytes import DamageReason, TailKind
from analytics.dump.batches.segment_stats import in_all, steps_in
from analytics.dump.batches.stretches import ClockStep, Stretch, in_order
from analytics.dump.copies.slices import log_start
from schemas import COMPACTED_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.dump.batches.segment_stats import EpochTimes, SegmentSurvey
    from analytics.dump.files.model import PartitionCopy
    from schemas.manifest import GapEntry

COMPACTION = "compaction"
MISSING_SEGMENT = "missing_segment"
UNKNOWN = "unknown"
NOT_ARCHIVED, NOT_DECODED = "not_archived", "not_decoded"
"""Of archived rows: offsets that no row has, and rows that do not decode."""


class Gap(NamedTuple):
    """Offsets that no batch covers, and why."""

    first_offset: int
    end_offset: int
    kind: str


def gap_rows(gaps: Iterable[Gap]) -> list[GapEntry]:
    """Return gaps as the manifest has them."""
    return [
        {"first_offset": each.first_offset, "end_offset": each.end_offset, "kind": each.kind}
        for each in gaps
    ]


@dataclass(frozen=True)
class PartitionSurvey:
    """One copy of one partition.

    Attributes:
        partition: The copy, as it was listed.
        logs: Its segments.
        checkpoints: Its snapshots of the metadata log.
        gaps: Those kept one by one, ascending.
        gap_counts: All gaps, by kind.
        gap_offsets: Offsets in all gaps, by kind.
        listing_changed: Files came or went while it was read.
    """

    partition: PartitionCopy
    logs: tuple[SegmentSurvey, ...]
    checkpoints: tuple[SegmentSurvey, ...]
    gaps: tuple[Gap, ...]
    gap_counts: Counter[str]
    gap_offsets: Counter[str]
    listing_changed: bool = False

    @property
    def first_offset(self) -> int | None:
        """Base offset of the first batch, None where there is none."""
        return next((log.first_offset for log in self.logs if log.first_offset is not None), None)

    @property
    def end_offset(self) -> int:
        """Log end offset: the last offset + 1, or the last file's base offset if that is more."""
        ends = [log.end_offset for log in self.logs if log.end_offset is not None]
        return max([*ends[-1:], *(log.segment.base_offset for log in self.logs[-1:]), 0])

    @property
    def first_timestamp(self) -> int | None:
        """Earliest time of a batch, milliseconds."""
        return min((t for log in self.logs if (t := log.first_timestamp) is not None), default=None)

    @property
    def last_timestamp(self) -> int | None:
        """Latest time of a batch, milliseconds."""
        return max((t for log in self.logs if (t := log.last_timestamp) is not None), default=None)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """Stretches of batches in which time goes on, in the order of the log."""
        return in_order(each for log in self.logs for each in log.stretches)

    @property
    def clock_steps(self) -> tuple[ClockStep, ...]:
        """The batches before which a clock was set back."""
        return steps_in(self.logs)

    @property
    def complete_from(self) -> int | None:
        """From this offset on every record is present; None where nothing tells.

        That is the log start, or where the cleaner has been, or the end of the last gap that is
        not the cleaner's. A batch that lacks records of its own was cleaned, whatever the cleaner's
        checkpoint says: brokers write it behind a pass (``LogCleanerManager.doneCleaning``).
        Without that checkpoint the last hole of any kind decides.
        """
        if not self.partition.whole or not self.logs:
            return None
        first_file = self.logs[0].segment.base_offset
        lower = [self.partition.log_start_offset or 0, first_file]
        lower += [gap.end_offset for gap in self.gaps if gap.kind != COMPACTION]
        if self.partition.topic in COMPACTED_TOPICS:
            dirty = self.partition.intact_from
            lower += _thinned_ends(self.logs)
            lower += [dirty] if dirty is not None else _ends_of_holes(self.logs)
        return max(lower)

    @property
    def records_above_high_watermark(self) -> int | None:
        """Offsets at or above the checkpointed high watermark; None where there is none."""
        high_watermark = self.partition.high_watermark
        return None if high_watermark is None else max(self.end_offset - high_watermark, 0)

    @property
    def leader_epochs(self) -> tuple[tuple[int, int], ...]:
        """(Epoch, first offset), of the checkpoint and of the batches."""
        known = dict(self.partition.leader_epochs)
        for log in self.logs:
            for epoch, offset in log.leader_epochs:
                known[epoch] = min(known.get(epoch, offset), offset)
        return tuple(sorted(known.items()))

    @property
    def epoch_times(self) -> tuple[EpochTimes, ...]:
        """Times of the batches of each leader epoch."""
        return in_all(each for log in self.logs for each in log.epoch_times)

    @property
    def crc_failures(self) -> int:
        """Batches whose checksum does not match, as far as checksums were looked at."""
        return self._damages(DamageReason.BAD_CRC)[0]

    @property
    def bytes_damaged(self) -> int:
        """Bytes that are no readable batch, tails apart."""
        return self._damages()[1]

    @property
    def truncated_tail(self) -> int:
        """Bytes of a last batch that was not written to its end."""
        return self._tail(TailKind.TRUNCATED)

    @property
    def preallocated_tail(self) -> int:
        """Zero bytes after the last batch."""
        return self._tail(TailKind.PREALLOCATED)

    @property
    def changed_while_read(self) -> bool:
        """Whether a file changed, came or went while the copy was read."""
        return self.listing_changed or any(each.changed for each in self.files)

    @property
    def files(self) -> tuple[SegmentSurvey, ...]:
        """Segments and snapshots."""
        return self.logs + self.checkpoints

    @property
    def records(self) -> int:
        """Records that the headers of the log claim."""
        return sum(log.records for log in self.logs)

    @property
    def batches(self) -> int:
        """Batches of the log."""
        return sum(log.batches for log in self.logs)

    def counted(self, name: str) -> Counter[int]:
        """Return ``magics`` or ``codecs`` of all files of the log together."""
        total: Counter[int] = Counter()
        for log in self.logs:
            total += getattr(log, name)
        return total

    def _damages(self, reason: DamageReason | None = None) -> tuple[int, int]:
        found = [
            each for file in self.files for each in file.damages if reason in (None, each.reason)
        ]
        return len(found), sum(each.size for each in found)

    def _tail(self, kind: TailKind) -> int:
        return sum(file.tail.size for file in self.files if file.tail and file.tail.kind is kind)


def survey_of(
    partition: PartitionCopy, files: Iterable[SegmentSurvey], *, listing_changed: bool = False
) -> PartitionSurvey:
    """Put the files of one copy of a partition together.

    Args:
        partition: The copy.
        files: One for each of its segments and snapshots, in any order.
        listing_changed: Files came or went while they were read.
    """
    by_name = {each.segment.name: each for each in files}
    logs = tuple(by_name[each.name] for each in partition.logs if each.name in by_name)
    checkpoints = tuple(by_name[e.name] for e in partition.checkpoints if e.name in by_name)
    start = log_start(partition)
    found = [*_gaps_inside(partition, logs), *_gaps_between(partition, logs)]
    gaps = sorted(gap for gap in found if gap.end_offset > start)
    counts = Counter(gap.kind for gap in gaps)
    offsets: Counter[str] = Counter()
    for gap in gaps:
        offsets[gap.kind] += gap.end_offset - gap.first_offset
    for log in logs:
        more = log.hole_count - len(log.holes)
        if more:
            kind = _kind(partition, log.last_hole_end or 0, UNKNOWN)
            counts[kind] += more
            offsets[kind] += log.hole_offsets - sum(hole.end - hole.first for hole in log.holes)
    return PartitionSurvey(
        partition, logs, checkpoints, tuple(gaps), counts, offsets, listing_changed
    )


def _gaps_inside(partition: PartitionCopy, logs: Sequence[SegmentSurvey]) -> list[Gap]:
    return [
        Gap(hole.first, hole.end, _kind(partition, hole.end, UNKNOWN))
        for log in logs
        for hole in log.holes
    ]


def _gaps_between(partition: PartitionCopy, logs: Sequence[SegmentSurvey]) -> list[Gap]:
    """Return what is missing before a file's first batch and where the log should begin or end."""
    if not logs or not partition.whole:
        return []
    expected = logs[0].segment.base_offset
    start = _began_at(partition)
    # Neither the cleaner nor the broker leaves a log that begins after its own start.
    gaps = [Gap(start, expected, MISSING_SEGMENT)] if start < expected else []
    for log in logs:
        begins = log.segment.base_offset if log.first_offset is None else log.first_offset
        if begins > expected:
            gaps.append(Gap(expected, begins, _kind(partition, begins, MISSING_SEGMENT)))
        expected = max(expected, begins if log.end_offset is None else log.end_offset)
    high_watermark = partition.high_watermark or 0
    if high_watermark > expected:
        gaps.append(Gap(expected, high_watermark, MISSING_SEGMENT))
    return gaps


def _began_at(partition: PartitionCopy) -> int:
    """Return the offset at which the log begins, as far as a checkpoint beside it says so.

    Brokers cut the leader epochs to the log start as it moves
    (``LeaderEpochFileCache.truncateFromStart``) but write the log start's own checkpoint once a
    minute: in a copy of a running broker, or of a killed one, the epochs may know of a later
    start. Where nothing says that the log began earlier, it begins with its first file.
    """
    told = [offset for _, offset in partition.leader_epochs[:1]]
    if partition.log_start_offset is not None:
        return max([partition.log_start_offset, *told])
    return min([partition.logs[0].base_offset, *told])


def _kind(partition: PartitionCopy, end: int, otherwise: str) -> str:
    """Return why offsets up to ``end`` are missing.

    Below the cleaner's first dirty offset that is compaction; nothing removes single batches at or
    above it, nor from a topic that is not compacted.
    """
    if partition.topic not in COMPACTED_TOPICS:
        return otherwise
    if partition.intact_from is None:
        return UNKNOWN
    return COMPACTION if end <= partition.intact_from else otherwise


def _thinned_ends(logs: Sequence[SegmentSurvey]) -> list[int]:
    return [log.thinned_end for log in logs if log.thinned_end is not None]


def _ends_of_holes(logs: Sequence[SegmentSurvey]) -> list[int]:
    ends = [log.last_hole_end for log in logs if log.last_hole_end is not None]
    for before, after in pairwise(logs):
        begins = after.segment.base_offset if after.first_offset is None else after.first_offset
        if before.end_offset is not None and begins > before.end_offset:
            ends.append(begins)
    return ends
