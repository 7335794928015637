"""The tables `share_partitions`, state and claims brought together, and `share_batches`.

The table `share_partition_epochs`: every snapshot, update and deletion of share state, in order.

The numbers are those stored. What an update leaves unchanged (-1) is null, and what it is compared
with is the last that was told before it. The records are taken from decoded tables
(`share_record_rows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import IN_DUMP, POSITION, contract_frame, word
from analytics.replay.log.losses import (
    HOME,
    WHOLE,
    Coverage,
    between_cuts,
    may_be_elsewhere,
    may_be_superseded,
    what_is_lost,
    with_marks_of,
    with_marks_of_records,
    with_missing,
)
from analytics.replay.log.spans import at, in_order, last_before, so_far
from analytics.replay.log.topic_homes import internal_partition, share_key
from analytics.replay.share_fold import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
)
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.replay.log.log_times import Decoded


# Which share partitions the groups claim (``ShareGroupStatePartitionMetadata``).
#
# Each such record is the whole picture of its group, not a change. 4.0 never writes one: there a
# share group that lives is all the claim there is.

INITIALIZED, INITIALIZING, DELETING, ORPHAN = "initialized", "initializing", "deleting", "orphan"
UNKNOWN: Final = "unknown"
PICTURED, LIVING = "pictured", "living"
"""Claims of a group as a whole: it had pictures written; its last metadata are there."""
CLAIMS: Final = pl.Schema(
    {
        "group_id": pl.String(),
        "topic_id": pl.String(),
        "partition": pl.Int32(),
        "claim": pl.String(),
        "record_offset": pl.Int64(),
    }
)
"""What groups say. `topic_id` is null of a group as a whole; `partition` also of topics."""

_PICTURES, _METADATA = "share_group_state_partition_metadata", "share_group_metadata"


def claims_of(decoded: Decoded) -> pl.DataFrame:
    """Return what whole groups claim; the columns are `CLAIMS`.

    `initialized` and `initializing` are of partitions, `deleting` is of topics. `pictured` has
    the offset of the last record of a group's picture, be it a tombstone.
    """
    pictures, living = _last_records(decoded[_PICTURES]), _last_records(decoded[_METADATA])
    told = pictures.filter(~pl.col("is_tombstone")).unnest("value")
    rows = [
        pictures.with_columns(claim=pl.lit(PICTURED)),
        living.filter(~pl.col("is_tombstone")).with_columns(claim=pl.lit(LIVING)),
        _partitions(told, INITIALIZED),
        _partitions(told, INITIALIZING),
        _topics(told, DELETING),
    ]
    return pl.concat(
        frame.select(
            (pl.col(name) if name in frame.columns else pl.lit(None)).cast(type_).alias(name)
            for name, type_ in CLAIMS.items()
        )
        for frame in rows
    )


def merged_claims(claims: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the claims of all groups, from those of buckets of whole groups."""
    return pl.concat(claims)


def claimed_partitions(claims: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id`, `topic_id`, `partition` and `claim`: initialized or initializing."""
    claimed = claims.filter(pl.col("claim").is_in([INITIALIZED, INITIALIZING]))
    # A partition in both has its state already; "initialized" comes first.
    return claimed.group_by("group_id", "topic_id", "partition").agg(pl.col("claim").min())


def deleted_topics(claims: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id` and `topic_id` of topics whose state is being deleted."""
    return claims.filter(pl.col("claim") == DELETING).select("group_id", "topic_id").unique()


def early_groups(claims: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id` of share groups that live and never had a picture written."""
    living = claims.filter(pl.col("claim") == LIVING).select("group_id").unique()
    return living.join(pictured_groups(claims), on="group_id", how="anti")


def pictured_groups(claims: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id` and `pictured_at`, the offset of the last record of its picture."""
    pictured = claims.filter(pl.col("claim") == PICTURED)
    return pictured.group_by("group_id").agg(pl.col("record_offset").max().alias("pictured_at"))


def _last_records(records: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id`, `record_offset`, `is_tombstone` and `value` of each group's last one."""
    named = records.select(
        pl.col("key").struct.field("group_id"),
        pl.col("offset").alias("record_offset"),
        "partition",
        "is_tombstone",
        "value",
    )
    last = named.sort("record_offset").unique(["partition", "group_id"], keep="last")
    return last.drop("partition")


def _partitions(claims: pl.DataFrame, claim: str) -> pl.DataFrame:
    listed = pl.col("topic").struct.field("partitions").alias("partition")
    rows = _topics(claims, claim).with_columns(listed).explode("partition")
    return rows.drop_nulls("partition")


def _topics(claims: pl.DataFrame, claim: str) -> pl.DataFrame:
    """Return the topics of one kind of claim, as `topic` and by their ids."""
    topics = claims.select("group_id", pl.col(f"{claim}_topics").alias("topic")).explode("topic")
    topic_id = pl.col("topic").struct.field("topic_id")
    return topics.drop_nulls("topic").with_columns(topic_id, claim=pl.lit(claim))


KEY: Final = ("group_id", "topic_id", "partition")

_LOST_BETWEEN: Final = pl.lit(
    "records between its snapshot and its last update are not in the dump"
)
_STATE_NAMES = {
    AVAILABLE: "AVAILABLE",
    ACQUIRED: "ACQUIRED",
    ACKNOWLEDGED: "ACKNOWLEDGED",
    ARCHIVING: "ARCHIVING",
    ARCHIVED: "ARCHIVED",
}
"""``RecordState``; ACQUIRED is never stored by a broker."""
_UNKNOWN_STATE = "UNKNOWN"


def share_partitions(
    states: pl.DataFrame, claims: pl.DataFrame, topics: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `share_partitions`.

    Args:
        states: Of `share_states`, all of them.
        claims: Of `claims_of`, all of them.
        topics: The table `topics` at the instant, for names.
        coverage: What the dump holds.
    """
    deleting = deleted_topics(claims).with_columns(is_deleting=True)
    early = early_groups(claims).with_columns(is_early=True)
    rows = (
        states.drop("batches")
        .join(claimed_partitions(claims), on=KEY, how="full", coalesce=True)
        .join(deleting, on=["group_id", "topic_id"], how="left")
        .join(early, on="group_id", how="left")
        .join(_lost_claims(states, claims, coverage), on="group_id", how="left")
        .join(topic_names(topics), on="topic_id", how="left")
        .with_columns(phase=_phase(coverage))
    )
    missing = pl.concat_str(_missing(coverage), separator="; ", ignore_nulls=True)
    return contract_frame(with_missing(rows, missing), "share_partitions")


def share_batches(
    states: pl.DataFrame, topics: pl.DataFrame, partitions: pl.DataFrame
) -> pl.DataFrame:
    """Return the table `share_batches`.

    Args:
        states: Of `share_states`.
        topics: The table `topics` at the instant, for names.
        partitions: The table `share_partitions`: what is lacking of one is lacking of its ranges.
    """
    held = states.filter(pl.col("batches").list.len() > 0)
    rows = held.select(*KEY, "batches").explode("batches").unnest("batches")
    named = rows.join(topic_names(topics), on="topic_id", how="left", maintain_order="left")
    state = word(pl.col("delivery_state"), _STATE_NAMES, _UNKNOWN_STATE)
    marked = with_marks_of(named.with_columns(delivery_state_name=state), partitions, KEY)
    return contract_frame(marked, "share_batches")


def topic_names(topics: pl.DataFrame) -> pl.DataFrame:
    """Return `topic_id`, once each, with its `topic` and whether it `is_gone`."""
    return (
        topics.filter(pl.col("topic_id").is_not_null())
        .group_by("topic_id")
        .agg(pl.col("topic").min(), pl.col("deleted_at").is_not_null().any().alias("is_gone"))
    )


def _phase(coverage: Coverage) -> pl.Expr:
    """Return who claims a share partition; where a claim may be lost it is not called an orphan."""
    is_gone = pl.col("is_gone").fill_null(value=False)
    early = pl.col("is_early_layout") & pl.col("is_early") & ~is_gone
    is_lost = _home_of_group(coverage).is_not_null() | pl.col("lost_claims").is_not_null()
    return (
        pl.when("is_deleting")
        .then(pl.lit(DELETING))
        .when(pl.col("claim").is_not_null())
        .then("claim")
        .when(early)
        .then(pl.lit(INITIALIZED))
        .when(is_lost)
        .then(pl.lit(UNKNOWN))
        .otherwise(pl.lit(ORPHAN))
    )


def _lost_claims(states: pl.DataFrame, claims: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Return `group_id` and `lost_claims`: why what it claims may have been lost, null where not.

    A group's picture that lies behind all losses tells all that it claims.
    """
    groups = states.select("group_id").unique()
    count = coverage.partitions.get(CONSUMER_OFFSETS)
    if count is None or not coverage.losses_of_topic(CONSUMER_OFFSETS):
        return groups.with_columns(lost_claims=pl.lit(None, pl.String))
    lost = may_be_superseded(coverage, pl.col("pictured_at").fill_null(-1))
    return (
        groups.with_columns(internal_partition(pl.col("group_id"), count).alias(HOME))
        .join(pictured_groups(claims), on="group_id", how="left")
        .select("group_id", (pl.lit("who claims it: ") + lost).alias("lost_claims"))
    )


def _missing(coverage: Coverage) -> list[pl.Expr]:
    """Return what the dump lacks, each null where nothing is lacking."""
    has_state = pl.col("coordinator_partition").is_not_null()
    needs_state = ~has_state & (pl.col("phase") == INITIALIZED)
    no_state = pl.lit("no record of its state is in the dump")
    reasons = (
        (
            has_state & ~pl.col("has_snapshot"),
            pl.lit("the snapshot that its updates build on is not in the dump"),
        ),
        (
            pl.col("epoch_mismatches") > 0,
            pl.lit("updates of it build on a snapshot that is not in the dump"),
        ),
        (
            pl.col("base_offset") < _complete_from(coverage),
            pl.coalesce(_lost_end(coverage), _LOST_BETWEEN),
        ),
        (needs_state, pl.coalesce(_home_of_state(coverage), no_state)),
        (has_state & pl.col("claim").is_null(), _home_of_group(coverage)),
        (has_state & (pl.col("phase") == UNKNOWN), pl.col("lost_claims")),
    )
    key = share_key(*(pl.col(name) for name in KEY))
    return [
        *(pl.when(is_lacking).then(words) for is_lacking, words in reasons),
        may_be_elsewhere(coverage, key, SHARE_GROUP_STATE),
        between_cuts(coverage, pl.col("record_offset"), SHARE_GROUP_STATE),
    ]


def _lost_end(coverage: Coverage) -> pl.Expr:
    """Return what the dump lacks where nothing tells how far that reaches; null elsewhere."""
    open_ends = [
        partition
        for partition, losses in coverage.losses_of_topic(SHARE_GROUP_STATE).items()
        if any(each.is_open for each in losses)
    ]
    said = pl.lit("a lost record may have changed it: ") + what_is_lost(coverage, SHARE_GROUP_STATE)
    return pl.when(pl.col(HOME).is_in(open_ends)).then(said)


def _complete_from(coverage: Coverage) -> pl.Expr:
    """Return the offset from which the partition that holds the state is whole."""
    offsets = {
        partition: offset
        for (topic, partition), offset in coverage.complete_from.items()
        if topic == SHARE_GROUP_STATE
    }
    held_in = pl.col("coordinator_partition")
    return held_in.replace_strict(offsets, default=0, return_dtype=pl.Int64)


def _home_of_state(coverage: Coverage) -> pl.Expr:
    key = share_key(*(pl.col(name) for name in KEY))
    return _absent(coverage, SHARE_GROUP_STATE, key, "its state belongs to")


def _home_of_group(coverage: Coverage) -> pl.Expr:
    key = pl.col("group_id")
    return _absent(coverage, CONSUMER_OFFSETS, key, "what the group claims belongs to")


def _absent(coverage: Coverage, topic: str, key: pl.Expr, what: str) -> pl.Expr:
    """Return in words that the dump has no copy of a key's partition; null where it has one."""
    absent = coverage.absent.get(topic, frozenset())
    if not absent or topic not in coverage.partitions:
        return pl.lit(None, pl.String)
    home = internal_partition(key, coverage.partitions[topic])
    words = pl.format(f"{what} {topic}-{{}}, of which this dump has no copy", home)
    return pl.when(home.is_in(sorted(absent))).then(words)


SNAPSHOT, UPDATE, TOMBSTONE = "snapshot", "update", "tombstone"
OF_PARTITION = ("coordinator_partition", "group_id", "topic_id", "partition")
_STORED = ("leader_epoch", "start_offset", "delivery_complete_count")
_PLACE: Final = {
    "coordinator_partition": pl.col("partition"),
    "group_id": pl.col("key").struct.field("group_id"),
    "topic_id": pl.col("key").struct.field("topic_id"),
    "partition": pl.col("key").struct.field("partition"),
    "record_offset": pl.col("offset"),
    "at": pl.col("timestamp"),
}
_OF_SNAPSHOT: Final = {
    "write_timestamp": pl.Int64(),
    "create_timestamp": pl.Int64(),
    "state_epoch": pl.Int32(),
}
_OF_BOTH: Final = ("snapshot_epoch", "leader_epoch", "start_offset", "delivery_complete_count")


def share_partition_epochs(
    records: pl.DataFrame, names: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `share_partition_epochs`.

    Args:
        records: Snapshots and updates, one row each: `OF_PARTITION`, `is_update`, `is_tombstone`,
            the fields of the value, `ranges` (how many it has), `record_offset`, `at`,
            `coordinator_epoch` and where the record lies.
        names: Of topics: `topic_id` and `name`, each id once.
        coverage: What the dump holds.
    """
    gone, is_update = pl.col("is_tombstone"), pl.col("is_update")
    written, created = pl.col("write_timestamp"), pl.col("create_timestamp")
    kind = pl.when(is_update).then(pl.lit(UPDATE)).when(gone).then(pl.lit(TOMBSTONE))
    stored = pl.col(_STORED)
    rows = in_order(
        records.filter(~(is_update & gone)), OF_PARTITION, "record_offset"
    ).with_columns(
        kind.otherwise(pl.lit(SNAPSHOT)).alias("kind"),
        pl.when(~is_update & (written > 0) & (created > 0)).then(written != created).alias("cold"),
        pl.when(~is_update).then("state_epoch").alias("state_epoch"),
        pl.when(stored != -1).then(stored),
    )
    told = _with_last(rows).with_columns(_advance(), _mismatch())
    named = told.join(names, on="topic_id", how="left").rename({"name": "topic"})
    in_log = named.with_columns(log=pl.lit(SHARE_GROUP_STATE))
    marked = with_marks_of_records(in_log, coverage, "record_offset", log="log")
    return contract_frame(marked, "share_partition_epochs")


def share_record_rows(decoded: Decoded) -> pl.DataFrame:
    """Return snapshots and updates, as `share_partition_epochs` takes them."""
    return pl.concat(
        _rows(decoded[name], is_update=name == "share_update")
        for name in ("share_snapshot", "share_update")
    )


def archives(decoded: Decoded) -> pl.DataFrame:
    """Return updates that archive records, as `share_events` takes them: `archived` has ranges."""
    is_archived = pl.element().struct.field("delivery_state") == ARCHIVED
    ranges = pl.col("value").struct.field("state_batches")
    updates = decoded["share_update"].select(
        **_PLACE,
        **{name: pl.col(name) for name in POSITION},
        archived=ranges.list.eval(pl.element().filter(is_archived)),
    )
    return updates.filter(pl.col("archived").list.len() > 0)


def _with_last(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `life`, and the rows that snapshot and start offset were told in last before.

    A tombstone ends what was before: nothing behind it is compared with that.
    """
    ends = pl.col("kind") == TOMBSTONE
    return rows.with_columns(
        (so_far(ends) - ends.cast(pl.Int32)).alias("life"),
        last_before(pl.col("kind") == SNAPSHOT).alias("last_snapshot"),
        last_before(pl.col("start_offset").is_not_null()).alias("last_start"),
    )


def _advance() -> pl.Expr:
    moved = pl.col("start_offset") - at("last_start", "start_offset")
    same_life = at("last_start", "life") == pl.col("life")
    return pl.when(same_life & (moved != 0)).then(moved).alias("start_offset_advance")


def _mismatch() -> pl.Expr:
    known = at("last_snapshot", "life") == pl.col("life")
    same = known & (at("last_snapshot", "snapshot_epoch") == pl.col("snapshot_epoch"))
    differs = ~same.fill_null(value=False)
    return pl.when(pl.col("kind") == UPDATE).then(differs).alias("epoch_mismatch")


def _rows(records: pl.DataFrame, *, is_update: bool) -> pl.DataFrame:
    value = pl.col("value").struct
    of_snapshot = {
        name: pl.lit(None, type_) if is_update else value.field(name).cast(type_)
        for name, type_ in _OF_SNAPSHOT.items()
    }
    return records.select(
        **_PLACE,
        is_update=is_update,
        is_tombstone="is_tombstone",
        **of_snapshot,
        **{name: value.field(name) for name in _OF_BOTH},
        ranges=value.field("state_batches").list.len().cast(pl.Int32),
        coordinator_epoch="leader_epoch",
        **{name: pl.col(name) for name in IN_DUMP},
    )
