"""Every change of a committed offset, with what was known of the group when it was written.

Takes rows of whole groups, of any number of partitions; gives `CHANGES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.offsets.commit_rows import KEY
from analytics.replay.offsets.effective_commits import (
    ABORT,
    EVENTS,
    REMOVED,
    in_order,
    last_of_transactions,
    offset_events,
)

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules

COMMIT, TRANSACTION_COMMIT, TRANSACTION_ABORT, DELETE = (
    "commit",
    "transaction_commit",
    "transaction_abort",
    "delete",
)
_PREVIOUS = ("committed_offset", "record_offset", "commit_ms", "expire_ms", "topic_id")
_OWN = [name for name in EVENTS if not name.startswith(("removed_", "next_"))]


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
        In the order of `KEY` and `position` the columns of `EVENTS` but what was removed; `event`
        (commit, transaction_commit, transaction_abort, delete); of the group when the record was
        written `family`, `group_epoch`, `group_from` (offset of the record that tells of it, null
        where none does), `group_members`; `owner` and `owner_epoch` of the partition then;
        ``previous_...`` of the commit in force before, null where there was none, and
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
    effective = offset_events(ended, rules).with_columns(word.alias("event")).select(_OWN)
    aborted = last_of_transactions(ended.filter(pl.col("outcome") == ABORT)).with_columns(
        pl.col("end_offset").alias("position"),
        pl.col("end_at").alias("at"),
        pl.lit(TRANSACTION_ABORT).alias("event"),
    )
    # What is in order is hardly worth a sort: the numbers of rows bring that order back.
    ordered = in_order(pl.concat([effective, aborted.select(_OWN)])).with_row_index("row")
    known = _with_owner(_with_group(ordered.sort("record_offset"), moments), owners)
    return _with_previous(known.sort("row"), rules)


def _with_group(changes: pl.DataFrame, moments: pl.DataFrame) -> pl.DataFrame:
    """Add what the group was when the record was written."""
    ordered = moments.sort(*GROUP_KEY, "position", maintain_order=True).with_row_index("moment")
    group = pl.col("group").struct
    told = pl.when(pl.col("group").is_not_null()).then("moment")
    so_far = (
        ordered.with_columns(
            told.forward_fill().over(GROUP_KEY).alias("told"),
            pl.col("joins").cum_sum().over(GROUP_KEY).alias("group_members"),
        )
        .with_columns(
            group.field("family").gather(pl.col("told")),
            group.field("epoch").gather(pl.col("told")).alias("group_epoch"),
            group.field("offset").gather(pl.col("told")).alias("group_from"),
        )
        .select(
            *(*GROUP_KEY, "position", "family", "group_epoch", "group_from", "group_members"),
        )
    )
    return _beside(changes, so_far, GROUP_KEY).with_columns(pl.col("group_members").fill_null(0))


def _with_owner(changes: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """Add who had the partition when the record was written."""
    owner = pl.col("owner").struct
    named = owners.select(
        *KEY,
        "position",
        owner.field("member_id").alias("owner"),
        owner.field("epoch").alias("owner_epoch"),
    )
    # Where one loses it and another gets it in one record, the one that gets it comes last.
    ordered = named.sort(*KEY, "position", pl.col("owner").is_not_null(), maintain_order=True)
    return _beside(changes, ordered, KEY)


def _beside(changes: pl.DataFrame, told: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Add what was told of the key last before the record; of one place the last row counts."""
    last = told.unique([*key, "position"], keep="last", maintain_order=True)
    return changes.join_asof(
        last.rename({"position": "told_at"}).sort("told_at"),
        left_on="record_offset",
        right_on="told_at",
        by=list(key),
        coalesce=False,
        check_sortedness=False,
    ).drop("told_at")


def _with_previous(changes: pl.DataFrame, rules: ReplayRules) -> pl.DataFrame:
    """Add what was in force before; leave out aborts of what a tombstone removed."""
    is_first = pl.col("place").ne_missing(pl.col("place").shift(1))
    numbered = changes.with_columns(
        pl.when(is_first).then("row").forward_fill().alias("first"),
    )
    is_commit = pl.col("event").is_in([COMMIT, TRANSACTION_COMMIT])
    last = _within(pl.when(pl.col("event") != TRANSACTION_ABORT).then("row"))
    removal = _within(pl.when(pl.col("event") == DELETE).then("row"))
    numbered = numbered.with_columns(last.alias("previous"), removal.alias("removal"))
    # Where a tombstone leaves commits pending, one that lies before it may take effect behind it.
    cleared = pl.col("position") if rules.tombstones_remove_everything else pl.lit(-1)
    known_since = pl.when(is_commit).then("record_offset").otherwise(cleared)
    before = numbered.with_columns(
        *(
            pl.when(is_commit).then(name).gather(pl.col("previous")).alias(f"previous_{name}")
            for name in _PREVIOUS
        ),
        known_since.gather(pl.col("previous")).alias("known_since"),
    )
    if rules.tombstones_remove_everything:
        removed = pl.col("position").gather(pl.col("removal"))
        is_gone = (pl.col("event") == TRANSACTION_ABORT) & (pl.col("record_offset") < removed)
        before = before.filter(~is_gone.fill_null(value=False))
    return before.drop("place", "row", "first", "previous", "removal")


def _within(row: pl.Expr) -> pl.Expr:
    """Return the last of some rows that comes before this one, null where it is of another key."""
    before = row.forward_fill().shift(1)
    return pl.when(before >= pl.col("first")).then(before)
