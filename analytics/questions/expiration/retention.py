"""How long a coordinator keeps offsets, and how often it cleans up: one setting a partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

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


def with_retention(
    rows: pl.DataFrame, retention: Retention, at_ms: pl.Expr | None = None
) -> pl.DataFrame:
    """Add `retention_ms`, `retention_source`, `check_interval_ms` and `is_interval_assumed`.

    Args:
        rows: Has `coordinator_partition` and `group_id`.
        retention: The settings.
        at_ms: The instant of a row (epoch milliseconds), where it is not what the settings are
            of: before one was set, another held that nothing tells.
    """
    of_partitions = _settings("coordinator_partition", pl.Int32(), retention.of_partitions)
    of_groups = _settings("group_id", pl.String(), retention.of_groups)
    found = _looked_up(rows, of_partitions, "coordinator_partition", "")
    found = _looked_up(found, of_groups, "group_id", "_of_group")

    def of_coordinator(name: str) -> pl.Expr:
        otherwise = pl.lit(getattr(retention.otherwise, name), _FIELDS[name])
        return pl.when(pl.col("source").is_null()).then(otherwise).otherwise(name)

    def setting(name: str) -> pl.Expr:
        is_given = pl.col("source_of_group").is_not_null()
        return pl.when(is_given).then(f"{name}_of_group").otherwise(of_coordinator(name))

    told, source = setting("retention_ms"), setting("source")
    if at_ms is not None:
        is_before = (at_ms < setting("since_ms")).fill_null(value=False)
        told = pl.when(is_before).then(setting("assumed_before_ms")).otherwise(told)
        source = pl.when(is_before).then(pl.lit(ASSUMED)).otherwise(source)
    added = (
        told.alias("found_retention_ms"),
        source.alias("retention_source"),
        of_coordinator("check_interval_ms").alias("found_interval_ms"),
        (of_coordinator("source") == ASSUMED).alias("is_interval_assumed"),
    )
    beside = [*_FIELDS, *(f"{name}_of_group" for name in _FIELDS)]
    return (
        found.with_columns(added)
        .drop(beside)
        .rename({"found_retention_ms": "retention_ms", "found_interval_ms": "check_interval_ms"})
    )


_FIELDS: dict[str, pl.DataType] = {
    "retention_ms": pl.Int64(),
    "source": pl.String(),
    "check_interval_ms": pl.Int64(),
    "since_ms": pl.Int64(),
    "assumed_before_ms": pl.Int64(),
}


def _looked_up(rows: pl.DataFrame, settings: pl.DataFrame, key: str, suffix: str) -> pl.DataFrame:
    if settings.is_empty():
        nothing = (pl.lit(None, kind).alias(f"{name}{suffix}") for name, kind in _FIELDS.items())
        return rows.with_columns(nothing)
    known = settings.cast({key: rows.schema[key]}, strict=False)
    return rows.join(known, on=key, how="left", maintain_order="left", suffix=suffix)


def _settings(key: str, kind: pl.DataType, settings: Mapping[Any, Setting]) -> pl.DataFrame:
    columns = {name: [getattr(each, name) for each in settings.values()] for name in _FIELDS}
    return pl.DataFrame({key: list(settings), **columns}, schema={key: kind, **_FIELDS})
