"""Events that befell what a group depends on: coordinator, topics, settings, committed offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from analytics.contracts import POSITION, word
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.group_life_events import (
    EVENTS,
    event_rows,
    first_word,
    with_word,
    words,
)
from analytics.replay.log.spans import at, in_order, last_before
from analytics.replay.metadata_log import OTHER, RESOURCES, harmless_name
from analytics.replay.offsets.effective_commits import ABORT, COMMIT
from analytics.replay.offsets.offset_history import (
    DELETE,
    LOST_BY_ELECTION,
    MEMBER,
    TRANSACTION_ABORT,
    UNKNOWN,
)
from analytics.replay.share_partitions import KEY, SNAPSHOT, TOMBSTONE, UPDATE
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replay.metadata_log import MetadataLog

# Events that befell what a group depends on: its coordinator, its topics, its settings.

# Events of share partitions: initialised, altered, snapshots, records archived, deleted.


def share_events(epochs: pl.DataFrame, archived: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return share_initialized, _offset_altered, _snapshot, _archived and _deleted.

    Args:
        epochs: The table `share_partition_epochs`.
        archived: Updates that archive records: `KEY`, `record_offset`, `at`, where the record lies,
            and `archived`: the `first_offset` and `last_offset` of each range.
        names: Of topics: `topic_id` and `name`, each id once.
    """
    return pl.concat([_of_epochs(epochs), _archived(archived, names)])


def _of_epochs(epochs: pl.DataFrame) -> pl.DataFrame:
    told = in_order(epochs, KEY, "record_offset").with_columns(
        last_before(pl.col("kind") != UPDATE).alias("before")
    )
    kind = pl.col("kind")
    begins = pl.col("before").is_null() | (at("before", "kind") == TOMBSTONE)
    renewed = pl.col("state_epoch") > at("before", "state_epoch")
    event = first_word(
        {
            "share_deleted": kind == TOMBSTONE,
            "share_initialized": (kind == SNAPSHOT) & begins & (pl.col("snapshot_epoch") == 0),
            "share_offset_altered": (kind == SNAPSHOT) & renewed,
            "share_snapshot": kind == SNAPSHOT,
        }
    )
    detail = words(
        with_word("start offset ", pl.col("start_offset")),
        with_word("state epoch ", pl.col("state_epoch")),
        with_word("snapshot ", pl.col("snapshot_epoch")),
        pl.when("cold").then(pl.lit("idle")),
        between="; ",
    )
    # Times are in the records, not in the table: a snapshot says when it was written.
    rows = told.with_columns(
        event.alias("event"),
        _partition_name(),
        detail.alias("detail"),
        pl.col("coordinator_epoch").alias("leader_epoch"),
    )
    return event_rows(rows, SHARE_GROUP_STATE)


def _archived(archived: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    first, last = (
        pl.col("archived").list.eval(pl.element().struct.field(f"{each}_offset"))
        for each in ("first", "last")
    )
    count = last.list.sum() - first.list.sum() + first.list.len()
    detail = words(count, " records from ", first.list.min(), " to ", last.list.max())
    rows = archived.join(names, on="topic_id", how="left").with_columns(
        pl.lit("share_archived").alias("event"), detail.alias("detail")
    )
    named = rows.rename({"name": "topic"}).with_columns(_partition_name())
    return event_rows(named, SHARE_GROUP_STATE)


def _partition_name() -> pl.Expr:
    return words(pl.col("topic"), pl.col("partition"), between="-").alias("subject")


_PLACE = ("since", "metadata_offset", "position")
_HOME = "coordinator_partition"


@dataclass(frozen=True)
class DependencyRecords:
    """What the metadata log tells of what groups depend on.

    Attributes:
        changes: Of `topic_changes`.
        settings: Of `config_records`.
    """

    changes: pl.DataFrame
    settings: pl.DataFrame

    @property
    def is_told(self) -> pl.Expr:
        """Whether it tells of the `topic` of a row, or of its `group_id`."""
        named = self.settings["resource"]
        topics = pl.concat([self.changes["topic"], named]).unique()
        of_topic = pl.col("topic").is_in(topics.implode())
        return of_topic.fill_null(value=False) | pl.col("group_id").is_in(named.unique().implode())


def coordinator_events(uses: pl.DataFrame, coordinators: pl.DataFrame) -> pl.DataFrame:
    """Return coordinator_changed.

    Args:
        uses: `GROUP_KEY` and `seen_at`: offsets at which there is something of the group.
        coordinators: Of `coordinator_epochs`, with `led_before`.
    """
    led = (
        coordinators.filter(pl.col("topic") == CONSUMER_OFFSETS)
        .sort("partition", "leader_epoch")
        .filter(pl.int_range(pl.len()).over("partition") > 0)
        .rename({"partition": _HOME, "from_offset": "record_offset", "from_timestamp": "at"})
        .unnest("place")
    )
    if led.is_empty():
        return EVENTS.to_frame()
    of_homes = uses.filter(pl.col(_HOME).is_in(led[_HOME].unique().implode()))
    groups = of_homes.group_by(_HOME, "group_id").agg(pl.col("seen_at").min())
    rows = groups.join(led, on=_HOME).filter(pl.col("record_offset") > pl.col("seen_at"))
    detail = words(
        with_word("broker ", pl.col("leader")),
        pl.when(pl.col("led_before") == pl.col("leader"))
        .then(pl.lit("it led before, too"))
        .otherwise(with_word("before it broker ", pl.col("led_before"))),
        pl.when("unclean").then(pl.lit("unclean election")),
        between="; ",
    )
    told = rows.with_columns(
        pl.lit("coordinator_changed").alias("event"),
        with_word("leader epoch ", pl.col("leader_epoch")).alias("subject"),
        detail.alias("detail"),
    )
    return event_rows(told, CONSUMER_OFFSETS)


def topic_records(log: MetadataLog) -> pl.DataFrame:
    """Return what `topic_changes` takes of a metadata log."""
    records = (
        (log.logged("topic_record"), "topic_created"),
        (log.logged("remove_topic_record"), "topic_deleted"),
        (log.visible("partition_record"), None),
    )
    return pl.concat(
        frame.select(
            pl.col("value").struct.field("topic_id"),
            pl.lit(event, pl.String).alias("event"),
            *_PLACE,
        )
        for frame, event in records
    )


def config_records(log: MetadataLog) -> pl.DataFrame:
    """Return what `config_events` takes of a metadata log."""
    value = pl.col("value").struct
    return log.logged("config_record").select(
        value.field("resource_type"),
        value.field("resource_name").alias("resource"),
        value.field("name"),
        value.field("value"),
        *_PLACE,
    )


def topic_changes(records: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return what the metadata log tells of topics: created, deleted, grown.

    Args:
        records: Records of topics and partitions: `topic_id`, `event` (null for a partition),
            `since`, `metadata_offset` and `position`.
        names: `topic_id` and `topic`, of the table `topics`.

    Returns:
        `topic`, `topic_id`, `event`, `partitions` (after it; null where it is not about them),
        `since`, `metadata_offset`, `position`.
    """
    of_partition = pl.col("event").is_null()
    born = records.filter(of_partition).sort(
        "metadata_offset", nulls_last=False, maintain_order=True
    )
    grown = (
        born.group_by("topic_id", "since", maintain_order=True)
        .agg(
            pl.col("metadata_offset", "position")
            .filter(pl.col("metadata_offset").is_not_null())
            .first(),
            pl.len().cast(pl.Int64).alias("partitions"),
        )
        .sort("topic_id", "metadata_offset", nulls_last=False)
        .with_columns(
            pl.col("partitions").cum_sum().over("topic_id"),
            pl.int_range(pl.len()).over("topic_id").alias("nth"),
            pl.lit("topic_grown").alias("event"),
        )
        .filter(pl.col("nth") > 0)
        .drop("nth")
    )
    told = pl.concat([records.filter(~of_partition), grown], how="diagonal")
    placed = told.filter(pl.col("metadata_offset").is_not_null())
    return placed.join(names, on="topic_id")


def topic_events(uses: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """Return topic_created, topic_deleted and topic_grown.

    Args:
        uses: `group_id` and `topic`, each pair once: what groups commit for or are assigned; and
            `doubt`, why they may not.
        changes: Of `topic_changes`.
    """
    detail = words(
        with_word("id ", pl.col("topic_id")),
        with_word("", pl.col("partitions"), " partitions"),
        between="; ",
    )
    rows = uses.join(changes, on="topic").with_columns(
        pl.col("topic").alias("subject"), detail.alias("detail")
    )
    return _of_metadata(rows)


def config_events(uses: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """Return config_changed of groups and of the topics that they use.

    Args:
        uses: `group_id` and `topic` (null where only the group is known), and `doubt`.
        changes: Of config records: `resource_type` (as stored), `resource`, `name`, `value`,
            `since`, `metadata_offset` and `position`.
    """
    kept = changes.with_columns(word(pl.col("resource_type"), RESOURCES, OTHER))
    of_topics = uses.filter(pl.col("topic").is_not_null()).select(
        "group_id",
        pl.lit("topic").alias("resource_type"),
        pl.col("topic").alias("resource"),
        "doubt",
    )
    is_sure = pl.col("doubt").is_null().any()
    of_groups = uses.group_by("group_id").agg(
        pl.lit("group").alias("resource_type"),
        pl.col("group_id").first().alias("resource"),
        pl.when(~is_sure).then(pl.col("doubt").min()).alias("doubt"),
    )
    concerned = pl.concat([of_topics, of_groups])
    shown = (
        pl.when(pl.col("value").is_null())
        .then(pl.lit("unset"))
        .when(harmless_name())
        .then(with_word("set to ", pl.col("value")))
        .otherwise(pl.lit("changed, its value withheld"))
    )
    rows = concerned.join(kept, on=("resource_type", "resource")).with_columns(
        pl.lit("config_changed").alias("event"),
        words(pl.col("resource_type"), " ", pl.col("resource")).alias("subject"),
        words(pl.col("name"), " ", shown).alias("detail"),
    )
    return _of_metadata(rows)


def _of_metadata(rows: pl.DataFrame) -> pl.DataFrame:
    told = rows.rename({"since": "at", "metadata_offset": "record_offset"})
    placed = told.with_columns(pl.lit(0, pl.Int32).alias(_HOME)).unnest("position")
    return event_rows(placed, CLUSTER_METADATA)


# Events of committed offsets: rewound, lost, expired, deleted; and of transactions of offsets.
#
# Takes rows of whole groups, of any number of partitions; gives rows of `group_events`.

EXPIRATION = "expiration"
_TRANSACTION = (*GROUP_KEY, "producer_id", "end_offset")


def events_of_offsets(history: pl.DataFrame) -> pl.DataFrame:
    """Return offset_rewound, offset_lost, expired and offsets_deleted.

    Args:
        history: The table `offset_history`.
    """
    deleted, cause, before = pl.col("event") == DELETE, pl.col("cause"), pl.col("previous_offset")
    back = (pl.col("event") != TRANSACTION_ABORT) & (pl.col("advance") < 0)
    event = first_word(
        {
            "expired": deleted & (cause == EXPIRATION),
            "offsets_deleted": deleted,
            "offset_lost": back & (cause == LOST_BY_ELECTION),
            "offset_rewound": back,
        }
    )
    told = history.filter(deleted | back).with_columns(
        event.alias("event"), deleted.alias("is_deleted")
    )
    moved = (
        pl.when("is_deleted")
        .then(with_word("was ", before))
        .otherwise(words("from ", before, " to ", pl.col("committed_offset")))
    )
    why = words(
        cause.str.replace_all("_", " ", literal=True), " (", pl.col("confidence"), " confidence)"
    )
    writer = pl.when(~pl.col("is_deleted")).then(_can_have_committed())
    placed = told.with_columns(
        pl.col("effective_offset").alias("record_offset"),
        pl.col("effective_timestamp").alias("at"),
        words(pl.col("topic"), pl.col("partition"), between="-").alias("subject"),
        words(moved, why, writer, between="; ").alias("detail"),
    )
    return event_rows(placed, CONSUMER_OFFSETS)


def _can_have_committed() -> pl.Expr:
    """Return who can have committed: no record says which of a group's members it was.

    Members alone commit outside transactions while there are some (``validateOffsetCommit``).
    """
    members, owner, who = pl.col("group_members"), pl.col("member_id"), pl.col("origin")
    only = words("by its only member", with_word(" ", owner))
    several = words("by any of its ", members, " members")
    by_member = (
        pl.when(members == 1)
        .then(only)
        .when(members > 1)
        .then(several)
        .otherwise(pl.lit("by any of its members"))
    )
    by = (
        pl.when(who == MEMBER)
        .then(by_member)
        .when(who == UNKNOWN)
        .then(pl.lit("by whom is not known"))
    )
    is_named = (who == MEMBER) & (members == 1)
    owned = pl.when(~is_named.fill_null(value=False)).then(owner + pl.lit(" owned it"))
    said = words(by, owned, between=", ")
    return pl.when(said != "").then(said)


def transaction_events(ended: pl.DataFrame, markers: pl.DataFrame) -> pl.DataFrame:
    """Return transaction_opened, transaction_committed and transaction_aborted, once a group.

    Args:
        ended: Of `ended_commits`.
        markers: `MARKERS`.
    """
    first = ("record_offset", "committed_at", *POSITION)
    opened = (
        ended.filter("waits")
        .sort("record_offset")
        .group_by(*_TRANSACTION, "outcome", maintain_order=True)
        .agg(
            *(pl.col(name).first() for name in first),
            pl.struct("topic", "partition").n_unique().alias("offsets"),
        )
    ).rename({"committed_at": "at"})
    places = markers.select(
        "coordinator_partition",
        "end_offset",
        pl.col("end_offset").alias("record_offset"),
        pl.col("end_at").alias("at"),
        *POSITION,
    ).unique(["coordinator_partition", "end_offset"])
    done = opened.select(*_TRANSACTION, "outcome", "offsets").join(
        places, on=["coordinator_partition", "end_offset"]
    )
    event = first_word(
        {
            "transaction_committed": pl.col("outcome") == COMMIT,
            "transaction_aborted": pl.col("outcome") == ABORT,
        }
    )
    steps = pl.concat(
        [
            opened.with_columns(pl.lit("transaction_opened").alias("event")),
            done.with_columns(event.alias("event")),
        ],
        how="diagonal",
    )
    noun = pl.when(pl.col("offsets") == 1).then(pl.lit(" offset")).otherwise(pl.lit(" offsets"))
    told = steps.with_columns(
        words("producer ", pl.col("producer_id")).alias("subject"),
        words(pl.col("offsets"), noun).alias("detail"),
    )
    return event_rows(told, CONSUMER_OFFSETS)
