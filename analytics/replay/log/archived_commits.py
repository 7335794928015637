"""Commits of archived rows, of which no producer id and no marker tells whether they took effect.

A commit in a transaction counts only once a COMMIT marker follows, and never where it was aborted.
Archived rows show neither, so that any commit may be of that kind. Two things are certain: a
tombstone is written by the coordinator itself; and a commit that names its topic's id did not come
in a transaction, as no release up to 4.4 gives the id to those that do
(``OffsetAndMetadata.fromRequest``). Of a key, what is certain is the last of these two. Any commit
after that may or may not be in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.dump.inspection.found_losses import UNDECIDED
from analytics.replay.log.losses import HOME, lost_between, uncompacted_from
from analytics.replay.log.meanings import uuid
from analytics.replay.offsets.commit_rows import KEY, commit_rows

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded
    from analytics.replay.log.coverage import Coverage
    from analytics.replay.log.rules import ReplayRules

UNKNOWN: Final = "unknown"
MAY_BE_ABORTED: Final = f"{UNDECIDED}: this commit may never have taken effect"
MAY_HAVE_BEEN_ABORTED: Final = (
    f"{UNDECIDED}: the commit before this change may never have taken effect"
)


def is_undecided(coverage: Coverage, topic_id: pl.Expr, *, is_commit: pl.Expr) -> pl.Expr:
    """Return whether nothing tells if a commit was in a transaction.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
        topic_id: The topic's id in the commit's value, null or zero where there is none.
        is_commit: Whether the row is a commit, not a tombstone.
    """
    return _is_archived(coverage) & is_commit & uuid(topic_id).is_null()


def with_range(
    committed: pl.DataFrame, decoded: Decoded, rules: ReplayRules, coverage: Coverage
) -> pl.DataFrame:
    """Add `undecided` to commits in force: what else may be in force, in words; null if certain.

    The `via` of such a commit is `unknown`.

    Args:
        committed: The last commit of each key (`KEY`, `via`).
        decoded: Decoded tables of the same groups, cut at the instant.
        rules: Of the release.
        coverage: What the dump holds.
    """
    if not coverage.undecided:
        return committed.with_columns(undecided=pl.lit(None, pl.String))
    commits = commit_rows(decoded["offset_commit"])
    told = committed.join(_ranges(commits, rules, coverage), on=KEY, how="left")
    via = pl.when(pl.col("undecided").is_null()).then("via").otherwise(pl.lit(UNKNOWN))
    return told.with_columns(via.alias("via"))


def removed_for_now(commits: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Return the last commit of keys whose last record is a tombstone: it may be in force again.

    Up to 3.9 a tombstone leaves what is pending, which takes effect with a marker behind it. Where
    no offset behind the tombstone is without a row, there is no such marker.

    Args:
        commits: `KEY`, `record_offset`, `is_tombstone` and whatever else.
        coverage: What the dump holds.
    """
    archived = commits.filter(_is_archived(coverage)).sort("record_offset")
    is_tombstone = pl.col("is_tombstone")
    committed, removed = (
        archived.filter(kind).unique(KEY, keep="last", maintain_order=True)
        for kind in (~is_tombstone, is_tombstone)
    )
    removed_at = pl.col("removed_at")
    may_be = (removed_at > pl.col("record_offset")) & (removed_at < uncompacted_from(coverage))
    places = removed.select(*KEY, removed_at="record_offset")
    return committed.join(places, on=KEY).filter(may_be).drop("removed_at")


def _is_archived(coverage: Coverage) -> pl.Expr:
    return pl.col(HOME).is_in(sorted(coverage.undecided))


def _ranges(commits: pl.DataFrame, rules: ReplayRules, coverage: Coverage) -> pl.DataFrame:
    """Return `KEY` and `undecided`, where there are commits that may or may not be in force."""
    is_tombstone, offset = pl.col("is_tombstone"), pl.col("record_offset")
    undecided = is_undecided(coverage, pl.col("topic_id"), is_commit=~is_tombstone)
    rows = commits.filter(_is_archived(coverage)).with_columns(undecided.alias("undecided"))
    is_certain = ~pl.col("undecided")
    if not rules.tombstones_remove_everything:
        # A tombstone ends nothing for sure while a marker may follow it.
        is_certain &= ~is_tombstone | (offset >= uncompacted_from(coverage))
    last = (
        rows.filter(is_certain)
        .sort("record_offset")
        .unique(KEY, keep="last", maintain_order=True)
        .select(*KEY, offset.alias("last"), pl.col("committed_offset").alias("last_committed"))
    )
    committed = pl.col("committed_offset")
    found = (
        rows.filter("undecided")
        .join(last, on=KEY, how="left")
        .filter(pl.col("last").is_null() | (offset > pl.col("last")))
        .group_by(KEY)
        .agg(
            committed.n_unique().alias("values"),
            committed.min().alias("least"),
            committed.max().alias("most"),
            offset.min().alias("first"),
            pl.col("last", "last_committed").first(),
        )
    )
    is_lost = lost_between(coverage, pl.col("last").fill_null(-1), pl.col("first"))
    lost = pl.when(is_lost.is_not_null()).then(pl.lit(", or one that is not in the rows"))
    before = pl.col("last_committed").cast(pl.String).fill_null("none")
    several = pl.format("any of {} offsets from {} to {}", "values", "least", "most")
    what = pl.when(pl.col("values") == 1).then(pl.col("most").cast(pl.String)).otherwise(several)
    words = pl.format(f"{UNDECIDED}: it may be {{}}, or {{}}{{}}", what, before, lost.fill_null(""))
    return found.select(*KEY, words.alias("undecided"))
