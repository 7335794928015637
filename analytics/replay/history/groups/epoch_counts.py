"""What changed from one epoch of a group to the next, in numbers.

All are net changes: a member or a partition that came and went within one epoch counts for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analytics.replay.codes import combined, grouped
from analytics.replay.groups.group_records import CLASSIC, CURRENT, MEMBER, STREAMS, TARGET
from analytics.replay.groups.item_kinds import PRESENCE
from analytics.replay.history.neighbours import EPOCH

if TYPE_CHECKING:
    from analytics.replay.groups.coded_log import Numbers
    from analytics.replay.history.groups.held_items import Held

_SETTLED_PARTITIONS, _SETTLED_TASKS = 0, 1  # STABLE, as stored


def epoch_counts(held: Held, epochs: int) -> dict[str, pl.Series]:
    """Return what changed in each epoch.

    Args:
        held: Of `held_items`.
        epochs: How many there are.

    Returns:
        By epoch, in order: `joined` and `left` members; `gained` and `given_up`: pairs of a member
        and a partition or task; `moved`: of those gained, how many another member gave up; `ready`:
        members that reached the epoch and have nothing left to do.
    """
    kind, (family,) = pl.col("kind"), held.columns_at(held.runs["at"], "family")
    of_item = (kind == TARGET) | ((kind == CURRENT) & (family == CLASSIC))
    joined, left, _ = _changes(held, held.runs.filter(kind == PRESENCE), epochs)
    gained, given_up, moved = _changes(held, held.runs.filter(of_item), epochs)
    ready = np.bincount(_ready(held.steps), minlength=epochs)
    counts = {
        "joined": joined,
        "left": left,
        "gained": gained,
        "given_up": given_up,
        "moved": moved,
        "ready": ready,
    }
    return {name: pl.Series(name, each, pl.Int32) for name, each in counts.items()}


def _changes(held: Held, runs: pl.DataFrame, epochs: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return by epoch how much came, how much went, and how much moved from one to another."""
    changes = epoch_changes(held, runs, "thing", "member")
    epoch, thing, member, delta = (each.to_numpy() for each in changes.get_columns())
    order, begins = grouped(combined(epoch, thing, member))
    net, first = np.add.reduceat(delta[order], begins), order[begins]
    epoch, thing, came, went = epoch[first], thing[first], net > 0, net < 0
    # Of what one member gained, as much moved as others lost of the same.
    order, begins = grouped(combined(epoch, thing))
    gained, lost = (np.add.reduceat(each[order].astype(np.int64), begins) for each in (came, went))
    moved = np.repeat(epoch[order[begins]], np.minimum(gained, lost))
    found = (np.bincount(each, minlength=epochs) for each in (epoch[came], epoch[went], moved))
    came_in, went_in, moved_in = found
    return came_in, went_in, moved_in


def epoch_changes(held: Held, runs: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return in which epochs runs began and ended.

    Args:
        held: Of `held_items`.
        runs: Some of its runs.
        names: Columns of these.

    Returns:
        `EPOCH`, these columns and `delta` (1 or -1).
    """
    # What ends with the life of the group was there to the end of its last epoch.
    gone = runs.filter(~pl.col("is_closing"))
    changes = (
        ended.select(*held.columns_at(ended[row], EPOCH), *names, delta=pl.lit(delta, pl.Int64))
        for ended, row, delta in ((runs, "at", 1), (gone, "until", -1))
    )
    return pl.concat(changes).filter(pl.col(EPOCH).is_not_null())


def _ready(steps: pl.DataFrame) -> Numbers:
    """Return of each member that is where the epoch of its group wants it the epoch."""
    role, gone = pl.col("role"), pl.col("is_tombstone")
    is_task = pl.col("family") == STREAMS
    settled = pl.when(is_task).then(_SETTLED_TASKS).otherwise(_SETTLED_PARTITIONS)
    there = (
        (role == CURRENT)
        & ~gone
        & (pl.col("member_state") == settled)
        & (pl.col("epoch") == pl.col("epoch_at"))
    )
    told = ((role == CURRENT) | ((role == MEMBER) & gone)) & ~pl.col("is_closing")
    return (
        steps.select(EPOCH, "member_id", told.alias("told"), there.alias("is_ready"))
        .filter(pl.col("told") & pl.col(EPOCH).is_not_null())
        .unique([EPOCH, "member_id"], keep="last", maintain_order=True)
        .filter("is_ready")[EPOCH]
        .to_numpy()
    )
