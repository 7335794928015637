"""What a file's batch headers say together: counted chunk by chunk, while walking or decoding.

Times are counted by the leader that wrote them: what its clock said first and last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.batches.headers import UNKNOWN_COUNT
from analytics.dump.batches.log_bounds import MAX_SEGMENT_OFFSETS
from analytics.dump.batches.stretches import (
    ClockStep,
    Stretch,
    clock_steps,
    few_steps,
    in_order,
    stretches_of,
)
from analytics.epoch_times import are_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.dump.batches.batch_bytes import Damage, Tail
    from analytics.dump.batches.headers import Headers
    from analytics.dump.files.model import SegmentFile

MOST_HOLES = 1000
"""So many holes of a file are kept one by one; all are counted."""


class Hole(NamedTuple):
    """Offsets between two batches that no batch covers, and the bytes between these batches."""

    first: int
    end: int
    from_position: int = 0
    to_position: int = 0


@dataclass(frozen=True)
class SegmentSurvey:
    """One file, as its headers show it.

    Attributes:
        segment: The file.
        first_offset: Base offset of the first batch, None without batches.
        end_offset: Last offset + 1.
        first_position: First byte of the first batch.
        end_position: End of the last batch's bytes.
        first_timestamp: Earliest, milliseconds; None where none is known.
        last_timestamp: Latest, likewise.
        batches: How many.
        records: That the headers claim.
        uncounted_batches: Compressed entries of magic 0 and 1, whose headers claim nothing.
        control_batches: Of them.
        transactional_batches: Likewise.
        magics: Batches by format number.
        codecs: Batches by codec number.
        leader_epochs: (epoch, first offset) in the order they appear.
        epoch_times: Of the batches by leader epoch.
        holes: Between batches, the first `MOST_HOLES` of them.
        hole_count: All of them.
        hole_offsets: Offsets in all of them.
        last_hole_end: End of the last of them.
        thinned_end: End of the last batch that has lost records of its own to compaction.
        damages: What is no readable batch; without bytes.
        tail: Bytes after the last batch.
        changed: The file changed while it was read.
        unreadable: Why the system refused to read it, None where it did not.
        stretches: Of batches in which time goes on, in the order of the log.
        clock_steps: The batches before which a clock was set back.
        first_batch_ms: Time of the first batch that has one.
        last_batch_ms: That of the last.
    """

    segment: SegmentFile
    first_offset: int | None = None
    end_offset: int | None = None
    first_position: int | None = None
    end_position: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    batches: int = 0
    records: int = 0
    uncounted_batches: int = 0
    control_batches: int = 0
    transactional_batches: int = 0
    magics: Counter[int] = field(default_factory=Counter)
    codecs: Counter[int] = field(default_factory=Counter)
    leader_epochs: tuple[tuple[int, int], ...] = ()
    epoch_times: tuple[EpochTimes, ...] = ()
    holes: tuple[Hole, ...] = ()
    hole_count: int = 0
    hole_offsets: int = 0
    last_hole_end: int | None = None
    thinned_end: int | None = None
    damages: tuple[Damage, ...] = ()
    tail: Tail | None = None
    changed: bool = False
    unreadable: str | None = None
    stretches: tuple[Stretch, ...] = ()
    clock_steps: tuple[ClockStep, ...] = ()
    first_batch_ms: int | None = None
    last_batch_ms: int | None = None

    @property
    def overflows(self) -> bool:
        """Whether it holds offsets that no index of it can name (KAFKA-6264)."""
        if self.segment.kind != "log" or self.end_offset is None:
            return False
        return self.end_offset - self.segment.base_offset > MAX_SEGMENT_OFFSETS


class SegmentStats:
    """Counts the headers of one file; chunks are added in file order."""

    def __init__(self, segment: SegmentFile) -> None:
        self._survey = SegmentSurvey(segment)
        self._last_offset: int | None = None
        self._last_position = 0
        self._holes: list[Hole] = []

    def add(self, headers: Headers) -> None:
        """Count the batches of a chunk."""
        if not len(headers):
            return
        before = self._survey
        times = _extent(headers.first_timestamp, headers.max_timestamp)
        uncounted = headers.count == UNKNOWN_COUNT
        unknown = int(np.count_nonzero(uncounted))
        spans = headers.last_offset - headers.base_offset + 1
        thinned = np.flatnonzero((spans > headers.count) & ~uncounted)
        # Where a compressed entry of magic 0 or 1 begins is not in its header.
        first = before.segment.base_offset if uncounted[0] else int(headers.base_offset[0])
        self._survey = replace(
            _with_clock(before, headers),
            first_offset=first if before.first_offset is None else before.first_offset,
            end_offset=int(headers.last_offset[-1]) + 1,
            first_position=(
                int(headers.position[0]) if before.first_position is None else before.first_position
            ),
            end_position=int(headers.position[-1] + headers.size[-1]),
            first_timestamp=_least(before.first_timestamp, times[0]),
            last_timestamp=_most(before.last_timestamp, times[1]),
            batches=before.batches + len(headers),
            records=before.records + int(headers.count.sum()) + unknown,
            uncounted_batches=before.uncounted_batches + unknown,
            control_batches=before.control_batches + _count(headers.is_control),
            transactional_batches=before.transactional_batches + _count(headers.is_transactional),
            magics=before.magics + _counted(headers.magic),
            codecs=before.codecs + _counted(headers.codec),
            leader_epochs=_extended(before.leader_epochs, headers),
            epoch_times=in_all((*before.epoch_times, *_epoch_times_of(headers))),
            thinned_end=_last(headers.last_offset, thinned, before.thinned_end),
            stretches=in_order((*before.stretches, *stretches_of(headers))),
        )
        self._note_holes(headers)

    def survey(
        self, damages: Iterable[Damage] = (), tail: Tail | None = None, *, changed: bool = False
    ) -> SegmentSurvey:
        """Return what was counted.

        Args:
            damages: Of this file.
            tail: Likewise.
            changed: The file changed while it was read.
        """
        bare = tuple(replace(damage, content=b"") for damage in damages)
        return replace(
            self._survey, holes=tuple(self._holes), damages=bare, tail=tail, changed=changed
        )

    def _note_holes(self, headers: Headers) -> None:
        expected = np.empty(len(headers), np.int64)
        expected[1:] = headers.last_offset[:-1] + 1
        before = self._last_offset
        expected[0] = headers.base_offset[0] if before is None else before + 1
        ends = np.empty(len(headers), np.int64)
        ends[0] = self._last_position
        ends[1:] = headers.position[:-1] + headers.size[:-1]
        self._last_offset = int(headers.last_offset[-1])
        self._last_position = int(headers.position[-1] + headers.size[-1])
        # A compressed entry of magic 0 or 1 is taken to fill the hole before it.
        rows = np.flatnonzero((headers.base_offset > expected) & (headers.count != UNKNOWN_COUNT))
        if not rows.size:
            return
        first, end = expected[rows], headers.base_offset[rows]
        room = MOST_HOLES - len(self._holes)
        bytes_between = (ends[rows][:room].tolist(), headers.position[rows][:room].tolist())
        self._holes += map(Hole, first[:room].tolist(), end[:room].tolist(), *bytes_between)
        self._survey = replace(
            self._survey,
            hole_count=self._survey.hole_count + rows.size,
            hole_offsets=self._survey.hole_offsets + int((end - first).sum()),
            last_hole_end=int(end[-1]),
        )


def joined(parts: Sequence[SegmentSurvey]) -> SegmentSurvey:
    """Return several pieces of one file, in file order, as the whole of it."""
    whole, *others = parts
    for part in others:
        between: tuple[Hole, ...] = ()
        if whole.end_offset is not None and part.first_offset is not None:
            apart = part.first_offset > whole.end_offset
            positions = (whole.end_position or 0, part.first_position or 0)
            between = (Hole(whole.end_offset, part.first_offset, *positions),) if apart else ()
        whole = replace(
            part,
            first_offset=part.first_offset if whole.first_offset is None else whole.first_offset,
            end_offset=whole.end_offset if part.end_offset is None else part.end_offset,
            first_position=(
                part.first_position if whole.first_position is None else whole.first_position
            ),
            end_position=whole.end_position if part.end_position is None else part.end_position,
            first_timestamp=_least(whole.first_timestamp, part.first_timestamp),
            last_timestamp=_most(whole.last_timestamp, part.last_timestamp),
            batches=whole.batches + part.batches,
            records=whole.records + part.records,
            uncounted_batches=whole.uncounted_batches + part.uncounted_batches,
            control_batches=whole.control_batches + part.control_batches,
            transactional_batches=whole.transactional_batches + part.transactional_batches,
            magics=whole.magics + part.magics,
            codecs=whole.codecs + part.codecs,
            leader_epochs=_without_repeats((*whole.leader_epochs, *part.leader_epochs)),
            epoch_times=in_all((*whole.epoch_times, *part.epoch_times)),
            holes=(*whole.holes, *between, *part.holes)[:MOST_HOLES],
            hole_count=whole.hole_count + len(between) + part.hole_count,
            hole_offsets=whole.hole_offsets
            + sum(hole.end - hole.first for hole in between)
            + part.hole_offsets,
            last_hole_end=part.last_hole_end
            or next((hole.end for hole in between), whole.last_hole_end),
            thinned_end=part.thinned_end or whole.thinned_end,
            damages=(*whole.damages, *part.damages),
            changed=whole.changed or part.changed,
            unreadable=whole.unreadable or part.unreadable,
            stretches=in_order((*whole.stretches, *part.stretches)),
            clock_steps=steps_in((whole, part)),
            first_batch_ms=_first(whole.first_batch_ms, part.first_batch_ms),
            last_batch_ms=_first(part.last_batch_ms, whole.last_batch_ms),
        )
    return whole


def steps_in(parts: Iterable[SegmentSurvey]) -> tuple[ClockStep, ...]:
    """Return where a clock was set back in files, or parts of one, that follow each other."""
    found: list[ClockStep] = []
    before: int | None = None
    for each in parts:
        if before is not None and each.first_batch_ms is not None and each.first_offset is not None:
            begin, time = np.array([each.first_offset]), np.array([each.first_batch_ms])
            found += clock_steps(begin, time, before)
        found += each.clock_steps
        before = _first(each.last_batch_ms, before)
    return few_steps(found)


def _with_clock(stats: SegmentSurvey, headers: Headers) -> SegmentSurvey:
    """Add the times of the batches that follow what was counted."""
    at_ms = headers.max_timestamp
    times = at_ms[are_times(at_ms)]
    first, last = (int(times[0]), int(times[-1])) if times.size else (None, None)
    here = clock_steps(headers.base_offset, at_ms, stats.last_batch_ms)
    return replace(
        stats,
        clock_steps=few_steps((*stats.clock_steps, *here)),
        first_batch_ms=_first(stats.first_batch_ms, first),
        last_batch_ms=_first(last, stats.last_batch_ms),
    )


def _first(one: int | None, other: int | None) -> int | None:
    return other if one is None else one


def _extended(epochs: tuple[tuple[int, int], ...], headers: Headers) -> tuple[tuple[int, int], ...]:
    starts = np.flatnonzero(np.diff(headers.leader_epoch, prepend=headers.leader_epoch[0] - 1))
    found = zip(
        headers.leader_epoch[starts].tolist(), headers.base_offset[starts].tolist(), strict=True
    )
    return _without_repeats((*epochs, *(each for each in found if each[0] >= 0)))


def _without_repeats(epochs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    kept: list[tuple[int, int]] = []
    for epoch, offset in epochs:
        if not kept or kept[-1][0] != epoch:
            kept.append((epoch, offset))
    return tuple(kept)


def _extent(first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[int | None, int | None]:
    """Return the earliest and latest time of batches; what no calendar has is none."""
    begun, ended = (each[are_times(each)] for each in (first, last))
    return int(begun.min()) if begun.size else None, int(ended.max()) if ended.size else None


def _counted(column: NDArray[np.int8] | NDArray[np.int16]) -> Counter[int]:
    counts = np.bincount(column).tolist()
    return Counter({number: count for number, count in enumerate(counts) if count})


def _count(marked: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(marked))


def _last(offsets: NDArray[np.int64], rows: NDArray[np.int64], otherwise: int | None) -> int | None:
    return int(offsets[rows[-1]]) + 1 if rows.size else otherwise


def _least(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _most(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


class EpochTimes(NamedTuple):
    """Batches of one leader epoch.

    Attributes:
        epoch: The leader epoch.
        least_ms: The least time of a batch, epoch milliseconds.
        most_ms: The greatest.
    """

    epoch: int
    least_ms: int
    most_ms: int


def _epoch_times_of(headers: Headers) -> tuple[EpochTimes, ...]:
    """Return the times of batches that have one, and a leader epoch; ascending."""
    known = are_times(headers.max_timestamp) & (headers.leader_epoch >= 0)
    epochs, times = headers.leader_epoch[known], headers.max_timestamp[known]
    if not epochs.size:
        return ()
    order = np.argsort(epochs, kind="stable")
    epochs, times = epochs[order], times[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(epochs)) + 1])
    return tuple(
        map(
            EpochTimes,
            epochs[starts].tolist(),
            np.minimum.reduceat(times, starts).tolist(),
            np.maximum.reduceat(times, starts).tolist(),
        )
    )


def in_all(times: Iterable[EpochTimes]) -> tuple[EpochTimes, ...]:
    """Return times of several pieces as those of all of them together, ascending."""
    found: dict[int, EpochTimes] = {}
    for each in times:
        held = found.get(each.epoch, each)
        found[each.epoch] = EpochTimes(
            each.epoch, min(held.least_ms, each.least_ms), max(held.most_ms, each.most_ms)
        )
    return tuple(found[epoch] for epoch in sorted(found))
