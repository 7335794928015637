"""What is made of the rows of whole groups, without Spark: of all at once or of some after others.

What follows rows of a group one after the other is written in polars, for any number of groups.
Where there are few rows they come here, once for all that is made of them. Else Spark hands workers
one bucket of whole groups after another, so that memory is bounded by a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.arrow_rows import arrow_rows, arrow_schema, polars_rows
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Frames = Mapping[str, pl.DataFrame]
Make = Callable[[Frames], Frames]
"""Takes the rows of some groups by name, all of them; returns what is made of them, by name."""

MOST_ROWS = 200_000
"""So many rows are looked at in one go."""


@dataclass(frozen=True)
class GroupRows:
    """Rows of groups, to make something of.

    Attributes:
        frames: By name; each with `GROUP_KEY`.
        here: The same where they are few; None else.
        buckets: Into how many parts the groups are laid where they are many.
        key: What tells apart what stays together; columns of each of the frames.
    """

    frames: Mapping[str, DataFrame]
    here: Frames | None
    buckets: int
    key: Sequence[str] = GROUP_KEY

    def beside(self, frames: Mapping[str, DataFrame]) -> GroupRows:
        """Return the same with further rows, which are not counted."""
        here = self.here
        if here is not None:
            brought = {name: from_spark(frame) for name, frame in frames.items()}
            here = {**here, **brought}
        return GroupRows({**self.frames, **frames}, here, self.buckets)

    def made(self, make: Make, schemas: Mapping[str, pl.Schema]) -> dict[str, DataFrame]:
        """Make tables of the rows.

        Args:
            make: Knows nothing of Spark. It is sent to workers, with what it refers to.
            schemas: Of what it returns.
        """
        shapes = {name: arrow_schema(schema) for name, schema in schemas.items()}
        if self.here is None:
            bucket = F.pmod(F.xxhash64(*self.key), F.lit(self.buckets))
            return _in_buckets(self.frames, bucket.alias("bucket"), make, shapes)
        made = make(self.here)
        spark = next(iter(self.frames.values())).sparkSession
        return {name: on_spark(spark, made[name].select(list(schemas[name]))) for name in schemas}

    def brought(self, make: Make, schemas: Mapping[str, pl.Schema]) -> Frames:
        """Make the same, and bring it here: what is little although the rows may be many."""
        if self.here is not None:
            return make(self.here)
        return {name: from_spark(made) for name, made in self.made(make, schemas).items()}


def group_rows(
    frames: Mapping[str, DataFrame],
    weights: Mapping[str, Column] | None = None,
    most_rows: int | None = None,
) -> GroupRows:
    """Gather rows of groups; those that are few are computed and brought here at once.

    Args:
        frames: By name; each with `GROUP_KEY`.
        weights: By name: how many rows one of a frame counts for, where it is not one.
        most_rows: So many are looked at in one go; `MOST_ROWS` where it is None.
    """
    most = most_rows or MOST_ROWS
    counted = [
        frame.agg(F.sum((weights or {}).get(name, F.lit(1))).alias("rows"))
        for name, frame in frames.items()
    ]
    (rows,) = union_all(counted).agg(F.sum("rows")).first() or (0,)
    if (rows or 0) > most:
        return GroupRows(frames, None, -(-rows // most))
    here = {name: from_spark(frame) for name, frame in frames.items()}
    return GroupRows(frames, here, 1)


def _in_buckets(
    frames: Mapping[str, DataFrame], bucket: Column, make: Make, shapes: Mapping[str, pa.Schema]
) -> dict[str, DataFrame]:
    """Send whole groups to workers: a row is one of a frame, and the others are null in it."""
    wide = pa.schema([(name, pa.struct(list(shape))) for name, shape in shapes.items()])
    names = list(frames)
    rows = union_all(
        (frame.select(bucket, F.struct("*").alias(name)) for name, frame in frames.items()),
        missing_as_null=True,
    )

    def of_bucket(rows: pa.Table) -> pa.Table:
        told = polars_rows(rows)
        here = {name: told.select(name).drop_nulls().unnest(name) for name in names}
        return _side_by_side(make(here), shapes, wide)

    made = rows.groupBy("bucket").applyInArrow(of_bucket, from_arrow_schema(wide))
    kept = made.localCheckpoint()
    return {name: kept.where(F.col(name).isNotNull()).select(f"{name}.*") for name in shapes}


def _side_by_side(made: Frames, shapes: Mapping[str, pa.Schema], wide: pa.Schema) -> pa.Table:
    """Return all rows in one table: each has one of the structs, and the others are null."""
    parts = []
    for name, shape in shapes.items():
        rows = arrow_rows(made[name]).cast(shape).to_struct_array()
        columns = [
            rows if each == name else pa.nulls(len(rows), wide.field(each).type) for each in shapes
        ]
        parts.append(pa.table(columns, schema=wide))
    return pa.concat_tables(parts)


def from_spark(frame: DataFrame) -> pl.DataFrame:
    """Bring few rows here."""
    return polars_rows(frame.toArrow())


def on_spark(spark: SparkSession, frame: pl.DataFrame) -> DataFrame:
    """Hand few rows to Spark."""
    rows = arrow_rows(frame)
    # PySpark cannot take a table without rows.
    return spark.createDataFrame(rows if len(rows) else [], from_arrow_schema(rows.schema))
