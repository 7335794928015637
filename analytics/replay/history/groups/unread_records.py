"""Records that a release cannot read when it loads their partition.

A key of a type that it does not know stops loading before KIP-915 and is skipped since; a value in
a version that it does not know stops every release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.log.record_position import IN_DUMP, POSITION
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE, record_types
from schemas.releases import load_faults as known_faults

if TYPE_CHECKING:
    from analytics.replay.log.rules import LoadingRules

TOPICS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
NEWER_TYPE, NEWER_VERSION = "newer_record_type", "newer_value_version"
_CLASSIC_TYPES: Final = 2
"""The highest record type that releases before KIP-915 know: 0 and 1 are offsets, 2 a group."""
_STREAMS_TYPES: Final = range(17, 25)
_UNKNOWN_TYPES: Final = ("unknown_record_type", "redpanda_key")
"""The length that old releases of Redpanda put before a key is no type that Kafka knows."""
_UNKNOWN_VERSION: Final = "unsupported_version"


@dataclass(frozen=True)
class UnreadRecords:
    """Records that some release does not read.

    Attributes:
        undecoded: What of the internal topics did not decode: columns of `undecoded`.
        decoded: The decoded tables.
    """

    undecoded: pl.DataFrame
    decoded: Mapping[str, pl.DataFrame]

    def faults(self, rules: LoadingRules, *, is_newest: bool) -> pl.DataFrame:
        """Return the records that stop a release from loading their partition.

        Args:
            rules: Of the release.
            is_newest: It may be newer than any that is known, and read what is not known here.
        """
        return pl.concat(
            [self._of_undecoded(rules, is_newest=is_newest), *self._of_decoded(rules)],
            how="diagonal",
        )

    def _of_undecoded(self, rules: LoadingRules, *, is_newest: bool) -> pl.DataFrame:
        reason, number = pl.col("reason"), pl.col("record_type")
        is_of_groups = pl.col("topic") == CONSUMER_OFFSETS
        is_newer_type = is_of_groups & (
            reason.is_in(_UNKNOWN_TYPES)
            | ((reason == _UNKNOWN_VERSION) & (number > _CLASSIC_TYPES))
        )
        if rules.unknown_record_types != "refused":
            is_newer_type = pl.lit(value=False)
        is_read = pl.lit(value=True)
        if rules.group_records != "checked":
            is_read = is_of_groups & (number <= _CLASSIC_TYPES)
        elif rules.streams_over_simple == "skipped":
            is_read = ~(is_of_groups & number.is_in(_STREAMS_TYPES))
        is_newer_version = (reason == _UNKNOWN_VERSION) & is_read
        fault = (
            pl.when(is_newer_type)
            .then(pl.lit(NEWER_TYPE))
            .when(is_newer_version)
            .then(pl.lit(NEWER_VERSION))
            .when(reason.is_in(known_faults().undecoded))
            .then(reason)
        )
        # A release that is not known yet may read more.
        may_read = (fault == NEWER_VERSION) & is_newest
        return (
            self.undecoded.filter(pl.col("topic").is_in(TOPICS) & pl.col("offset").is_not_null())
            .select(
                "topic",
                pl.col("partition").alias("coordinator_partition"),
                pl.lit(None, pl.String).alias("group_id"),
                _type_in_key().alias("record_type"),
                "offset",
                "timestamp",
                pl.lit(None, pl.Int32).alias("leader_epoch"),
                *IN_DUMP,
                "reason",
                "detail",
            )
            .with_columns(fault.alias("fault"))
            .filter(pl.col("fault").is_not_null())
            .with_columns(
                pl.when(~may_read).then(pl.lit(value=True)).alias("stops_loading"),
                pl.lit(None, pl.Int16).alias("record_type"),
            )
            .drop("reason")
        )

    def _of_decoded(self, rules: LoadingRules) -> list[pl.DataFrame]:
        newest = {
            "offset_commit": rules.newest_offset_version,
            "group_metadata": rules.newest_group_version,
        }
        found = []
        kinds = record_types(CONSUMER_OFFSETS).values()
        for name in sorted({each.table for each in kinds if each.read == "decode"}):
            if name not in self.decoded:
                continue
            records = self.decoded[name]
            if name in newest:
                version = pl.col("value_version")
                is_newer = version > newest[name]
                words = pl.format("its value has version {}", version)
                found.append(_rows(records.filter(is_newer), NEWER_VERSION, words))
            elif rules.unknown_record_types == "refused":
                words = pl.format("its key has type {}", "record_type")
                found.append(_rows(records, NEWER_TYPE, words))
        return found


def _rows(records: pl.DataFrame, fault: str, detail: pl.Expr) -> pl.DataFrame:
    fields = records.select(pl.col("key").struct.unnest()).columns
    group = "group" if "group" in fields else "group_id"
    return records.select(
        "topic",
        pl.col("partition").alias("coordinator_partition"),
        pl.col("key").struct.field(group).alias("group_id"),
        "record_type",
        "offset",
        "timestamp",
        *POSITION,
        pl.lit(fault).alias("fault"),
        detail.alias("detail"),
        pl.lit(value=True).alias("stops_loading"),
    )


def _type_in_key() -> pl.Expr:
    """Return the first two bytes of a key as a number; null where there are no two."""
    head = pl.col("key").bin.slice(0, 2)
    number = head.bin.reinterpret(dtype=pl.Int16, endianness="big")
    return pl.when(head.bin.size() == 2).then(number)
