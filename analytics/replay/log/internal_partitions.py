"""Which partitions of an internal topic the keys of a column belong to (see `key_homes`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.assignors.java_order import string_hash

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Which partition of an internal topic one key belongs to: ``Utils.abs(hashCode) mod partitions``.
#
# `analytics.replay.log.internal_partitions` tells the same of columns of keys.

ALL_HASHES: Final = 1 << 32
LEAST_HASH: Final = 1 << 31
"""What the least hash would be without its sign: it has no positive counterpart and counts as 0."""


def home_of(key: str, partitions: int) -> int:
    """Return the partition that Kafka's coordinators choose.

    Args:
        key: A group id; for share state see `home_of_share`.
        partitions: How many partitions the internal topic has.
    """
    return hash_place(key) % partitions


def hash_place(key: str) -> int:
    """Return `Utils.abs(hashCode)` of a key: modulo a number of partitions it is a partition."""
    unsigned = string_hash(key)
    positive = min(unsigned, ALL_HASHES - unsigned)
    return 0 if positive == LEAST_HASH else positive


def home_of_share(group: str, topic_id: str, partition: int, partitions: int) -> int:
    """Return the partition that holds a share partition's state.

    ``ShareCoordinatorService.partitionFor``: by the hash of ``SharePartitionKey``.
    """
    return home_of(f"{group}:{topic_id}:{partition}", partitions)


_OF_TWO_UNITS: Final = r"[\x{10000}-\x{10FFFF}]"
"""Letters that UTF-16 needs two code units for."""


_NONE: Final[Mapping[int, int]] = MappingProxyType({})


def internal_partition(
    key: pl.Expr, partitions: int, disputed: Mapping[int, int] = _NONE
) -> pl.Expr:
    """Return the partition that Kafka's coordinators choose for each key, null where there is none.

    Args:
        key: Group ids; for share state what `share_key` returns.
        partitions: How many partitions the internal topic has.
        disputed: Where keys are read of which that is not known, by their `hash_places`.
    """
    return key.map_batches(lambda keys: _homes(keys, partitions, disputed), return_dtype=pl.Int32)


def is_one_of(key: pl.Expr, places: Mapping[int, int]) -> pl.Expr:
    """Return whether `hash_places` of each key is among some."""
    among = np.array(sorted(places), np.int64)

    def looked_up(keys: pl.Series) -> pl.Series:
        distinct = keys.drop_nulls().unique()
        found = pl.Series(np.isin(hash_places(distinct), among))
        return keys.replace_strict(distinct, found, default=False, return_dtype=pl.Boolean)

    return key.map_batches(looked_up, return_dtype=pl.Boolean)


def share_key(group: pl.Expr, topic_id: pl.Expr, partition: pl.Expr) -> pl.Expr:
    """Return what share state is hashed by (``SharePartitionKey.asCoordinatorKey``)."""
    return pl.format("{}:{}:{}", group, topic_id, partition)


def _homes(keys: pl.Series, partitions: int, disputed: Mapping[int, int]) -> pl.Series:
    distinct = keys.drop_nulls().unique()
    homes = pl.Series(homes_of(distinct, partitions, disputed), dtype=pl.Int32)
    return keys.replace_strict(distinct, homes, default=None, return_dtype=pl.Int32)


_AT_ONCE: Final = 100_000


def homes_of(
    keys: pl.Series, partitions: int, disputed: Mapping[int, int] = _NONE
) -> NDArray[np.int64]:
    """Return the partition of each key; see `internal_partition`."""
    hashes = hash_places(keys)
    homes = np.asarray(hashes % partitions)
    if disputed:
        known = np.array(sorted(disputed), np.int64)
        kept = np.array([disputed[each] for each in known.tolist()], np.int64)
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        homes = np.where(known[at] == hashes, kept[at], homes)
    return homes


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
    # Each code unit takes some thirty bytes.
    slices = [_hashes_of(texts.slice(at, _AT_ONCE)) for at in range(0, len(texts), _AT_ONCE)]
    return np.concatenate([np.zeros(0, np.uint32), *slices])


def _hashes_of(texts: pl.Series) -> NDArray[np.uint32]:
    units, lengths = _code_units(texts)
    ends = np.cumsum(lengths, dtype=np.int64)
    powers = np.full(int(lengths.max(initial=0)) + 1, 31, np.uint32)
    powers[0] = 1
    powers = np.cumprod(powers, dtype=np.uint32)
    follow = np.repeat(ends, lengths) - 1 - np.arange(units.size)
    sums = np.zeros(units.size + 1, np.uint32)
    np.cumsum(units * powers[follow], dtype=np.uint32, out=sums[1:])
    hashes: NDArray[np.uint32] = sums[ends] - sums[ends - lengths]
    return hashes


def _code_units(texts: pl.Series) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the UTF-16 code units of all texts, and how many each has."""
    bytes_of = texts.str.len_bytes()
    # Most names are ASCII: their bytes are their code units.
    if (texts.str.len_chars() == bytes_of).all():
        joined = texts.str.join("").cast(pl.Binary).item() if len(texts) else b""
        return np.frombuffer(joined, np.uint8).astype(np.uint32), bytes_of.to_numpy()
    units = "".join(texts.to_list()).encode("utf-16-le")
    lengths = texts.str.len_chars() + texts.str.count_matches(_OF_TWO_UNITS)
    return np.frombuffer(units, "<u2").astype(np.uint32), lengths.to_numpy()
