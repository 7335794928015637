"""Where the batches of a slice are: their chain is walked, and offsets and epochs are judged.

The chain is followed from length to length and mended where it breaks. Every byte ends in exactly
one of three: a batch, a damage, the tail. With ``check_crc`` each batch is summed over; without,
only where the chain breaks. Nothing is believed of bytes before they are looked at.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.batches.batch_bytes import (
    DEFAULT_LIMITS,
    Damage,
    DamageReason,
    Limits,
    Tail,
    TailKind,
    chain_starts,
    checksums,
    size_fields,
)
from analytics.dump.batches.headers import (
    BATCH_HEADER,
    LOG_OVERHEAD,
    MAGIC_AT,
    SHORTEST_HEADER,
    SMALLEST,
    Batches,
    read_headers,
)
from analytics.dump.batches.log_bounds import (
    BatchFinder,
    Entry,
    LogSense,
    implausible_epochs,
    implausible_offsets,
)
from analytics.dump.records.message_sets import complete_wrappers
from analytics.dump.records.raw_records import PADDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.files.storage import ByteSource

_WINDOW: Final = 2 << 20
_SMALL_WINDOW: Final = 4 << 10
"""After a break, windows begin small and double: many breaks stay cheap."""
_ZEROS_OF_A_TAIL: Final = 64
"""So many zeros at the end are no end of a record."""
_DOUBTS: Final = 64
"""How many batches are looked back at where the chain breaks and nothing was checked."""

_PROBED: Final = 1 << 20
_size_at = struct.Struct(">I").unpack_from


@dataclass(frozen=True)
class Layout:
    """What lies where in a slice of a segment.

    Attributes:
        batches: Those to read, in file order; a leader epoch not to be believed is -1.
        damages: In file order, without their bytes.
        tail: The bytes after the last batch, if any.
        implausible_epochs: Batches whose leader epoch is not to be believed.
    """

    batches: Batches
    damages: list[Damage]
    tail: Tail | None
    implausible_epochs: int


def lay_out(
    source: ByteSource,
    start: int,
    stop: int,
    sense: LogSense,
    *,
    check_crc: bool,
    limits: Limits = DEFAULT_LIMITS,
) -> Layout:
    """Find the batches from byte ``start``, where one begins, to byte ``stop``."""
    walk = ChainWalk(source, start, stop, sense, check_crc=check_crc)
    walk.run()
    batches = Batches.concatenate(walk.parts or [no_batches()])
    complete_wrappers(source, batches, limits)
    wrong = implausible_offsets(batches, sense)
    damages = walk.damages
    if wrong.any():
        damages = sorted(damages + _implausible(batches, wrong), key=lambda each: each.position)
        batches = batches.take(~wrong)
    doubtful = implausible_epochs(batches, sense)
    epochs = np.where(doubtful, np.int32(-1), batches.leader_epoch)
    batches = replace(batches, leader_epoch=epochs)
    return Layout(batches, damages, walk.tail, int(doubtful.sum()))


def _implausible(batches: Batches, wrong: NDArray[np.bool_]) -> list[Damage]:
    rows = batches.take(np.flatnonzero(wrong))
    columns = (rows.position, rows.size, rows.base_offset, rows.count)
    return [
        Damage(
            position,
            size,
            DamageReason.IMPLAUSIBLE_OFFSET,
            "the offset contradicts the batches around it or the segment's bounds",
            offset,
            records=max(count, 0),
        )
        for position, size, offset, count in zip(*(c.tolist() for c in columns), strict=True)
    ]


def no_batches() -> Batches:
    """Return a `Batches` without rows."""
    nothing = np.empty(0, np.int64)
    return read_headers(np.zeros(PADDING, np.uint8), nothing, nothing, 0)


@dataclass
class ChainWalk:
    """Follows one slice from its first byte to its last.

    Attributes:
        source: The file.
        start: First byte; a batch begins there.
        stop: End of the slice.
        sense: What is known of the log around it.
        check_crc: Sum over every batch.
        parts: The batches found, in file order.
        damages: In file order.
        tail: The bytes after the last batch, if any.
    """

    source: ByteSource
    start: int
    stop: int
    sense: LogSense
    check_crc: bool
    parts: list[Batches] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    tail: Tail | None = None

    def __post_init__(self) -> None:
        self._window = _WINDOW
        self._raw = bytearray(min(_WINDOW, self.stop - self.start) + PADDING)
        self._bytes = SliceWindow(self.source, self.start, self.stop, self.sense)
        self._finder = BatchFinder(self.source, self.start, self.stop, self.sense)

    def run(self) -> None:
        """Walk to the end."""
        position = self.start
        while position < self.stop:
            position = self._advance(position)

    # --- the undamaged way ------------------------------------------------------------------

    def _advance(self, position: int) -> int:
        """Take the batches of one window; return where reading goes on."""
        size = min(self._window, self.stop - position)
        self.source.fill(memoryview(self._raw)[:size], position)
        data = np.frombuffer(self._raw, np.uint8)
        starts, sizes = self._plausible_entries(data, size)
        if not starts.size:
            return self._one(position)
        batches = read_headers(data, starts, sizes, position)
        end = position + int(starts[-1] + sizes[-1])
        if self.check_crc:
            bad = checksums(self._raw, starts, starts + sizes, batches.magic) != batches.crc
            if bad.any():
                return self._mend(batches, bad, end)
        else:
            senseless = np.flatnonzero(_senseless(batches))
            if senseless.size:
                first = int(senseless[0])
                self._keep(batches.take(slice(0, first)))
                return self._lost(int(batches.position[first]))
        self._keep(batches)
        self._window = min(self._window * 2, _WINDOW)
        return end

    def _plausible_entries(
        self, data: NDArray[np.uint8], size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and sizes of the entries at the window's head that lie in it whole."""
        begins = chain_starts(data, max(size - MAGIC_AT, 0))
        sizes = size_fields(data)[begins].astype(np.int64) + LOG_OVERHEAD
        magic = data[begins + MAGIC_AT]
        good = (magic <= 2) & (sizes >= SMALLEST[np.minimum(magic, 2)]) & (begins + sizes <= size)
        count = begins.size if good.all() else int(good.argmin())
        return begins[:count], sizes[:count]

    def _keep(self, batches: Batches) -> None:
        if len(batches):
            self.parts.append(batches)

    # --- where something is wrong -----------------------------------------------------------

    def _mend(self, batches: Batches, bad: NDArray[np.bool_], end: int) -> int:
        """Some batches of a window fail their checksum: is it their bytes, or their length?"""
        # The next batch checks and begins at the next offset: nothing was passed over.
        next_base = batches.base_offset[1:]
        followed = np.append(~bad[1:] & (batches.last_offset[:-1] + 1 == next_base), False)
        for first, after in _runs(bad & ~followed):
            low = int(batches.position[first]) + 1
            high = int(batches.end[after - 1])
            hidden = self._finder.first(low, high, batches.position[first:after])
            if hidden is not None:
                row = int(np.searchsorted(batches.position, hidden, "right")) - 1
                self._split(batches.take(slice(0, row)), bad[:row])
                self._lose(int(batches.position[row]), hidden, DamageReason.BAD_LENGTH)
                return hidden
        if bad[-1] and not self._bytes.may_go_on(end):
            self._split(batches.take(slice(0, -1)), bad[:-1])
            return self._mistaken(int(batches.position[-1]), end)
        self._split(batches, bad)
        return end

    def _split(self, batches: Batches, bad: NDArray[np.bool_]) -> None:
        self._keep(batches.take(~bad))
        for row in np.flatnonzero(bad).tolist():
            start, end = int(batches.position[row]), int(batches.end[row])
            self._lose(start, end, DamageReason.BAD_CRC, int(batches.base_offset[row]))

    def _one(self, position: int) -> int:
        """No entry that makes sense lies in the window whole."""
        entry = self._bytes.entry(position)
        if entry is None:
            return self._lost(position)
        if entry.end > self.stop:
            return self._overrun(position)
        if entry.size <= _WINDOW and self._window < _WINDOW:
            self._window = _WINDOW
            return position
        return self._large(entry)

    def _large(self, entry: Entry) -> int:
        """Take an entry larger than a window, or what is hidden in it."""
        batch = self._bytes.header(entry)
        if not self.check_crc:
            if _senseless(batch).any():
                return self._lost(entry.position)
            self._keep(batch)
            return entry.end
        if not self._finder.can_afford(entry.size):
            hidden = self._finder.first(entry.position + 1, entry.end)
            if hidden is not None:
                self._lose(entry.position, hidden, DamageReason.BAD_LENGTH)
                return hidden
        if self._finder.checks(entry):
            self._keep(batch)
            return entry.end
        hidden = self._finder.first(entry.position + 1, entry.end)
        if hidden is not None:
            self._lose(entry.position, hidden, DamageReason.BAD_LENGTH)
            return hidden
        return self._mistaken(entry.position, entry.end)

    def _mistaken(self, position: int, end: int) -> int:
        """A batch fails its checksum and nothing is hidden in it: go on after it, or further."""
        if self._bytes.may_go_on(end):
            self._lose(position, end, DamageReason.BAD_CRC, self._bytes.claimed(position))
            return end
        found = self._finder.first(end, self.stop)
        if found is None:
            return self._finish(position, DamageReason.BAD_CRC)
        self._lose(position, found, DamageReason.BAD_LENGTH)
        return found

    def _lost(self, position: int) -> int:
        """There is no batch here."""
        doubtful = self._distrusted(position)
        if doubtful is not None:
            return self._doubt(doubtful)
        found = None
        if not self._bytes.only_zeros(position):
            found = self._finder.first(position + 1, self.stop)
        if found is None:
            return self._finish(position, self._bytes.misnomer(position, self.stop))
        self._lose(position, found, self._bytes.misnomer(position, found))
        return found

    def _overrun(self, position: int) -> int:
        """A header that makes sense claims more bytes than there are."""
        doubtful = self._distrusted(position)
        if doubtful is not None:
            return self._doubt(doubtful)
        found = self._finder.first(position + 1, self.stop)
        if found is not None:
            self._lose(position, found, DamageReason.BAD_LENGTH)
            return found
        if self.stop < self.source.size:
            self._lose(position, self.stop, DamageReason.BAD_LENGTH)
        else:
            self.tail = Tail(position, self.stop - position, TailKind.TRUNCATED)
        return self.stop

    def _distrusted(self, position: int) -> Entry | None:
        """Where nothing was checked: take back the batches that led here and fail their checksum.

        Returns the first of them.
        """
        doubtful = None
        for _ in range(0 if self.check_crc else _DOUBTS):
            if not self.parts:
                break
            last = self.parts[-1]
            row = len(last) - 1
            entry = Entry(int(last.position[row]), int(last.size[row]), int(last.magic[row]))
            # Beyond a damage is another chain.
            if entry.end != position or not self._finder.can_afford(entry.size):
                break
            if self._finder.checks(entry):
                break
            doubtful, position = entry, entry.position
            self.parts[-1:] = [last.take(slice(0, row))] if row else []
        return doubtful

    def _doubt(self, entry: Entry) -> int:
        hidden = self._finder.first(entry.position + 1, entry.end)
        if hidden is not None:
            self._lose(entry.position, hidden, DamageReason.BAD_LENGTH)
            return hidden
        return self._mistaken(entry.position, entry.end)

    # --- accounts ---------------------------------------------------------------------------

    def _finish(self, position: int, reason: DamageReason) -> int:
        """No batch follows: name what the bytes up to the end are."""
        zeros = self._bytes.last_nonzero(position)
        rest = self.stop - position
        whole = self.stop == self.source.size
        if whole and rest < SHORTEST_HEADER:
            self.tail = Tail(position, rest, TailKind.TRUNCATED)
            return self.stop
        if whole and self.stop - zeros >= min(_ZEROS_OF_A_TAIL, rest):
            self.tail = Tail(zeros, self.stop - zeros, TailKind.PREALLOCATED)
            self._lose(position, zeros, reason)
            return self.stop
        self._lose(position, self.stop, reason)
        return self.stop

    def _lose(self, start: int, end: int, reason: DamageReason, offset: int | None = None) -> None:
        if end > start:
            if reason is not DamageReason.BAD_CRC:
                self._window = _SMALL_WINDOW
            if reason in {DamageReason.BAD_LENGTH, DamageReason.BAD_MAGIC}:
                offset = self._bytes.claimed(start)
            self.damages.append(Damage(start, end - start, reason, offset=offset))


def _senseless(batches: Batches) -> NDArray[np.bool_]:
    """Mark magic 2 headers that no broker writes."""
    impossible = (batches.count < 0) | (batches.last_offset < batches.base_offset)
    senseless: NDArray[np.bool_] = impossible & (batches.magic == 2)
    return senseless


def _runs(marked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return list(zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True))


@dataclass(frozen=True)
class SliceWindow:
    """The bytes of a file from ``start`` to ``stop``, of a log of which ``sense`` is known."""

    source: ByteSource
    start: int
    stop: int
    sense: LogSense

    def entry(self, position: int) -> Entry | None:
        """Return the entry that a header which makes sense claims."""
        if self.stop - position < SHORTEST_HEADER:
            return None
        head = self.source.bytes(position, SHORTEST_HEADER)
        size, magic = _size_at(head, 8)[0] + LOG_OVERHEAD, head[MAGIC_AT]
        if magic > 2 or size < SMALLEST[magic] or size >= 1 << 31:
            return None
        return Entry(position, size, magic)

    def header(self, entry: Entry) -> Batches:
        """Return the header of an entry, as one row."""
        data = self.source.array(entry.position, min(entry.size, BATCH_HEADER))
        start, size = np.zeros(1, np.int64), np.array([entry.size], np.int64)
        return read_headers(data, start, size, entry.position)

    def may_go_on(self, position: int) -> bool:
        """Whether what follows a damaged batch looks like a batch or like an end."""
        rest = self.stop - position
        if rest < SHORTEST_HEADER or self.entry(position) is not None:
            return True
        return not any(self.source.bytes(position, min(rest, BATCH_HEADER)))

    def only_zeros(self, position: int) -> bool:
        """Whether nothing but zeros follows."""
        head = self.source.bytes(position, min(BATCH_HEADER, self.stop - position))
        return not any(head) and self.last_nonzero(position) == position

    def last_nonzero(self, position: int) -> int:
        """Return where the zeros at the end begin; ``position`` where there is nothing else."""
        end = self.stop
        while end > position:
            start = max(end - _PROBED, position)
            found = np.flatnonzero(self.source.array(start, end - start)[: end - start])
            if found.size:
                return start + int(found[-1]) + 1
            end = start
        return position

    def misnomer(self, position: int, next_position: int) -> DamageReason:
        """What to call bytes that are no batch and are followed by one, or by the end."""
        if self.claimed(position) is None:
            return DamageReason.GARBAGE_BETWEEN_BATCHES
        head = self.source.bytes(position, SHORTEST_HEADER)
        if not any(head):
            return DamageReason.GARBAGE_BETWEEN_BATCHES
        leads_on = position + LOG_OVERHEAD + _size_at(head, 8)[0] == next_position
        if head[MAGIC_AT] > 2:
            reason = DamageReason.BAD_MAGIC if leads_on else DamageReason.GARBAGE_BETWEEN_BATCHES
        else:
            reason = DamageReason.BAD_LENGTH
        return reason

    def claimed(self, position: int) -> int | None:
        """Return the offset that stands where a header would have it, if it makes sense."""
        if self.stop - position < SHORTEST_HEADER:
            return None
        offset = int.from_bytes(self.source.bytes(position, 8), signed=True)
        return offset if self.sense.low <= offset < self.sense.high else None
