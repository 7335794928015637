"""Which assignor a consumer group used in each epoch: the one that most of its members named.

As ``ConsumerGroup.preferredServerAssignor`` has it; `analytics.replay.groups.group_rows` tells
the same of the present.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.groups.item_kinds import ASSIGNOR
from analytics.replay.history.groups.epoch_counts import epoch_changes
from analytics.replay.history.neighbours import EPOCH, LIFE

if TYPE_CHECKING:
    from analytics.replay.history.groups.held_items import Held

_VOTE = (LIFE, "assignor")


def with_preferred_assignor(epochs: pl.DataFrame, held: Held) -> pl.DataFrame:
    """Add `assignor`: what most members that were there at the end of an epoch named, or null.

    Args:
        epochs: `EPOCH`, `LIFE` and more, in order.
        held: Of `held_items`.
    """
    named = held.runs.filter(pl.col("kind") == ASSIGNOR)
    (assignor,), (life,) = held.named(named, "topic"), held.columns_at(named["at"], LIFE)
    changes = (
        epoch_changes(held, named.with_columns(assignor.alias("assignor"), life), *_VOTE)
        .group_by(EPOCH, *_VOTE)
        .agg(pl.col("delta").sum())
    )
    votes = (
        epochs.select(EPOCH, LIFE)
        .join(changes.select(_VOTE).unique(), on=LIFE)
        .join(changes, on=(EPOCH, *_VOTE), how="left")
        .sort(EPOCH, "assignor")
        .with_columns(pl.col("delta").fill_null(0).cum_sum().over(_VOTE).alias("votes"))
    )
    # Of two that are named by as many, the one whose name comes last.
    preferred = (
        votes.filter(pl.col("votes") > 0)
        .sort("votes", "assignor")
        .group_by(EPOCH)
        .agg(pl.col("assignor").last())
    )
    return epochs.join(preferred, on=EPOCH, how="left", maintain_order="left")
