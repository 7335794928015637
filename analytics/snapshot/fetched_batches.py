"""The record batches of a fetch response: which are whole, and where the next one begins.

A broker sends its log's bytes as they lie in the segments, from the batch that holds the offset
asked for, and cuts them where the size asked for ends (``FileRecords.slice``). Bytes are only
counted here; whether a batch is sound is judged where segments are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.batches.batch_bytes import chain_starts, size_fields
from analytics.dump.batches.headers import BATCH_HEADER, LOG_OVERHEAD, MAGIC_AT, SMALLEST, gather_v2

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_BATCH: Final = 100 << 20
"""Bytes. Kafka's default is 1 MiB (``message.max.bytes``); memory is kept for one batch."""

_NEWEST_MAGIC: Final = SMALLEST.size - 1


class ForeignBatchesError(Exception):
    """What came is no chain of batches of the log that was asked for; says what and where."""


@dataclass(frozen=True)
class FetchedBatches:
    """The whole batches at the begin of a response.

    Attributes:
        size: Their bytes.
        first_offset: Base offset of the first; the offset asked for where its format, older than
            magic 2, names none. None where no batch is kept.
        last_offset: Of the last; None likewise.
        has_gaps: Offsets or records are missing from the offset asked for up to the last one.
        last_size: Bytes of the last batch.
        needed: Bytes that the first batch takes, where not even that is whole; 0 otherwise.
    """

    size: int
    first_offset: int | None
    last_offset: int | None
    has_gaps: bool = False
    last_size: int = 0
    needed: int = 0


def fetched_batches(records: bytes, offset: int, end: int) -> FetchedBatches:
    """Return what of a response is kept: whole batches that begin below the end.

    Args:
        records: As they came.
        offset: The offset asked for.
        end: The log's end: what begins here or later is not kept.

    Raises:
        ForeignBatchesError: The bytes are no batches, or batches of other offsets.
    """
    data = np.zeros(len(records) + BATCH_HEADER, np.uint8)
    data[: len(records)] = np.frombuffer(records, np.uint8)
    # Of what is shorter than offset, size and format number nothing can be said.
    starts = chain_starts(data, max(len(records) - MAGIC_AT, 0))
    if not starts.size:
        return FetchedBatches(0, None, None, needed=LOG_OVERHEAD if records else 0)
    sizes = size_fields(data)[starts].astype(np.int64) + LOG_OVERHEAD
    magic = data[starts + MAGIC_AT].view(np.int8)
    _check_headers(starts, sizes, magic, offset)
    if starts[0] + sizes[0] > len(records):
        return FetchedBatches(0, None, None, needed=int(sizes[0]))
    is_whole = starts + sizes <= len(records)
    starts, sizes, magic = starts[is_whole], sizes[is_whole], magic[is_whole]
    first, last = _offsets(data, starts, magic, offset)
    _check_offsets(first, last, offset)
    # A message of older formats, alone or around compressed ones, names its last offset only.
    begins = np.where(magic == _NEWEST_MAGIC, first, last)
    kept = int(np.count_nonzero(begins < end))
    if not kept:
        return FetchedBatches(0, None, None)
    size = int(starts[kept - 1] + sizes[kept - 1])
    has_gaps = _has_gaps(data, starts[:kept], magic[:kept], first[:kept], last[:kept], offset)
    last_size = int(sizes[kept - 1])
    return FetchedBatches(size, int(first[0]), int(last[kept - 1]), has_gaps, last_size)


def _has_gaps(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    magic: NDArray[np.int8],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    offset: int,
) -> bool:
    """Return whether a batch is missing, or records of one; of older formats nobody can say."""
    count = gather_v2(data, starts)["count"].astype(np.int64)
    before = np.r_[offset - 1, last[:-1]]
    return bool(
        ((magic != _NEWEST_MAGIC) | (count != last - first + 1) | (first > before + 1)).any()
    )


def _check_headers(
    starts: NDArray[np.int64], sizes: NDArray[np.int64], magic: NDArray[np.int8], offset: int
) -> None:
    is_bad = (magic < 0) | (magic > _NEWEST_MAGIC) | (sizes > LARGEST_BATCH)
    is_bad |= sizes < SMALLEST[np.clip(magic, 0, _NEWEST_MAGIC)]
    if is_bad.any():
        at = int(np.argmax(is_bad))
        raise ForeignBatchesError(
            f"{int(starts[at])} bytes behind offset {offset} is no batch: its format is "
            f"{int(magic[at])}, its size {int(sizes[at])} bytes (at most {LARGEST_BATCH} are taken)"
        )


def _offsets(
    data: NDArray[np.uint8], starts: NDArray[np.int64], magic: NDArray[np.int8], offset: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first and last offsets; where the first is not named, the least that it can be."""
    headers = gather_v2(data, starts)
    named = headers["base_offset"].astype(np.int64)
    is_batch = magic == _NEWEST_MAGIC
    last = np.where(is_batch, named + headers["last_offset_delta"].astype(np.int64), named)
    return np.where(is_batch, named, np.r_[offset - 1, last[:-1]] + 1), last


def _check_offsets(first: NDArray[np.int64], last: NDArray[np.int64], offset: int) -> None:
    """Check that offsets ascend, and that the first batch is the one that was asked for.

    Raises:
        ForeignBatchesError: They do not, or it is not.
    """
    before = np.r_[offset - 1, last[:-1]]
    is_bad = (last <= before) | (last < first) | (first < 0)
    # The first one may begin below the offset asked for, which then lies within it.
    is_bad[1:] |= first[1:] <= before[1:]
    if is_bad.any():
        at = int(np.argmax(is_bad))
        raise ForeignBatchesError(
            f"a batch of offsets {int(first[at])} to {int(last[at])} came where one behind "
            f"{int(before[at])} has to follow"
        )
