"""Ways to take evidence away from a dump: each makes a copy that lacks something.

Files that stay whole are linked, not copied.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.dump.records.segment_reader import read_segment

OFFSETS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
METADATA = "__cluster_metadata"
_LENGTH_AT, _MAGIC_AT, _ATTRIBUTES_AT = 8, 16, 21
_BEFORE_LENGTH = 12
_IS_CONTROL = 0x20

Take = Callable[[Path], None]


def copied(source: Path, target: Path) -> Path:
    """Link the log directories of a dump into a new folder, without what tools said."""
    for each in sorted(source.iterdir()):
        if each.is_dir() and each.name.startswith(("broker-", "controller-")):
            shutil.copytree(each, target / each.name, copy_function=os.link)
    return target


def partitions(dump: Path, topic: str) -> list[Path]:
    """Return the folders of a topic's partitions, in all copies."""
    found = (each for each in dump.glob(f"*/{topic}-*") if each.is_dir())
    return sorted(found, key=lambda each: (each.parent.name, _number(each)))


def _number(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def segments(folder: Path) -> list[Path]:
    """Return the segments of a partition that hold anything, in order."""
    return [each for each in sorted(folder.glob("*.log")) if each.stat().st_size]


def rewrite(path: Path, data: bytes) -> None:
    """Put other bytes into a file, and not into those that it is linked to."""
    path.unlink()
    path.write_bytes(data)


def remove(folder: Path) -> None:
    """Take the whole partition."""
    shutil.rmtree(folder)


def garble(folder: Path) -> None:
    """Put random bytes in place of all segments."""
    for each in segments(folder):
        rewrite(each, random.Random(each.name).randbytes(each.stat().st_size))


def garble_front(folder: Path) -> None:
    """Put random bytes in place of the first half of the first segment."""
    for each in segments(folder)[:1]:
        data = each.read_bytes()
        half = len(data) // 2
        rewrite(each, random.Random(1).randbytes(half) + data[half:])


def cut_off(folder: Path) -> None:
    """Cut off the last half of the last segment."""
    for each in segments(folder)[-1:]:
        rewrite(each, each.read_bytes()[: each.stat().st_size // 2])


def flip(folder: Path) -> None:
    """Change one bit in the middle of the last segment."""
    for each in segments(folder)[-1:]:
        data = bytearray(each.read_bytes())
        data[len(data) // 2] ^= 0x10
        rewrite(each, bytes(data))


def leave(folder: Path) -> None:
    """Leave the partition as it is, among others that are damaged."""
    assert folder.exists()


def lose(which: int) -> Take:
    """Return what takes one of several segments."""

    def take(folder: Path) -> None:
        found = segments(folder)
        if len(found) > 1:
            found[which].unlink()

    return take


def shared_out(takes: Mapping[str, Take]) -> Take:
    """Return what damages the offsets partitions in turn in different ways, in all copies alike."""

    def take(dump: Path) -> None:
        for each in partitions(dump, OFFSETS):
            list(takes.values())[_number(each) % len(takes)](each)

    return take


DAMAGES: dict[str, Take] = {
    "partition absent": remove,
    "partition of random bytes": garble,
    "first half of a segment garbled": garble_front,
    "tail of a segment cut off": cut_off,
    "one bit flipped": flip,
    "whole among damaged partitions": leave,
}
"""What is done to offsets partitions in turn: to 0, 6, 12 ... the first of them, and so on."""

LOST_SEGMENTS: dict[str, Take] = {
    "first of several segments lost": lose(0),
    "second of several segments lost": lose(1),
    "last of several segments lost": lose(-1),
}
"""The same, where partitions have several segments."""


def no_metadata_log(dump: Path) -> None:
    """No copy has the metadata log."""
    for each in partitions(dump, METADATA):
        shutil.rmtree(each)


def no_transaction_log(dump: Path) -> None:
    """No copy has the log of transactions."""
    for each in partitions(dump, TRANSACTIONS):
        shutil.rmtree(each)


def no_markers(dump: Path) -> None:
    """The markers that end transactions are gone; their offsets are holes."""
    for folder in partitions(dump, OFFSETS):
        for each in segments(folder):
            data = each.read_bytes()
            left = b"".join(batch for batch in batches(data) if not is_control(batch))
            if left != data:
                rewrite(each, left)


def batches(data: bytes) -> Iterator[bytes]:
    """Cut a sound segment into its batches."""
    at = 0
    while at + _BEFORE_LENGTH <= len(data):
        (length,) = struct.unpack_from(">i", data, at + _LENGTH_AT)
        if length <= 0:
            break
        yield data[at : at + _BEFORE_LENGTH + length]
        at += _BEFORE_LENGTH + length


def is_control(batch: bytes) -> bool:
    """Return whether a batch is a marker."""
    is_new = len(batch) > _ATTRIBUTES_AT + 1 and batch[_MAGIC_AT] >= 2
    return is_new and bool(struct.unpack_from(">h", batch, _ATTRIBUTES_AT)[0] & _IS_CONTROL)


def without_copy(name: str) -> Take:
    """Return what takes the disk of one broker."""

    def take(dump: Path) -> None:
        shutil.rmtree(dump / name)

    return take


def with_copy_alone(name: str) -> Take:
    """Return what takes all disks but that of one broker."""

    def take(dump: Path) -> None:
        for each in dump.iterdir():
            if each.name != name:
                shutil.rmtree(each)

    return take


def rows_instead(dump: Path, target: Path, copy: str = "broker-1") -> Path:
    """Write the records of the internal topics as a consumer archives them: no batches, no markers.

    Returns:
        A Parquet file with the columns of Spark's Kafka source.
    """
    columns: dict[str, list[object]] = {
        name: [] for name in ("key", "value", "topic", "partition", "offset", "timestamp")
    }
    for topic in (OFFSETS, "__share_group_state"):
        for folder in partitions(dump, topic):
            if folder.parent.name != copy:
                continue
            for segment in segments(folder):
                _read_rows(segment, topic, _number(folder), columns)
    types = {"key": pa.binary(), "value": pa.binary(), "partition": pa.int32()}
    table = pa.table({name: pa.array(held, types.get(name)) for name, held in columns.items()})
    place = table.column_names.index("timestamp")
    stamps = table["timestamp"].cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
    target.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.set_column(place, "timestamp", stamps), target / "rows.parquet")
    return target / "rows.parquet"


def _read_rows(segment: Path, topic: str, partition: int, columns: dict[str, list[object]]) -> None:
    for chunk in read_segment(segment):
        records = chunk.records
        for row in np.flatnonzero(~records.batches.is_control[records.batch]).tolist():
            for name, spans in (("key", records.key), ("value", records.value)):
                start, length = spans.start[row], spans.length[row]
                data = None if length < 0 else records.data[start : start + length].tobytes()
                columns[name].append(data)
            columns["topic"].append(topic)
            columns["partition"].append(partition)
            columns["offset"].append(int(records.offset[row]))
            columns["timestamp"].append(int(records.timestamp[row]))


EVIDENCE: dict[str, Take | None] = {
    "whole": None,
    "damaged partitions": shared_out(DAMAGES),
    "lost segments": shared_out(LOST_SEGMENTS),
    "no metadata log": no_metadata_log,
    "no transaction log": no_transaction_log,
    "no markers": no_markers,
}
"""What is taken away, by what the table calls it."""

IN_TURN = {"damaged partitions": tuple(DAMAGES), "lost segments": tuple(LOST_SEGMENTS)}
"""Evidence that is another one in each partition."""

OF_THE_FAILOVER: dict[str, Take] = {
    "without the dead broker's disk": without_copy("broker-1"),
    "with the dead broker's disk alone": with_copy_alone("broker-1"),
    "without the controller's log": without_copy("controller-100"),
}
"""What can be taken away besides where there are several copies."""
