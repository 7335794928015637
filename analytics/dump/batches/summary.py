"""What reading a slice found, added up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from analytics.dump.batches.batch_bytes import BatchBytes, Horizon, add_horizons, batch_bytes
from analytics.dump.batches.damage import DamageReason, Tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.records.raw_records import Chunk


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
        shrank: The file had fewer bytes than at first when they were read.
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
    shrank: bool = False
    use: BatchBytes = field(default_factory=BatchBytes)
    horizons: list[Horizon] = field(default_factory=list)

    @property
    def bytes_trailing(self) -> int:
        """Bytes of the tail."""
        return self.tail.size if self.tail else 0

    @property
    def trailing_kind(self) -> str | None:
        """What the tail is, None where there is none."""
        return str(self.tail.kind) if self.tail else None

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
        add_horizons(self.horizons, records)
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
