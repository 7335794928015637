"""Snapshots of the metadata log (KIP-630): which are whole, and which tell the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.dump.batches.walks import walk_segment
from analytics.dump.copies.union import DUPLICATE
from analytics.dump.files.model import (
    MAX_OFFSET,
    NOTHING_KNOWN,
    Note,
    PartitionCopy,
    SegmentFile,
    Slice,
)
from analytics.dump.records.segment_reader import FileReader, ReadOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER_TYPE = b"\x00\x03"
_FOOTER_TYPE = b"\x00\x04"


def choose_snapshots(copies: Sequence[PartitionCopy]) -> tuple[list[Slice], list[Note]]:
    """Return the slices of all whole snapshots.

    Those of equal end offset and epoch hold the same state, in other bytes: the first copy's is
    kept. One without its footer was never finished, and is not read.

    Args:
        copies: Of the metadata log's partition, the best first.
    """
    slices, notes = [], []
    kept: set[str] = set()
    for partition in copies:
        for segment in partition.checkpoints:
            if not is_whole(segment):
                where = f"{partition.copy}: {segment.name}"
                notes.append(Note(where, "a snapshot without header or footer; not read"))
                continue
            file = segment.name.rpartition("/")[2]
            rules = ((0, MAX_OFFSET, DUPLICATE),) if file in kept else ()
            kept.add(file)
            slices.append(
                Slice(
                    copy=partition.copy,
                    topic=partition.topic,
                    partition=partition.partition,
                    segment=segment,
                    line="",
                    from_position=0,
                    to_position=segment.size,
                    rules=rules,
                )
            )
    return slices, notes


def is_whole(segment: SegmentFile) -> bool:
    """Whether a snapshot begins with its header and ends with its footer."""
    headers = walk_segment(segment, NOTHING_KNOWN).headers
    if not len(headers):
        return False
    first, last = int(headers.size[0]), int(headers.position[-1])
    begins = _control_types(segment, 0, first)
    ends = _control_types(segment, last, last + int(headers.size[-1]))
    return _HEADER_TYPE in begins and _FOOTER_TYPE in ends


def _control_types(segment: SegmentFile, start: int, end: int) -> set[bytes]:
    """Return the types of the control records between two positions."""
    found: set[bytes] = set()
    options = ReadOptions(from_position=start, to_position=end, keep_content=False)
    for chunk in FileReader(segment.path, options):
        records = chunk.records
        control = records.batches.is_control[records.batch]
        for begin, length in zip(
            records.key.start[control].tolist(), records.key.length[control].tolist(), strict=True
        ):
            found.add(records.data[begin + 2 : begin + min(length, 4)].tobytes())
    return found
