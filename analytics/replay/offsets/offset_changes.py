"""Every change of a committed offset, with what was known of the group when it was written.

Takes rows of whole groups, of any number of partitions; gives `CHANGES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.offsets.commit_rows import (
    GROUP,
    PLACE,
    TOPIC,
    in_log_order,
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
    return told.drop(GROUP, TOPIC, PLACE, "row")


def _last_before(changes: pl.DataFrame, is_meant: pl.Expr) -> pl.Series:
    """Return the row of the last change of the same key that is meant and comes before, or null."""
    ordered = changes.select(PLACE, "row", is_meant.alias("is_meant"))
    ordered = ordered.sort(PLACE, maintain_order=True)
    key, row = pl.col(PLACE), pl.col("row")
    before = pl.when("is_meant").then(pl.int_range(pl.len())).forward_fill().shift(1)
    found = pl.when(key.gather(before) == key).then(row.gather(before))
    nothing = pl.repeat(None, ordered.height, dtype=pl.UInt32, eager=True)
    return nothing.scatter(ordered["row"], ordered.select(found).to_series())
