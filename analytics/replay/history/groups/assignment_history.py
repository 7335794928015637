"""The table `assignment_history`: who owned what at every epoch, as intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.groups.group_records import CURRENT, GROUP_KEY, TARGET
from analytics.replay.groups.item_kinds import PENDING
from analytics.replay.history.groups.held_items import ITEM
from analytics.replay.history.groups.membership_facts import came_with_known_epoch, known_epochs
from analytics.replay.history.neighbours import LIFE
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import born_from, lost_until, uncompacted_from
from analytics.replay.log.marks import with_marks_of_records

if TYPE_CHECKING:
    from analytics.replay.history.groups.held_items import Held

ASSIGNED = (CURRENT, TARGET, PENDING)


def assignment_history(
    held: Held, epochs: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `assignment_history`.

    At epoch N a member owned what is from an epoch up to N and to none or a later one. What ended
    together with a life of its group was owned through the last epoch of that life.

    Args:
        held: Of `held_items`.
        epochs: Of `group_epochs`.
        coverage: What the dump holds.
    """
    owned = held.runs.filter(pl.col("kind").is_in(ASSIGNED))
    rows = owned.with_columns(
        *held.named(owned, *ITEM[2:-1], "member_id"),
        held.about(owned),
        *held.columns_at(
            owned["at"], *GROUP_KEY, LIFE, "life", "family", "epoch", "epoch_at", "epoch_by"
        ),
        *_named("from", held.columns_at(owned["at"], "offset", "timestamp")),
        *_named("to", held.columns_at(owned["until"], "offset", "timestamp")),
        *_named("last", held.columns_at(owned["ended_in"], "epoch_at", "epoch_by")),
    )
    from_epoch = pl.coalesce("epoch_at", "epoch", "epoch_by", 0)
    last = pl.coalesce("last_epoch_at", "last_epoch_by", from_epoch)
    to_epoch = pl.when("is_closing").then(last + 1).otherwise(last)
    told = rows.unnest("about").with_columns(
        pl.col("family").alias("group_type"),
        from_epoch.alias("from_epoch"),
        pl.when(pl.col("until").is_not_null()).then(to_epoch).alias("to_epoch"),
        pl.coalesce("epoch", "epoch_at").alias("member_epoch"),
    )
    marked = with_marks_of_records(told, coverage, "from_offset", "to_offset")
    return contract_frame(_with_bounds(marked, epochs, coverage), "assignment_history")


def _with_bounds(rows: pl.DataFrame, epochs: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Add `from_is_bound`: whether a record that is gone may have told of it earlier.

    So may be what stands below all that is gone, and the first that is left of a member anywhere
    where nothing tells how far the cleaner has been: the last record of a key outlives the others.
    """
    offset = pl.col("from_offset")
    known = rows.join(
        known_epochs(epochs),
        left_on=(LIFE, "epoch_at"),
        right_on=(LIFE, "epoch"),
        how="left",
        maintain_order="left",
    )
    sure = came_with_known_epoch(offset, (lost_until(coverage) == 0))
    first = pl.col("since").is_null() & (offset < born_from(coverage)) & ~sure
    return known.with_columns(
        ((offset < uncompacted_from(coverage)) | first).alias("from_is_bound")
    )


def _named(word: str, columns: list[pl.Series]) -> list[pl.Series]:
    return [column.alias(f"{word}_{column.name}") for column in columns]
