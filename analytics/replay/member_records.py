"""Which records make up a member of a consumer, share or streams group.

A member exists from its first metadata or current assignment until the tombstone of its metadata. A
tombstone of its current assignment alone leaves it there with epoch -1 and nothing assigned. A
member without a current assignment is at epoch 0 and stable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.group_records import CURRENT, MEMBER, MEMBER_ROLES, TARGET
from analytics.replay.latest import later
from analytics.replay.lives import GROUP_KEY
from analytics.replay.stored_values import word

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MEMBER_KEY = (*GROUP_KEY, "member_id")
JOINING_EPOCH = 0
LEFT_EPOCH = -1
STABLE = "STABLE"
UNKNOWN_STATE = "UNKNOWN"
PARTITION_STATES = {0: STABLE, 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}
"""States of members of consumer and share groups."""


def member_records(kept: DataFrame, family: str) -> DataFrame:
    """Return the members of all groups of a type.

    Args:
        kept: What `in_force` keeps.
        family: The type of group.

    Returns:
        `coordinator_partition`, `group_id`, `member_id`, the offsets `member_record` and
        `current_record` (null where the member has none), `has_left` (boolean: its current
        assignment was removed).
    """
    by_role = _by_role(kept, family)
    born = F.col("member_tombstone")
    current_record = F.when(later(F.col("current_value"), born), F.col("current_value"))
    left_after = F.greatest(
        born, F.col("current_value"), F.when(current_record.isNull(), F.col("member_value"))
    )
    return by_role.where(
        later(F.col("member_value"), born) | later(F.col("current_value"), born)
    ).select(
        *MEMBER_KEY,
        F.when(later(F.col("member_value"), born), F.col("member_value")).alias("member_record"),
        current_record.alias("current_record"),
        later(F.col("current_tombstone"), left_after).alias("has_left"),
    )


def target_records(kept: DataFrame, family: str) -> DataFrame:
    """Return who has a target assignment: the member's key and `target_record`.

    The member need not exist.
    """
    return (
        _by_role(kept, family)
        .where(later(F.col("target_value"), F.col("target_tombstone")))
        .select(*MEMBER_KEY, F.col("target_value").alias("target_record"))
    )


def with_record(frame: DataFrame, records: DataFrame, at: str, *columns: Column) -> DataFrame:
    """Add what the records at given offsets say; null where there is none.

    Args:
        frame: Has `coordinator_partition` and the column of offsets.
        records: A decoded table.
        at: Name of the column of offsets.
        columns: What to add, in terms of the decoded table.
    """
    said = records.select(
        F.col("partition").alias("coordinator_partition"), F.col("offset").alias(at), *columns
    )
    return frame.join(said, ["coordinator_partition", at], "left")


def epoch_reached(stored: Column) -> Column:
    """Return the member's epoch, from the epoch its current assignment names."""
    return F.when(F.col("has_left"), LEFT_EPOCH).otherwise(F.coalesce(stored, F.lit(JOINING_EPOCH)))


def epoch_before(stored: Column) -> Column:
    """Return the member's previous epoch; null where no current assignment names one."""
    return F.when(F.col("has_left"), LEFT_EPOCH).otherwise(stored)


def member_state(words: dict[int, str]) -> Column:
    """Return a member's state in Kafka's words; one without a current assignment is stable."""
    return F.coalesce(word(F.col("stored_state"), words, UNKNOWN_STATE), F.lit(STABLE))


def _by_role(kept: DataFrame, family: str) -> DataFrame:
    members = kept.where((F.col("family") == family) & F.col("role").isin(*MEMBER_ROLES))
    return members.groupBy(*MEMBER_KEY).agg(
        *(
            F.max(F.when(F.col("role") == role, F.col(f"last_{what}"))).alias(f"{role}_{what}")
            for role in (MEMBER, CURRENT, TARGET)
            for what in ("value", "tombstone")
        )
    )
