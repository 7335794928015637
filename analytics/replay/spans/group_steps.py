"""Every record about a group but its offsets, as light rows: of which type of group it is.

Takes decoded tables by name as frames of polars, cut at an instant: `key`, `partition`, `offset`,
`timestamp`, `is_tombstone`; of `group_metadata` also its `value`. Gives `STEPS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER,
    GROUP,
    GROUP_KEY,
    KINDS,
    STREAMS,
)
from analytics.replay.spans.intervals import TIME

STEPS: Final = pl.Schema(
    {
        "coordinator_partition": pl.Int32(),
        "group_id": pl.String(),
        "from_offset": pl.Int64(),
        "from_at": TIME,
        "family": pl.String(),
        "is_group": pl.Boolean(),
        "creates": pl.Boolean(),
        "is_tombstone": pl.Boolean(),
        "is_simple": pl.Boolean(),
    }
)
"""A row per record: its offset and time, the type of group it is of, whether it is the record of
the group itself, whether a value makes the group, whether it is the value of a classic group
without members and protocol type."""

SIMPLE: Final = "simple"
_STRETCH: Final = (*GROUP_KEY, "stretch")


def located(records: pl.DataFrame, group: str = "group_id") -> pl.DataFrame:
    """Add `GROUP_KEY`, `from_offset` and `from_at` to decoded records."""
    return records.with_columns(
        pl.col("partition").alias("coordinator_partition"),
        pl.col("key").struct.field(group).alias("group_id"),
        pl.col("offset").alias("from_offset"),
        pl.col("timestamp").cast(TIME).alias("from_at"),
    )


def group_steps(decoded: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return `STEPS` of decoded tables, in the order of `GROUP_KEY` and `from_offset`."""
    parts = [STEPS.to_frame()]
    for name, kind in KINDS.items():
        records = decoded[name]
        if not records.height:
            continue
        is_classic = kind.family == CLASSIC
        rows = located(records, kind.group_field).with_columns(
            pl.lit(kind.family).alias("family"),
            pl.lit(kind.role == GROUP).alias("is_group"),
            pl.lit(kind.creates).alias("creates"),
            (_is_simple() if is_classic else pl.lit(value=False)).alias("is_simple"),
        )
        parts.append(rows.select(pl.col(each).cast(type_) for each, type_ in STEPS.items()))
    return pl.concat(parts).sort(*GROUP_KEY, "from_offset")


def group_conversions(steps: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """Return the tombstones that took a simple group over: it is of their type from there.

    Since 4.0 (``GroupMetadataManager``: get or create by a record of another type). A simple group
    is made by a commit where there is no group, or by a classic value without members and protocol
    type.

    Args:
        steps: Of `group_steps`.
        commits: Of `commit_rows`.

    Returns:
        Those steps, at most one between two records that make or remove a group.
    """
    placed = _with_stretches(steps)
    candidates = placed.filter("may_take")
    if not candidates.height:
        return candidates.select(steps.columns)
    found = candidates.join(_simple_from(candidates, commits), on=list(_STRETCH), how="left")
    taken = (pl.col("met_label") == CLASSIC) | (pl.col("from_offset") > pl.col("made_at"))
    return (
        found.filter(taken)
        .sort("from_offset")
        .unique(list(_STRETCH), keep="first", maintain_order=True)
        .select(steps.columns)
    )


def _is_simple() -> pl.Expr:
    value = pl.col("value")
    no_protocol = value.struct.field("protocol_type").fill_null("") == ""
    nobody = value.struct.field("members").list.len().fill_null(0) == 0
    return no_protocol & nobody & ~pl.col("is_tombstone")


def _with_stretches(steps: pl.DataFrame) -> pl.DataFrame:
    """Number the stretches between records that make or remove a group.

    Returns:
        The steps with `stretch`, `met_label` and `met_offset` of the record the stretch follows
        (null before the first), and `may_take`: it takes over what there is, if there is a simple
        group.
    """
    family, is_tombstone = pl.col("family"), pl.col("is_tombstone")
    births = pl.col("creates") & ~is_tombstone
    removals = pl.col("is_group") & is_tombstone
    label = pl.when(births).then(family).when(removals).then(pl.lit(SIMPLE))
    marked = steps.with_columns(label.alias("label"))
    is_mark = pl.col("label").is_not_null()

    def met(what: pl.Expr) -> pl.Expr:
        last = pl.when(is_mark).then(what).forward_fill()
        return last.shift(1).over(list(GROUP_KEY))

    placed = marked.with_columns(
        met(pl.col("label")).alias("met_label"),
        met(pl.col("is_simple")).alias("met_simple"),
        met(pl.col("from_offset")).alias("met_offset"),
        is_mark.cum_sum().shift(1, fill_value=0).over(list(GROUP_KEY)).alias("stretch"),
    )
    # What follows a removal, or nothing at all, may be a group that commits made.
    was = pl.col("met_label")
    simple = was.is_null() | (was == SIMPLE) | pl.col("met_simple")
    newer = is_tombstone & family.is_in([CONSUMER, STREAMS])
    return placed.with_columns((newer & simple.fill_null(value=False)).alias("may_take"))


def _simple_from(candidates: pl.DataFrame, commits: pl.DataFrame) -> pl.DataFrame:
    """Return the first commit in each stretch without a group: `_STRETCH` and `made_at`."""
    without = candidates.filter(pl.col("met_label").is_null() | (pl.col("met_label") == SIMPLE))
    bounds = without.group_by(*_STRETCH).agg(
        pl.col("from_offset").max().alias("until"),
        pl.col("met_offset").max().fill_null(-1).alias("since"),
    )
    made = pl.col("record_offset")
    return (
        commits.filter(~pl.col("is_tombstone"))
        .select(*GROUP_KEY, "record_offset")
        .join(bounds, on=list(GROUP_KEY))
        .filter((made > pl.col("since")) & (made < pl.col("until")))
        .group_by(*_STRETCH)
        .agg(made.min().alias("made_at"))
    )
