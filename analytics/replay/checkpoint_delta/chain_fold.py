"""Checkpoints and deltas of many data partitions to what a share-partition leader would recover.

An early text of KIP-932, "Recovering share-partition state and interactions with log cleaning".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.checkpoint_delta.chain_records import RECORDS
from analytics.replay.checkpoint_delta.chain_loop import (
    COUNT,
    DELTAS,
    FIRST,
    HEAD,
    LAST,
    OTHERS,
    STATE,
    TAIL,
    follow_chains,
)
from schemas.dialects import broken_chain_words, odd_chain_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.decode.checkpoint_delta.chain_records import ChainLog

    Numbers = NDArray[np.int64]

REASONS = (None, *broken_chain_words(), *odd_chain_words())
"""Words in the order of the loop's numbers."""
FIRST_ODD = 1 + len(broken_chain_words())


@dataclass(frozen=True)
class Chains:
    """What chains add up to.

    Attributes:
        logs: The logs they are of.
        records: The columns of `RECORDS`, by log, group and offset.
        key: For each record, the number of its share partition.
        judgements: For each record the columns `REASON`, `START_AFTER`, `END_AFTER` of the loop.
        key_log: For each share partition, the number of its log.
        key_group: Likewise its group.
        keys: Likewise the columns from `HEAD` to `OTHERS` of the loop.
        ranges: Ranges of offsets that are left, by share partition; neighbours differ.
        range_key: For each of them, the number of its share partition.
    """

    logs: Sequence[ChainLog]
    records: pa.Table
    key: Numbers
    judgements: Numbers
    key_log: Numbers
    key_group: pa.Array
    keys: Numbers
    ranges: Numbers
    range_key: Numbers

    def column(self, name: str) -> Numbers:
        """Return a column of the records; -1 where it is null."""
        return _numbers(self.records[name])


def fold_chains(logs: Sequence[ChainLog]) -> Chains:
    """Follow the chains of all groups in all logs."""
    records, log = _together(logs)
    codes = records["group_id"].combine_chunks().dictionary_encode()
    group = codes.indices.to_numpy().astype(np.int64)
    order = np.lexsort((_numbers(records["offset"]), group, log))
    records, log, group = records.take(pa.array(order)), log[order], group[order]
    pair = np.stack([log, group], axis=1)
    is_new = np.ones(len(pair), np.bool_)
    is_new[1:] = (pair[1:] != pair[:-1]).any(axis=1)
    key = np.cumsum(is_new) - 1
    told, keys, held = _followed(records, key, int(is_new.sum()))
    ranges, range_key = _left(keys, held)
    return Chains(
        logs,
        records,
        key,
        told,
        log[is_new],
        codes.dictionary.take(pa.array(group[is_new])),
        keys,
        ranges,
        range_key,
    )


def _together(logs: Sequence[ChainLog]) -> tuple[pa.Table, Numbers]:
    """Return the records of all logs, and for each the number of its log."""
    parts = [each.records for each in logs] or [RECORDS.empty_table()]
    sizes = [each.num_rows for each in parts]
    return pa.concat_tables(parts).combine_chunks(), np.repeat(np.arange(len(parts)), sizes)


def _followed(records: pa.Table, key: Numbers, count: int) -> tuple[Numbers, Numbers, Numbers]:
    """Run the loop: what is told of each record and of each key, and the ranges it held."""
    keys = np.full((count, OTHERS + 1), -1)
    keys[:, [HEAD, TAIL, DELTAS, OTHERS]] = 0
    told = np.full((key.size, 3), -1)
    if not key.size:
        return told, keys, np.empty((0, 4), np.int64)
    names = ("kind", "checkpoint_epoch", "back_offset", "start_offset", "end_offset", "offset")
    given = np.stack([*(_numbers(records[name]) for name in names), key], axis=1)
    lists = records["states"].combine_chunks()
    bounds = np.zeros(key.size + 1, np.int64)
    np.cumsum(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(), out=bounds[1:])
    parts = [_numbers(each) for each in lists.flatten().flatten()]
    ranges = np.ascontiguousarray(np.stack(parts, axis=1))
    held = np.zeros((2 * len(ranges) + 1, 4), np.int64)
    work = given.size + ranges.size
    follow_chains(work, np.ascontiguousarray(given), bounds, ranges, told, keys, held)
    return told, keys, held


def _left(keys: Numbers, held: Numbers) -> tuple[Numbers, Numbers]:
    """Return the ranges that are left, neighbours that are alike joined, and whose they are."""
    size = keys[:, TAIL] - keys[:, HEAD]
    key = np.repeat(np.arange(len(keys)), size)
    first = np.cumsum(size) - size
    row = np.arange(key.size) - np.repeat(first - keys[:, HEAD], size)
    ranges = held[row]
    begins = np.ones(key.size, np.bool_)
    begins[1:] = (
        (key[1:] != key[:-1])
        | (ranges[1:, FIRST] != ranges[:-1, LAST] + 1)
        | (ranges[1:, [STATE, COUNT]] != ranges[:-1, [STATE, COUNT]]).any(axis=1)
    )
    ends = np.append(begins[1:], True)[: key.size]
    found = ranges[begins].copy()
    found[:, LAST] = ranges[ends, LAST]
    return found, key[begins]


def _numbers(column: pa.ChunkedArray | pa.Array) -> Numbers:
    numbers: Numbers = pc.fill_null(column, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
