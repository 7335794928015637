"""One segment under two names: a copy that went wrong, or a file put back twice.

The broker itself never writes the same batches twice into two files of a partition. Read as two
segments they would contradict each other, and the wrong name would seem to bound its neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.dump.files.model import Ignored
from analytics.dump.files.storage import base_name, storage_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.dump.files.model import SegmentFile
    from analytics.dump.files.segments import Listing

_BASE_OFFSET_BYTES = 8
_HEADER_BYTES = 61
_PIECE_BYTES = 4 << 20


def settle_doubles(listing: Listing) -> Listing:
    """Leave out each file that holds the same bytes as another one of its partition.

    Kept is the one whose name fits: the highest base offset that is not above the first batch's.
    Only files of equal size are looked into, and no further than they agree.

    Args:
        listing: Of one partition directory.

    Raises:
        InputUnreadableError: A file cannot be read.
    """
    by_size: dict[int, list[SegmentFile]] = defaultdict(list)
    for segment in listing.segments:
        if segment.kind == "log" and segment.size:
            by_size[segment.size].append(segment)
    same_as: dict[str, SegmentFile] = {}
    for group in by_size.values():
        for doubles in _equal_files(group) if len(group) > 1 else ():
            best = _best_named(doubles)
            same_as |= {each.name: best for each in doubles if each is not best}
    if not same_as:
        return listing
    ignored = [
        Ignored(base_name(each.path), f"holds the same bytes as {base_name(kept.path)}")
        for each in listing.segments
        if (kept := same_as.get(each.name)) is not None
    ]
    return replace(
        listing,
        segments=tuple(each for each in listing.segments if each.name not in same_as),
        ignored=(*listing.ignored, *ignored),
    )


def _equal_files(group: Sequence[SegmentFile]) -> Iterator[list[SegmentFile]]:
    """Yield the files of one size that are equal, two or more at a time."""
    by_header: dict[bytes, list[SegmentFile]] = defaultdict(list)
    for segment in group:
        by_header[_header(segment)].append(segment)
    for alike in by_header.values():
        left = alike
        while len(left) > 1:
            first, *others = left
            equal = [first, *(each for each in others if _is_equal(first, each))]
            if len(equal) > 1:
                yield equal
            left = [each for each in others if each not in equal]


def _header(segment: SegmentFile) -> bytes:
    with storage_of(segment.path).open(segment.path) as file:
        return file.read(_HEADER_BYTES)


def _is_equal(one: SegmentFile, other: SegmentFile) -> bool:
    with (
        storage_of(one.path).open(one.path) as left,
        storage_of(other.path).open(other.path) as right,
    ):
        while True:
            piece = left.read(_PIECE_BYTES)
            if piece != right.read(_PIECE_BYTES):
                return False
            if not piece:
                return True


def _best_named(doubles: Sequence[SegmentFile]) -> SegmentFile:
    first_offset = int.from_bytes(_header(doubles[0])[:_BASE_OFFSET_BYTES], "big", signed=True)
    fitting = [each for each in doubles if each.base_offset <= first_offset]
    if fitting:
        return max(fitting, key=lambda each: each.base_offset)
    return min(doubles, key=lambda each: each.base_offset)
