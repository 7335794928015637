"""What members held, record by record: partitions, tasks, a subscription, their very presence.

Every record is a snapshot of something: a classic group's of all its members, a current assignment
of what one member has. What the next snapshot of the same thing no longer holds ended there. So all
of it is one problem: runs of snapshots that hold the same item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.replay.groups.group_records import (
    ASSIGNOR,
    CLASSIC,
    CURRENT,
    GROUP,
    GROUP_KEY,
    MEMBER,
    PENDING,
    PRESENCE,
    STREAMS,
    SUBSCRIPTION,
    TARGET,
    codes,
    combined,
    dense,
)
from analytics.replay.log.spans import LIFE, ROW

if TYPE_CHECKING:
    from analytics.replay.groups.group_records import Flags, Numbers


# What was known of a group and of who owned a partition, from record to record.
#
# Commits are looked at beside these: both are light rows at offsets of the coordinator's log.

_ACTIVE = "active"
_KEY = {"coordinator_partition": pl.Int32(), "group_id": pl.String()}
_GROUP = {"family": pl.String(), "epoch": pl.Int32(), "offset": pl.Int64()}
_OWNER = {"member_id": pl.String(), "epoch": pl.Int32()}
MOMENTS = pl.Schema(
    {**_KEY, "position": pl.Int64(), "group": pl.Struct(_GROUP), "joins": pl.Int32()}
)
"""Of `group_moments`."""
OWNERS = pl.Schema(
    {
        **_KEY,
        "topic": pl.String(),
        "partition": pl.Int32(),
        "position": pl.Int64(),
        "owner": pl.Struct(_OWNER),
    }
)
"""Of `owners`."""


def group_moments(held: Held) -> pl.DataFrame:
    """Return when groups changed their type, epoch or number of members.

    Args:
        held: Of `held_items`.

    Returns:
        `MOMENTS`: `position` (offset), `group` (its `family` and `epoch`, both null once the group
        is gone, the epoch while no record tells it, and `offset`; null where neither changed) and
        `joins` (members that came, less those that went).
    """
    starts, ends, is_epoch = (pl.col(name) for name in ("starts", "ends", "is_epoch"))
    group = pl.struct(
        pl.when(~ends).then("family").alias("family"),
        pl.when(~ends & is_epoch).then("epoch").alias("epoch"),
        "offset",
    )
    told = (
        held.steps.select(*GROUP_KEY, "offset", "family", "epoch", starts, ends, is_epoch)
        .filter(starts | ends | is_epoch)
        .select(
            *GROUP_KEY,
            pl.col("offset").alias("position"),
            group.alias("group"),
            pl.lit(0, pl.Int32).alias("joins"),
        )
    )
    there = held.runs.select("kind", "at", "until").filter(pl.col("kind") == PRESENCE)
    counted = (
        pl.DataFrame(held.columns_at(rows, *GROUP_KEY, "offset")).with_columns(
            joins=pl.lit(joins, pl.Int32)
        )
        for rows, joins in ((there["at"], 1), (there["until"].drop_nulls(), -1))
    )
    moved = pl.concat(counted).rename({"offset": "position"})
    return pl.concat([told, moved], how="diagonal")


def owners(held: Held, sources: pl.DataFrame) -> pl.DataFrame:
    """Return when partitions of topics got an owner, its epoch changed, or they lost it.

    What is being given back is owned until it is. The partitions of a streams task are those of the
    source topics of its subtopology.

    Args:
        held: Of `held_items`; what has no name of a topic cannot be told.
        sources: `GROUP_KEY`, `subtopology_id` and `topic`: what subtopologies read from.

    Returns:
        `OWNERS`: `position` (offset), `owner` (both null where it lost its owner).
    """
    nobody = pl.struct(pl.lit(None, kind).alias(name) for name, kind in _OWNER.items())
    had = _owned(held, held.rows, "at", pl.struct("member_id", "epoch"))
    lost = _owned(held, held.runs.filter(pl.col("until").is_not_null()), "until", nobody)
    return pl.concat(
        _with_sources(owned, sources).filter(pl.col("topic").is_not_null()).select(OWNERS.names())
        for owned in (had, lost)
    )


def _owned(held: Held, rows: pl.DataFrame, place: str, owner: pl.Expr) -> pl.DataFrame:
    """Return of which partitions and tasks something is told in some of `rows` or `runs`."""
    is_active = (pl.col("role") == _ACTIVE).fill_null(value=True)
    owned = pl.col("kind").is_in([CURRENT, PENDING]) & is_active
    kept = rows.filter(held.items.select(owned.gather(rows["entry"])).to_series())
    position, *key = held.columns_at(kept[place], "offset", *GROUP_KEY)
    return pl.DataFrame(
        [
            *key,
            *held.columns_at(kept["at"], "family", "epoch"),
            *held.named(kept, "member_id", "subtopology_id", "topic"),
            kept["partition"],
            position.alias("position"),
        ]
    ).with_columns(owner.alias("owner"))


def _with_sources(owned: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Turn tasks into the partitions of what their subtopologies read from."""
    is_task = pl.col("family") == STREAMS
    tasks = owned.filter(is_task).drop("topic")
    if tasks.is_empty():
        return owned
    of_sources = tasks.join(sources, on=(*GROUP_KEY, "subtopology_id"))
    return pl.concat([owned.filter(~is_task), of_sources], how="diagonal")


def source_topics(topologies: pl.DataFrame) -> pl.DataFrame:
    """Return `GROUP_KEY`, `subtopology_id` and `topic`: what subtopologies read from.

    Args:
        topologies: `GROUP_KEY` and `subtopologies`, as decoded.
    """
    parts = topologies.explode("subtopologies", empty_as_null=False, keep_nulls=False)
    told = parts.select(*GROUP_KEY, pl.col("subtopologies").struct.unnest())
    repartitioned = pl.col("repartition_source_topics").list.eval(pl.element().struct.field("name"))
    return (
        told.select(
            *GROUP_KEY,
            "subtopology_id",
            pl.concat_list("source_topics", repartitioned).alias("topic"),
        )
        .explode("topic", empty_as_null=False, keep_nulls=False)
        .unique()
    )


NONE: Final = -1
"""No row."""
ITEM: Final = ("member_id", "kind", "role", "subtopology_id", "topic", "topic_id", "partition")
_WHAT: Final = ITEM[2:-1]
_STRANDS: Final = (CLASSIC, PRESENCE, SUBSCRIPTION, CURRENT, TARGET)
"""What of its group or member a record may be a snapshot of."""
_STRAND_OF: Final = {
    PRESENCE: PRESENCE,
    SUBSCRIPTION: SUBSCRIPTION,
    ASSIGNOR: SUBSCRIPTION,
    CURRENT: CURRENT,
    PENDING: CURRENT,
    TARGET: TARGET,
}
"""By kind of item, which thing of a member a snapshot that shows it is one of."""
KIND: Final = pl.Enum(list(_STRAND_OF))
_STRANDS_OF_KINDS: Final = np.array([_STRANDS.index(each) for each in _STRAND_OF.values()])


@dataclass(frozen=True)
class Held:
    """What snapshots hold.

    Attributes:
        steps: Of `group_incarnations`.
        items: What records list: the columns of `ITEM` but `partition` (`topic` is the words of a
            subscription, or the name of an assignor; null where nothing names the id), `about`.
        rows: One row for each snapshot and each item that it holds: `at` (the row of the record),
            `entry` (the row in `items`) and `partition`. Items are one after the other, each in
            order.
        runs: One row for each run of snapshots that hold an item, in the order in which they begin:
            `at`, `entry` and `partition` of its first row, `kind` (of `KIND`), `last` (the row of
            the record of its last snapshot), `since` (offset of the snapshot of the same thing
            before it, null where this life has none), `until` (the row of the record where it
            ended: the next snapshot, or the end of the life; null while it lasts), `is_of_life`
            (boolean: it ended with the life), `member` and `thing` (numbers of what `ITEM` names:
            of the member, and of all but member and kind), `is_closing` (boolean: it ended with the
            life, or in a record that was written together with its end; null while it lasts) and
            `ended_in` (the row of the record that tells the epoch up to which it lasted; null while
            it lasts).
    """

    steps: pl.DataFrame
    items: pl.DataFrame
    rows: pl.DataFrame
    runs: pl.DataFrame

    def named(self, rows: pl.DataFrame, *names: str) -> list[pl.Series]:
        """Return columns of `items` for some of `rows` or `runs`."""
        return self.items.select(pl.col(*names).gather(rows["entry"])).get_columns()

    def columns_at(self, rows: pl.Series, *names: str) -> list[pl.Series]:
        """Return columns of `steps` in some of its rows; null where there is none."""
        return self.steps.select(pl.col(*names).gather(rows)).get_columns()

    def about(self, rows: pl.DataFrame) -> pl.Series:
        """Return who the members of some of `rows` or `runs` are."""
        (own,) = self.named(rows, "about")
        if own.null_count() == 0:
            return own
        return own.zip_with(own.is_not_null(), *self.columns_at(rows["at"], "about"))


@dataclass(frozen=True)
class _Snapshots:
    """All snapshots, those of a thing one after the other, each in order.

    Attributes:
        number: By row of `steps`, five numbers: which snapshot of each of `_STRANDS` it is.
        thing: What each is a snapshot of.
        before: The row of the snapshot of the same thing before it, `NONE` where there is none.
        behind: The row of the one behind it.
    """

    number: Numbers
    thing: Numbers
    before: Numbers
    behind: Numbers


def held_items(steps: pl.DataFrame, topic_names: pl.DataFrame) -> Held:
    """Find what snapshots hold.

    Args:
        steps: Of `group_incarnations`.
        topic_names: `topic_id` and `name`, each id once.
    """
    items, snapshots = _items(steps, topic_names), _snapshots(steps)
    member, kind = codes(items["member_id"]), items["kind"].to_physical().to_numpy()
    strand = np.where(items["is_of_classic"], _STRANDS.index(CLASSIC), _STRANDS_OF_KINDS[kind])
    number = snapshots.number[items["at"].to_numpy(), strand]
    what = combined(*(codes(items[name]) for name in _WHAT))
    told = (
        items.select("at", pl.col("partitions").alias("partition"))
        .with_row_index("entry")
        .explode("partition", empty_as_null=False, keep_nulls=False)
    )
    entry, partition = told["entry"].to_numpy(), codes(told["partition"])
    items_of = combined(snapshots.thing[number], member, kind, what)
    order, is_first = _in_order(combined(items_of[entry], partition))
    first, last = _runs(is_first, number[entry[order]])
    first, last = order[first], order[last]
    # Runs follow each other as the records do that begin them.
    in_time = np.argsort(first, kind="stable")
    first, last = first[in_time], last[in_time]
    entry, ends = entry[first], entry[last]
    runs = told[first].with_columns(
        items["kind"].gather(entry),
        pl.Series("member", member[entry]),
        pl.Series("thing", dense(what[entry], partition[first])[0]),
        steps["offset"].gather(_rows(snapshots.before[number[entry]])).alias("since"),
    )
    until = _until(steps, told["at"].gather(last), _rows(snapshots.behind[number[ends]]))
    return Held(steps, items, told[order], runs.with_columns(until))


def _in_order(item: Numbers) -> tuple[Numbers, Flags]:
    """Return rows by item, in the order in which items come first, and which rows these are."""
    by_number = np.argsort(item, kind="stable")
    ordered = item[by_number]
    is_first = np.ones(len(item), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    came = by_number[is_first][np.cumsum(is_first) - 1]
    in_time = np.argsort(came, kind="stable")
    return by_number[in_time], is_first[in_time]


def _runs(is_first: Flags, number: Numbers) -> tuple[Numbers, Numbers]:
    """Return the first and the last place of each run of snapshots that hold an item."""
    begins, ends = np.ones((2, len(number)), bool)
    begins[1:] = is_first[1:] | (number[1:] > number[:-1] + 1)
    ends[:-1] = begins[1:]
    return np.flatnonzero(begins), np.flatnonzero(ends)


def _until(steps: pl.DataFrame, last: pl.Series, behind: pl.Series) -> pl.DataFrame:
    """Return `last`, `until`, `is_of_life`, `ended_in` and `is_closing` of runs."""
    offset, ending = steps["offset"], steps["ending"].gather(last)
    # What was never told to have ended before ends with the life.
    outlives = (offset.gather(ending) > offset.gather(last)).fill_null(value=False)
    ends = pl.DataFrame({"last": last, "behind": behind, "ending": ending, "outlives": outlives})
    is_of_life, until = pl.col("is_of_life"), pl.col("until")
    return ends.select(
        "last",
        pl.coalesce("behind", pl.when("outlives").then("ending")).alias("until"),
        (pl.col("behind").is_null() & pl.col("outlives")).alias("is_of_life"),
    ).with_columns(
        pl.when(is_of_life).then("last").otherwise(until).alias("ended_in"),
        (steps["is_closing"].gather(behind) | is_of_life).alias("is_closing"),
    )


def _rows(numbers: Numbers) -> pl.Series:
    """Return numbers of rows, null for `NONE`."""
    return pl.Series(numbers).cast(pl.get_index_type(), strict=False)


def _snapshots(steps: pl.DataFrame) -> _Snapshots:
    role, gone = pl.col("role"), pl.col("is_tombstone")
    of_member, of_current = role == MEMBER, role == CURRENT
    shows = {
        CLASSIC: _is_of_classic(),
        # Without its current assignment a member is still there, with nothing.
        PRESENCE: of_member | (of_current & ~gone),
        SUBSCRIPTION: of_member,
        CURRENT: of_current | (of_member & gone),
        TARGET: role == TARGET,
    }
    shown = steps.select(shows[strand].alias(strand) for strand in _STRANDS).to_numpy()
    row, strand = np.nonzero(shown)
    life, member = steps[LIFE].to_numpy()[row], codes(steps["member_id"])[row]
    thing = dense(life, strand, member)[0]
    order = np.argsort(thing, kind="stable")
    row, thing = row[order], thing[order]
    number = np.full(shown.shape, NONE)
    number[row, strand[order]] = np.arange(len(row))
    before, behind = np.full((2, len(row)), NONE)
    goes_on = np.flatnonzero(thing[1:] == thing[:-1])
    before[goes_on + 1], behind[goes_on] = row[goes_on], row[goes_on + 1]
    return _Snapshots(number, thing, before, behind)


def _is_of_classic() -> pl.Expr:
    """Whether a step is a record of a classic group, which holds items of all its members."""
    return (pl.col("family") == CLASSIC) & (pl.col("role") == GROUP)


def _items(steps: pl.DataFrame, topic_names: pl.DataFrame) -> pl.DataFrame:
    """Return what records list, with `at`, `is_of_classic` and `partitions`."""
    listed = (
        steps.select(pl.col(ROW).alias("at"), _is_of_classic().alias("is_of_classic"), "items")
        .explode("items", empty_as_null=False, keep_nulls=False)
        .unnest("items")
    )
    name = pl.col("topic_id").replace_strict(
        topic_names["topic_id"], topic_names["name"], default=None, return_dtype=pl.String
    )
    return listed.with_columns(
        pl.col("kind").cast(KIND),
        pl.coalesce("member_id", steps["member_id"].gather(listed["at"])),
        pl.coalesce("topic", name),
    )
