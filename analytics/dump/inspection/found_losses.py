"""The losses of one copy of a partition, by its files, their batches and the checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analytics.dump.batches.batch_bytes import TailKind
from analytics.dump.copies.slices import log_start
from analytics.dump.inspection.survey import (
    COMPACTION,
    MISSING_SEGMENT,
    NOT_ARCHIVED,
    NOT_DECODED,
    UNKNOWN,
)
from schemas import COMPACTED_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.dump.batches.batch_bytes import Damage
    from analytics.dump.batches.segment_stats import SegmentSurvey
    from analytics.dump.files.model import Filled, PartitionCopy, SegmentFile
    from analytics.dump.inspection.survey import PartitionSurvey
    from schemas.manifest import GapEntry, LossEntry, Manifest, PartitionEntry

# Records that a partition's log once had and the dump lacks: where, and what shows it.
#
# What compaction removed is no loss: it left the last record of every key. Archived rows lack
# offsets that no row has, and rows that do not decode.

OPEN_END = 1 << 62
"""End of a loss of which nobody knows how far it reaches."""
_MOST_NAMED = 3

UNDECIDED = "archived rows do not show transactions"
"""Why a commit of archived rows may never have taken effect."""
_WHY = {
    NOT_ARCHIVED: "no archived row",
    NOT_DECODED: "a row that cannot be decoded",
}


@dataclass(frozen=True, order=True)
class Loss:
    """Offsets whose records may be lost.

    Attributes:
        first: The first of them.
        end: The offset after the last of them; `OPEN_END` where the log's end is lost.
        why: What shows it, in words.
        known_to: How far an open loss reaches at least.
        is_within_file: They lie between two batches of one file: whoever reads that file, as a
            coordinator that loads it, does not meet them, either.
        is_below_start: It begins with what was deleted below the log start.
    """

    first: int
    end: int
    why: str
    known_to: int = 0
    is_within_file: bool = False
    is_below_start: bool = False

    @property
    def is_open(self) -> bool:
        """Whether nobody knows how far it reaches."""
        return self.end >= OPEN_END

    @property
    def in_words(self) -> str:
        """The loss in words, as in "offsets 24 to 356 (a segment file is missing)"."""
        if self.is_open:
            where = f"all from offset {self.first:,} on"
        elif self.end - self.first == 1:
            where = f"offset {self.first:,}"
        else:
            where = f"offsets {self.first:,} to {self.end - 1:,}"
        return f"{where} ({self.why})"


def merged(losses: Iterable[Loss]) -> list[Loss]:
    """Return losses in order, those that overlap or touch as one."""
    found: list[Loss] = []
    for each in sorted(losses):
        if each.end <= each.first:
            continue
        if found and each.first <= found[-1].end:
            last = found[-1]
            why = last.why if each.why in last.why else f"{last.why}; {each.why}"
            found[-1] = replace(
                last,
                end=max(last.end, each.end),
                why=why,
                known_to=max(last.known_to, each.known_to),
                is_within_file=last.is_within_file and each.is_within_file,
            )
        else:
            found.append(each)
    return found


def inside(losses: Iterable[Loss], first: int, end: int) -> list[Loss]:
    """Return what of losses lies in `[first, end)`."""
    return merged(
        replace(each, first=max(each.first, first), end=min(each.end, end)) for each in losses
    )


def filled_up(losses: Iterable[Loss], filled: Iterable[tuple[int, int]]) -> list[Loss]:
    """Return what is left of losses where other copies gave offsets (first, end)."""
    left = merged(losses)
    for first, end in sorted(filled):
        left = [piece for loss in left for piece in _without(loss, first, end)]
    return left


def _without(loss: Loss, first: int, end: int) -> list[Loss]:
    if end <= loss.first or first >= loss.end:
        return [loss]
    pieces = [replace(loss, end=first)] if loss.first < first else []
    # Where the end is lost, another copy that reaches what is known of it has the end.
    reaches = loss.is_open and end >= max(loss.known_to, loss.first + 1)
    if end < loss.end and not reaches:
        pieces.append(replace(loss, first=end))
    return pieces


def loss_rows(losses: Iterable[Loss]) -> list[LossEntry]:
    """Return losses as the manifest has them; `end_offset` is null where nobody knows it."""
    return [_loss_row(each) for each in losses]


def _loss_row(loss: Loss) -> LossEntry:
    row: LossEntry = {
        "first_offset": loss.first,
        "end_offset": None if loss.is_open else loss.end,
        "why": loss.why,
    }
    if loss.is_within_file:
        row["is_within_file"] = True
    if loss.is_below_start:
        row["is_below_start"] = True
    return row


def losses_of_rows(rows: Iterable[LossEntry]) -> list[Loss]:
    """Return losses of the manifest's rows."""
    return [
        Loss(
            row["first_offset"],
            OPEN_END if row["end_offset"] is None else row["end_offset"],
            row["why"],
            is_within_file=row.get("is_within_file", False),
            is_below_start=row.get("is_below_start", False),
        )
        for row in rows
    ]


def lacks(topic: str, partition: int, losses: Sequence[Loss]) -> str:
    """Return what a partition lacks, as in "__consumer_offsets-2 lacks offsets 24 to 356 (...)"."""
    named = ", ".join(each.in_words for each in losses[:_MOST_NAMED])
    more = len(losses) - _MOST_NAMED
    return f"{topic}-{partition} lacks {named}" + (f" and {more} more ranges" if more > 0 else "")


def _archived_losses(gaps: Iterable[GapEntry], *, is_whole: bool = False) -> list[Loss]:
    """Return what may be lost of a partition of archived rows.

    Args:
        gaps: As the manifest has them.
        is_whole: Nothing was left out of the archive, so that an offset without a row is no loss.
    """
    return merged(
        Loss(gap["first_offset"], gap["end_offset"], _WHY[gap["kind"]])
        for gap in gaps
        if not (is_whole and gap["kind"] == NOT_ARCHIVED)
    )


def with_archived_losses(manifest: Manifest, *, is_whole: bool = False) -> Manifest:
    """Return a manifest that says what its partitions of archived rows lack.

    Args:
        manifest: Of decoded tables.
        is_whole: As `_archived_losses` takes it.
    """
    rows: list[PartitionEntry] = []
    for row in manifest["partitions"]:
        if row.get("copy", "") is not None:
            rows.append(row)
            continue
        losses = _archived_losses(row["gaps"], is_whole=is_whole)
        said = lacks(row["topic"], row["partition"], losses) if losses else None
        rows.append({**row, "losses": loss_rows(losses), "lacks": said})
    return {**manifest, "partitions": rows}


_NO_FILE = "a segment file is missing or cut off"
_NO_REASON = "neither the cleaner nor a missing file explains the gap"
_SINGLE_FILES = "only single files of it are given"
DELETED = "deleted below the log start, which compaction never moves"
"""Of compacted topics: by retention or DeleteRecords, the last values of keys among them."""


def losses_of(survey: PartitionSurvey) -> list[Loss]:
    """Return the losses of one copy, in order."""
    explained = [
        *(loss for file in survey.logs for loss in _damages(survey, file)),
        *_unreadable(survey),
        *_tail(survey),
    ]
    gaps = filled_up(_gaps(survey), [(each.first, each.end) for each in explained])
    # What lies below the log start the broker did not know either; of a compacted topic it did.
    found = inside([*explained, *gaps], log_start(survey.partition), OPEN_END)
    return merged([*_head(survey), *found])


def losses_of_line(
    survey: PartitionSurvey, surveys: Iterable[PartitionSurvey], filled: Iterable[Filled]
) -> list[Loss]:
    """Return the losses of the line that a copy leads, to which other copies gave what it lacks.

    Args:
        survey: The leading copy.
        surveys: Of all copies.
        filled: What copies gave to others.
    """
    own, key = losses_of(survey), survey.partition.key
    given = [each for each in filled if (each.topic, each.partition, each.line) == (*key, "")]
    left = filled_up(own, [(each.first_offset, each.end_offset) for each in given])
    for other in surveys:
        ranges = [
            (each.first_offset, each.end_offset)
            for each in given
            if each.copy == other.partition.copy
        ]
        if not ranges or other.partition.key != key:
            continue
        found = losses_of(other)
        left += [piece for each in ranges for piece in inside(found, *each)]
        # The end of the log is now as far as this copy tells it.
        if any(each.is_open for each in own) and not any(each.is_open for each in left):
            left += [each for each in found if each.is_open]
    return merged(left)


def complete_from(survey: PartitionSurvey, losses: Sequence[Loss]) -> int | None:
    """Return the offset from which on every record is present; None where nothing tells."""
    if survey.complete_from is None:
        return None
    ends = [survey.end_offset if each.is_open else each.end for each in losses]
    return max([survey.complete_from, *ends])


def _gaps(survey: PartitionSurvey) -> Iterator[Loss]:
    words = {MISSING_SEGMENT: _NO_FILE}
    for gap in survey.gaps:
        # What lies behind the last batch is judged by `_tail`.
        if gap.kind != COMPACTION and gap.first_offset < survey.end_offset:
            why = words.get(gap.kind, _NO_REASON)
            is_within_file = gap.kind == UNKNOWN
            yield Loss(gap.first_offset, gap.end_offset, why, is_within_file=is_within_file)
    more = sum(log.hole_count - len(log.holes) for log in survey.logs)
    last = [log for log in survey.logs if log.hole_count > len(log.holes)]
    dirty = survey.partition.intact_from
    if more and (dirty is None or (last[-1].last_hole_end or 0) > dirty):
        start = last[0].holes[-1].end if last[0].holes else last[0].segment.base_offset
        yield Loss(start, last[-1].last_hole_end or start, _NO_REASON, is_within_file=True)


def deleted_below(partition: PartitionCopy) -> int:
    """Return the offset below which records of a compacted topic were deleted; 0 where none were.

    Brokers note a log start in its checkpoint only where it lies within the first file; the leader
    epochs beside a log are cut to it each time (``LeaderEpochFileCache.truncateFromStart``). Of a
    log whose first file merely is not in the dump they begin before that file.
    """
    if partition.topic not in COMPACTED_TOPICS or not partition.logs:
        return 0
    begins = partition.logs[0].base_offset
    epochs = [offset for _, offset in partition.leader_epochs[:1]]
    is_cut = partition.whole and any(offset >= begins for offset in epochs)
    return max(partition.log_start_offset or 0, begins if is_cut else 0)


def _head(survey: PartitionSurvey) -> Iterator[Loss]:
    """Yield what lies before the begin of a log of which compaction keeps all last values."""
    partition = survey.partition
    if partition.topic not in COMPACTED_TOPICS or not partition.logs:
        return
    begins, deleted = partition.logs[0].base_offset, deleted_below(partition)
    if deleted:
        yield Loss(0, deleted, DELETED, is_below_start=True)
    elif begins:
        why = f"the first file begins at offset {begins:,}" if partition.whole else _SINGLE_FILES
        yield Loss(0, begins, why)


def _damages(survey: PartitionSurvey, file: SegmentSurvey) -> Iterator[Loss]:
    """Yield the offsets that may have stood where a file's bytes are damaged."""
    for damage in file.damages:
        first, end = _around(survey, file, damage)
        yield Loss(first, end, f"damaged bytes in {_name(file.segment)}")


def _around(survey: PartitionSurvey, file: SegmentSurvey, damage: Damage) -> tuple[int, int]:
    """Return the end of the batch before a damage, and the begin of the batch behind it."""
    base = file.segment.base_offset
    if file.first_offset is None or file.first_position is None or file.end_position is None:
        return base, _next_begin(survey, file.segment)
    if damage.position < file.first_position:
        return base, file.first_offset
    if damage.position >= file.end_position:
        return file.end_offset or base, _next_begin(survey, file.segment)
    for hole in file.holes:
        if hole.from_position <= damage.position and damage.end <= hole.to_position:
            return hole.first, hole.end
    if file.hole_count > len(file.holes):
        start = file.holes[-1].end if file.holes else base
        return start, file.last_hole_end or start
    return 0, 0  # No offset is missing between the batches around it.


def _unreadable(survey: PartitionSurvey) -> Iterator[Loss]:
    read = {file.segment.name: file for file in survey.logs}
    for segment in survey.partition.logs:
        file = read.get(segment.name)
        if file is None or file.unreadable:
            first = file.end_offset if file and file.end_offset is not None else None
            start = segment.base_offset if first is None else first
            yield Loss(start, _next_begin(survey, segment), f"{_name(segment)} cannot be read")


def _tail(survey: PartitionSurvey) -> Iterator[Loss]:
    """Yield what lies behind the last batch, where anything tells that something does."""
    partition, end = survey.partition, survey.end_offset
    if not partition.logs:
        yield Loss(0, OPEN_END, "its directory holds no segment file")
        return
    if not partition.whole:
        yield Loss(end, OPEN_END, _SINGLE_FILES, end + 1)
    for file in survey.logs:
        if file.tail and file.tail.kind is TailKind.TRUNCATED:
            first = file.segment.base_offset if file.end_offset is None else file.end_offset
            why = f"{_name(file.segment)} ends within a batch"
            yield Loss(first, _next_begin(survey, file.segment), why, first + 1)
    for base in partition.lost_segments:
        covered = any(
            file.segment.base_offset < base < (file.end_offset or 0) for file in survey.logs
        )
        if not covered and partition.whole:
            following = _following(survey, base)
            yield Loss(base, following, f"{base:020d}.log is missing", base + 1)
    yield from _noted_ends(survey.partition.noted_ends, survey.partition.leader_epochs, end)


def _noted_ends(
    noted: Sequence[tuple[int, str]], epochs: Sequence[tuple[int, int]], end: int
) -> Iterator[Loss]:
    epoch_starts = [(offset, "leader-epoch-checkpoint") for _, offset in epochs[-1:]]
    reached, source = max([*noted, *epoch_starts], default=(0, ""))
    if reached > end:
        why = f"{source} says that the log reached offset {reached:,}"
        yield Loss(end, OPEN_END, why, reached)


def _next_begin(survey: PartitionSurvey, segment: SegmentFile) -> int:
    """Return where the first readable batch behind a file begins."""
    return _following(survey, segment.base_offset)


def _following(survey: PartitionSurvey, base: int) -> int:
    begins = [
        log.first_offset
        for log in survey.logs
        if log.segment.base_offset > base and log.first_offset is not None
    ]
    return min(begins, default=OPEN_END)


def _name(segment: SegmentFile) -> str:
    return segment.name.rpartition("/")[2]
