"""How the offsets of each group fare, and which are the worst: of many, without a row for each.

Takes rows of the table `offset_expiration`, of whole groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from analytics.questions.expiration.offset_expiration import UNTOLD
from schemas import table
from schemas.expiration_rules import OFFSET_STATUSES

_KEY: Final = table("offset_expiration").key
FATE: Final = ["group_id", "rule", "status"]
"""What a row of fates is of, and the order in which they come."""
_RANK: Final = "rank"


def fates(expiration: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id`, `rule`, `status`, how many `offsets` fare so, and the first `expires_at`.

    Groups come in any order.
    """
    return expiration.group_by(FATE).agg(
        pl.len().cast(pl.Int64).alias("offsets"), pl.col("expires_at").min()
    )


def all_fates(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return `fates` of all groups, in order: a group may lie in two partitions of the topic."""
    found = pl.concat(parts).sort(FATE)
    is_same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in FATE)
    if not found.select(is_same.slice(1).any()).item():
        return found
    summed = found.group_by(FATE).agg(pl.col("offsets").sum(), pl.col("expires_at").min())
    return summed.sort(FATE)


def in_fate_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of fates."""
    return rows.sort(FATE, maintain_order=True)


def notes(expiration: pl.DataFrame) -> pl.DataFrame:
    """Return each `note`, of how many `offsets`, and the key of the first of them.

    `is_untold` says whether it is why nobody can tell when they expire.
    """
    is_untold = (pl.col("status") == UNTOLD).alias("is_untold")
    noted = expiration.filter(pl.col("note").is_not_null()).select("note", is_untold, *_KEY)
    return _first_notes(noted.with_columns(pl.lit(1, pl.Int64).alias("offsets")))


def all_notes(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return `notes` of all groups, in the order of their first offsets."""
    return _first_notes(pl.concat(parts))


def _first_notes(noted: pl.DataFrame) -> pl.DataFrame:
    ordered = noted.sort(_KEY, maintain_order=True).group_by(
        "note", "is_untold", maintain_order=True
    )
    return ordered.agg(pl.col("offsets").sum(), pl.col(_KEY).first())


def worst_of(expiration: pl.DataFrame, most: int | None) -> pl.DataFrame:
    """Return so many rows with the worst statuses, the first by key of the last of them."""
    if most is None or expiration.height <= most:
        return expiration
    ranks = {word: rank for rank, word in enumerate(OFFSET_STATUSES)}
    rank = pl.col("status").replace_strict(ranks, return_dtype=pl.Int8).alias(_RANK)
    return expiration.with_columns(rank).bottom_k(most, by=[_RANK, *_KEY]).drop(_RANK)
