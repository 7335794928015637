"""To which life of its group a record belongs, and which epoch was in force when it was written.

A life of a group id goes from the first record of a type to the group's tombstone, or to the first
record of another type; a tombstone that takes over a simple group is such a first record. Records
are written in one batch with the epoch they bring about: what makes a new epoch necessary (a
member's record, its tombstones) stands before the epoch's own record, what follows from it
(targets, current assignments) behind.
"""

from __future__ import annotations

import polars as pl

from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    GROUP_KEY,
    MEMBER,
    STREAMS,
    TARGET,
    codes,
    combined,
)
from analytics.replay.log.spans import (
    EPOCH,
    FIRST,
    LIFE,
    ROW,
    at,
    in_order,
    last_before,
    last_up_to,
    next_after,
    so_far,
)

# Where a tombstone takes over a simple group: the group is a consumer or streams group from there.
#
# Since 4.0 (``GroupMetadataManager``: get or create by a record of another type). A simple group is
# made by a commit where there is no group, or by a classic value without members and protocol type;
# `analytics.replay.groups.lives` decides the same of the present lives alone.

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


_END = "end"


def group_incarnations(
    log: pl.DataFrame, commits: pl.DataFrame | None, initial_epoch: int = 0
) -> pl.DataFrame:
    """Add to each record about a group where it belongs.

    Args:
        log: Of `coordinator_log`, all records of some groups.
        commits: As `with_conversions` takes them.
        initial_epoch: Of a group that no record of its own tells of yet.

    Returns:
        The records `in_order`, with `takes_over`, `life` (int, from 1; 0 before the first record of
        a life), `starts` and `ends` (boolean: a life), `epoch_no` (int: the group's how-manieth
        epoch), `epoch_at` (int: generation or group epoch; both null where no record tells),
        `epoch_by` (int: `epoch_at`, else the first one known after it), `is_epoch` (boolean: begins
        or repeats an epoch), `ending` (the row of the record that ended the life, null while it
        lasts), `is_closing` (boolean: written together with that end), `LIFE` and `EPOCH`; `about`
        is filled in from the member's other records.
    """
    converted = with_conversions(in_order(log), commits)
    numbered = _with_epoch_numbers(_with_lives(converted, initial_epoch))
    return _with_about(_with_ends(numbered))


def _with_lives(log: pl.DataFrame, initial_epoch: int) -> pl.DataFrame:
    family, takes = pl.col("family"), pl.col("takes_over").is_not_null()
    births = pl.col("creates") & ~pl.col("is_tombstone")
    removals = (pl.col("role") == GROUP) & pl.col("is_tombstone")
    begins = takes & (pl.col("role") != GROUP)
    label = pl.when(births | begins).then(family).when(removals).then(pl.lit(_END))
    before = pl.col("label_before")
    after_end = before.is_null() | (before == _END)
    of_it = (family == CLASSIC) | (before == family)
    return (
        log.with_columns(label.alias("label"))
        .with_columns(at(last_before(pl.col("label").is_not_null()), "label").alias("label_before"))
        .with_columns(
            (begins | (births & (after_end | (before != family)))).alias("starts"),
            (removals & (takes | (~after_end & of_it))).alias("ends"),
            pl.when(begins).then(pl.lit(initial_epoch, pl.Int32)).otherwise("epoch").alias("epoch"),
        )
        .with_columns(
            so_far(pl.col("starts")).alias("life"),
            (pl.col("starts") | (pl.col(ROW) == pl.col(FIRST)))
            .cum_sum()
            .cast(pl.Int64)
            .alias(LIFE),
        )
        .drop("label", "label_before")
    )


def _with_epoch_numbers(lived: pl.DataFrame) -> pl.DataFrame:
    of_group = pl.col("role") == GROUP
    takes_over = pl.col("takes_over").is_not_null()
    is_epoch = (of_group & ~pl.col("is_tombstone")) | (takes_over & ~of_group)
    same = (at("before", "life") == pl.col("life")) & (at("before", "epoch") == pl.col("epoch"))
    is_new = pl.col("is_epoch") & ~same.fill_null(value=False)
    return (
        lived.with_columns(is_epoch.alias("is_epoch"))
        .with_columns(last_before(pl.col("is_epoch")).alias("before"))
        .with_columns(so_far(is_new).alias("number"))
        .drop("before")
    )


def _with_ends(numbered: pl.DataFrame) -> pl.DataFrame:
    ends, starts, life = pl.col("ends"), pl.col("starts"), pl.col("life")
    # A life that has no end of its own ends where the next one starts.
    closes = pl.when(ends).then(life).when(starts).then(life - 1)
    marked = numbered.with_columns(
        closes.alias("closes"),
        next_after(ends | starts).alias("next_mark"),
        next_after(pl.col("is_epoch")).alias("next_epoch"),
        last_up_to(pl.col("is_epoch")).alias("in_force"),
    )
    ended_later = at("next_mark", "closes") == life
    ending = pl.when(ends).then(ROW).when(ended_later).then("next_mark")
    followed = at("next_epoch", "life") == life
    at_once = followed & (at("next_epoch", "batch") == pl.col("batch")) & _brings_an_epoch()
    known = at("in_force", "life") == life
    told = pl.when(at_once).then("next_epoch").when(known).then("in_force")
    return (
        marked.with_columns(
            ending.alias("ending"),
            told.alias("told_at"),
            pl.when(followed).then("next_epoch").alias("told_later"),
        )
        .with_columns(pl.coalesce("told_at", "told_later").alias("told_by"))
        .with_columns(
            at("ending", "batch").eq_missing(pl.col("batch")).alias("is_closing"),
            at("told_by", "number").alias("epoch_no"),
            at("told_at", "epoch").alias("epoch_at"),
            at("told_by", "epoch").alias("epoch_by"),
        )
        .drop("closes", "next_mark", "next_epoch", "in_force", "number")
        .with_columns(_epochs().alias(EPOCH))
        .drop("told_at", "told_later", "told_by")
    )


def _epochs() -> pl.Expr:
    """Number the epochs of all lives, one after the other; null where there is none."""
    of_life = pl.col(LIFE).cast(pl.Int64) * 2**31 + pl.col("epoch_no")
    return of_life.rank("dense").cast(pl.Int64) - 1


def _brings_an_epoch() -> pl.Expr:
    leaves = pl.col("is_tombstone") & pl.col("role").is_in([CURRENT, TARGET])
    return (pl.col("role") == MEMBER) | leaves


def _with_about(moments: pl.DataFrame) -> pl.DataFrame:
    member = pl.Series("member", combined(moments[FIRST].to_numpy(), codes(moments["member_id"])))
    tells = pl.when(pl.col("about").is_not_null()).then(ROW)
    # A record that was written again later may be all that compaction left of the member.
    known = pl.coalesce(tells.forward_fill().over(member), tells.min().over(member))
    return moments.with_columns(at(known, "about").alias("about"))
