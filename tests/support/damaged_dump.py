"""One dump with one of each kind of damage, each in a partition of its own.

Starts from a copy of a real dump. What a real segment loses is known from what the tool printed
for the sound one; what is made by hand lies behind the real end of a partition, in batches whose
checksums are right, and is followed by a sound batch that must still be found.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support import broken_batches
from tests.support.batches import sound_batch
from tests.support.dump_folder import DumpFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.dump_folder import PrintedSegment
    from tests.support.dump_log import BatchLine

COPY = "broker-1"
FIRST = "00000000000000000000.log"


@dataclass
class Injury:
    """What was done to one partition, and what must come of it.

    ``lost`` are the positions of real batches that cannot be read any more, ``sound`` the offsets
    of the hand-made records that can, ``undecoded`` those that must end as undecoded records.
    """

    name: str
    partition: str
    segment: str = FIRST
    lost: set[int] = field(default_factory=set)
    sound: set[int] = field(default_factory=set)
    undecoded: set[int] = field(default_factory=set)


@dataclass
class DamagedDump:
    """The dump and its injuries by name."""

    folder: DumpFolder
    injuries: dict[str, Injury] = field(default_factory=dict)

    @property
    def log_dir(self) -> Path:
        """The broker's log directory."""
        return self.folder.root / COPY

    def segment(self, partition: str, name: str = FIRST) -> PrintedSegment:
        """What the tool printed for a segment while it was sound."""
        wanted = f"{partition}/{name}"
        (found,) = (each for each in self.folder.segments(COPY) if each.segment == wanted)
        return found

    def lost(self) -> set[tuple[str, int]]:
        """Segment and position of every real batch that is lost."""
        return {
            (f"{injury.partition}/{injury.segment}", position)
            for injury in self.injuries.values()
            for position in injury.lost
        }


def damaged_dump(source: Path, target: Path) -> DamagedDump:
    """Copy a dump and damage it in every way."""
    shutil.copytree(source, target)
    dump = DamagedDump(DumpFolder(target))
    for injure in (
        _bit_flip,
        _broken_length,
        _two_gibibytes,
        _implausible_offset,
        _truncated,
        _duplicated_segment,
        _missing_segment,
        _garbage_between_batches,
    ):
        injury = injure(dump)
        dump.injuries[injury.name] = injury
    for number, (name, make) in enumerate(broken_batches.BATCHES.items()):
        partition = f"__consumer_offsets-{_EMPTY_PARTITIONS[number]}"
        dump.injuries[name] = _by_hand(dump, name, partition, make)
    return dump


# Partitions of the dump that hold at most one record.
_EMPTY_PARTITIONS = (1, 18, 19, 22, 26, 27, 28, 33, 42, 44, 7, 8, 14, 21, 29, 30, 4, 41, 47, 49, 6)


def _write(dump: DamagedDump, injury: Injury, data: bytes) -> Injury:
    (dump.log_dir / injury.partition / injury.segment).write_bytes(data)
    return injury


def _middle(segment: PrintedSegment) -> BatchLine:
    return segment.text.batches[len(segment.text.batches) // 2]


def _bit_flip(dump: DamagedDump) -> Injury:
    injury = Injury("bit_flip", "__consumer_offsets-3")
    segment = dump.segment(injury.partition)
    batch = _middle(segment)
    data = bytearray(segment.data)
    data[batch.position + batch.size - 3] ^= 0x10
    injury.lost = {batch.position}
    return _write(dump, injury, bytes(data))


def _with_length(dump: DamagedDump, injury: Injury, length: int) -> Injury:
    segment = dump.segment(injury.partition, injury.segment)
    batch = _middle(segment)
    data = bytearray(segment.data)
    data[batch.position + 8 : batch.position + 12] = length.to_bytes(4, "big", signed=True)
    injury.lost = {batch.position}
    return _write(dump, injury, bytes(data))


def _broken_length(dump: DamagedDump) -> Injury:
    return _with_length(dump, Injury("broken_length", "__share_group_state-8"), 7)


def _two_gibibytes(dump: DamagedDump) -> Injury:
    return _with_length(dump, Injury("two_gibibytes", "__consumer_offsets-24"), 2**31 - 1)


def _implausible_offset(dump: DamagedDump) -> Injury:
    # The checksum does not cover the base offset.
    injury = Injury("implausible_offset", "__consumer_offsets-45")
    segment = dump.segment(injury.partition)
    batch = _middle(segment)
    data = bytearray(segment.data)
    data[batch.position] ^= 0x40
    injury.lost = {batch.position}
    return _write(dump, injury, bytes(data))


def _truncated(dump: DamagedDump) -> Injury:
    injury = Injury("truncated", "__consumer_offsets-17")
    segment = dump.segment(injury.partition)
    batch = segment.text.batches[-1]
    injury.lost = {batch.position}
    return _write(dump, injury, segment.data[: batch.position + batch.size // 2])


def _duplicated_segment(dump: DamagedDump) -> Injury:
    # The same bytes again under the name of a later base offset.
    injury = Injury("duplicated_segment", "__consumer_offsets-12")
    data = dump.segment(injury.partition).data
    (dump.log_dir / injury.partition / "00000000000000000300.log").write_bytes(data)
    return injury


def _missing_segment(dump: DamagedDump) -> Injury:
    injury = Injury("missing_segment", "__consumer_offsets-2")
    segment = dump.segment(injury.partition)
    injury.lost = {batch.position for batch in segment.text.batches}
    (dump.log_dir / injury.partition / FIRST).unlink()
    return injury


def _garbage_between_batches(dump: DamagedDump) -> Injury:
    injury = Injury("garbage_between_batches", "__consumer_offsets-39")
    segment = dump.segment(injury.partition)
    garbage = random.Random(1).randbytes(700)
    end = segment.text.batches[-1].last_offset + 1
    injury.sound = {end}
    return _write(dump, injury, segment.data + garbage + _sound(end))


def _sound(offset: int) -> bytes:
    return sound_batch(offset, [(broken_batches.KEY, broken_batches.VALUE)])


def _by_hand(
    dump: DamagedDump, name: str, partition: str, make: Callable[[int], broken_batches.Broken]
) -> Injury:
    path = dump.log_dir / partition / FIRST
    data = path.read_bytes()
    start = dump.segment(partition).text.batches[-1].last_offset + 1 if data else 0
    broken = make(start + 1)
    end = start + 1 + broken.records
    injury = Injury(name, partition)
    injury.sound = {start, *broken.sound, end}
    injury.undecoded = set(broken.undecoded)
    return _write(dump, injury, data + _sound(start) + broken.data + _sound(end))
