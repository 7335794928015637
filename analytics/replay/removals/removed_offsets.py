"""Every tombstone of an offset: what it removed, and on which conditions that was in force."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import polars as pl

from analytics.contracts import AFTER_ALL
from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    GROUP_KEY,
    SHARE,
    STREAMS,
)
from analytics.replay.metadata_log import Beginning
from analytics.replay.offsets.commit_rows import GROUP, KEY, TOPIC
from analytics.replay.offsets.effective_commits import COMMITTED, REMOVED
from analytics.replay.removals.group_spans import OTHER_PROTOCOL, SUBSCRIBED, UNPARSEABLE
from analytics.replay.removals.time_bounds import (
    said_times,
    time_bounds,
    timeless_partitions,
    with_bounds,
)
from analytics.replay.topics import METADATA_LOG, PARTITION_METADATA, SNAPSHOT
from schemas import ZERO_UUID

# Under which condition a committed offset was at a place in the log: what its expiry rests on.
#
# Takes and gives frames of polars, of whole groups of any number of partitions.

SIMPLE, EMPTY, UNSUBSCRIBED = "simple_group", "empty_group", "unsubscribed_topic"
OTHER_PROTOCOL_TYPE = "other_protocol_type"
CONSUMER_GROUP, STREAMS_GROUP, SHARE_GROUP = "consumer_group", "streams_group", "share_group"
AT_THE_END: Final = AFTER_ALL
"""The place behind the last record."""


BY_NAMES: Final = (GROUP_KEY, (*GROUP_KEY, "topic"))
BY_NUMBERS: Final = ((GROUP,), (TOPIC,))
"""What tells groups apart, and what tells topics of groups apart."""


def with_condition(
    places: pl.DataFrame,
    groups: pl.DataFrame,
    protections: pl.DataFrame,
    protects: Sequence[str],
    by: tuple[Sequence[str], Sequence[str]] = BY_NAMES,
) -> pl.DataFrame:
    """Add what the group of each offset was at a place in the log.

    Args:
        places: What `by` names and `place` (bigint): records below it count.
        groups: `group_spans`.
        protections: `protection_spans`.
        protects: Which reasons of theirs count, what goes before first: not all releases heed all
            of them.
        by: `BY_NAMES`, or `BY_NUMBERS` where places, groups and protections have these.

    Returns:
        The places with `condition` (simple_group, empty_group, unsubscribed_topic: a classic group
        of consumers with members; other_protocol_type, consumer_group, streams_group,
        share_group), `state_ms` (bigint: when a classic group took its state; null where not
        known), `member_count` (of classic groups), `group_since` (timestamp: since when the group
        was what it was), `group_from` (bigint: offset of the record that made it so; null where
        none did), `skips_generation` (boolean: whether a generation without a record followed),
        `kept_by` (what keeps the offset, null where nothing does) and `kept_until`
        (timestamp: when what kept it before ended, null where nothing did).
    """
    is_group = pl.col("family").is_not_null()
    of_group, of_topic = by
    spans = groups.select(
        *of_group,
        pl.col("from_offset").alias("begins"),
        condition_of().alias("condition"),
        *(
            pl.when(is_group).then(name).alias(as_)
            for name, as_ in {
                "state_ms": "state_ms",
                "member_count": "member_count",
                "from_at": "group_since",
                "from_offset": "group_from",
                "skips_generation": "skips_generation",
            }.items()
        ),
    )
    found = _last_before(places, spans, of_group).with_columns(
        pl.col("condition").fill_null(SIMPLE)
    )
    for why in protects:
        told = protections.filter(pl.col("why") == why)
        found = _with_protection(found, told, of_topic if why == SUBSCRIBED else of_group, why)
    kept_by = pl.coalesce(pl.lit(None, pl.String), *(f"kept_by_{why}" for why in protects))
    return found.with_columns(
        kept_by.alias("kept_by"),
        pl.max_horizontal(f"until_{why}" for why in protects).alias("kept_until"),
    ).drop(f"{name}_{why}" for why in protects for name in ("kept_by", "until"))


def condition_of() -> pl.Expr:
    """Return the condition of a row of `group_spans`, null where there is no group."""
    family, is_empty = pl.col("family"), pl.col("member_count") == 0
    protocol = pl.col("protocol_type")
    classic = (
        pl.when(is_empty & protocol.is_null())
        .then(pl.lit(SIMPLE))
        .when(is_empty)
        .then(pl.lit(EMPTY))
        .when(protocol == CONSUMER_PROTOCOL)
        .then(pl.lit(UNSUBSCRIBED))
        .otherwise(pl.lit(OTHER_PROTOCOL_TYPE))
    )
    return (
        pl.when(family == CLASSIC)
        .then(classic)
        .when(family == CONSUMER)
        .then(pl.lit(CONSUMER_GROUP))
        .when(family == STREAMS)
        .then(pl.lit(STREAMS_GROUP))
        .when(family == SHARE)
        .then(pl.lit(SHARE_GROUP))
    )


def _last_before(places: pl.DataFrame, spans: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Add the last span of the key that `begins` before a place."""
    return (
        places.sort("place")
        .join_asof(
            spans.sort("begins"),
            left_on="place",
            right_on="begins",
            by=list(key),
            allow_exact_matches=False,
            coalesce=False,
            check_sortedness=False,
        )
        .drop("begins")
    )


def _with_protection(
    places: pl.DataFrame, spans: pl.DataFrame, key: Sequence[str], why: str
) -> pl.DataFrame:
    """Add whether one reason keeps an offset at its place, and until when it did before."""
    ordered = spans.sort(*key, "from_offset").select(
        *key,
        pl.col("from_offset").alias("begins"),
        pl.col("to_offset").alias("ends"),
        pl.col("to_at").alias("ends_at"),
        pl.col("to_at").cum_max().shift(1).over(list(key)).alias("ended_before"),
    )
    covers = pl.col("place") <= pl.col("ends")
    return (
        _last_before(places, ordered, key)
        .with_columns(
            pl.when(covers).then(pl.lit(why)).alias(f"kept_by_{why}"),
            pl.when(covers)
            .then("ended_before")
            .otherwise(pl.max_horizontal("ended_before", "ends_at"))
            .alias(f"until_{why}"),
        )
        .drop("ends", "ends_at", "ended_before")
    )


# Every tombstone of an offset: what it removed, and what happened in the log around it.
#
# What one act of the coordinator wrote about one group carries one time; records of message
# format 0 carry none, so there every tombstone stands for itself, between the times that commits
# near it name.
#
# Takes frames of polars of whole groups.

ACT: Final = (*GROUP_KEY, "act")
HEEDED: Final = (SUBSCRIBED, UNPARSEABLE, OTHER_PROTOCOL)
"""What keeps offsets since 2.4."""

LATE_COMMITS_WITHIN: Final = pl.duration(seconds=5)
"""How long after a topic's deletion a commit may still be one that its tombstones remove."""

_PLACE: Final = ["coordinator_partition", "position"]


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
    return with_bounds(told, time_bounds([said_times(events, timeless_partitions(told))]))


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


# Whether a topic was gone when its offsets went, of which the metadata log may not tell.


def with_topic_absence(
    removed: pl.DataFrame,
    topics: pl.DataFrame,
    log: Beginning,
    present: Collection[str] | None = None,
) -> pl.DataFrame:
    """Add whether a topic is gone for which no metadata log says when it went.

    Snapshots cut the metadata log: of what was removed before its first record it only tells which
    topics outlived that, and a topic of that name may be another one by then.

    Args:
        removed: Of `removed_offsets`.
        topics: The state table, at the same instant.
        log: How the metadata log begins.
        present: The topics of the data directories in the dump; None where others may be there too.

    Returns:
        The rows with `topic_absent`: false where a metadata log tells of that time or the topic
        under that id is there, null where nothing says. A directory of that name may be of a topic
        that was created again.
    """
    is_there = pl.col("source").is_in([PARTITION_METADATA, SNAPSHOT])
    there = _ids(topics.filter(is_there), "ids_there", present or ())
    at_its_start = (pl.col("source") == METADATA_LOG) & pl.col("created_at").is_null()
    outliving = _ids(topics.filter(at_its_start), "ids")
    nothing = pl.lit(None, pl.Boolean)
    is_absent = nothing if present is None else pl.col("ids_there").is_null()
    tells_then = pl.lit(value=log.has_log)
    if log.tells_from is not None:
        tells_then &= pl.col("at") >= pl.lit(log.tells_from)
    named = pl.col("removed_topic_id")
    named = pl.when(named != ZERO_UUID).then(named)
    is_another = pl.when(named.is_not_null() & (pl.col("ids_there").list.len() > 0)).then(
        ~pl.col("ids_there").list.contains(named)
    )
    without_log = pl.when(pl.col("ids_there").is_not_null()).then(is_another).otherwise(is_absent)
    # Whether it was gone when the log began; null where names hide it.
    went_before = (
        pl.when(pl.col("ids").is_null())
        .then(pl.lit(value=True))
        .when(named.is_not_null())
        .then(~pl.col("ids").list.contains(named))
    )
    told = (
        pl.when(tells_then.fill_null(value=False))
        .then(pl.lit(value=False))
        .otherwise(went_before if log.has_log else without_log)
    )
    return (
        removed.join(there, on="topic", how="left")
        .join(outliving, on="topic", how="left")
        .with_columns(told.alias("topic_absent"))
        .drop("ids_there", "ids")
    )


def _ids(topics: pl.DataFrame, name: str, unnamed: Collection[str] = ()) -> pl.DataFrame:
    """Return by topic the ids that are known of it, none perhaps."""
    bare = pl.DataFrame(
        {"topic": sorted(unnamed), "topic_id": None},
        schema={"topic": pl.String, "topic_id": pl.String},
    )
    return (
        pl.concat([topics.select("topic", "topic_id"), bare])
        .group_by("topic")
        .agg(pl.col("topic_id").drop_nulls().unique().alias(name))
    )
