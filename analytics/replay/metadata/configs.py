"""Dynamic settings of topics, brokers and groups, from the metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.contract import as_table
from analytics.replay.log.stored_values import word
from analytics.replay.metadata.metadata_log import MetadataLog
from schemas.config_values import RESOURCE_TYPES, harmless_settings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RESOURCES = {2: "topic", 4: "broker", 32: "group"}
OTHER = "other"
KEY = ("resource_type", "resource", "name")


def configs(log: MetadataLog) -> DataFrame:
    """Return the table `configs` as of the instant of a metadata log.

    Values that may be secrets are withheld.
    """
    value = F.col("value")
    said = log.visible("config_record").select(
        word(value["resource_type"], RESOURCES, OTHER).alias("resource_type"),
        value["resource_name"].alias("resource"),
        value["name"].alias("name"),
        value["value"].alias("value"),
        "since",
        "at",
    )
    # A null value unsets the key.
    latest = (
        said.where(F.col("resource_type") != OTHER)
        .groupBy(*KEY)
        .agg(F.max_by(F.struct("value", "since", "at"), "at").alias("last"))
        .select(*KEY, "last.*")
        .where("value is not null")
    )
    living = latest.join(_removed_topics(log), ["resource_type", "resource"], "left").where(
        F.col("removed_at").isNull() | (F.col("removed_at") < F.col("at"))
    )
    kept = F.when(harmless_name(), F.col("value"))
    return as_table(
        living.withColumn("value", kept).withColumn("source", F.lit("metadata_log")), "configs"
    )


def _removed_topics(log: MetadataLog) -> DataFrame:
    """Return when each name last lost its topic, and with it all of its settings."""
    named = log.visible("topic_record").select(
        F.col("value.topic_id").alias("topic_id"), F.col("value.name").alias("resource")
    )
    removed = log.visible("remove_topic_record").select(
        F.col("value.topic_id").alias("topic_id"), "at"
    )
    return (
        named.join(removed, "topic_id", "inner")
        .groupBy("resource")
        .agg(F.max("at").alias("removed_at"))
        .withColumn("resource_type", F.lit("topic"))
    )


def harmless_name() -> Column:
    """Return whether the setting that `resource_type` and `name` tell may be shown."""
    harmless = F.lit(col=False)
    for each in RESOURCE_TYPES:
        named = F.col("name").rlike(harmless_settings(each))
        harmless = F.when(F.col("resource_type") == each, named).otherwise(harmless)
    return harmless
