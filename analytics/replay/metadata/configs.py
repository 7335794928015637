"""Dynamic settings of topics, brokers and groups, from the metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.log.meanings import word
from analytics.replay.metadata.metadata_log import CERTAIN
from schemas.kafka_settings import RESOURCE_TYPES, harmless_settings, sensitive_settings

if TYPE_CHECKING:
    from analytics.replay.metadata.metadata_log import MetadataLog

RESOURCES: Final = {2: "topic", 4: "broker", 32: "group"}
OTHER: Final = "other"
KEY: Final = ("resource_type", "resource", "name")


def configs(log: MetadataLog) -> pl.DataFrame:
    """Return the table `configs` as of the instant of a metadata log.

    Values that may be secrets are withheld.
    """
    # A null value unsets the key.
    latest = (
        settings_said(log).sort("at").group_by(KEY, maintain_order=True).last().drop_nulls("value")
    )
    living = latest.join(_removed_topics(log), on=("resource_type", "resource"), how="left").filter(
        pl.col("removed_at").is_null() | (pl.col("removed_at") < pl.col("at"))
    )
    kept = pl.when(harmless_name()).then("value").alias("value")
    return contract_frame(
        living.with_columns(kept, *CERTAIN, pl.lit("metadata_log").alias("source")), "configs"
    )


def settings_said(log: MetadataLog) -> pl.DataFrame:
    """Return each record of a setting: `KEY`, `value` (null: unset), `since` and `at`."""
    value = pl.col("value").struct
    return (
        log.visible("config_record")
        .select(
            word(value.field("resource_type"), RESOURCES, OTHER).alias("resource_type"),
            value.field("resource_name").alias("resource"),
            value.field("name").alias("name"),
            value.field("value").alias("value"),
            "since",
            "at",
        )
        .filter(pl.col("resource_type") != OTHER)
    )


def _removed_topics(log: MetadataLog) -> pl.DataFrame:
    """Return when each name last lost its topic, and with it all of its settings."""
    value = pl.col("value").struct
    named = log.visible("topic_record").select(
        value.field("topic_id"), value.field("name").alias("resource")
    )
    removed = log.visible("remove_topic_record").select(value.field("topic_id"), "at")
    return (
        named.join(removed, on="topic_id")
        .group_by("resource")
        .agg(pl.col("at").max().alias("removed_at"))
        .with_columns(pl.lit("topic").alias("resource_type"))
    )


def harmless_name() -> pl.Expr:
    """Return whether the setting that `resource_type` and `name` tell may be shown."""
    is_kept = pl.any_horizontal(
        (pl.col("resource_type") == each) & pl.col("name").str.contains(harmless_settings(each))
        for each in RESOURCE_TYPES
    )
    return is_kept & ~pl.col("name").str.contains(sensitive_settings())
