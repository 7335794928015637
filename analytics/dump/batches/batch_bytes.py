"""What the bytes of batches are: headers, records, control records, compressed records."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analytics.dump.batches.headers import BATCH_HEADER, SMALLEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.dump.records.raw_records import RawRecords

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

    def as_json(self) -> dict[str, Any]:
        """Return it as the manifest has it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


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


def add_horizons(horizons: list[Horizon], records: RawRecords) -> None:
    """Add the delete horizons of a chunk's batches to those before them, neighbours as one.

    Batches without tombstones and markers never get one, and part nothing; a marker that has none
    does.
    """
    batches = records.batches
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
