"""What members held, from when to when: partitions, tasks, a subscription, their very presence.

Every record is a snapshot of something: a classic group's of all its members, a current assignment
of what one member has. What the next snapshot of the same thing no longer holds ended there. So all
of it is one problem: runs of snapshots that hold the same item.
"""

from __future__ import annotations

import polars as pl

from analytics.replay.groups.group_records import CLASSIC, CURRENT, GROUP, GROUP_KEY, MEMBER, TARGET
from analytics.replay.groups.item_kinds import ASSIGNOR, PENDING, PRESENCE, SUBSCRIPTION
from analytics.replay.history.neighbours import FIRST, ROW

ITEM = ("member_id", "kind", "role", "subtopology_id", "topic", "topic_id", "partition")
_STRAND_OF = {
    PRESENCE: PRESENCE,
    SUBSCRIPTION: SUBSCRIPTION,
    ASSIGNOR: SUBSCRIPTION,
    CURRENT: CURRENT,
    PENDING: CURRENT,
    TARGET: TARGET,
}
"""By kind of item, which thing of a member a snapshot that shows it is one of."""
_PLACE = ("offset", "timestamp", "batch", "epoch_no", "epoch_at", "epoch_by", "is_closing")


_POSITION = {
    "leader_epoch": pl.Int32(),
    "copy": pl.String(),
    "segment": pl.String(),
    "batch_position": pl.Int64(),
}
_AT = pl.Struct(
    {
        "offset": pl.Int64(),
        "timestamp": pl.Datetime("us", "UTC"),
        "batch": pl.Int64(),
        **dict.fromkeys(("epoch_no", "epoch_at", "epoch_by"), pl.Int32()),
        "is_closing": pl.Boolean(),
        "position": pl.Struct(_POSITION),
        "since": pl.Int64(),
    }
)
INTERVALS = pl.Schema(
    {
        "coordinator_partition": pl.Int32(),
        "group_id": pl.String(),
        "family": pl.String(),
        "life": pl.Int32(),
        **dict.fromkeys(ITEM[:-1], pl.String()),
        "partition": pl.Int32(),
        "epoch": pl.Int32(),
        "last_epoch": pl.Int32(),
        "about": pl.Struct(
            dict.fromkeys(("group_instance_id", "client_id", "client_host"), pl.String())
        ),
        "at": _AT,
        "until": _AT,
    }
)
"""Of `assignment_intervals`."""


def held_items(steps: pl.DataFrame, topic_names: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each snapshot and each item it holds.

    Args:
        steps: Of `group_incarnations`.
        topic_names: `topic_id` and `name`, each id once.

    Returns:
        `coordinator_partition`, `group_id`, `family`, `life`, the columns of `ITEM` (`topic` is the
        words of a subscription, or the name of an assignor; null where nothing names the id),
        `epoch` (int: as the record names it), `about`, `at` (the row of the record), `since`
        (offset of the snapshot of the same thing before it, null where this life has none), `next`
        (the row of the snapshot behind it, null where this life has none), `starts` and `closes`
        (boolean: begins, or is the last of, a run). Items are one after the other, each in order.
    """
    held = _items(steps).join(_snapshots(steps), on=("at", "strand"), maintain_order="left")
    number, item = pl.col("number"), pl.col("item")
    before = pl.when(item.shift(1) == item).then(number.shift(1))
    after = pl.when(item.shift(-1) == item).then(number.shift(-1))
    ordered = (
        held.with_row_index("item")
        .with_columns(item.first().over(FIRST, "life", *ITEM))
        .sort("item", "number")
        .with_columns(
            (before.is_null() | (before < number - 1)).alias("starts"),
            (after.is_null() | (after > number + 1)).alias("closes"),
        )
    )
    named = ordered.join(topic_names, on="topic_id", how="left", maintain_order="left")
    return named.with_columns(pl.coalesce("topic", "name").alias("topic")).drop(
        FIRST, "strand", "number", "item", "name"
    )


def assignment_intervals(steps: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each run: what was held from a record to another one.

    Args:
        steps: Of `group_incarnations`.
        held: Of `held_items`.

    Returns:
        `INTERVALS`: `epoch` and `about` as in `held_items`; `last_epoch` (as the last record of the
        run names it), `at` and `until` (where it begins and ends, and `since`: offset of the
        snapshot of the same thing before that). `until` is null while the run lasts.
    """
    begins = held.filter("starts")
    ends = held.select("epoch", "at", "next", "closes").filter("closes")
    places = steps.select(*_PLACE, "position")
    at = places[begins["at"]].select(pl.struct(*_PLACE, "position", begins["since"]))
    # A run has one beginning and one end, and they take turns.
    runs = begins.with_columns(
        ends["epoch"].alias("last_epoch"),
        at.to_series().alias("at"),
        _until(ends, steps).alias("until"),
    )
    return runs.select(INTERVALS.names())


def _until(ends: pl.DataFrame, steps: pl.DataFrame) -> pl.Series:
    """Return where runs end: in the next snapshot, or with the life where there is none."""
    last = steps.select(*_PLACE, "ending")[ends["at"]]
    since = last["offset"].alias("since")
    following = steps.select(pl.col(*_PLACE, "position").gather(ends["next"]))
    ending = steps.select(pl.col("offset", "timestamp", "batch").gather(last["ending"]))
    # What was never told to have ended before ends with the life.
    of_life = last.with_columns(
        *ending,
        pl.lit(value=True).alias("is_closing"),
        pl.lit(None, pl.Struct(_POSITION)).alias("position"),
    )
    place = pl.struct(*_PLACE, "position", since)
    ends_later = pl.when(ending["offset"] > since).then(place)
    told, of_life = following.select(place), of_life.select(ends_later)
    return told.to_series().zip_with(ends["next"].is_not_null(), of_life.to_series())


def _snapshots(steps: pl.DataFrame) -> pl.DataFrame:
    """Number the snapshots of each thing, each with the rows of those beside it.

    Returns:
        `at`, `strand` (what of its group or member it is a snapshot of), `number`, `since` and
        `next`.
    """
    role, gone = pl.col("role"), pl.col("is_tombstone")
    told = pl.when(gone).then(_strands(PRESENCE, SUBSCRIPTION, CURRENT))
    of_member = told.otherwise(_strands(PRESENCE, SUBSCRIPTION))
    # Without its current assignment a member is still there, with nothing.
    of_current = pl.when(gone).then(_strands(CURRENT)).otherwise(_strands(PRESENCE, CURRENT))
    strands = (
        pl.when(role == GROUP)
        .then(_strands(CLASSIC))
        .when(role == TARGET)
        .then(_strands(TARGET))
        .when(role == CURRENT)
        .then(of_current)
        .otherwise(of_member)
    )
    thing = (FIRST, "life", "strand", "member_id")
    snapshots = steps.filter(_is_of_classic() | role.is_in([MEMBER, CURRENT, TARGET]))
    return (
        snapshots.select(ROW, FIRST, "life", "member_id", "offset", strands.alias("strand"))
        .explode("strand")
        .select(
            pl.col(ROW).alias("at"),
            "strand",
            pl.int_range(pl.len()).over(thing).alias("number"),
            pl.col("offset").shift(1).over(thing).alias("since"),
            pl.col(ROW).shift(-1).over(thing).alias("next"),
        )
    )


def _strands(*names: str) -> pl.Expr:
    return pl.lit(list(names), pl.List(pl.String))


def _is_of_classic() -> pl.Expr:
    return (pl.col("family") == CLASSIC) & (pl.col("role") == GROUP)


def _items(steps: pl.DataFrame) -> pl.DataFrame:
    """Return what records hold, one row a partition, each with what it is told by: `strand`."""
    of_step = (*GROUP_KEY, "family", "life", "epoch", FIRST)
    told = steps.select(
        *of_step,
        pl.col(ROW).alias("at"),
        pl.col("member_id").alias("of_member"),
        pl.col("about").alias("about_member"),
        _is_of_classic().alias("is_of_classic"),
        "items",
    )
    strand = (
        pl.when("is_of_classic")
        .then(pl.lit(CLASSIC))
        .otherwise(pl.col("kind").replace_strict(_STRAND_OF, default=None, return_dtype=pl.String))
    )
    return (
        told.explode("items", empty_as_null=False, keep_nulls=False)
        .unnest("items")
        .explode("partitions", empty_as_null=False, keep_nulls=False)
        .rename({"partitions": "partition"})
        .select(
            *of_step,
            "at",
            strand.alias("strand"),
            pl.coalesce("member_id", "of_member").alias("member_id"),
            *ITEM[1:],
            pl.coalesce("about", "about_member").alias("about"),
        )
    )
