"""What the bytes of batches are: headers, records, control or compressed ones; and their sums.

What can be wrong with the bytes of a log segment, in enumerated words.

A batch that would cost more memory or time than one may, whatever it claims, is damaged too.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from crc32c import crc32c

from analytics.dump.batches.headers import BATCH_HEADER, LOG_OVERHEAD, SMALLEST
from analytics.wire.compiled import BYTES, compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from analytics.dump.batches.headers import Batches
    from analytics.dump.files.storage import ByteSource
    from analytics.dump.records.raw_records import Chunk, RawRecords
    from analytics.wire.compiled import Bytes
    from schemas.manifest import BytesOfBatches, HorizonEntry


CONTENT_LIMIT = 1 << 20
"""At most this many bytes of a damage are kept."""


@dataclass(frozen=True)
class Limits:
    """Bounds on what is believed.

    Attributes:
        max_batch_bytes: Of a batch in the file.
        max_decompressed_bytes: Of one batch's records once decompressed.
        max_batch_records: Of one batch; a record costs memory beyond its bytes.
        free_expansion_bytes: Decompressed bytes of one read that are always allowed.
        max_expansion: Decompressed bytes allowed beyond those, per byte of the batches read.
    """

    max_batch_bytes: int = 128 << 20
    max_decompressed_bytes: int = 128 << 20
    max_batch_records: int = 1 << 20
    free_expansion_bytes: int = 256 << 20
    max_expansion: int = 500


DEFAULT_LIMITS = Limits()


class DamageReason(StrEnum):
    """Why bytes of a segment gave no records."""

    BAD_CRC = "bad_crc"
    """The checksum does not match; the length does, as what follows shows."""
    BAD_LENGTH = "bad_length"
    """The length field leads nowhere; reading went on at the next batch that checks."""
    BAD_MAGIC = "bad_magic"
    """A format number that never existed, in an entry whose length is right."""
    BAD_RECORD_COUNT = "bad_record_count"
    """The header's count is not what the batch holds."""
    BAD_RECORD = "bad_record"
    """A record's lengths or offsets contradict the batch that it lies in."""
    BAD_COMPRESSION = "bad_compression"
    """The codec refuses the bytes, or its number is unknown."""
    DECOMPRESSED_TOO_LARGE = "decompressed_too_large"
    """Decompressed, the batch would exceed `Limits`."""
    BATCH_TOO_LARGE = "batch_too_large"
    """The batch's size or record count exceeds `Limits`."""
    IMPLAUSIBLE_OFFSET = "implausible_offset"
    """The batch checks, but its offset, which the checksum does not cover, cannot be true."""
    GARBAGE_BETWEEN_BATCHES = "garbage_between_batches"
    """Bytes that are no batch."""


class TailKind(StrEnum):
    """What the bytes after the last batch are; they are counted apart, and are no damage."""

    TRUNCATED = "truncated_tail"
    """A batch that was not written to its end; brokers cut it off when they start."""
    PREALLOCATED = "preallocated_tail"
    """Zeros: ``log.preallocate``, or a crash before the data reached the disk."""


@dataclass(frozen=True)
class Damage:
    """A damaged batch, or bytes between batches.

    Attributes:
        position: First byte in the segment file.
        size: Bytes.
        reason: Why there are no records.
        detail: More words, may be empty.
        offset: Base offset that the header claims, None where there is no header to believe.
        content: The bytes, at most `CONTENT_LIMIT` of them; empty where they were not asked for.
        records: Records lost with it where the batch could be read so far, else 0.
    """

    position: int
    size: int
    reason: DamageReason
    detail: str = ""
    offset: int | None = None
    content: bytes = b""
    records: int = 0

    @property
    def end(self) -> int:
        """First byte after it."""
        return self.position + self.size


@dataclass(frozen=True)
class Tail:
    """The bytes after the last batch of a segment file."""

    position: int
    size: int
    kind: TailKind


# Checksums of batches: CRC-32C over a magic 2 batch, CRC-32 over a magic 0 or 1 message.

_FROM: Final = (16, 16, 21)
"""Byte of the entry from which the checksum counts, by format number."""
_BLOCK: Final = 1 << 20


def checksums(
    raw: bytearray,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    magic: NDArray[np.int8],
) -> NDArray[np.uint32]:
    """Return the true checksums of entries that lie in a buffer."""
    if (magic == 2).all():
        pairs = zip((starts + _FROM[2]).tolist(), ends.tolist(), strict=True)
        found = [crc32c(raw[start:end]) for start, end in pairs]
    else:
        rows = zip(starts.tolist(), ends.tolist(), magic.tolist(), strict=True)
        found = [_function(kind)(raw[start + _FROM[kind] : end], 0) for start, end, kind in rows]
    return np.array(found, np.uint32)


def checksum_in_file(source: ByteSource, position: int, size: int, magic: int) -> int:
    """Return the true checksum of one entry of any size, read in pieces."""
    function, value = _function(magic), 0
    start, end = position + _FROM[magic], position + size
    block = memoryview(bytearray(min(_BLOCK, max(end - start, 1))))
    while start < end:
        piece = block[: end - start]
        source.fill(piece, start)
        value = function(piece, value)
        start += len(piece)
    return value


def _function(magic: int) -> Callable[[bytearray | memoryview, int], int]:
    return crc32c if magic == 2 else zlib.crc32


# Where the batches of a stretch of a file begin, one after the other (``FileLogInputStream``).
#
# `header_walk` follows the chain through a whole file in a second, before a compiler would be
# loaded; this walk is for those who read what lies between the headers too.

_SIZE_AT: Final = 8
LEAST_SIZE: Final = int(SMALLEST[0]) - LOG_OVERHEAD
"""What the smallest entry of any format gives as its size."""
_AT_ONCE: Final = 1 << 16


def chain_starts(data: NDArray[np.uint8], limit: int) -> NDArray[np.int64]:
    """Return where entries begin if every size is right, from the first byte on.

    Args:
        data: Bytes of a file, with more than `LOG_OVERHEAD` of any bytes after ``limit``.
        limit: Entries that begin here or later are not looked for.
    """
    parts, at = [np.empty(0, np.int64)], 0
    while at < limit:
        starts = np.empty(min(_AT_ONCE, (limit - at) // int(SMALLEST[0]) + 1), np.int64)
        found, at = follow_chain(_entries(data, at, limit), data, at, limit, starts)
        parts.append(starts[:found])
    return np.concatenate(parts)


def _entries(data: NDArray[np.uint8], at: int, limit: int) -> int:
    """Return about how many entries follow, if all are as large as the first."""
    size = int.from_bytes(data[at + _SIZE_AT : at + LOG_OVERHEAD].data)
    return min(_AT_ONCE, (limit - at) // (LOG_OVERHEAD + max(size, LEAST_SIZE)) + 1)


@compiled(f"UniTuple(int64, 2)({BYTES}, int64, int64, int64[::1])")
def follow_chain(data: Bytes, at: int, limit: int, starts: NDArray[np.int64]) -> tuple[int, int]:
    """Fill in where entries begin, from ``at`` on; return how many, and where to go on."""
    for found in range(starts.size):
        starts[found] = at
        size = 0
        for place in range(at + _SIZE_AT, at + LOG_OVERHEAD):
            size = size << 8 | data[place]
        # A size too small for any entry leads nowhere: the chain breaks where it stands.
        at = limit if size < LEAST_SIZE else at + LOG_OVERHEAD + size
        if at >= limit:
            return found + 1, limit
    return starts.size, at


def size_fields(data: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return what would be the size of an entry that begins at each position."""
    return np.ndarray((data.size - LOG_OVERHEAD + 1,), ">u4", data, _SIZE_AT, strides=(1,))


_NEWEST_FORMAT = 2


class Horizon(NamedTuple):
    """A stretch of offsets in whose batches the cleaner set one delete horizon (KIP-534).

    The cleaner sets it once, when it first meets a tombstone or a marker that could go: to the time
    of its pass plus `delete.retention.ms`.
    """

    horizon_ms: int
    first_offset: int
    end_offset: int
    batches: int

    def as_json(self) -> HorizonEntry:
        """Return it as the manifest has it."""
        return {
            "horizon_ms": self.horizon_ms,
            "first_offset": self.first_offset,
            "end_offset": self.end_offset,
            "batches": self.batches,
        }


@dataclass
class BatchBytes:
    """Where the bytes of batches went, on disk; the first four add up to the batches' sizes.

    Attributes:
        headers: 61 bytes a batch of message format 2; the bytes around the value of a compressed
            message of format 0 or 1. A plain message of these formats is a record and no header.
        plain: Records that are not compressed, control records apart.
        control: Control records.
        compressed: Records, as they are compressed.
        uncompressed: The records of compressed batches, uncompressed: not on disk.
        empty_batches: Batches that compaction emptied, and kept for their producer's last sequence.
    """

    headers: int = 0
    plain: int = 0
    control: int = 0
    compressed: int = 0
    uncompressed: int = 0
    empty_batches: int = 0

    @property
    def on_disk(self) -> int:
        """Bytes of all batches."""
        return self.headers + self.plain + self.control + self.compressed

    @property
    def of_records(self) -> int:
        """Bytes of all records, uncompressed."""
        return self.plain + self.control + self.uncompressed

    def add(self, other: BatchBytes) -> None:
        """Add up."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def as_json(self) -> BytesOfBatches:
        """Return it as the manifest has it."""
        return {
            "headers": self.headers,
            "plain": self.plain,
            "control": self.control,
            "compressed": self.compressed,
            "uncompressed": self.uncompressed,
            "empty_batches": self.empty_batches,
        }


def batch_bytes(records: RawRecords) -> BatchBytes:
    """Return where the bytes of the batches of a chunk went.

    Those of records are added up record by record, those of headers batch by batch: that both come
    to what lies in the file is left to whoever holds them against it.
    """
    batches = records.batches
    if not len(batches):
        return BatchBytes()
    is_packed = batches.codec != 0
    is_newest = batches.magic == _NEWEST_FORMAT
    header = np.where(is_newest, BATCH_HEADER, SMALLEST[np.where(is_newest, 0, batches.magic)])
    header[~is_newest & ~is_packed] = 0
    kind = np.where(is_packed, 2, np.where(batches.is_control, 1, 0))
    sums = [0, 0, 0]
    for number in np.unique(kind).tolist():
        of_kind = records.record_bytes
        if (kind != number).any():
            of_kind = of_kind[kind[records.batch] == number]
        sums[number] = int(of_kind.sum(dtype=np.int64))
    return BatchBytes(
        headers=int(header.sum()),
        plain=sums[0],
        control=sums[1],
        compressed=int((batches.size - header)[is_packed].sum()),
        uncompressed=sums[2],
        empty_batches=int((batches.count == 0).sum()),
    )


def add_horizons(horizons: list[Horizon], batches: Batches) -> None:
    """Add the delete horizons of a chunk's batches to those before them, neighbours as one.

    Batches without tombstones and markers never get one, and part nothing; a marker that has none
    does.
    """
    rows = np.flatnonzero((batches.delete_horizon >= 0) | batches.is_control)
    if not rows.size:
        return
    horizon = batches.delete_horizon[rows]
    first = np.flatnonzero(np.append(True, horizon[1:] != horizon[:-1]))
    last = np.append(first[1:], rows.size) - 1
    runs = zip(
        horizon[first].tolist(),
        batches.base_offset[rows[first]].tolist(),
        (batches.last_offset[rows[last]] + 1).tolist(),
        (last - first + 1).tolist(),
        strict=True,
    )
    for run in map(Horizon._make, runs):
        _append(horizons, run)


def first_horizons(stretches: Iterable[Horizon], most: int) -> list[Horizon]:
    """Return stretches of offsets with a delete horizon, no more than so many.

    Where markers without one part too many of them, those are taken to have their neighbours':
    tombstones are told right all the same.
    """
    horizons = [each for each in stretches if each.horizon_ms >= 0]
    if len(horizons) > most:
        merged: list[Horizon] = []
        for each in horizons:
            _append(merged, each)
        horizons = merged
    return horizons[-most:]


def _append(horizons: list[Horizon], run: Horizon) -> None:
    before = horizons[-1] if horizons else None
    if before is not None and before.horizon_ms == run.horizon_ms:
        horizons[-1] = before._replace(
            end_offset=run.end_offset, batches=before.batches + run.batches
        )
    else:
        horizons.append(run)


@dataclass
class Summary:
    """Where the bytes of a slice went, and what was in them.

    Attributes:
        bytes_read: Bytes of the slice.
        bytes_in_batches: Of batches whose records were given.
        bytes_damaged: Of damages.
        tail: What lies after the last batch of the file, None where nothing does.
        batches: Whose records were given, empty ones among them.
        records: That were given.
        records_lost: That damaged batches claim.
        damages: By reason.
        codecs: Batches by codec number.
        magics: Batches by format number.
        implausible_epochs: Batches whose leader epoch is not to be believed; given as -1.
        first_offset: Base offset of the first batch.
        end_offset: Offset after the last batch.
        min_timestamp: Earliest timestamp of a record, None where none has one.
        max_timestamp: Latest likewise.
        sha256: Of the whole file, where asked for and the slice begins at its first byte.
        sha256_of_batches: Of the slice to the end of its last batch, where asked for and no batch
            is damaged.
        use: What the bytes of the batches are.
        horizons: Delete horizons that the cleaner set, in the order of offsets.
    """

    bytes_read: int = 0
    bytes_in_batches: int = 0
    bytes_damaged: int = 0
    tail: Tail | None = None
    batches: int = 0
    records: int = 0
    records_lost: int = 0
    damages: Counter[DamageReason] = field(default_factory=Counter)
    codecs: Counter[int] = field(default_factory=Counter)
    magics: Counter[int] = field(default_factory=Counter)
    implausible_epochs: int = 0
    first_offset: int | None = None
    end_offset: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    sha256: str | None = None
    sha256_of_batches: str | None = None
    use: BatchBytes = field(default_factory=BatchBytes)
    horizons: list[Horizon] = field(default_factory=list)

    @property
    def bytes_trailing(self) -> int:
        """Bytes of the tail."""
        return self.tail.size if self.tail else 0

    @property
    def crc_failures(self) -> int:
        """Batches whose checksum does not match."""
        return self.damages[DamageReason.BAD_CRC]

    @property
    def reconciles(self) -> bool:
        """Whether every byte is accounted for."""
        return self.bytes_read == self.bytes_in_batches + self.bytes_damaged + self.bytes_trailing

    def add(self, chunk: Chunk) -> None:
        """Count a chunk."""
        records, batches = chunk.records, chunk.records.batches
        self.batches += len(batches)
        self.records += len(records)
        self.bytes_in_batches += int(batches.size.sum())
        self.use.add(batch_bytes(records))
        add_horizons(self.horizons, batches)
        self.bytes_damaged += sum(each.size for each in chunk.damages)
        self.records_lost += sum(each.records for each in chunk.damages)
        self.damages.update(each.reason for each in chunk.damages)
        if len(batches):
            _count(self.codecs, batches.codec)
            _count(self.magics, batches.magic)
            if self.first_offset is None:
                self.first_offset = int(batches.base_offset[0])
            self.end_offset = int(batches.last_offset[-1]) + 1
        timed = records.timestamp[records.timestamp >= 0]
        if timed.size:
            low, high = int(timed.min()), int(timed.max())
            self.min_timestamp = low if self.min_timestamp is None else min(self.min_timestamp, low)
            self.max_timestamp = (
                high if self.max_timestamp is None else max(self.max_timestamp, high)
            )


def _count(counter: Counter[int], column: NDArray[np.int8]) -> None:
    values, counts = np.unique(column, return_counts=True)
    counter.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
