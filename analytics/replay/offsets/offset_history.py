"""The table `offset_history`: every change of a committed offset, and what was known around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame, instant, present, uuid
from analytics.replay.groups.group_records import CLASSIC
from analytics.replay.log.losses import (
    WHOLE,
    Coverage,
    between_cuts,
    lost_between,
    of_disputed_home,
)
from analytics.replay.offsets.commit_rows import (
    GROUP,
    MAY_BE_ABORTED,
    MAY_HAVE_BEEN_ABORTED,
    PLACE,
    TOPIC,
    in_log_order,
    is_undecided,
    numbered,
    place,
    with_places,
)
from analytics.replay.offsets.effective_commits import (
    ABORT,
    EVENTS,
    REMOVED,
    effective_commits,
    happened_by_marker,
)
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules

# Every change of a committed offset, with what was known of the group when it was written.
#
# Takes rows of whole groups, of any number of partitions; gives `CHANGES`.

COMMIT, TRANSACTION_COMMIT, TRANSACTION_ABORT, DELETE = (
    "commit",
    "transaction_commit",
    "transaction_abort",
    "delete",
)
_PREVIOUS = ("committed_offset", "record_offset", "commit_ms", "expire_ms", "topic_id")
_OWN = [name for name in EVENTS if not name.startswith(("removed_", "next_"))]
_COLUMNS = [*_OWN, GROUP, TOPIC, PLACE]


def offset_changes(
    ended: pl.DataFrame, moments: pl.DataFrame, owners: pl.DataFrame, rules: ReplayRules
) -> pl.DataFrame:
    """Return commits that took effect, aborted ones and tombstones.

    Args:
        ended: Of `ended_commits`.
        moments: Of `group_moments`.
        owners: Of `owners`.
        rules: Of the release.

    Returns:
        In the order of the log by `position` the columns of `EVENTS` but what was removed; `event`
        (commit, transaction_commit, transaction_abort, delete); of the group when the record was
        written `family`, `group_epoch`, `group_from` (offset of the record that tells of it, null
        where none does), `group_members`; `owner` and `owner_epoch` of the partition then;
        ``previous_...`` of the commit in force before, null where there was none, `PLACE`, and
        `known_since` (records that lie behind it have not changed the offset; null where there
        was no change before).
    """
    pending = pl.col("position") != pl.col("record_offset")
    word = (
        pl.when(pl.col("event") == REMOVED)
        .then(pl.lit(DELETE))
        .when(pending)
        .then(pl.lit(TRANSACTION_COMMIT))
        .otherwise(pl.lit(COMMIT))
    )
    ended = with_places(ended)
    changes = effective_commits(ended, rules).with_columns(word.alias("event")).select(_COLUMNS)
    aborted = happened_by_marker(ended, ABORT)
    if aborted.height:
        said = aborted.with_columns(pl.lit(TRANSACTION_ABORT).alias("event"))
        changes = pl.concat([changes, said.select(_COLUMNS)])
    ordered = in_log_order(changes, "position").with_row_index("row")
    known = _beside(ordered, _groups_told(numbered(moments, GROUP, ordered)), GROUP)
    known = _beside(known, _owners_told(numbered(owners, TOPIC, ordered)), PLACE)
    return _with_previous(known.with_columns(pl.col("group_members").fill_null(0)), rules)


def _groups_told(moments: pl.DataFrame) -> pl.DataFrame:
    """Return what groups were, from `position` to `position`."""
    ordered = moments.sort("position", maintain_order=True).with_row_index("moment")
    group = pl.col("group").struct
    told = pl.when(pl.col("group").is_not_null()).then("moment")
    return ordered.with_columns(
        told.forward_fill().over(GROUP).alias("told"),
        pl.col("joins").cum_sum().over(GROUP).alias("group_members"),
    ).select(
        *(GROUP, "position", "group_members"),
        group.field("family").gather(pl.col("told")),
        group.field("epoch").gather(pl.col("told")).alias("group_epoch"),
        group.field("offset").gather(pl.col("told")).alias("group_from"),
    )


def _owners_told(owners: pl.DataFrame) -> pl.DataFrame:
    """Return who had partitions, from `position` to `position`."""
    owner = pl.col("owner").struct
    named = owners.select(
        place().alias(PLACE),
        "position",
        owner.field("member_id").alias("owner"),
        owner.field("epoch").alias("owner_epoch"),
    )
    # Where one loses it and another gets it in one record, the one that gets it comes last.
    has_owner = pl.col("owner").is_not_null()
    told = pl.concat([named.filter(~has_owner), named.filter(has_owner)])
    return told.sort("position", maintain_order=True)


def _beside(changes: pl.DataFrame, numbered: pl.DataFrame, number: str) -> pl.DataFrame:
    """Add what was told last before the record was written.

    Args:
        changes: In any order.
        numbered: In the order of `position`; of one position the last row counts.
        number: What it is told of: `GROUP` or `PLACE`.
    """
    rows = in_log_order(
        changes.select(*{number, PLACE}, "coordinator_partition", "record_offset", "row")
    )
    found = rows.join_asof(
        numbered,
        left_on="record_offset",
        right_on="position",
        by=number,
        coalesce=False,
        check_sortedness=False,
    )
    return changes.with_columns(found.sort("row").drop(*rows.columns, "position"))


def _with_previous(changes: pl.DataFrame, rules: ReplayRules) -> pl.DataFrame:
    """Add what was in force before; leave out aborts of what a tombstone removed."""
    is_abort, is_delete = (pl.col("event") == each for each in (TRANSACTION_ABORT, DELETE))
    before = _last_before(changes, ~is_abort)
    is_removal = changes.select(is_delete.gather(before)).to_series()
    # Where a tombstone leaves commits pending, one that lies before it may take effect behind it.
    cleared = pl.col("position") if rules.tombstones_remove_everything else pl.lit(-1)
    known_since = pl.when(is_delete).then(cleared).otherwise("record_offset")
    told = changes.with_columns(
        pl.col(_PREVIOUS).gather(before.set(is_removal, None)).name.prefix("previous_"),
        known_since.gather(before).alias("known_since"),
    )
    if rules.tombstones_remove_everything and changes.select(is_abort.any()).item():
        removed = pl.col("position").gather(_last_before(changes, is_delete))
        is_gone = is_abort & (pl.col("record_offset") < removed)
        told = told.filter(~is_gone.fill_null(value=False))
    return told.drop(GROUP, TOPIC, "row")


def _last_before(changes: pl.DataFrame, is_meant: pl.Expr) -> pl.Series:
    """Return the row of the last change of the same key that is meant and comes before, or null."""
    ordered = changes.select(PLACE, "row", is_meant.alias("is_meant"))
    ordered = ordered.sort(PLACE, maintain_order=True)
    key, row = pl.col(PLACE), pl.col("row")
    before = pl.when("is_meant").then(pl.int_range(pl.len())).forward_fill().shift(1)
    found = pl.when(key.gather(before) == key).then(row.gather(before))
    nothing = pl.repeat(None, ordered.height, dtype=pl.UInt32, eager=True)
    return nothing.scatter(ordered["row"], ordered.select(found).to_series())


# The table `offset_history`: every change of a committed offset, and what was in force around it.
#
# A commit is one row where it took effect; one in a transaction took effect with the marker, and
# one that was aborted is a row that changed nothing. Every tombstone is a row. Takes rows of
# whole groups, of any number of partitions.

# Why a committed offset went back, and who committed it.
#
# While a group has members only they may commit outside transactions; while it has none, only who
# names no member may: a tool that resets offsets, or a client that assigns itself partitions
# (``validateOffsetCommit`` of the groups). Which of these it was the log does not record. In a
# transaction a producer that names no member may always commit, so that of a group with members
# nobody can tell whose producer it was.
#
# Which of several members committed is in no record, either: each of the generation may commit any
# partition, whoever owns it. That it was the owner is no more than likely.

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


_RECORD: Final = ("coordinator_partition", "record_offset")
_DONE_BY_HAND: Final = ("group_deleted", "offsets_deleted")


@dataclass(frozen=True)
class OfGroups:
    """Rows of whole groups that a history of offsets is made of.

    Attributes:
        ended: Of `ended_commits`.
        moments: Of `group_moments`.
        owners: Of `owners`.
        removals: Causes of tombstones: `coordinator_partition`, `record_offset`, `cause`,
            `confidence`.
    """

    ended: pl.DataFrame
    moments: pl.DataFrame
    owners: pl.DataFrame
    removals: pl.DataFrame


@dataclass(frozen=True)
class OfTopics:
    """What befell topics, by which changes are explained.

    Attributes:
        births: `topic` and `born_at`: when topics of that name were created, as far as is known.
        losses: `topic`, `partition` and `elected_at`: when unclean elections may have cost records.
    """

    births: pl.DataFrame
    losses: pl.DataFrame


def offset_history(
    rows: OfGroups, topics: OfTopics, rules: ReplayRules, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `offset_history`, in the order in which changes took effect.

    Args:
        rows: Of some groups, at an instant.
        topics: What befell all topics.
        rules: Of the release.
        coverage: What the dump holds.
    """
    changes = offset_changes(rows.ended, rows.moments, rows.owners, rules)
    told = _with_losses(_with_undecided(changes, rules, coverage), coverage)
    caused = _with_cause(_meaning(told, coverage), rows.removals, topics)
    return contract_frame(caused, "offset_history")


def _with_undecided(changes: pl.DataFrame, rules: ReplayRules, coverage: Coverage) -> pl.DataFrame:
    """Add `undecided`: why it is not known that a commit, or the one before it, took effect."""
    if not coverage.undecided:
        return changes.with_columns(pl.lit(None, pl.String).alias("undecided")).drop(PLACE)
    own = is_undecided(coverage, pl.col("topic_id"), is_commit=pl.col("event") == COMMIT)
    rows = changes.with_columns(own.alias("own")).with_row_index("row")
    last = _last_before(rows, pl.lit(value=True))
    before = pl.col("own").gather(last).fill_null(value=False)
    if not rules.tombstones_remove_everything:
        # What is pending outlives a tombstone, and takes effect behind it.
        is_removed = (pl.col("event") == DELETE).gather(last).fill_null(value=False)
        before |= is_removed & _last_before(rows, pl.col("own")).is_not_null()
    undecided = (
        pl.when("own")
        .then(pl.lit(MAY_BE_ABORTED))
        .when(before)
        .then(pl.lit(MAY_HAVE_BEEN_ABORTED))
        .alias("undecided")
    )
    return rows.with_columns(undecided).drop("own", "row", PLACE)


def _with_losses(changes: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Add `complete`, `missing`, `is_undecided`; nothing is `previous` behind lost records."""
    since = pl.min_horizontal(pl.col("known_since").fill_null(-1), "record_offset")
    here = pl.col("position")
    own = pl.lit("this change may not have survived: ") + lost_between(coverage, here - 1, here + 1)
    before = pl.lit("the change before this one may be lost: ") + lost_between(
        coverage, since, here
    )
    words = pl.coalesce(own, before)
    uncertain = between_cuts(coverage, pl.col("position"))
    why = ("undecided", words, uncertain, of_disputed_home(coverage))
    missing = pl.concat_str(why, separator="; ", ignore_nulls=True)
    told = changes.with_columns(pl.when(missing != "").then(missing).alias("missing"))
    complete = pl.col("missing").is_null()
    return told.with_columns(
        complete.alias("complete"),
        pl.col("undecided").is_not_null().alias("is_undecided"),
        *(
            pl.when(complete).then(name).alias(name)
            for name in changes.columns
            if name.startswith("previous_")
        ),
    )


def _meaning(changes: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Turn what is stored into what it means; leave out what is not known of the group."""
    event, committed = pl.col("event"), pl.col("committed_offset")
    changed = event.is_in([COMMIT, TRANSACTION_COMMIT])
    in_transaction = event.is_in([TRANSACTION_COMMIT, TRANSACTION_ABORT])
    may_be_aborted = pl.col("undecided").eq_missing(pl.lit(MAY_BE_ABORTED))
    told = changes.with_columns(
        _no_loss_since(coverage, pl.col("group_from").fill_null(-1)).alias("is_group_told"),
        may_be_aborted.alias("may_be_aborted"),
    )
    told = told.with_columns(_is_known(coverage).alias("is_group_known"))
    is_told = pl.col("is_group_told")
    return told.with_columns(
        uuid(pl.col("topic_id")).alias("topic_id"),
        pl.col("previous_committed_offset").alias("previous_offset"),
        pl.when(changed).then(committed - pl.col("previous_committed_offset")).alias("advance"),
        present(pl.col("committed_leader_epoch")).alias("committed_leader_epoch"),
        instant(pl.col("commit_ms")).alias("commit_timestamp"),
        instant(pl.col("expire_ms")).alias("expire_timestamp"),
        pl.col("position").alias("effective_offset"),
        pl.col("at").alias("effective_timestamp"),
        pl.when(is_told).then(pl.coalesce("owner_epoch", "group_epoch")).alias("epoch"),
        pl.when(is_told & (event != DELETE)).then("owner").alias("member_id"),
        instant(pl.col("previous_commit_ms")).alias("previous_commit_timestamp"),
        instant(pl.col("previous_expire_ms")).alias("previous_expire_timestamp"),
        uuid(pl.col("previous_topic_id")).alias("previous_topic_id"),
        pl.when(is_told).then("family").alias("group_type"),
        pl.when("is_group_known").then("group_members").alias("group_members"),
        pl.when(in_transaction).then("producer_id").alias("producer_id"),
    )


def _is_known(coverage: Coverage) -> pl.Expr:
    """Return whether the dump shows what the group was, or that there was none.

    A classic record that compaction left was in force up to where it took records, with all its
    members. What followed a tombstone, or a record of a newer group, it may have taken: a life of
    another type, members whose records were written again. A loss may have taken anything.
    """
    record, shown = pl.col("record_offset"), _uncompacted_from(coverage)
    is_whole = pl.col("family").eq_missing(pl.lit(CLASSIC)) | (record >= shown)
    told = pl.col("group_from").is_not_null() & pl.col("is_group_told") & is_whole
    return told | (_no_loss_since(coverage, pl.lit(-1)) & (record >= shown))


def _uncompacted_from(coverage: Coverage) -> pl.Expr:
    """Return the first offset behind all that compaction or a loss took."""
    told = {
        each: at
        for (topic, each), at in coverage.uncompacted_from.items()
        if topic == CONSUMER_OFFSETS
    }
    return pl.col("coordinator_partition").replace_strict(
        list(told), list(told.values()), default=0, return_dtype=pl.Int64
    )


def _no_loss_since(coverage: Coverage, offset: pl.Expr) -> pl.Expr:
    return lost_between(coverage, offset, pl.col("record_offset")).is_null()


def _with_cause(changes: pl.DataFrame, removals: pl.DataFrame, topics: OfTopics) -> pl.DataFrame:
    """Add `origin`, `cause` and `confidence`."""
    deleted, may_be_aborted = pl.col("event") == DELETE, pl.col("may_be_aborted")
    by = (
        pl.when(deleted | may_be_aborted)
        .then(pl.lit(UNKNOWN))
        .otherwise(origin(is_certain=pl.col("is_group_known")))
    )
    judged = changes.with_columns(by.alias("origin")).with_row_index("row")
    back = judged.select("row", "advance", *OF_STEPS).filter(pl.col("advance") < 0)
    removed = judged.select("row", *_RECORD, "event").filter(deleted).join(removals, on=_RECORD)
    causes = pl.concat(
        [
            removed.select("row", "cause", "confidence"),
            causes_of_steps_back(back, topics.births, topics.losses),
        ]
    )
    found = judged.select("row").join(causes, on="row", how="left", maintain_order="left")
    judged = judged.with_columns(found.drop("row"))
    by_hand = deleted & pl.col("cause").is_in(_DONE_BY_HAND)
    unknown = ~pl.col("complete") & (pl.col("event") != TRANSACTION_ABORT)
    return judged.with_columns(
        pl.when(by_hand).then(pl.lit(ADMIN_OR_SIMPLE)).otherwise("origin").alias("origin"),
        *(
            pl.when(unknown).then(pl.lit(otherwise)).otherwise(name).alias(name)
            for name, otherwise in (("cause", UNKNOWN), ("confidence", LOW))
        ),
    )
