"""How long a coordinator keeps offsets, and how often it cleans up: one setting a partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ASSUMED, BROKER_CONFIG, DYNAMIC, OPTION, RECORD = (
    "default_assumed",
    "broker_config",
    "dynamic",
    "option",
    "record",
)


@dataclass(frozen=True)
class Setting:
    """A retention and where it is from.

    Attributes:
        retention_ms: `offsets.retention.minutes`, in milliseconds.
        source: default_assumed, broker_config, dynamic or option.
        check_interval_ms: `offsets.retention.check.interval.ms`.
    """

    retention_ms: int
    source: str
    check_interval_ms: int


@dataclass(frozen=True)
class Retention:
    """Settings of coordinators.

    Attributes:
        otherwise: For every partition of `__consumer_offsets` that is not named.
        of_partitions: By partition of `__consumer_offsets`: that of its coordinator.
        of_groups: By group, stronger than both.
    """

    otherwise: Setting
    of_partitions: Mapping[int, Setting] = field(default_factory=dict)
    of_groups: Mapping[str, Setting] = field(default_factory=dict)


def with_retention(rows: DataFrame, retention: Retention) -> DataFrame:
    """Add `retention_ms`, `retention_source` and `check_interval_ms`.

    Args:
        rows: Has `coordinator_partition` and `group_id`.
        retention: The settings.
    """
    chosen = F.coalesce(
        _of_groups(retention.of_groups),
        _of_partitions(retention.of_partitions),
        _literal(retention.otherwise),
    )
    return (
        rows.withColumn("setting", chosen)
        .withColumn("retention_ms", F.col("setting.retention_ms"))
        .withColumn("retention_source", F.col("setting.source"))
        .withColumn("check_interval_ms", F.col("setting.check_interval_ms"))
        .drop("setting")
    )


def of_partition(numbers: Mapping[int, int]) -> Column:
    """Return the number of a row's `coordinator_partition`; null where it has none."""
    if not numbers:
        return F.lit(None).cast("bigint")
    listed = F.array(*(F.lit(numbers.get(each)) for each in range(max(numbers) + 1)))
    return F.get(listed.cast("array<bigint>"), F.col("coordinator_partition"))


def _literal(setting: Setting) -> Column:
    return F.struct(
        F.lit(setting.retention_ms).cast("bigint").alias("retention_ms"),
        F.lit(setting.source).alias("source"),
        F.lit(setting.check_interval_ms).cast("bigint").alias("check_interval_ms"),
    )


def _nothing() -> Column:
    return F.lit(None).cast("struct<retention_ms:bigint,source:string,check_interval_ms:bigint>")


def _of_partitions(settings: Mapping[int, Setting]) -> Column:
    if not settings:
        return _nothing()
    listed = F.array(
        *(
            _literal(settings[each]) if each in settings else _nothing()
            for each in range(max(settings) + 1)
        )
    )
    return F.get(listed, F.col("coordinator_partition"))


def _of_groups(settings: Mapping[str, Setting]) -> Column:
    if not settings:
        return _nothing()
    pairs = chain.from_iterable(
        (F.lit(group), _literal(setting)) for group, setting in settings.items()
    )
    return F.create_map(*pairs)[F.col("group_id")]
