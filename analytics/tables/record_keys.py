"""What keys of decoded records name, and whether records lie where clients look for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import polars as pl
import pyarrow as pa

from analytics.replay.log.topic_homes import internal_partition, share_key
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE, record_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.replay.log.topic_homes import TopicHomes

GROUPS: Final = ("group", "group_id")
TOPICS: Final = ("topic",)
_WITH_GROUPS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
_MIXED_BY: Final = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_WORD: Final = 8
_LOW_BYTES: Final = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
"""By a number of bytes what keeps so many of a word's first ones."""
_OWN: Final = "_own_"


def key_columns(fields: Sequence[str]) -> dict[str, str]:
    """Return by decoded table the field of its key that is one of these."""
    return {
        kind.table: field.column
        for topic in _WITH_GROUPS
        for kind in record_types(topic).values()
        for field in kind.key.fields
        if field.column in fields and kind.read == "decode"
    }


def key_hash(name: str, topic: str) -> pl.Expr:
    """Return a number that is the same for all records of a group, or of a share partition.

    Args:
        name: The decoded table.
        topic: The internal topic whose records are divided.
    """
    key = pl.col("key").struct
    if topic != SHARE_GROUP_STATE:
        return spread(key.field(key_columns(GROUPS)[name]))
    return spread(share_key(*(key.field(each) for each in ("group_id", "topic_id", "partition"))))


def spread(texts: pl.Expr) -> pl.Expr:
    """Return a number below 2^31 for each text, the same on every machine and in every release.

    Polars' own hash is neither: parts of a group that two machines read would not meet.
    """
    return texts.map_batches(_spread, return_dtype=pl.Int64)


def _spread(texts: pl.Series) -> pl.Series:
    # Eight bytes of each text at a time are mixed in, by the factors of MurmurHash3 (64 bits).
    filled = texts.fill_null("").to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, held = filled.buffers()
    ends = np.frombuffer(offsets, np.int64, len(filled) + 1, filled.offset * 8)
    starts, lengths = ends[:-1] - ends[0], np.diff(ends)
    words = _words(b"" if held is None else held[ends[0] : ends[-1]])
    mixed = lengths.astype(np.uint64)
    rows, at = np.flatnonzero(lengths), 0
    while rows.size:
        is_every = rows.size == mixed.size
        left = lengths - at if is_every else lengths[rows] - at
        word = words[starts + at] if is_every else words[starts[rows] + at]
        word &= _LOW_BYTES[np.minimum(left, _WORD)]
        word ^= mixed if is_every else mixed[rows]
        word *= np.uint64(_MIXED_BY[0])
        word ^= word >> np.uint64(32)
        mixed[rows] = word
        is_longer = left > _WORD
        rows, at = rows if is_longer.all() else rows[is_longer], at + _WORD
    mixed *= np.uint64(_MIXED_BY[1])
    return pl.Series((mixed >> np.uint64(33)).astype(np.int64))


def _words(texts: pa.Buffer | bytes) -> NDArray[np.uint64]:
    """Return the eight bytes from each byte on; behind the last there are zeros."""
    padded = np.concatenate([np.frombuffer(texts, np.uint8), np.zeros(_WORD, np.uint8)])
    return np.ndarray(padded.size - _WORD + 1, "<u8", padded, strides=(1,))


@dataclass(frozen=True)
class AtHome:
    """Tells which records of a decoded table lie where clients look for their key.

    Attributes:
        fields: What it takes of a record, by the column that it looks for.
        is_at_home: Whether they do.
    """

    fields: Mapping[str, str]
    is_at_home: pl.Expr

    @classmethod
    def of(cls, name: str, homes: Mapping[str, TopicHomes]) -> Self | None:
        """Return what tells it of a table; None where all records of it are at home.

        Args:
            name: The decoded table.
            homes: By internal topic where its keys are looked for.
        """
        for topic, each in homes.items():
            tables = {kind.table for kind in record_types(topic).values()}
            column = key_columns(GROUPS).get(name)
            if each.misplaced and name in tables and column is not None:
                return cls(*_looked_for(topic, column, each))
        return None

    def only(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that are, without the columns that are looked at.

        Args:
            rows: Have the columns of `fields`.
        """
        return rows.filter(self.is_at_home).drop(list(self.fields))

    def only_records(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the records that are, of a decoded table with its `partition` and `key`."""
        return self.only(rows.with_columns(self._columns()))

    def only_of_arrow(self, rows: pa.Table) -> pa.Table:
        """Return the same of an Arrow table."""
        looked_at = pl.DataFrame(pl.from_arrow(rows.select(["partition", "key"])))
        mask = looked_at.with_columns(self._columns()).select(self.is_at_home).to_series()
        return rows.filter(mask.to_arrow())

    def _columns(self) -> list[pl.Expr]:
        return [_field(field).alias(name) for name, field in self.fields.items()]


def _looked_for(topic: str, column: str, homes: TopicHomes) -> tuple[dict[str, str], pl.Expr]:
    fields = {f"{_OWN}partition": "partition", f"{_OWN}group": f"key.{column}"}
    key = pl.col(f"{_OWN}group")
    if topic == SHARE_GROUP_STATE:
        fields |= {f"{_OWN}topic_id": "key.topic_id", f"{_OWN}number": "key.partition"}
        key = share_key(key, pl.col(f"{_OWN}topic_id"), pl.col(f"{_OWN}number"))
    here = pl.col(f"{_OWN}partition")
    # Keys are looked at where some are known to be elsewhere.
    may_be_elsewhere = here.is_in(list(homes.misplaced))
    home = internal_partition(pl.when(may_be_elsewhere).then(key), homes.partitions, homes.disputed)
    return fields, (~may_be_elsewhere | (home == here)).fill_null(value=True)


def _field(path: str) -> pl.Expr:
    column, *inner = path.split(".")
    found = pl.col(column)
    for each in inner:
        found = found.struct.field(each)
    return found
