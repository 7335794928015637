"""Which partitions of an internal topic the keys of a column belong to (see `key_homes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.replay.log.key_homes import ALL_HASHES, LEAST_HASH

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OF_TWO_UNITS: Final = r"[\x{10000}-\x{10FFFF}]"
"""Letters that UTF-16 needs two code units for."""


def internal_partition(key: pl.Expr, partitions: int) -> pl.Expr:
    """Return the partition that Kafka's coordinators choose for each key, null where there is none.

    Args:
        key: Group ids; for share state what `share_key` returns.
        partitions: How many partitions the internal topic has.
    """
    return key.map_batches(lambda keys: _homes(keys, partitions), return_dtype=pl.Int32)


def share_key(group: pl.Expr, topic_id: pl.Expr, partition: pl.Expr) -> pl.Expr:
    """Return what share state is hashed by (``SharePartitionKey.asCoordinatorKey``)."""
    return pl.format("{}:{}:{}", group, topic_id, partition)


def _homes(keys: pl.Series, partitions: int) -> pl.Series:
    distinct = keys.drop_nulls().unique()
    homes = pl.Series(hash_places(distinct) % partitions, dtype=pl.Int32)
    return keys.replace_strict(distinct, homes, default=None, return_dtype=pl.Int32)


def hash_places(keys: pl.Series) -> NDArray[np.int64]:
    """Return `Utils.abs(hashCode)` of each key: modulo a number of partitions it is a partition."""
    unsigned = string_hashes(keys).astype(np.int64)
    positive = np.minimum(unsigned, ALL_HASHES - unsigned)
    return np.where(positive == LEAST_HASH, 0, positive)


def string_hashes(texts: pl.Series) -> NDArray[np.uint32]:
    """Return `String.hashCode` of each, unsigned.

    That is the sum of its UTF-16 code units, each times 31 to the power of how many follow; the
    numbers overflow as Java's do.
    """
    lengths = (texts.str.len_chars() + texts.str.count_matches(_OF_TWO_UNITS)).to_numpy()
    ends = np.cumsum(lengths, dtype=np.int64)
    units = np.frombuffer("".join(texts.to_list()).encode("utf-16-le"), "<u2").astype(np.uint32)
    powers = np.full(int(lengths.max(initial=0)) + 1, 31, np.uint32)
    powers[0] = 1
    powers = np.cumprod(powers, dtype=np.uint32)
    follow = np.repeat(ends, lengths) - 1 - np.arange(units.size)
    sums = np.zeros(units.size + 1, np.uint32)
    np.cumsum(units * powers[follow], dtype=np.uint32, out=sums[1:])
    hashes: NDArray[np.uint32] = sums[ends] - sums[ends - lengths]
    return hashes
