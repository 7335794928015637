"""Commits of archived rows, of which nothing tells whether they took effect, as polars has them.

See `analytics.replay.log.archived_commits` for why, and for what is in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.dump.inspection.archived_losses import UNDECIDED
from analytics.replay.log.meanings import uuid

if TYPE_CHECKING:
    from analytics.replay.log.coverage import Coverage

MAY_BE_ABORTED = f"{UNDECIDED}: this commit may never have taken effect"
MAY_HAVE_BEEN_ABORTED = f"{UNDECIDED}: the commit before this change may never have taken effect"


def is_undecided(coverage: Coverage, topic_id: pl.Expr, *, is_commit: pl.Expr) -> pl.Expr:
    """Return whether nothing tells if a commit was in a transaction.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
        topic_id: The topic's id in the commit's value, null or zero where there is none.
        is_commit: Whether the row is a commit, not a tombstone.
    """
    is_archived = pl.col("coordinator_partition").is_in(sorted(coverage.undecided))
    return is_archived & is_commit & uuid(topic_id).is_null()
