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
        since_ms: When it was set, in epoch milliseconds; None where it holds for all times.
        assumed_before_ms: The retention that is assumed for before `since_ms`.
    """

    retention_ms: int
    source: str
    check_interval_ms: int
    since_ms: int | None = None
    assumed_before_ms: int | None = None


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


def with_retention(rows: DataFrame, retention: Retention, at_ms: Column | None = None) -> DataFrame:
    """Add `retention_ms`, `retention_source`, `check_interval_ms` and `is_interval_assumed`.

    Args:
        rows: Has `coordinator_partition` and `group_id`.
        retention: The settings.
        at_ms: The instant of a row (epoch milliseconds), where it is not what the settings are
            of: before one was set, another held that nothing tells.
    """
    of_coordinator = F.coalesce(
        _of_partitions(retention.of_partitions), _literal(retention.otherwise)
    )
    found = rows.withColumn("of_coordinator", of_coordinator).withColumn(
        "setting", F.coalesce(_of_groups(retention.of_groups), "of_coordinator")
    )
    told, source = F.col("setting.retention_ms"), F.col("setting.source")
    if at_ms is not None:
        is_before = F.coalesce(at_ms < F.col("setting.since_ms"), F.lit(col=False))
        told = F.when(is_before, F.col("setting.assumed_before_ms")).otherwise(told)
        source = F.when(is_before, ASSUMED).otherwise(source)
    return (
        found.withColumn("retention_ms", told)
        .withColumn("retention_source", source)
        .withColumn("check_interval_ms", F.col("of_coordinator.check_interval_ms"))
        .withColumn("is_interval_assumed", F.col("of_coordinator.source") == ASSUMED)
        .drop("setting", "of_coordinator")
    )


def of_partition(numbers: Mapping[int, int]) -> Column:
    """Return the number of a row's `coordinator_partition`; null where it has none."""
    if not numbers:
        return F.lit(None).cast("bigint")
    listed = F.array(*(F.lit(numbers.get(each)) for each in range(max(numbers) + 1)))
    return F.get(listed.cast("array<bigint>"), F.col("coordinator_partition"))


_FIELDS = "retention_ms:bigint,source:string,check_interval_ms:bigint,since_ms:bigint"
_SETTING = f"struct<{_FIELDS},assumed_before_ms:bigint>"


def _literal(setting: Setting) -> Column:
    named = (F.lit(value).alias(name) for name, value in vars(setting).items())
    return F.struct(*named).cast(_SETTING)


def _nothing() -> Column:
    return F.lit(None).cast(_SETTING)


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
