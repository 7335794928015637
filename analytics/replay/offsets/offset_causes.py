"""Why a committed offset went back, and who committed it.

While a group has members only they may commit outside transactions; while it has none, only who
names no member may: a tool that resets offsets, or a client that assigns itself partitions
(``validateOffsetCommit`` of the groups). Which of these it was the log does not record. In a
transaction a producer that names no member may always commit, so that of a group with members
nobody can tell whose producer it was.

Which of several members committed is in no record, either: each of the generation may commit any
partition, whoever owns it. That it was the owner is no more than likely.
"""

from __future__ import annotations

from typing import Final

import polars as pl

MEMBER, ADMIN_OR_SIMPLE, UNKNOWN = "member", "admin_or_simple", "unknown"
HIGH, MEDIUM, LOW = "high", "medium", "low"

TOPIC_RECREATED = "topic_recreated"
COMMITTED_WHILE_EMPTY = "committed_while_empty"
REWOUND_BY_MEMBER = "rewound_by_member"
LOST_BY_ELECTION = "lost_by_election"

OF_STEPS: Final = (
    *("topic", "partition", "topic_id", "previous_topic_id", "commit_timestamp"),
    *("previous_commit_timestamp", "origin", "group_members"),
)
"""What a step back is explained by."""

ELECTION_WITHIN: Final = pl.duration(minutes=1)
"""How long before the commit that is gone back from an unclean election may have been: consumers
commit the position they had in the lost line before they learn of it."""


def origin(*, is_certain: pl.Expr) -> pl.Expr:
    """Return who made a commit.

    Args:
        is_certain: Whether the group's records up to the commit are all there, or some is.
    """
    outside = pl.col("producer_id").is_null()
    filled = pl.col("group_members") > 0
    return (
        pl.when(outside & (pl.col("member_id").is_not_null() | filled))
        .then(pl.lit(MEMBER))
        .when(~filled & is_certain)
        .then(pl.lit(ADMIN_OR_SIMPLE))
        .otherwise(pl.lit(UNKNOWN))
    )


def causes_of_steps_back(
    back: pl.DataFrame, births: pl.DataFrame, losses: pl.DataFrame
) -> pl.DataFrame:
    """Return why offsets went back.

    Args:
        back: `row` and `OF_STEPS`.
        births: `topic` and `born_at`: when topics of that name were created.
        losses: `topic`, `partition` and `elected_at`: when elections may have cost records.

    Returns:
        `row`, `cause` and `confidence`.
    """
    since, until = pl.col("previous_commit_timestamp"), pl.col("commit_timestamp")
    born_at, elected_at = pl.col("born_at"), pl.col("elected_at")
    born = back.join(births, on="topic").filter((born_at > since) & (born_at <= until))
    elected = back.join(losses, on=["topic", "partition"]).filter(
        (elected_at > since - ELECTION_WITHIN) & (elected_at <= until)
    )
    by_member = pl.col("origin") == MEMBER
    is_born, is_elected = (pl.col("row").is_in(each["row"].implode()) for each in (born, elected))
    why = (
        pl.when(pl.col("topic_id") != pl.col("previous_topic_id"))
        .then(_cause(TOPIC_RECREATED, HIGH))
        .when(is_born)
        .then(_cause(TOPIC_RECREATED, MEDIUM))
        .when(by_member & is_elected)
        .then(_cause(LOST_BY_ELECTION, MEDIUM))
        .when(by_member & (pl.col("group_members") == 1))
        .then(_cause(REWOUND_BY_MEMBER, HIGH))
        .when(by_member)
        .then(_cause(REWOUND_BY_MEMBER, MEDIUM))
        .when(pl.col("origin") == ADMIN_OR_SIMPLE)
        .then(_cause(COMMITTED_WHILE_EMPTY, HIGH))
        .otherwise(_cause(UNKNOWN, LOW))
    )
    return back.select("row", why.alias("why")).unnest("why")


def _cause(cause: str, confidence: str) -> pl.Expr:
    return pl.struct(pl.lit(cause).alias("cause"), pl.lit(confidence).alias("confidence"))
