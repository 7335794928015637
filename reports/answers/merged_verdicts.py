"""Verdicts as people read them: partitions of which all is equal are one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl
import pyarrow as pa

from reports.layout.section import Rows

_COLUMNS = (
    *(("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())),
    ("verdict", pa.string()),
    *((name, pa.timestamp("us", "UTC")) for name in ("since", "at", "not_before")),
    *((name, pa.int64()) for name in ("was", "became", "cost")),
    *((name, pa.string()) for name in ("confidence", "rung", "record", "reason")),
)
RAW: Final = pa.schema(_COLUMNS)
"""What is read of the table `offset_verdicts`."""
_PARTITIONS: Final = "partitions"
_TIMES: Final = ("not_before", "since")
_ALIKE: Final = ("group_id", "verdict", "since", "at", "reason")


def merged_rows(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Put partitions of a topic together whose verdicts are equal in every column shown.

    Since when no loss is found is said of a whole topic: it holds since the latest of the times of
    its partitions.

    Args:
        rows: Verdicts with the columns of `RAW`; all of a group that have the same one.
        columns: Those that are shown, `partitions` among them.

    Returns:
        The columns that are shown, `not_before` and `since`.
    """
    equal = [*(name for name in columns if name != _PARTITIONS), *_TIMES]
    found = _with_common_times(_said_once(rows)).group_by(equal, maintain_order=True)
    together = found.agg("partition").with_row_index("place")
    return together.join(
        _ranges(together.select("place", "partition")), "place", "left", maintain_order="left"
    ).select(
        *(pl.col(name) if name != _PARTITIONS else pl.col(name).fill_null("") for name in columns),
        *_TIMES,
    )


def _said_once(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out what is said of a partition and of its whole group alike."""
    of_group = pl.col("topic").is_null()
    whole = rows.filter(of_group).select(*_ALIKE, pl.lit(value=True).alias("is_said")).unique()
    marked = rows.join(whole, list(_ALIKE), "left", nulls_equal=True, maintain_order="left")
    return marked.filter(of_group | pl.col("is_said").is_null()).drop("is_said")


def _with_common_times(rows: pl.DataFrame) -> pl.DataFrame:
    # Null where something happened: the latest time of a topic is of those where nothing did.
    latest = pl.col("since").max().over("group_id", "topic")
    return rows.with_columns(pl.when(pl.col("since").is_not_null()).then(latest).alias("since"))


def _ranges(lists: pl.DataFrame) -> pl.DataFrame:
    """Return the numbers of each list as `0, 3-5, 9`."""
    numbers = lists.explode("partition").drop_nulls("partition").sort("place", "partition")
    is_next = pl.col("partition") - pl.col("partition").shift().over("place") == 1
    runs = numbers.with_columns((~is_next.fill_null(value=False)).cum_sum().alias("run"))
    ends = runs.group_by("place", "run", maintain_order=True).agg(
        pl.col("partition").first().alias("first"), pl.col("partition").last().alias("last")
    )
    one, several = pl.format("{}", "first"), pl.format("{}-{}", "first", "last")
    text = pl.when(pl.col("first") == pl.col("last")).then(one).otherwise(several)
    return ends.group_by("place", maintain_order=True).agg(text.str.join(", ").alias(_PARTITIONS))


@dataclass(frozen=True)
class MergedVerdicts:
    """The rows of `merged_rows` of a table of any size.

    Attributes:
        rows: The table `offset_verdicts`, the worst first: a group's are together by verdict.
        columns: Those that are shown, `partitions` among them.
    """

    rows: Rows
    columns: Sequence[str]

    @cached_property
    def num_rows(self) -> int:
        """How many there are."""
        return sum(each.num_rows for each in self.pieces())

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield them in order, some at a time; at least once."""
        for rows in self._merged():
            yield shown_rows(rows if columns is None else rows.select(columns))

    def first(self, most: int) -> pa.Table:
        """Return the first ones."""
        found: list[pa.Table] = []
        for rows in self.pieces():
            found.append(rows.slice(0, most - sum(each.num_rows for each in found)))
            if sum(each.num_rows for each in found) >= most:
                break
        return pa.concat_tables(found)

    def whole(self) -> pa.Table:
        """Return all of them."""
        return pa.concat_tables(self.pieces())

    def _merged(self) -> Iterator[pl.DataFrame]:
        waiting = raw_rows(RAW.empty_table())
        for piece in self.rows.pieces(RAW.names):
            rows = pl.concat([waiting, raw_rows(piece)])
            end = _end_of_groups(rows)
            waiting = rows.slice(end)
            yield merged_rows(rows.head(end), self.columns)
        yield merged_rows(waiting, self.columns)


def _end_of_groups(rows: pl.DataFrame) -> int:
    """Return up to where rows are of groups all of whose rows of a verdict are there."""
    columns = (pl.col("group_id"), pl.col("verdict"))
    is_other = pl.any_horizontal(each != each.last() for each in columns)
    others = rows.select(is_other.arg_true().max()).item()
    return 0 if others is None else int(others) + 1


def raw_rows(rows: pa.Table) -> pl.DataFrame:
    """Return verdicts as a frame with the columns of `RAW`."""
    return pl.DataFrame(pl.from_arrow(rows.select(RAW.names).cast(RAW)))


def shown_rows(rows: pl.DataFrame) -> pa.Table:
    """Return rows of `merged_rows` with the types of `RAW`."""
    kinds = {name: RAW.field(name).type for name in RAW.names} | {_PARTITIONS: pa.string()}
    types = pa.schema([(name, kinds[name]) for name in rows.columns])
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(types)
