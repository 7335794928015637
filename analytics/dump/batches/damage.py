"""What can be wrong with the bytes of a log segment, in enumerated words.

A batch that would cost more memory or time than one may, whatever it claims, is damaged too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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
