"""Every tombstone of an offset: what it removed, and what happened in the log around it.

What one act of the coordinator wrote about one group carries one time; records of message format 0
carry none, so there every tombstone stands for itself, between the times that commits near it name.

Takes frames of polars of whole groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.offsets.commit_rows import GROUP, KEY
from analytics.replay.offsets.effective_commits import COMMITTED, REMOVED
from analytics.replay.spans.conditions import BY_NUMBERS, with_condition
from analytics.replay.spans.group_spans import OTHER_PROTOCOL, SUBSCRIBED, UNPARSEABLE
from schemas import ZERO_UUID

ACT: Final = (*GROUP_KEY, "act")
HEEDED: Final = (SUBSCRIBED, UNPARSEABLE, OTHER_PROTOCOL)
"""What keeps offsets since 2.4."""

LATE_COMMITS_WITHIN: Final = pl.duration(seconds=5)
"""How long after a topic's deletion a commit may still be one that its tombstones remove."""

_PLACE: Final = ["coordinator_partition", "position"]
SAID_TIMES: Final = pl.Schema(
    {"coordinator_partition": pl.Int32(), "position": pl.Int64(), "said_ms": pl.Int64()}
)


def removed_offsets(
    tombstones: pl.DataFrame,
    events: pl.DataFrame,
    pending: pl.DataFrame,
    groups: pl.DataFrame,
    protections: pl.DataFrame,
    protects: Sequence[str] = HEEDED,
) -> pl.DataFrame:
    """Return every offset tombstone with what is known around it.

    Args:
        tombstones: The tombstones among `offset_events`, with all columns.
        events: `offset_events`, of whole partitions; of each at least what changed which offset.
        pending: `pending_spans`.
        groups: `group_spans`, by numbers.
        protections: `protection_spans`, by numbers.
        protects: Which reasons of `protections` the release heeds, what goes before first.

    Returns:
        Of each tombstone the columns of `offset_events` and `with_condition`; `act` (what tells
        one act of the coordinator about a group from the next), `removed_pending` (boolean: it
        removed commits of open transactions), `repeats` (boolean: an earlier tombstone of the same
        act removed the same offset), `group_ended` (boolean: the group's own tombstone belongs to
        the act), `offsets_left` (bigint: what the group had in force after the act), and
        `not_before_ms` and `not_after_ms` (bigint: between these it was written; null where nothing
        shows one of them).
    """
    placed = with_condition(
        _with_acts(tombstones, events), groups, protections, protects, BY_NUMBERS
    )
    told = _with_group_end(_with_pending(placed, pending), groups, GROUP)
    return with_bounds(told, said_times(events, timeless_partitions(told)))


def removed_of_groups(
    events: pl.DataFrame, pending: pl.DataFrame, groups: pl.DataFrame, protections: pl.DataFrame
) -> pl.DataFrame:
    """Return the same of whole groups, whose spans are by names, but what `with_bounds` adds."""
    gone = events.filter(pl.col("event") == REMOVED)
    placed = with_condition(_with_acts(gone, events), groups, protections, HEEDED)
    return _with_group_end(_with_pending(placed, pending), groups, *GROUP_KEY)


def _with_acts(tombstones: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    told = _with_offsets_left(_acts(tombstones), events)
    return told.with_columns(pl.col("position").alias("place"))


def timeless_partitions(tombstones: pl.DataFrame) -> list[int]:
    """Return the coordinators' partitions with tombstones that carry no time."""
    timeless = tombstones.filter(pl.col("at").is_null())["coordinator_partition"]
    found: list[int] = timeless.unique().sort().to_list()
    return found


def said_times(events: pl.DataFrame, partitions: Sequence[int]) -> pl.DataFrame:
    """Return when something happened in some partitions, as far as it says: `SAID_TIMES`."""
    own = pl.col("at").dt.epoch("ms")
    said = pl.coalesce(own, pl.when(pl.col("commit_ms") > 0).then("commit_ms"))
    here = events.filter(pl.col("coordinator_partition").is_in(partitions))
    return here.select(*_PLACE, said.alias("said_ms"))


def with_bounds(tombstones: pl.DataFrame, times: pl.DataFrame) -> pl.DataFrame:
    """Bound the time of tombstones that carry none by what commits around them say.

    Args:
        tombstones: Of `removed_of_groups`.
        times: Of `said_times`: of all groups of the partitions.
    """
    own, home = pl.col("at").dt.epoch("ms"), "coordinator_partition"
    bounds = (
        times.group_by(_PLACE)
        .agg(pl.col("said_ms").max())
        .sort(_PLACE)
        .select(
            *_PLACE,
            pl.col("said_ms").cum_max().forward_fill().over(home).alias("after"),
            pl.col("said_ms").cum_min(reverse=True).backward_fill().over(home).alias("before"),
        )
    )
    return (
        tombstones.join(bounds, on=_PLACE, how="left")
        .with_columns(
            pl.coalesce(own, "after").alias("not_before_ms"),
            pl.coalesce(own, "before").alias("not_after_ms"),
        )
        .drop("after", "before")
    )


PURGES: Final = pl.Schema(
    {
        "coordinator_partition": pl.Int32(),
        "topic": pl.String(),
        "deleted_id": pl.String(),
        "purged_at": pl.Int64(),
    }
)
_PURGE: Final = PURGES.names()[:3]


def topic_purges(tombstones: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Return where each coordinator began to remove the offsets of a deleted topic: `PURGES`.

    Args:
        tombstones: Of `removed_offsets`, of any groups.
        topics: The state table `topics`.
    """
    return purges_in_all([_with_deletions(tombstones, topics).rename({"position": "purged_at"})])


def purges_in_all(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return `topic_purges` of all groups, of what it is of some."""
    every = pl.concat(each.select(PURGES.names()).cast(PURGES) for each in parts)
    return every.group_by(_PURGE).agg(pl.col("purged_at").min())


def _with_deletions(tombstones: pl.DataFrame, topics: pl.DataFrame) -> pl.DataFrame:
    """Return each tombstone with each deletion of a topic of that name that was before it."""
    deleted = topics.filter(pl.col("deleted_at").is_not_null()).select(
        "topic", pl.col("topic_id").alias("deleted_id"), "deleted_at"
    )
    removed = ("topic", "at", "removed_topic_id", "removed_at", "removed_position")
    # The metadata log and the coordinator's log are stamped by different threads.
    is_before = pl.col("deleted_at") <= pl.col("at") + pl.duration(seconds=1)
    return tombstones.select(*_PLACE, *removed).join(deleted, on="topic").filter(is_before)


def with_topic_deletion(
    tombstones: pl.DataFrame, topics: pl.DataFrame, purges: pl.DataFrame
) -> pl.DataFrame:
    """Add `topic_deleted_at`: the latest deletion of the topic's life that the offset belonged to.

    And `topic_was_deleted`: whether a topic of that name was, be it another life of it.

    A coordinator removes the offsets of a deleted topic once, all that its partition holds then
    (``onPartitionsDeleted``): what is committed behind those tombstones is for the next life.

    Args:
        tombstones: Of `removed_offsets`.
        topics: The state table `topics`.
        purges: Of `topic_purges`, of all groups of the partitions.
    """
    named, at = pl.col("removed_topic_id"), pl.col("deleted_at")
    # The commit is before its tombstone in the log: a later time of it is not believed.
    since = pl.min_horizontal("removed_at", pl.when(pl.col("removed_at").is_not_null()).then("at"))
    is_named = named.is_not_null() & (named != ZERO_UUID)
    # A commit without an id that came after the deletion is for the topic's next life.
    is_later = (since > at + LATE_COMMITS_WITHIN) | (
        (since > at) & (pl.col("removed_position") > pl.col("purged_at"))
    )
    is_its_life = (
        pl.when(is_named)
        .then(named == pl.col("deleted_id"))
        .otherwise(~is_later.fill_null(value=False))
    )
    found = (
        _with_deletions(tombstones, topics)
        .join(purges, on=_PURGE, how="left", nulls_equal=True)
        .filter(is_its_life)
        .group_by(_PLACE)
        .agg(at.max().alias("topic_deleted_at"))
    )
    names = topics.filter(pl.col("deleted_at").is_not_null())["topic"].unique().implode()
    return tombstones.join(found, on=_PLACE, how="left").with_columns(
        pl.col("topic").is_in(names).fill_null(value=False).alias("topic_was_deleted")
    )


def _acts(tombstones: pl.DataFrame) -> pl.DataFrame:
    # Without a time: tombstones of a group that follow each other without a gap.
    ordered = tombstones.sort("position")
    run = pl.int_range(pl.len(), dtype=pl.Int64).over(list(GROUP_KEY)) - pl.col("position") - 1
    acts = ordered.with_columns(pl.coalesce(pl.col("at").dt.epoch("us"), run).alias("act"))
    nth = pl.int_range(pl.len()).over([*ACT, "topic", "partition"])
    return acts.with_columns((nth > 0).alias("repeats"))


def _with_offsets_left(tombstones: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Count, per act, the offsets of the group that it left in force."""
    had = pl.col("removed_position").is_not_null()
    change = (
        pl.when((pl.col("event") == COMMITTED) & ~had)
        .then(1)
        .when((pl.col("event") == REMOVED) & had)
        .then(-1)
        .otherwise(0)
    )
    in_force = pl.col("change").cum_sum().over(GROUP)
    is_theirs = pl.col(GROUP).is_in(tombstones[GROUP].unique().implode())
    counted = (
        events.filter(is_theirs)
        .select(GROUP, "position", "topic", "partition", "event", change.alias("change"))
        .sort("position", "topic", "partition")
        .select(GROUP, "position", "event", in_force.alias("in_force"))
        .filter(pl.col("event") == REMOVED)
    )
    left = (
        tombstones.select(*ACT, GROUP, "position")
        .join(counted.drop("event"), on=[GROUP, "position"])
        .sort("position")
        .group_by(*ACT)
        .agg(pl.col("in_force").last().cast(pl.Int64).alias("offsets_left"))
    )
    return tombstones.join(left, on=list(ACT), how="left")


def _with_pending(tombstones: pl.DataFrame, pending: pl.DataFrame) -> pl.DataFrame:
    """Say whether a tombstone removed commits of open transactions."""
    ended = (
        pending.filter(pl.col("outcome") == REMOVED)
        .select(*KEY, pl.col("until_position").alias("position"))
        .unique()
        .with_columns(pl.lit(value=True).alias("removed_pending"))
    )
    return _with_flag(tombstones, ended, [*KEY, "position"], "removed_pending")


def _with_group_end(tombstones: pl.DataFrame, groups: pl.DataFrame, *group: str) -> pl.DataFrame:
    """Say whether the group's own tombstone was written at the same time."""
    ends = (
        groups.filter(pl.col("family").is_null() & pl.col("from_at").is_not_null())
        .select(*group, pl.col("from_at").dt.epoch("us").alias("act"))
        .unique()
        .with_columns(pl.lit(value=True).alias("group_ended"))
    )
    return _with_flag(tombstones, ends, [*group, "act"], "group_ended")


def _with_flag(rows: pl.DataFrame, flagged: pl.DataFrame, on: list[str], flag: str) -> pl.DataFrame:
    return rows.join(flagged, on=on, how="left").with_columns(pl.col(flag).fill_null(value=False))
