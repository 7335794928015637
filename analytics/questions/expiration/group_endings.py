"""The table `group_endings`: what became of groups whose offsets have all expired.

KIP-211, "Transitioning to Empty State": all offsets of the group are removed and the group becomes
Dead; brokers then write its tombstone, in what shipped with those of its offsets
(``GroupCoordinatorService.cleanupGroupMetadata``). A group with members, or with a commit pending
in a transaction, stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from analytics.questions.expiration.retention_settings import ASSUMED
from analytics.replay.groups.group_records import KINDS
from analytics.replay.log.spans import TIME
from analytics.replay.removals.removal_causes import EXPIRATION, UNKNOWN
from analytics.tables.parted_table import Order
from schemas.expiration_rules import AuditRules, group_endings, tools_by_pattern

if TYPE_CHECKING:
    from analytics.questions.expiration.retention_settings import Retention

CLASSIC: Final = "classic"
STILL_THERE, CANNOT_TELL, BY_TRANSACTION, BY_MEMBERS, UNDER_WAY, GONE, DEAD = group_endings()
NO_TOMBSTONE = (
    "compaction may have taken its tombstone, or none was written: releases before 4.0 write none "
    "for a group that never had a generation"
)
NOT_SINCE = "no record shows since when the group has no members"
NOT_TOLD = "whether {} more of its offsets expired cannot be told"
NO_INTERVAL = "how often the coordinator cleans up is assumed"

_HOME: Final = "coordinator_partition"
_REMOVALS: Final = ("group_id", "cause", "removed_at", _HOME, "record_offset")
OF_GROUPS: Final = (
    *("group_id", "group_type", "member_count", "state_timestamp", "complete", "missing"),
)
"""What is read of the state table `groups`."""
_WITH_TOMBSTONES: Final = (
    *("group_metadata", "consumer_group_metadata", "streams_group_metadata"),
)
TOMBSTONES: Final = pl.Schema(
    {
        "group_id": pl.String(),
        _HOME: pl.Int32(),
        "tombstone_offset": pl.Int64(),
        "tombstone_at": TIME,
    }
)


class GroupsAtEnd(NamedTuple):
    """What is known of some whole groups at the instant.

    Attributes:
        with_offsets: `group_id` of those that have committed offsets.
        pending: `group_id` of those that have offsets pending in a transaction.
        groups: `OF_GROUPS` of those that are there.
        tombstones: `TOMBSTONES` of groups.
    """

    with_offsets: pl.DataFrame
    pending: pl.DataFrame
    groups: pl.DataFrame
    tombstones: pl.DataFrame


@dataclass(frozen=True)
class Cleanups:
    """How often coordinators clean up.

    Attributes:
        interval_ms: The check interval.
        is_assumed: Whether that is Kafka's default, for want of settings.
        rules: What is on time.
        now_ms: The instant, in epoch milliseconds.
    """

    interval_ms: int
    is_assumed: bool
    rules: AuditRules
    now_ms: int

    @classmethod
    def of(cls, retention: Retention, rules: AuditRules, now_ms: int) -> Cleanups:
        """Return the longest interval: where coordinators differ, none is late before that."""
        every = (retention.otherwise, *retention.of_partitions.values())
        longest = max(each.check_interval_ms for each in every)
        return cls(longest, retention.otherwise.source == ASSUMED, rules, now_ms)

    @property
    def last_ms(self) -> int:
        """From when on a cleanup may not have been yet, in epoch milliseconds."""
        slack = max(round(self.interval_ms * self.rules.slack_share), self.rules.slack_least_ms)
        return self.now_ms - self.interval_ms - slack


def worst_first(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of `group_endings`: the worst verdict first, then by group."""
    rank = {word: place for place, word in enumerate(group_endings())}
    by_rank = pl.col("verdict").replace_strict(rank, return_dtype=pl.Int8)
    return rows.sort(by_rank, "group_id", maintain_order=True)


WORST_FIRST: Final = Order(("verdict", "group_id"), worst_first)


def endings(removals: pl.DataFrame, at_end: GroupsAtEnd, cleanups: Cleanups) -> pl.DataFrame:
    """Return the table of some whole groups, the worst verdict first.

    Args:
        removals: Theirs, of `offset_removals`.
        at_end: Theirs; of more groups, too.
        cleanups: How often coordinators clean up.
    """
    # Of several lives the last one counts: who committed again is not at its end.
    expired = _expired(removals).join(at_end.with_offsets, on="group_id", how="anti")
    is_there, is_pending = (pl.lit(value=True).alias(name) for name in ("is_there", "is_pending"))
    judged = (
        expired.join(at_end.groups.select(*OF_GROUPS, is_there), on="group_id", how="left")
        .join(_pending(at_end).select("group_id", is_pending), on="group_id", how="left")
        .join(_first_after(at_end.tombstones, expired), on="group_id", how="left")
        .with_columns(_judged(cleanups).alias("judged"), _named_by().alias("named_by"))
        .unnest("judged")
    )
    untold = pl.when(pl.col("untold") > 0).then(pl.format(NOT_TOLD, "untold"))
    return worst_first(judged.with_columns(pl.coalesce("reason", untold).alias("reason")))


def _expired(removals: pl.DataFrame) -> pl.DataFrame:
    """Return of each group whose last removal was an expiration that one, and how many expired.

    And of how many more that is not known: `untold`.
    """
    causes = {"offsets": EXPIRATION, "untold": UNKNOWN}
    last = (
        removals.select(_REMOVALS)
        .sort("group_id", "record_offset", maintain_order=True)
        .group_by("group_id", maintain_order=True)
        .agg(
            pl.all().last(),
            *(
                (pl.col("cause") == cause).sum().cast(pl.Int64).alias(name)
                for name, cause in causes.items()
            ),
        )
    )
    return last.filter(pl.col("cause") == EXPIRATION)


def _pending(at_end: GroupsAtEnd) -> pl.DataFrame:
    return at_end.pending.unique("group_id")


def _first_after(tombstones: pl.DataFrame, expired: pl.DataFrame) -> pl.DataFrame:
    """Return the first tombstone of a group behind the removal, in the same partition."""
    return (
        tombstones.join(expired.select("group_id", _HOME, "record_offset"), on=["group_id", _HOME])
        .filter(pl.col("tombstone_offset") > pl.col("record_offset"))
        .sort("tombstone_offset")
        .unique("group_id", keep="first", maintain_order=True)
        .select("group_id", "tombstone_offset", "tombstone_at")
    )


def _judged(cleanups: Cleanups) -> pl.Expr:
    """Return `verdict` and `reason` of a group."""
    removed_ms, since_ms = (
        pl.col(each).dt.epoch("ms") for each in ("removed_at", "state_timestamp")
    )
    is_whole = pl.col("complete").fill_null(value=False)
    is_timed = (pl.col("group_type") == CLASSIC) & removed_ms.is_not_null() & since_ms.is_not_null()
    may_wait = pl.max_horizontal(removed_ms, since_ms) >= cleanups.last_ms
    cases = [
        (pl.col("tombstone_offset").is_not_null(), DEAD, None),
        (pl.col("is_there").is_null(), GONE, pl.lit(NO_TOMBSTONE)),
        (~is_whole, CANNOT_TELL, pl.col("missing")),
        (pl.col("member_count").fill_null(0) != 0, BY_MEMBERS, None),
        (pl.col("is_pending").fill_null(value=False), BY_TRANSACTION, None),
        # A group without members and offsets that no tombstone ended.
        (~is_timed.fill_null(value=False), CANNOT_TELL, pl.lit(NOT_SINCE)),
        (may_wait, UNDER_WAY, None),
    ]
    is_late = (CANNOT_TELL, pl.lit(NO_INTERVAL)) if cleanups.is_assumed else (STILL_THERE, None)
    judged = _verdict(*is_late)
    for is_so, verdict, reason in reversed(cases):
        judged = pl.when(is_so).then(_verdict(verdict, reason)).otherwise(judged)
    return judged


def _verdict(verdict: str, reason: pl.Expr | None) -> pl.Expr:
    why = pl.lit(None, pl.String) if reason is None else reason
    return pl.struct(pl.lit(verdict).alias("verdict"), why.alias("reason"))


def _named_by() -> pl.Expr:
    """Return the tool that gave a group its name; null where none is known to."""
    named = [
        pl.when(pl.col("group_id").str.contains(f"^(?:{pattern})$")).then(pl.lit(tool))
        for pattern, tool in tools_by_pattern()
    ]
    return pl.coalesce(*named, pl.lit(None, pl.String))


def group_tombstones(decoded: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the tombstones of groups among decoded records: `TOMBSTONES`.

    Args:
        decoded: By name tables with `partition`, `offset`, `timestamp`, `is_tombstone` and `key`.
    """
    return pl.concat(
        decoded[name]
        .filter("is_tombstone")
        .select(
            pl.col("key").struct.field(KINDS[name].group_field).alias("group_id"),
            pl.col("partition").alias(_HOME),
            pl.col("offset").alias("tombstone_offset"),
            pl.col("timestamp").alias("tombstone_at"),
        )
        .cast(TOMBSTONES)
        for name in _WITH_TOMBSTONES
    )


def groups_at_end(parts: Sequence[GroupsAtEnd]) -> GroupsAtEnd:
    """Return what is known of some groups, of what it is of parts that may share a group."""
    every = GroupsAtEnd(*(pl.concat(each) for each in zip(*parts, strict=True)))
    return every._replace(groups=every.groups.unique("group_id", keep="first"))
