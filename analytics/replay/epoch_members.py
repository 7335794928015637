"""Members of consumer, share and streams groups: rows and assignments from their records (KIP-848).

All three types keep a member's metadata, its current assignment and its target in records of the
same shape; what they say beside that differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.group_epochs import group_epochs
from analytics.replay.group_records import CURRENT, MEMBER, TARGET
from analytics.replay.lives import GROUP_KEY
from analytics.replay.member_records import (
    epoch_before,
    epoch_reached,
    member_records,
    member_state,
    target_records,
    with_record,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from analytics.replay.group_log import GroupLog

_NOT_OF_ALL = {
    "group_instance_id": "string",
    "subscribed_topics": "array<string>",
    "subscribed_regex": "string",
    "server_assignor": "string",
    "rebalance_timeout_ms": "int",
    "session_timeout_ms": "int",
    "process_id": "string",
    "topology_epoch": "int",
}


def epoch_members(
    log: GroupLog, family: str, states: dict[int, str], **own: Column | str
) -> DataFrame:
    """Return the members of all groups of a type, as rows of `members`.

    Args:
        log: What the coordinators wrote about groups.
        family: The type of group.
        states: Kafka's words for a member's state.
        own: What is not told of members of every type, by its column; in terms of `about`, the
            value of the member's metadata. What is not given is null.
    """
    members = with_record(
        member_records(log.kept, family),
        log.records(family, MEMBER),
        "member_record",
        F.col("value").alias("about"),
    )
    members = with_record(
        members,
        log.records(family, CURRENT),
        "current_record",
        F.col("value.member_epoch").alias("stored_epoch"),
        F.col("value.previous_member_epoch").alias("stored_previous_epoch"),
        F.col("value.state").alias("stored_state"),
    )
    columns = {name: F.lit(None).cast(type_) for name, type_ in _NOT_OF_ALL.items()} | {
        "group_type": F.lit(family),
        "client_id": F.col("about.client_id"),
        "client_host": F.col("about.client_host"),
        "rack_id": F.col("about.rack_id"),
        "member_epoch": epoch_reached(F.col("stored_epoch")),
        "previous_member_epoch": epoch_before(F.col("stored_previous_epoch")),
        "state": member_state(states),
        "is_classic": F.lit(col=False),
        "lacks_metadata": F.col("member_record").isNull(),
    }
    columns |= {name: F.col(each) if isinstance(each, str) else each for name, each in own.items()}
    return members.select(
        *GROUP_KEY, "member_id", *(column.alias(name) for name, column in columns.items())
    )


def current_and_target(
    log: GroupLog, family: str, current: Sequence[Column], target: Sequence[Column]
) -> tuple[DataFrame, DataFrame]:
    """Return what members have, and what they shall have.

    Args:
        log: What the coordinators wrote about groups.
        family: The type of group.
        current: Columns of a current assignment's record.
        target: Columns of a target assignment's record.

    Returns:
        Two frames by member: `epoch` and `current`, of members that have not left; and
        `assignment_epoch` and `target`.
    """
    members = with_record(
        member_records(log.kept, family),
        log.records(family, CURRENT),
        "current_record",
        F.col("value.member_epoch").alias("epoch"),
        *current,
    ).where(~F.col("has_left"))
    targets = with_record(
        target_records(log.kept, family), log.records(family, TARGET), "target_record", *target
    ).join(group_epochs(log, family).select(*GROUP_KEY, "assignment_epoch"), list(GROUP_KEY))
    return members, targets
