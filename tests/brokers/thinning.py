"""Logs of groups that lost records, as compaction leaves them and as it never would."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.brokers.batches import Batch, batches_of
from tests.brokers.truncation import forget
from tests.support.batches import Header, batch, record
from tests.support.plain_batches import read_plain_batch
from tests.support.segments import Record

GROUPS = "__consumer_offsets"
_CONTROL = 0x20
_TRANSACTIONAL = 0x10
_HEAD = struct.Struct(">iBIhiqqqhi")
_HEAD_AT = 12
_FIRST = "00000000000000000000.log"

Keeps = Callable[[int, Record], bool]
"""Whether a record stays, by its place among all records of the log."""


def thinned_copy(log_dir: Path, copy: Path, draw: random.Random) -> None:
    """Copy a log directory; of each partition of groups every record stays or goes by chance."""
    shutil.copytree(log_dir, copy)
    forget(copy)
    for partition in sorted(copy.glob(f"{GROUPS}-*")):
        thin(partition, draw)


def thin(partition: Path, draw: random.Random) -> None:
    """Write a partition anew, in one segment: offsets stay what they were."""
    batches = batches_of(partition)
    keeps = draw.choice((_cleaned, _cleaned, _without_old_tombstones, _at_random))(
        [record for each in batches if not _attributes(each) & _CONTROL for record in _read(each)],
        draw,
    )
    written, place = bytearray(), 0
    for each in batches:
        if _attributes(each) & _CONTROL:
            written += each.read()
            continue
        records = list(enumerate(_read(each), place))
        place += len(records)
        written += rewritten(each, [one for number, one in records if keeps(number, one)])
    for old in partition.glob("0*"):
        old.unlink()
    (partition / _FIRST).write_bytes(written)


def _cleaned(records: Sequence[Record], draw: random.Random) -> Keeps:
    """Keep, up to somewhere, the last record of each key."""
    end = draw.randrange(len(records) + 1)
    last = {each.key: number for number, each in enumerate(records[:end])}
    return lambda number, each: number >= end or last[each.key] == number


def _without_old_tombstones(records: Sequence[Record], draw: random.Random) -> Keeps:
    """Keep of those that a cleaner leaves no tombstones before somewhere."""
    cleaned = _cleaned(records, draw)
    horizon = draw.randrange(len(records) + 1)
    return lambda number, each: (
        cleaned(number, each) and (number >= horizon or each.value is not None)
    )


def _at_random(records: Sequence[Record], draw: random.Random) -> Keeps:
    """Lose some records, whichever they are."""
    lost = {number for number in range(len(records)) if draw.random() < 0.1}
    return lambda number, _: number not in lost


def _attributes(each: Batch) -> int:
    (attributes,) = struct.unpack_from(">h", each.read(), 21)
    return int(attributes)


def _read(each: Batch) -> list[Record]:
    return read_plain_batch(each.read())


def rewritten(each: Batch, records: Sequence[Record]) -> bytes:
    """Return the batch with these records only; without any, no bytes."""
    if not records:
        return b""
    epoch, _, _, attributes, delta, first, _, producer, producer_epoch, sequence = (
        _HEAD.unpack_from(each.read(), _HEAD_AT)
    )
    header = Header(
        each.base_offset,
        delta,
        len(records),
        base_timestamp=first,
        leader_epoch=epoch,
        codec=attributes & _TRANSACTIONAL,
        producer_id=producer,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
    )
    return batch(
        header,
        b"".join(
            record(one.offset - each.base_offset, one.key, one.value, one.timestamp - first)
            for one in records
        ),
    )
