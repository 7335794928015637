"""A dump whose cleaner was stopped after its last step but one: swap files beside their originals.

Every partition of the offsets topic is rolled into segments, as a broker rolls them, and all but
the last are cleaned into one swap file as ``LogCleaner`` does it: which records stay is decided
by `reference_cleaner`, a batch keeps its offsets, producer and epoch, and a batch of which nothing
stays goes.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from crc32c import crc32c

from tests.support.batches import record
from tests.support.plain_batches import read_plain_batch
from tests.support.reference_cleaner import Entry, cleaned

_CONTROL, _TRANSACTIONAL, _CODEC = 0x20, 0x10, 0x07
_RECORDS_AT = 61
_LONG_AFTER = 2**62


@dataclass(frozen=True)
class _Batch:
    data: bytes

    @property
    def first(self) -> int:
        return int(struct.unpack_from(">q", self.data, 0)[0])

    @property
    def attributes(self) -> int:
        return int(struct.unpack_from(">h", self.data, 21)[0])

    @property
    def entries(self) -> list[Entry]:
        """The batch's records as the reference cleaner takes them; any tombstone may go."""
        (producer,) = struct.unpack_from(">q", self.data, 43)
        is_transactional = self.attributes & _TRANSACTIONAL
        found = []
        for each in read_plain_batch(self.data):
            marker = None
            if self.attributes & _CONTROL:
                (kind,) = struct.unpack_from(">h", each.key or b"", 2)
                marker = "COMMIT" if kind else "ABORT"
            value = None if each.value is None else 0
            key = (each.key or b"").hex()
            of = producer if is_transactional else -1
            found.append(Entry(each.offset, key, value, 0, of, marker, horizon=0))
        return found

    def with_only(self, offsets: frozenset[int]) -> bytes:
        """The batch with some of its records; nothing where none is left."""
        if self.attributes & _CONTROL:
            return self.data
        kept = [each for each in read_plain_batch(self.data) if each.offset in offsets]
        if not kept:
            return b""
        (start,) = struct.unpack_from(">q", self.data, 27)
        records = b"".join(
            record(each.offset - self.first, each.key, each.value, each.timestamp - start)
            for each in kept
        )
        body = self.data[21:57] + struct.pack(">i", len(kept)) + records
        length = struct.pack(">i", len(body) + 9)
        return self.data[:8] + length + self.data[12:17] + struct.pack(">I", crc32c(body)) + body


@dataclass(frozen=True)
class HalfCleaned:
    """The same log directory three times.

    Attributes:
        never: Rolled into segments, and never cleaned.
        swapped: The same with swap files beside the segments that they take the place of.
        done: The same after the broker has put them there.
        ends: By partition, where its swap file ends.
    """

    never: Path
    swapped: Path
    done: Path
    ends: dict[int, int]


def half_cleaned(source: Path, folder: Path, segments: int = 3) -> HalfCleaned:
    """Make the three of a log directory whose partitions have one segment each.

    Args:
        source: The log directory of a broker.
        folder: Where to.
        segments: Into how many each partition is rolled.
    """
    made = HalfCleaned(folder / "never", folder / "swapped", folder / "done", {})
    for target in (made.never, made.swapped, made.done):
        shutil.copytree(source, target)
    for whole in sorted(source.glob("__consumer_offsets-*/*.log")):
        batches = _batches(whole.read_bytes())
        if len(batches) < segments:
            continue
        edges = [len(batches) * part // segments for part in range(segments + 1)]
        rolled = [batches[low:high] for low, high in pairwise(edges)]
        swap = _cleaned(batches, rolled[-1][0].first)
        partition = whole.parent.name
        for target in (made.never, made.swapped, made.done):
            (target / partition / whole.name).unlink()
            for each in rolled if target != made.done else rolled[-1:]:
                _write(target / partition / f"{each[0].first:020d}.log", each)
        (made.swapped / partition / f"{batches[0].first:020d}.log.swap").write_bytes(swap)
        (made.done / partition / f"{batches[0].first:020d}.log").write_bytes(swap)
        # The cleaner has done, and the broker notes how far.
        made.ends[int(partition.rpartition("-")[2])] = rolled[-1][0].first
    rows = [f"__consumer_offsets {number} {end}" for number, end in made.ends.items()]
    text = "\n".join(["0", str(len(rows)), *rows, ""])
    (made.done / "cleaner-offset-checkpoint").write_text(text)
    return made


def _cleaned(batches: Sequence[_Batch], bound: int) -> bytes:
    log = [each for batch in batches for each in batch.entries]
    kept = frozenset(cleaned(log, bound, now=_LONG_AFTER))
    return b"".join(each.with_only(kept) for each in batches if each.first < bound)


def _batches(data: bytes) -> list[_Batch]:
    found, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at + 8)
        found.append(_Batch(data[at : at + 12 + length]))
        assert data[at + 16] == 2, "batches of magic 2 alone are cleaned here"
        assert not found[-1].attributes & _CODEC, "batches are not compressed"
        at += 12 + length
    return found


def _write(path: Path, batches: Sequence[_Batch]) -> None:
    path.write_bytes(b"".join(each.data for each in batches))
