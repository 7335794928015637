"""Commits in transactions that outlive the removal of their offset, and whom that depends on.

Before 4.0 a tombstone outside transactions leaves what is pending in the log: the coordinator that
wrote it has dropped that from memory (``GroupMetadata.removeOffsets``), and one that loads the log
later has it again (``GroupMetadataManager.loadGroupsAndOffsets``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import polars as pl

from analytics.replay.log.as_of import Decoded
from analytics.replay.log.coverage import Coverage
from analytics.replay.log.losses import HOME
from analytics.replay.log.rules import ReplayRules
from analytics.replay.offsets.commit_rows import KEY, commit_rows

TRANSACTION: Final = "transaction"
_WHY: Final = (
    "a coordinator that has run since offset {} dropped it there with a tombstone; one that loads "
    "the log has it"
)
_EPOCHS: Final = pl.Schema({HOME: pl.Int32(), "last_epoch": pl.Int32()})


def last_epochs(decoded: Decoded, rules: ReplayRules) -> pl.DataFrame:
    """Return the last leader epoch that a partition's records tell of, as far as any asks for it.

    Args:
        decoded: Decoded tables, cut at an instant.
        rules: Of the release.

    Returns:
        `coordinator_partition` and `last_epoch`; see `merged_epochs`.
    """
    if rules.tombstones_remove_everything:
        return pl.DataFrame(schema=_EPOCHS)
    return merged_epochs(
        decoded[name].select(pl.col("partition").alias(HOME), last_epoch="leader_epoch")
        for name in ("offset_commit", "group_metadata")
    )


def merged_epochs(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return `last_epochs` of what several buckets tell."""
    return pl.concat(parts).group_by(HOME).agg(pl.col("last_epoch").max())


def with_outlived_removal(
    rows: pl.DataFrame,
    decoded: Decoded,
    rules: ReplayRules,
    coverage: Coverage,
    epochs: pl.DataFrame | None,
) -> pl.DataFrame:
    """Add `outlived`: why it depends on the coordinator whether there is such a commit, else null.

    A later leader epoch shows that the log was loaded since.

    Args:
        rows: Commits with their `KEY`, `record_offset` and `via`.
        decoded: Decoded tables of the same groups, cut at an instant.
        rules: Of the release.
        coverage: Whose answer is asked for.
        epochs: Of `last_epochs`, of whole partitions; None where `decoded` has them.
    """
    in_transactions = rows.filter(pl.col("via") == TRANSACTION)
    depends = not rules.tombstones_remove_everything and coverage.is_of_running
    if not depends or in_transactions.is_empty():
        return rows.with_columns(outlived=pl.lit(None, pl.String))
    if epochs is None:
        epochs = last_epochs(decoded, rules)
    removed = _last_removals(decoded, in_transactions)
    told = rows.join(removed, on=KEY, how="left").join(epochs, on=HOME, how="left")
    is_open = (
        (pl.col("via") == TRANSACTION)
        & (pl.col("removed_at") > pl.col("record_offset"))
        & ~(pl.col("last_epoch") > pl.col("removal_epoch")).fill_null(value=False)
    )
    why = pl.when(is_open).then(pl.format(_WHY, "removed_at"))
    return told.with_columns(outlived=why).drop("removed_at", "removal_epoch", "last_epoch")


def _last_removals(decoded: Decoded, of: pl.DataFrame) -> pl.DataFrame:
    """Return `KEY`, `removed_at` and `removal_epoch` of the last tombstone outside transactions."""
    commits = decoded["offset_commit"]
    plain = ~pl.col("is_transactional").fill_null(value=False)
    return (
        commit_rows(commits.filter(pl.col("is_tombstone") & plain))
        .join(of, on=KEY, how="semi")
        .sort("record_offset")
        .unique(KEY, keep="last", maintain_order=True)
        .select(*KEY, removed_at="record_offset", removal_epoch="leader_epoch")
    )
