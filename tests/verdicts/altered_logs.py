"""Evidence that lies: clocks that step, logs that were cleaned, checkpoints that are gone."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import crc32c

from analytics.decode.elections import known_leaders
from analytics.dump.copies.plan import next_offset
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from tests.brokers.batches import Batch, batches_of
from tests.brokers.thinning import rewritten
from tests.support.plain_batches import read_plain_batch
from tests.support.segments import Record
from tests.verdicts.evidence import (
    METADATA,
    OFFSETS,
    TRANSACTIONS,
    Take,
    is_control,
    partitions,
    rewrite,
    segments,
    without_copy,
)

SHARE = "__share_group_state"
CHECKPOINTS = (
    "leader-epoch-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "meta.properties",
    "partition.metadata",
)
"""Files beside segments, each of which may not have been copied."""

_EPOCH_AT = 12
_MAGIC_AT, _CRC_AT, _CHECKED_FROM, _TRANSACTIONAL = 16, 17, 21, 0x10
_COMPRESSED = 0x07
_TIMES = struct.Struct(">qq")
_TIMES_AT = 27
FAR_MS = 12 * 365 * 86_400_000
STEP_MS = 60_000
HOUR_MS = 3_600_000


def without_file(name: str) -> Take:
    """Return what takes the files of a name from all folders of all copies."""

    def take(dump: Path) -> None:
        for each in sorted(dump.rglob(name)):
            each.unlink()

    return take


def subsets_of_copies(names: tuple[str, ...]) -> Mapping[str, Take]:
    """Return what takes each set of brokers' disks but the whole one, by its words."""

    def taking(gone: tuple[str, ...]) -> Take:
        def take(dump: Path) -> None:
            for name in gone:
                without_copy(name)(dump)

        return take

    return {
        f"without {' and '.join(gone)}": taking(gone)
        for size in range(1, len(names))
        for gone in combinations(names, size)
    }


def without_terms(terms: Mapping[str, Sequence[int]]) -> dict[str, Take]:
    """Return what takes the logs of those who led between two elections, by its words.

    Args:
        terms: Who led each internal partition, one after the other, by the name of its folder.
    """
    most = max(map(len, terms.values()), default=0)

    def taking(term: int) -> Take:
        def take(dump: Path) -> None:
            for folder, leaders in terms.items():
                if term < len(leaders) - 1:
                    shutil.rmtree(dump / f"broker-{leaders[term]}" / folder, ignore_errors=True)

        return take

    return {
        f"without the leader's log between elections {term + 1} and {term + 2}": taking(term)
        for term in range(most - 1)
    }


def _shifted(batch: bytes, by: int) -> bytes:
    """Return a batch of the newest format with all its times moved, and a right checksum."""
    if batch[_MAGIC_AT] < 2:
        return batch
    first, last = _TIMES.unpack_from(batch, _TIMES_AT)
    data = bytearray(batch)
    _TIMES.pack_into(data, _TIMES_AT, first + by, last + by)
    struct.pack_into(">I", data, _CRC_AT, crc32c.crc32c(bytes(data[_CHECKED_FROM:])))
    return bytes(data)


def moving_times(topic: str, by: int, chosen: Callable[[int, int], bool]) -> Take:
    """Return what moves times of batches, those chosen by their place and the number of all.

    A batch has one time in all copies, that of its coordinator: places are those in the longest.
    """

    def take(dump: Path) -> None:
        folders = partitions(dump, topic)
        longest: dict[str, list[int]] = {}
        for folder in folders:
            bases = [each.base_offset for each in batches_of(folder)]
            longest[folder.name] = max(longest.get(folder.name, []), bases, key=len)
        moved = {
            name: {base for place, base in enumerate(bases) if chosen(place, len(bases))}
            for name, bases in longest.items()
        }
        for folder in folders:
            whole = batches_of(folder)
            changed = {
                (each.segment, each.start): _shifted(each.read(), by)
                for each in whole
                if each.base_offset in moved[folder.name]
            }
            for segment in segments(folder):
                here = [each for each in whole if each.segment == segment]
                if any((segment, each.start) in changed for each in here):
                    parts = [changed.get((segment, each.start), each.read()) for each in here]
                    rewrite(segment, b"".join(parts))

    return take


def setting_clock(node_id: int, by: int) -> Take:
    """Return what moves all times that a broker's clock gave: those of the epochs in which it led.

    All copies of a batch have the same. Its metadata log has the times of the controller.
    """

    def take(dump: Path) -> None:
        copies = read_copies(recognize([str(dump)]).disks, next_offset, [])
        for (topic, partition), registered in known_leaders(copies).registered.items():
            epochs = {each.epoch for each in registered.led if each.leader == node_id}
            for folder in () if topic == METADATA else dump.glob(f"*/{topic}-{partition}"):
                for segment in segments(folder):
                    whole = [each.read() for each in batches_of(folder) if each.segment == segment]
                    moved = [
                        _shifted(each, by) if _epoch(each) in epochs else each for each in whole
                    ]
                    rewrite(segment, b"".join(moved))

    return take


def _epoch(batch: bytes) -> int:
    (epoch,) = struct.unpack_from(">i", batch, _EPOCH_AT)
    return int(epoch)


def cleaned(seed: int, *, keep_tombstones: bool, is_noted: bool = False) -> Take:
    """Return what a cleaner does up to a random batch of each partition of the offsets topic.

    Of each key the last record below stays. Transactions stay whole, as their markers do: the
    cleaner takes of them only what the end of each allows.

    Args:
        seed: Draws the batches.
        keep_tombstones: Whether they are younger than `delete.retention.ms`.
        is_noted: The log is rolled there, as no cleaner touches the segment that is written to, and
            the cleaner notes how far it came (`cleaner-offset-checkpoint`): what it took shows only
            in that.
    """

    def take(dump: Path) -> None:
        for folder in partitions(dump, OFFSETS):
            # Copies of one partition are cleaned alike.
            end = _clean(folder, random.Random(f"{seed} {folder.name}"), keep_tombstones)
            if is_noted and end is not None:
                _roll(folder, end)
                _note_cleaned(folder, end)

    return take


def _roll(folder: Path, end: int) -> None:
    """Begin a segment at an offset."""
    whole = batches_of(folder)
    for segment in segments(folder):
        here = [each for each in whole if each.segment == segment]
        before, behind = (
            b"".join(each.read() for each in here if (each.base_offset >= end) == is_behind)
            for is_behind in (False, True)
        )
        if behind and int(segment.stem) < end:
            rewrite(segment, before)
            (folder / f"{end:020}.log").write_bytes(behind)


def _note_cleaned(folder: Path, end: int) -> None:
    """Write the offset into the checkpoint of the disk: version, count, and a line a partition."""
    path = folder.parent / "cleaner-offset-checkpoint"
    lines = path.read_text("ascii").splitlines()[2:] if path.exists() else []
    noted = {tuple(each.split()[:2]): int(each.split()[2]) for each in lines if each.strip()}
    topic, _, partition = folder.name.rpartition("-")
    noted[topic, partition] = max(end, noted.get((topic, partition), 0))
    text = [f"{topic} {number} {offset}" for (topic, number), offset in sorted(noted.items())]
    data = "\n".join(["0", str(len(text)), *text, ""]).encode("ascii")
    if path.exists():
        path.unlink()
    path.write_bytes(data)


def _clean(folder: Path, draw: random.Random, keep_tombstones: bool) -> int | None:
    """Return up to which offset the partition was cleaned; None where it holds nothing."""
    whole = batches_of(folder)
    if not whole:
        return None
    end = whole[draw.randrange(len(whole))].base_offset
    # What a transaction wrote stays here, and so do all records of its keys, and tombstones beside
    # one in a batch: a tombstone goes with, or after, what it deletes, those of an act together.
    in_transactions = {record.key for each in whole for record in _in_transaction(each)}
    last = {
        record.key: record.offset
        for each in whole
        for record in _records(each)
        if record.offset < end
    }

    def stays(record: Record, *, is_bound: bool) -> bool:
        if record.offset >= end or record.key in in_transactions:
            return True
        is_kept = keep_tombstones or is_bound or record.value is not None
        return last[record.key] == record.offset and is_kept

    def cleaned_batch(each: Batch) -> bytes:
        is_bound = any(record.key in in_transactions for record in _records(each))
        return _cleaned_batch(each, partial(stays, is_bound=is_bound))

    for segment in segments(folder):
        here = [each for each in whole if each.segment == segment]
        rewrite(segment, b"".join(map(cleaned_batch, here)))
    return end


def _cleaned_batch(each: Batch, stays: Callable[[Record], bool]) -> bytes:
    data, records = each.read(), _records(each)
    left = [record for record in records if stays(record)]
    if len(left) == len(records):
        return data
    return rewritten(each, left) if _is_plain(each) else b""


def _records(each: Batch) -> list[Record]:
    """Return the records of a batch, or a message before batches; none where they are not plain."""
    if _is_plain(each):
        return read_plain_batch(each.read())
    return _message(each.read())


def _in_transaction(each: Batch) -> list[Record]:
    """Return the records of a batch that a transaction wrote; none of any other."""
    data = each.read()
    (attributes,) = struct.unpack_from(">h", data, _CHECKED_FROM)
    is_readable = data[_MAGIC_AT] >= 2 and not is_control(data) and not attributes & _COMPRESSED
    return read_plain_batch(data) if is_readable and attributes & _TRANSACTIONAL else []


def _message(data: bytes) -> list[Record]:
    """Return the record of a message of format 0 or 1 that is not compressed."""
    (offset,) = struct.unpack_from(">q", data)
    magic, attributes = data[_MAGIC_AT], data[_MAGIC_AT + 1]
    if magic > 1 or attributes & _COMPRESSED:
        return []
    at, fields = _MAGIC_AT + 2 + 8 * magic, []
    for _ in range(2):
        (length,) = struct.unpack_from(">i", data, at)
        fields.append(data[at + 4 : at + 4 + length] if length >= 0 else None)
        at += 4 + max(length, 0)
    key, value = fields
    return [Record(offset, 0, key, value)]


def _is_plain(each: Batch) -> bool:
    data = each.read()
    (attributes,) = struct.unpack_from(">h", data, _CHECKED_FROM)
    is_whole = not attributes & (_COMPRESSED | _TRANSACTIONAL)
    return data[_MAGIC_AT] >= 2 and not is_control(data) and is_whole


def _in_the_middle(place: int, count: int) -> bool:
    return count // 3 <= place < 2 * count // 3


CLEANED: dict[str, Take] = {
    "cleaned, tombstones kept": cleaned(1, keep_tombstones=True),
    "cleaned, tombstones gone": cleaned(2, keep_tombstones=False),
    "cleaned and noted, tombstones kept": cleaned(3, keep_tombstones=True, is_noted=True),
    "cleaned and noted, tombstones gone": cleaned(4, keep_tombstones=False, is_noted=True),
}
ALTERED: dict[str, Take] = {
    **{f"without {name}": without_file(name) for name in CHECKPOINTS},
    **CLEANED,
}
CLOCKS: dict[str, Take] = {
    "one time of the offsets topic far ahead": moving_times(
        OFFSETS, FAR_MS, lambda place, count: place == count // 2
    ),
    "times stepped back in the offsets topic": moving_times(OFFSETS, -STEP_MS, _in_the_middle),
    "times stepped back in the metadata log": moving_times(METADATA, -STEP_MS, _in_the_middle),
    "times stepped back in share state": moving_times(SHARE, -STEP_MS, _in_the_middle),
    "times stepped back in transactions": moving_times(TRANSACTIONS, -STEP_MS, _in_the_middle),
    "clock of broker 1 an hour ahead": setting_clock(1, HOUR_MS),
    "clock of broker 1 an hour behind": setting_clock(1, -HOUR_MS),
}
