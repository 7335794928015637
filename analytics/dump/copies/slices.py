"""What to read of each file: the union of copies along a line, and which rule leaves out what."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.batches.walks import log_senses, walk_segment
from analytics.dump.copies.compare import near_batches, offsets_between, runs_of
from analytics.dump.files.model import (
    MAX_OFFSET,
    NOTHING_KNOWN,
    Filled,
    Note,
    PartitionCopy,
    SegmentFile,
    Slice,
)
from analytics.dump.files.storage import refusal
from analytics.dump.records.segment_reader import FileReader, ReadOptions
from schemas import CLUSTER_METADATA, COMPACTED_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from analytics.dump.batches.headers import Headers
    from analytics.dump.batches.log_bounds import LogSense
    from analytics.dump.batches.walks import CopyLog, SegmentWalk
    from analytics.dump.copies.surviving_lines import LeaderRange, Lines

# The union of copies along one line: every record once, whichever copy has it.
#
# Compaction makes copies of equal logs differ: each broker cleans on its own. What the leading
# copy has lost (a file, a damaged batch, records cleaned away) is taken from another one, unless
# that would bring a deleted key back to life: a record that the leading copy cleaned away was
# followed by a newer one or by a tombstone, and tombstones go in the end. Only a copy that goes
# on, without a hole, to where the leading one was cleaned still shows what followed.

DUPLICATE = "duplicate_copy"
SUPERSEDED = "superseded_in_leading_copy"

OLDER = "older_segments"
MISSING = "missing_there"
CLEANED = "cleaned_there"

_WHY = (CLEANED, OLDER, MISSING)

_DUPLICATE, _NEW, _DOUBTFUL = 0, 1, 2
_WORDS = {0: DUPLICATE, 2: SUPERSEDED}
_REFUSED = 2


class Range(NamedTuple):
    """Offsets left out of a copy, and by which rule."""

    first: int
    end: int
    rule: str


class _Units(NamedTuple):
    """Stretches of a copy's records, ascending, and what becomes of them."""

    first: NDArray[np.int64]
    end: NDArray[np.int64]
    verdict: NDArray[np.int8]


class _Added(NamedTuple):
    log: CopyLog
    first: int
    end: int


@dataclass
class LineUnion:
    """The records of one line, as copies are added to it; the first one added leads.

    Attributes:
        line: ``""``, or the copy whose line it is.
        filled: What copies after the first gave.
    """

    line: str
    filled: list[Filled] = field(default_factory=list)
    _added: list[_Added] = field(default_factory=list)

    def add(self, log: CopyLog, leader_range: LeaderRange) -> list[Range]:
        """Add a copy's records of a range; return what is left out of them, ascending."""
        ranges: list[Range] = []
        if self._added:
            units = self._units(log, leader_range)
            self._take(log, units)
            ranges = _ranges(units)
        self._added.append(_Added(log, leader_range.first, leader_range.end))
        return ranges

    def _units(self, log: CopyLog, leader_range: LeaderRange) -> _Units:
        headers = log.headers
        inside = (headers.last_offset >= leader_range.first) & (
            headers.base_offset < leader_range.end
        )
        rows = np.flatnonzero(inside)
        verdict = self._by_header(log, rows)
        known = verdict != _DOUBTFUL
        parts = [
            _Units(
                headers.base_offset[rows[known]],
                headers.last_offset[rows[known]] + 1,
                verdict[known],
            )
        ]
        parts += [self._by_record(log, first, end) for first, end in runs_of(rows[~known])]
        first, end, verdict = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(first, kind="stable")
        return _Units(first[order], end[order], verdict[order].astype(np.int8))

    def _by_header(self, log: CopyLog, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """Tell whether batches are there already, are new, or must be looked into."""
        ours = log.headers.take(rows)
        verdict = np.full(rows.size, _NEW, np.int8)
        for each in self._added:
            theirs = each.log.headers
            near = near_batches(ours, theirs)
            there = near.equal
            if near.aligned.any():
                there = there | (near.aligned & theirs.is_whole[near.row])
            verdict[near.overlaps & (verdict == _NEW)] = _DOUBTFUL
            verdict[there] = _DUPLICATE
        verdict[ours.count == 0] = _DUPLICATE
        return verdict

    def _by_record(self, log: CopyLog, first: int, end: int) -> _Units:
        """Look into the batches from row ``first`` to before row ``end``."""
        low, high = int(log.headers.base_offset[first]), int(log.headers.last_offset[end - 1]) + 1
        ours = offsets_between(log, low, high)
        theirs = [
            offsets_between(each.log, max(low, each.first), min(high, each.end))
            for each in self._added
        ]
        verdict = np.where(np.isin(ours, np.concatenate(theirs)), _DUPLICATE, _NEW)
        return _Units(ours, ours + 1, verdict.astype(np.int8))

    def _take(self, log: CopyLog, units: _Units) -> None:
        """Note what a copy gives, and refuse what must not come back."""
        leader = self._added[0].log
        new = units.verdict == _NEW
        begins = leader.walks[0].segment.base_offset if leader.walks else leader.end_offset
        cleaned_to = _cleaned_to(leader)
        cleaned = new & (units.first >= begins) & (units.first < cleaned_to)
        for first, end in _damaged(leader):
            # What lies there now is damage: it was not cleaned away.
            cleaned &= ~((units.first >= first) & (units.end <= end))
        if not _reaches(log, cleaned_to):
            units.verdict[cleaned] = _REFUSED
            new &= ~cleaned
        why = np.where(cleaned, 0, np.where(units.first < begins, 1, 2))
        for first, end in runs_of(np.flatnonzero(new), longest=None):
            for word in dict.fromkeys(why[first:end].tolist()):
                chosen = np.flatnonzero(why[first:end] == word) + first
                low, high = int(units.first[chosen[0]]), int(units.end[chosen[-1]])
                key = log.partition.key
                self.filled.append(Filled(*key, self.line, log.name, low, high, _WHY[word]))


def _damaged(log: CopyLog) -> list[tuple[int, int]]:
    """Return the offsets that may have stood where a copy's bytes are damaged."""
    found = []
    for number, walk in enumerate(log.walks):
        headers = walk.headers
        following = [other.segment.base_offset for other in log.walks[number + 1 :]]
        for damage in walk.damages:
            after = int(np.searchsorted(headers.position, damage.position))
            first = int(headers.last_offset[after - 1]) + 1 if after else walk.segment.base_offset
            end = int(headers.base_offset[after]) if after < len(headers) else None
            found.append((first, end if end is not None else min([*following, MAX_OFFSET])))
    return found


def _cleaned_to(log: CopyLog) -> int:
    """Return the offset below which a cleaner may have removed records."""
    if log.partition.topic not in COMPACTED_TOPICS:
        return 0
    dirty = log.partition.intact_from
    return log.end_offset if dirty is None else dirty


def _reaches(log: CopyLog, offset: int) -> bool:
    """Whether a copy goes on to an offset, with no hole but those of its own cleaner."""
    if log.end_offset < offset or any(walk.damages for walk in log.walks):
        return False
    headers, clean = log.headers, log.partition.intact_from or 0
    holes = headers.base_offset[1:] > headers.last_offset[:-1] + 1
    after = headers.base_offset[1:]
    return not (holes & (after > clean) & (after <= offset)).any()


def _ranges(units: _Units) -> list[Range]:
    """Return the runs of units left out, each with its rule."""
    if not units.verdict.size:
        return []
    breaks = np.flatnonzero(np.diff(units.verdict)) + 1
    firsts = np.concatenate([[0], breaks])
    ends = np.concatenate([breaks, [units.verdict.size]])
    return [
        Range(int(units.first[first]), int(units.end[end - 1]), _WORDS[verdict])
        for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)
        if (verdict := int(units.verdict[first])) != _NEW
    ]


# What to read of each file, and which rule leaves out what.
#
# Of the metadata log's snapshots (KIP-630) those are read that are whole, and of some that tell
# the same the first.

BELOW_LOG_START = "below_log_start"
ABOVE_HIGH_WATERMARK = "above_high_watermark"
_HEADER_TYPE = b"\x00\x03"
_FOOTER_TYPE = b"\x00\x04"


@dataclass(frozen=True)
class Edges:
    """Which ends of a log count.

    Attributes:
        strict_high_watermark: Nothing above the checkpointed high watermark is read.
        keep_below_log_start: What lies below the log start is read too: it was the broker's
            before it was deleted.
    """

    strict_high_watermark: bool = False
    keep_below_log_start: bool = False


ALL_THAT_COUNTS = Edges()
"""From the log start to the last record, above the checkpointed high watermark too."""


def slices_of_one(partition: PartitionCopy, split_bytes: int, edges: Edges) -> list[Slice]:
    """Return the slices of a partition that one copy alone holds; no file needs to be read."""
    rules = _bounds(partition, partition, edges)
    return [
        piece
        for segment, sense in zip(partition.logs, log_senses(partition), strict=True)
        for piece in split(
            _whole(partition, segment, sense, [r for r in rules if r.end > segment.base_offset]),
            split_bytes,
        )
    ]


def slices_of_lines(
    lines: Lines, split_bytes: int, edges: Edges
) -> tuple[list[Slice], list[LineUnion]]:
    """Return the slices of a partition's copies, every record kept once on each line."""
    leader = lines.copies[0].partition
    unions: dict[str, LineUnion] = {}
    slices: list[Slice] = []
    for log in lines.copies:
        for leader_range in lines.leader_ranges[log.name]:
            union = unions.setdefault(leader_range.line, LineUnion(leader_range.line))
            followed = log.partition if leader_range.line == log.name else leader
            bounds = _bounds(log.partition, followed, edges)
            floor = max((r.end for r in bounds if r.rule == BELOW_LOG_START), default=0)
            kept = replace(leader_range, first=max(leader_range.first, floor))
            left_out = union.add(log, kept) if kept.first < kept.end else []
            slices += _slices_of_range(log, leader_range, [*bounds, *left_out], split_bytes)
    return slices, list(unions.values())


def with_refusals(slices: Iterable[Slice], logs: Iterable[CopyLog] = ()) -> tuple[Slice, ...]:
    """Return slices that say why the system refuses this process their files, where it does.

    Args:
        slices: As planned.
        logs: Whose files were walked for it.
    """
    why = {walk.segment.path: walk.unreadable for log in logs for walk in log.walks}
    marked = []
    for each in slices:
        path = each.segment.path
        if path not in why:
            why[path] = refusal(path)
        marked.append(each if why[path] is None else replace(each, unreadable=why[path]))
    return tuple(marked)


def choose_snapshots(copies: Sequence[PartitionCopy]) -> tuple[list[Slice], list[Note]]:
    """Return the slices of all whole snapshots.

    Those of equal end offset and epoch hold the same state, in other bytes: the first copy's is
    kept. One without its footer was never finished, and is not read.

    Args:
        copies: Of the metadata log's partition, the best first.
    """
    slices, notes = [], []
    kept: set[str] = set()
    for partition in copies:
        for segment in partition.checkpoints:
            if not _is_whole(segment):
                where = f"{partition.copy}: {segment.name}"
                notes.append(Note(where, "a snapshot without header or footer; not read"))
                continue
            file = segment.name.rpartition("/")[2]
            rules = ((0, MAX_OFFSET, DUPLICATE),) if file in kept else ()
            kept.add(file)
            slices.append(
                Slice(
                    copy=partition.copy,
                    topic=partition.topic,
                    partition=partition.partition,
                    segment=segment,
                    line="",
                    from_position=0,
                    to_position=segment.size,
                    rules=rules,
                )
            )
    return slices, notes


def split(piece: Slice, split_bytes: int) -> list[Slice]:
    """Cut a slice between batches into pieces of about ``split_bytes``.

    What follows damage stays in one piece: only the reader can tell where it goes on.
    """
    size = piece.to_position - piece.from_position
    if size <= split_bytes:
        return [piece]
    walk = walk_segment(piece.segment, piece.sense)
    clean_to = walk.damages[0].position if walk.damages else piece.to_position
    starts = walk.headers.position
    starts = starts[(starts > piece.from_position) & (starts < min(clean_to, piece.to_position))]
    wanted = np.arange(piece.from_position + split_bytes, piece.to_position, split_bytes)
    at = np.searchsorted(starts, wanted)
    cuts = np.unique(starts[at[at < starts.size]]).tolist()
    edges = [piece.from_position, *cuts, piece.to_position]
    return [
        replace(piece, from_position=first, to_position=end, batches=None, records=None)
        for first, end in pairwise(edges)
    ]


def paint(ranges: Iterable[Range]) -> tuple[tuple[int, int, str], ...]:
    """Return disjoint ascending ranges; where some overlap, the first given counts."""
    painted: list[tuple[int, int, str]] = []
    for each in ranges:
        pieces = [(each.first, each.end)]
        for first, end, _ in painted:
            pieces = [
                part
                for low, high in pieces
                for part in ((low, min(high, first)), (max(low, end), high))
                if part[0] < part[1]
            ]
        painted += [(low, high, each.rule) for low, high in pieces]
    return tuple(sorted(painted))


def _bounds(own: PartitionCopy, followed: PartitionCopy, edges: Edges) -> list[Range]:
    """Return what lies below the log start, and above the high watermark if that is strict."""
    start = max(own.log_start_offset or 0, log_start(followed))
    bounds = [Range(0, start, BELOW_LOG_START)] if start and not edges.keep_below_log_start else []
    if edges.strict_high_watermark and followed.high_watermark is not None:
        bounds.append(Range(followed.high_watermark, MAX_OFFSET, ABOVE_HIGH_WATERMARK))
    return bounds


def log_start(partition: PartitionCopy) -> int:
    """Return the offset below which records are not the broker's any more.

    Where the checkpoint names none it is the first file's base offset (``UnifiedLog``). For a
    compacted topic and the metadata log that only says where this copy's files begin: older ones
    of another copy are true history.
    """
    if partition.log_start_offset is not None:
        return partition.log_start_offset
    if partition.topic in COMPACTED_TOPICS or partition.topic == CLUSTER_METADATA:
        return 0
    return partition.logs[0].base_offset if partition.logs and partition.whole else 0


def _whole(
    partition: PartitionCopy, segment: SegmentFile, sense: LogSense, rules: Iterable[Range]
) -> Slice:
    return Slice(
        copy=partition.copy,
        topic=partition.topic,
        partition=partition.partition,
        segment=segment,
        line="",
        from_position=0,
        to_position=segment.size,
        rules=paint(rules),
        sense=sense,
    )


def _slices_of_range(
    log: CopyLog, leader_range: LeaderRange, ranges: Sequence[Range], split_bytes: int
) -> list[Slice]:
    slices = []
    for number, walk in enumerate(log.walks):
        headers = log.of_file(number)
        first, end = _positions(headers, walk.segment.size, leader_range)
        if first < end or (walk.segment.size == 0 and leader_range.first == 0):
            inside = headers.take((headers.position >= first) & (headers.position < end))
            piece = _piece(log, walk, leader_range, inside, ranges)
            piece = replace(piece, from_position=first, to_position=end)
            slices += split(piece, split_bytes)
    return slices


def _positions(headers: Headers, size: int, leader_range: LeaderRange) -> tuple[int, int]:
    """Return the bytes of a file that belong to a range; a batch belongs to its last offset."""

    def position(offset: int) -> int:
        if offset == 0:
            return 0
        at = int(np.searchsorted(headers.last_offset, offset))
        return int(headers.position[at]) if at < len(headers) else size

    first, end = leader_range.first, leader_range.end
    return position(first), size if end == MAX_OFFSET else position(end)


def _piece(
    log: CopyLog,
    walk: SegmentWalk,
    leader_range: LeaderRange,
    inside: Headers,
    ranges: Sequence[Range],
) -> Slice:
    rules: tuple[tuple[int, int, str], ...] = ()
    if len(inside):
        low, high = int(inside.base_offset[0]), int(inside.last_offset[-1]) + 1
        # A batch that reaches into this range from the one before it.
        before = [Range(0, leader_range.first, DUPLICATE)] if low < leader_range.first else []
        near = [r for r in (*ranges, *before) if r.first < high and r.end > low]
        rules = _simplest(paint(near), low, high)
    piece = _whole(log.partition, walk.segment, walk.sense, [])
    counted = bool((inside.count >= 0).all())
    return replace(
        piece,
        line=leader_range.line,
        rules=rules,
        batches=len(inside),
        records=int(inside.count.sum()) if counted else None,
    )


def _simplest(
    rules: tuple[tuple[int, int, str], ...], low: int, high: int
) -> tuple[tuple[int, int, str], ...]:
    """Return one rule for everything where each of a file's offsets falls under it."""
    if len(rules) == 1 and rules[0][0] <= low and rules[0][1] >= high:
        return ((0, MAX_OFFSET, rules[0][2]),)
    return rules


def _is_whole(segment: SegmentFile) -> bool:
    """Whether a snapshot begins with its header and ends with its footer."""
    headers = walk_segment(segment, NOTHING_KNOWN).headers
    if not len(headers):
        return False
    first, last = int(headers.size[0]), int(headers.position[-1])
    begins = _control_types(segment, 0, first)
    ends = _control_types(segment, last, last + int(headers.size[-1]))
    return _HEADER_TYPE in begins and _FOOTER_TYPE in ends


def _control_types(segment: SegmentFile, start: int, end: int) -> set[bytes]:
    """Return the types of the control records between two positions."""
    found: set[bytes] = set()
    options = ReadOptions(from_position=start, to_position=end, keep_content=False)
    for chunk in FileReader(segment.path, options):
        records = chunk.records
        control = records.batches.is_control[records.batch]
        for begin, length in zip(
            records.key.start[control].tolist(), records.key.length[control].tolist(), strict=True
        ):
            found.add(records.data[begin + 2 : begin + min(length, 4)].tobytes())
    return found
