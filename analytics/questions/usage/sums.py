"""What `topic_usage` is added up by: of some whole groups, and of all together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import arrow_rows, polars_rows
from analytics.questions.sums import divided
from analytics.tables.parted_table import Order

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.tables.parted_table import PartedTable

# The order of tables about usage: the largest first.


def ranking(columns: Mapping[str, bool]) -> Order:
    """Return an order in which nulls come last.

    Args:
        columns: By name whether the largest come first.
    """
    sort = partial(_ranked, by=list(columns), descending=list(columns.values()))
    return Order(list(columns), sort)


def _ranked(rows: pl.DataFrame, by: list[str], descending: list[bool]) -> pl.DataFrame:
    return rows.sort(by, descending=descending, nulls_last=True, maintain_order=True)


GROUP: Final = "group"
BY: Final = {
    "record-type": ("topic", "record_type"),
    GROUP: ("group_id",),
    "partition": ("topic", "partition"),
    "topic": ("topic",),
}
"""What `topic_usage` is added up by, and the columns that tell the sums apart."""
_SUMS: Final = (
    *("records", "bytes", "live_records", "live_bytes", "superseded_records", "superseded_bytes"),
    *("tombstoned_records", "tombstoned_bytes", "standing_tombstones", "standing_tombstone_bytes"),
    *("expired_records", "aborted_records", "aborted_bytes", "open_records", "open_bytes"),
    "unchanged_commits",
)


def most_first(by: str) -> Order:
    """Return the order of sums."""
    return ranking({"bytes": True, "records": True} | dict.fromkeys(BY[by], False))


def sums_of(usage: pl.DataFrame, by: str) -> pl.DataFrame:
    """Add up rows of `topic_usage` of whole groups.

    Args:
        usage: Rows of the table `topic_usage`.
        by: A key of `BY`.

    Returns:
        The columns of `BY`, the sums, and `groups`. Sums are null where no row has a number.
    """
    groups = pl.col("group_id").drop_nulls().n_unique().cast(pl.Int64)
    return usage.group_by(BY[by]).agg(*_added(), groups.alias("groups"))


def together(sums: Sequence[pl.DataFrame], by: str) -> pl.DataFrame:
    """Return sums of parts that share no group as one, with what is dead, the most bytes first.

    Returns:
        The columns of `sums_of`, `dead_records` and `dead_bytes`: superseded, tombstoned or
        aborted.
    """
    found = pl.concat(sums).group_by(BY[by]).agg(*_added(), pl.col("groups").sum())
    dead = [
        (
            pl.col(f"superseded_{unit}") + pl.col(f"tombstoned_{unit}") + pl.col(f"aborted_{unit}")
        ).alias(f"dead_{unit}")
        for unit in ("records", "bytes")
    ]
    return most_first(by).sort(found.with_columns(dead))


def _added() -> list[pl.Expr]:
    return [pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()) for name in _SUMS]


@dataclass(frozen=True)
class UsageSums:
    """Sums of `topic_usage` with the `share` of all bytes that each has; of any size.

    Attributes:
        sums: Of `together`.
        all_bytes: What all of them come to.
    """

    sums: PartedTable
    all_bytes: int

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return self.sums.num_rows

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield them in order, some at a time; at least once."""
        for piece in self.sums.pieces():
            rows = self._with_share(piece)
            yield rows if columns is None else rows.select(columns)

    def first(self, most: int) -> pa.Table:
        """Return the first ones."""
        return self._with_share(self.sums.first(most))

    def whole(self) -> pa.Table:
        """Return all of them."""
        return self._with_share(self.sums.whole())

    def _with_share(self, rows: pa.Table) -> pa.Table:
        share = divided(pl.col("bytes").cast(pl.Float64), max(float(self.all_bytes), 1))
        return arrow_rows(polars_rows(rows).with_columns(share=share))
