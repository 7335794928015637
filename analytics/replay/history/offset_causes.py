"""Why a committed offset went back, and who committed it.

While a group has members only they may commit outside transactions; while it has none, only who
names no member may: a tool that resets offsets, or a client that assigns itself partitions
(``validateOffsetCommit`` of the groups). Which of these it was the log does not record. In a
transaction a producer that names no member may always commit, so that of a group with members
nobody can tell whose producer it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

MEMBER, ADMIN_OR_SIMPLE, UNKNOWN = "member", "admin_or_simple", "unknown"
HIGH, MEDIUM, LOW = "high", "medium", "low"

TOPIC_RECREATED = "topic_recreated"
COMMITTED_WHILE_EMPTY = "committed_while_empty"
REWOUND_BY_MEMBER = "rewound_by_member"
LOST_BY_ELECTION = "lost_by_election"

ELECTION_WITHIN = "interval 1 minute"
"""How long before the commit that is gone back from an unclean election may have been: consumers
commit the position they had in the lost line before they learn of it."""


def origin(*, is_certain: Column) -> Column:
    """Return who made a commit.

    Args:
        is_certain: Whether the group's records up to the commit are all there, or some is.
    """
    outside = F.col("producer_id").isNull()
    filled = F.col("group_members") > 0
    return (
        F.when(outside & (F.col("member_id").isNotNull() | filled), MEMBER)
        .when(~filled & is_certain, ADMIN_OR_SIMPLE)
        .otherwise(UNKNOWN)
    )


def cause_of_step_back() -> Column:
    """Return `cause` and `confidence` of a step back as a struct.

    Rows have `topic_id`, `previous_topic_id`, `commit_timestamp`, `previous_commit_timestamp`,
    `origin`, and of the topic and the partition `born_at` and `elections` (arrays of timestamps).
    """
    other_id = F.col("topic_id") != F.col("previous_topic_id")
    since, until = F.col("previous_commit_timestamp"), F.col("commit_timestamp")
    born = F.exists("born_at", lambda at: (at > since) & (at <= until))
    elected = F.exists(
        "elections", lambda at: (at > since - F.expr(ELECTION_WITHIN)) & (at <= until)
    )
    by = F.col("origin")
    return (
        F.when(other_id, _said(TOPIC_RECREATED, HIGH))
        .when(born, _said(TOPIC_RECREATED, MEDIUM))
        .when((by == MEMBER) & elected, _said(LOST_BY_ELECTION, MEDIUM))
        .when(by == MEMBER, _said(REWOUND_BY_MEMBER, HIGH))
        .when(by == ADMIN_OR_SIMPLE, _said(COMMITTED_WHILE_EMPTY, HIGH))
        .otherwise(_said(UNKNOWN, LOW))
    )


def not_known() -> Column:
    """Return `cause` and `confidence` where records are lost on which the cause rests."""
    return _said(UNKNOWN, LOW)


def _said(cause: str, confidence: str) -> Column:
    return F.struct(F.lit(cause).alias("cause"), F.lit(confidence).alias("confidence"))
