"""What all questions about expiry are answered from, gathered once from the decoded tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.history.group_spans import group_spans, protection_spans
from analytics.replay.history.offset_lives import (
    KEY,
    REMOVED,
    offset_events,
    pending_spans,
)
from analytics.replay.history.removed_offsets import HEEDED
from analytics.replay.log.as_of import Decoded
from analytics.replay.log.rules import ReplayRules
from schemas.expiration_rules import ExpirationRules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class OffsetLog:
    """Frames at an instant, and the rules.

    Attributes:
        decoded: The decoded tables, cut at the instant.
        replay: How the release replays.
        era: By which offsets expire.
        before: The era of what a release before an upgrade wrote; None where all is of one era.
        pending: `pending_spans`.
        groups: `group_spans`.
        protections: `protection_spans`.
    """

    decoded: Decoded
    replay: ReplayRules
    era: ExpirationRules
    before: ExpirationRules | None
    pending: DataFrame
    groups: DataFrame
    protections: DataFrame

    @property
    def protects(self) -> tuple[str, ...]:
        """What keeps an offset in this era, what goes before first; else what does since 2.4."""
        return self.era.heeds or HEEDED

    def events(self) -> DataFrame:
        """Return `offset_events`: as many rows as there are commits, computed at each use."""
        return offset_events(self.decoded, self.replay)


def offset_log(
    decoded: Decoded,
    replay: ReplayRules,
    era: ExpirationRules,
    before: ExpirationRules | None = None,
) -> OffsetLog:
    """Gather what the questions share; groups' records are few and computed here and now."""
    commits = decoded["offset_commit"] if replay.groups_end_by_tombstones else None
    groups = group_spans(decoded, commits).localCheckpoint()
    protections = protection_spans(decoded, groups).localCheckpoint()
    pending = pending_spans(decoded, replay).localCheckpoint()
    return OffsetLog(decoded, replay, era, before, pending, groups, protections)


def with_transactions(places: DataFrame, pending: DataFrame) -> DataFrame:
    """Add what transactions had pending on each offset at a place in the log.

    Args:
        places: `KEY` and `place`.
        pending: `pending_spans`.

    Returns:
        The places with `blocking_producers` (array<bigint> of open transactions, null where there
        is none) and `blocked_until` (timestamp: when the last one before ended without taking
        effect; null where none did).
    """
    is_over = F.col("until_position") < F.col("place")
    is_open = F.col("until_position").isNull() | (F.col("until_position") >= F.col("place"))
    found = (
        places.select(*KEY, "place")
        .distinct()
        .join(pending, list(KEY))
        .where(F.col("record_offset") < F.col("place"))
        .groupBy(*KEY, "place")
        .agg(
            F.sort_array(F.collect_set(F.when(is_open, F.col("producer_id")))).alias("open"),
            F.max(F.when(is_over & (F.col("outcome") != REMOVED), F.col("until_at"))).alias(
                "blocked_until"
            ),
        )
        .withColumn("blocking_producers", F.when(F.size("open") > 0, F.col("open")))
        .drop("open")
    )
    return places.join(found, [*KEY, "place"], "left")


def modern_since(decoded: Decoded) -> DataFrame:
    """Return one row: `modern_ms`, when a record first shows 2.1 or newer; null where none does.

    Before 2.1 every commit was stored in version 1 or 0 and with an expire time, and every group
    in version 1 or 0.
    """
    value = F.col("value")
    commits = decoded["offset_commit"].where(
        (F.col("value_version") > 1)
        | ((F.col("value_version") == 1) & (value["expire_timestamp"] == -1))
    )
    groups = decoded["group_metadata"].where(F.col("value_version") > 1)
    told = commits.select(_time(value["commit_timestamp"])).unionByName(
        groups.select(_time(value["current_state_timestamp"]))
    )
    return told.agg(F.min("said_ms").alias("modern_ms"))


def _time(otherwise: Column) -> Column:
    return F.coalesce(F.unix_millis("timestamp"), F.when(otherwise > 0, otherwise)).alias("said_ms")
