"""How much there is to do, as far as Spark's settings depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.dump.files.model import Slice

QUERIES_BY_SIZE = {
    # Compiling a query, by Spark to bytecode and by the JVM to machine code, takes seconds; it
    # cannot pay where all tables together are read in less.
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
    # A job for every shuffle and broadcast, each planned anew from what the last one measured.
    "spark.sql.adaptive.enabled": ("false", "true"),
    "spark.sql.autoBroadcastJoinThreshold": ("-1", "10MB"),
    # 200, the default, suit a cluster: each is a file for every task.
    "spark.sql.shuffle.partitions": ("1", "64"),
    # There are far more offsets than the small first map of an aggregation has room for.
    "spark.sql.codegen.aggregate.map.twolevel.enabled": ("true", "false"),
}
"""Settings of queries for a few megabytes, and on one machine for all else."""

SMALL_BYTES = 16 * 1024 * 1024
"""What of segments is decoded in less time than compiling the queries would take."""

SMALL_RECORDS = 300_000
"""So many records are replayed in one go, in the process that asks."""


def is_small_dump(slices: Iterable[Slice]) -> bool:
    """Whether the segments that will be read are a small dump."""
    return sum(each.to_position - each.from_position for each in slices) <= SMALL_BYTES


def is_small_workspace(manifest: Mapping[str, Any]) -> bool:
    """Whether the records of a workspace are replayed in one go, for which no Spark is needed."""
    records: int = sum(kind["records"] for kind in manifest["record_types"])
    return records <= SMALL_RECORDS
