"""Which partition of an internal topic a key belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

_32_BITS = 0xFFFF_FFFF
_SIGN = 0x8000_0000


def internal_partition(key: Column, partitions: int) -> Column:
    """Return the partition that Kafka's coordinators choose: ``abs(hashCode) mod partitions``.

    The hash is Java's over UTF-16 code units, and its least value, which has no positive
    counterpart, counts as 0 (``Utils.abs``). Meant for distinct keys: it takes a while per letter.

    Args:
        key: A group id; for share state `share_key`.
        partitions: How many partitions the internal topic has.
    """
    units = F.encode(key, "UTF-16BE")
    hashed = F.aggregate(
        F.sequence(F.lit(1), F.length(units) - 1, F.lit(2)),
        F.lit(0).cast("bigint"),
        lambda total, place: (total * 31 + _unit(units, place)).bitwiseAND(F.lit(_32_BITS)),
    )
    signed = F.when(hashed >= _SIGN, hashed - (_32_BITS + 1)).otherwise(hashed)
    positive = F.when(signed == -_SIGN, F.lit(0)).otherwise(F.abs(signed))
    # The sequence would count down where there is nothing to count.
    return F.when(key == "", F.lit(0)).otherwise(positive % partitions).cast("int")


def share_key(group: Column, topic_id: Column, partition: Column) -> Column:
    """Return what share state is hashed by (``SharePartitionKey.asCoordinatorKey``)."""
    return F.concat_ws(":", group, topic_id, partition.cast("string"))


def _unit(units: Column, place: Column) -> Column:
    return F.conv(F.hex(F.substring(units, place, F.lit(2))), 16, 10).cast("bigint")
