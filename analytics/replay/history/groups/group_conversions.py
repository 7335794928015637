"""Where a tombstone takes over a simple group: the group is a consumer or streams group from there.

Since 4.0 (``GroupMetadataManager``: get or create by a record of another type). A simple group is
made by a commit where there is no group, or by a classic value without members and protocol type;
`analytics.replay.groups.lives` decides the same of the present lives alone.
"""

from __future__ import annotations

import polars as pl

from analytics.replay.groups.group_records import CLASSIC, CONSUMER, GROUP, GROUP_KEY, STREAMS
from analytics.replay.history.neighbours import ROW, at, last_before, so_far

SIMPLE = "simple"


def with_conversions(log: pl.DataFrame, commits: pl.DataFrame | None) -> pl.DataFrame:
    """Add `takes_over` to `coordinator_log`: what a record took over, `classic`, `simple` or null.

    Args:
        log: Of `coordinator_log`, `in_order`; at least the columns that are looked at here.
        commits: `GROUP_KEY` and `offset` of commits that are no tombstones; None where tombstones
            take nothing over, before 4.0.
    """
    nothing = pl.lit(None, pl.String).alias("takes_over")
    if commits is None:
        return log.with_columns(nothing)
    may_take = _between_makers(log)
    if may_take.is_empty():
        return log.with_columns(nothing)
    is_classic = pl.col("met") == CLASSIC
    first = (
        may_take.join(_simple_from(may_take, commits), on=("first_row", "stretch"), how="left")
        .filter(is_classic | (pl.col("offset") > pl.col("made_at")))
        .group_by("first_row", "stretch")
        .agg(pl.col(ROW).min(), is_classic.first())
        .select(
            ROW, pl.when("met").then(pl.lit(CLASSIC)).otherwise(pl.lit(SIMPLE)).alias("takes_over")
        )
    )
    return log.join(first, on=ROW, how="left", maintain_order="left")


def _between_makers(log: pl.DataFrame) -> pl.DataFrame:
    """Return the records that take over what there is, if there is a simple group.

    Returns:
        The rows with `stretch` (how many records that make or remove the group came before), `met`
        (what the last of these made: a type, `SIMPLE` for nothing; null before the first) and
        `met_at` (its offset).
    """
    family, is_tombstone = pl.col("family"), pl.col("is_tombstone")
    births = pl.col("creates") & ~is_tombstone
    removals = (pl.col("role") == GROUP) & is_tombstone
    makes = pl.when(births).then(family).when(removals).then(pl.lit(SIMPLE))
    newer = is_tombstone & family.is_in([CONSUMER, STREAMS])
    told = log.with_columns(makes.alias("makes"), is_simple().alias("is_simple"))
    marked = told.with_columns(
        last_before(pl.col("makes").is_not_null()).alias("met_row"),
        (so_far(pl.col("makes").is_not_null()) - pl.col("makes").is_not_null()).alias("stretch"),
    ).with_columns(
        at("met_row", "makes").alias("met"),
        at("met_row", "offset").alias("met_at"),
        at("met_row", "is_simple").alias("met_simple"),
    )
    # What follows a removal, or nothing at all, may be a group that commits made.
    simple = pl.col("met").is_null() | (pl.col("met") == SIMPLE) | pl.col("met_simple")
    return marked.filter(newer & simple.fill_null(value=False))


def is_simple() -> pl.Expr:
    """Whether a step is the record of a classic group without members and protocol type."""
    nobody = pl.col("items").list.len().fill_null(0) == 0
    no_protocol = pl.col("protocol_type").is_null()
    return (pl.col("family") == CLASSIC) & no_protocol & nobody & ~pl.col("is_tombstone")


def _simple_from(tombstones: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """Return the first commit between makers where there is no group: `made_at`."""
    without = (
        tombstones.filter(pl.col("met").is_null() | (pl.col("met") == SIMPLE))
        .group_by(*GROUP_KEY, "first_row", "stretch")
        .agg(
            pl.col("offset").max().alias("until"),
            pl.col("met_at").max().fill_null(-1).alias("since"),
        )
    )
    return (
        commits.join(without, on=GROUP_KEY)
        .filter(pl.col("offset").is_between("since", "until", closed="none"))
        .group_by("first_row", "stretch")
        .agg(pl.col("offset").min().alias("made_at"))
    )
