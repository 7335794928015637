"""The table `membership_changes`: who joined, left or came back, and what that gave and took.

What was written in one batch happened at once: a member that leaves one life of a group and enters
the next by a conversion did neither, and a static member whose place another id takes restarted.
Records do not tell why a member left. Only one that was away for a while, at epoch -2, and never
came back is sure to have been fenced.

The first record that compaction left of a member or of a classic group tells what was there by
then, not what happened then. Compaction takes the older records of a key first: what came after
one that is still there is whole, unless more than compaction took records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa

from analytics.contracts import contract_frame
from analytics.replay.groups.group_records import (
    CLASSIC,
    CURRENT,
    GROUP_KEY,
    PRESENCE,
    SUBSCRIPTION,
    codes,
    combined,
    first_row,
    grouped,
)
from analytics.replay.log.losses import (
    HOME,
    WHOLE,
    Coverage,
    born_from,
    lost_between,
    lost_until,
    with_marks_of_records,
)
from analytics.replay.log.spans import FIRST, LIFE

if TYPE_CHECKING:
    from analytics.replay.groups.group_records import Flags, Numbers
    from analytics.replay.history.held_items import Held


# What came to members and went from them, item by item, and what that makes of a moment.

AWAY: Final = -2
_NEVER: Final = -1
"""An offset before any record."""
_ACTIVE: Final = "active"
_WAYS: Final = 3
_ARRIVED, _DEPARTED, _ENDED = range(_WAYS)
"""An item came with a record, went with it, or ended there with its life."""
_EPOCHS: Final = 2**33
"""So many epochs there can be, and none at all."""
_OF_RUN: Final = ("run", "kind", "member")


@dataclass(frozen=True)
class Facts:
    """What came to members and went from them, by moment: what one batch did to one member.

    Attributes:
        held: Of which items.
        rows: One row an item: `run` (in `runs`), `kind`, `way`, `row` (of the record that tells
            it), `epoch`, `since` and `was_away`, in the order of moments.
        begins: The row with which each moment begins.
    """

    held: Held
    rows: pl.DataFrame
    begins: Numbers

    @property
    def moment(self) -> pl.Series:
        """The number of the moment of each row."""
        sizes = np.diff(self.begins, append=self.rows.height)
        return pl.Series("moment", np.repeat(np.arange(len(sizes)), sizes))

    def each(self, by: np.ufunc, values: pl.Expr) -> Numbers:
        """Return for each moment what one number says of its rows, none of which is null."""
        found: Numbers = by.reduceat(self.rows.select(values).to_series().to_numpy(), self.begins)
        return found


def membership_facts(held: Held) -> Facts:
    """Return what came and went of presence, subscriptions, partitions and active tasks."""
    kind, (role,) = pl.col("kind"), held.named(held.runs, "role")
    given = (kind == CURRENT) & (role == _ACTIVE).fill_null(value=True)
    told = held.runs.with_row_index("run").filter(given | kind.is_in([PRESENCE, SUBSCRIPTION]))
    facts = pl.concat(
        [_arrivals(told, held), _departures(told.filter(pl.col("until").is_not_null()), held)]
    )
    batch = combined(held.steps[FIRST].to_numpy(), codes(held.steps["batch"]))
    order, begins = grouped(combined(batch[facts["row"].to_numpy()], facts["member"].to_numpy()))
    return Facts(held, facts.drop("member")[order], begins)


def _arrivals(runs: pl.DataFrame, held: Held) -> pl.DataFrame:
    (epoch,) = held.columns_at(runs["at"], "epoch_at")
    return runs.select(
        *_OF_RUN,
        "since",
        pl.col("at").cast(pl.Int64).alias("row"),
        pl.lit(_ARRIVED, pl.Int64).alias("way"),
        epoch.alias("epoch"),
        pl.lit(value=False).alias("was_away"),
    )


def _departures(ended_runs: pl.DataFrame, held: Held) -> pl.DataFrame:
    (last, since), (epoch,) = (
        held.columns_at(ended_runs["last"], "epoch", "offset"),
        held.columns_at(ended_runs["ended_in"], "epoch_at"),
    )
    return ended_runs.select(
        *_OF_RUN,
        since.alias("since"),
        pl.col("until").cast(pl.Int64).alias("row"),
        pl.when("is_of_life").then(_ENDED).otherwise(_DEPARTED).cast(pl.Int64).alias("way"),
        epoch.alias("epoch"),
        ((pl.col("kind") == PRESENCE) & (last == AWAY)).fill_null(value=False).alias("was_away"),
    )


def member_moments(facts: Facts, coverage: Coverage) -> pl.DataFrame:
    """Return one row a moment: what it did to a member, and which record tells it.

    Of what one record began and ended, what it began tells more: whose record it is.

    Returns:
        `run` (which tells of the member), `row` (of the first record), `is_told` (boolean: it told
        what it did, else a life ended there), `epoch`, `presence` (members that came, less those
        that went; null where neither did), `was_away`, `before_is_compacted` and `since`.
    """
    way, runs = pl.col("way"), max(facts.held.runs.height, 1)
    # One number is in the order of all that decides.
    ordered = pl.col("row") * 2 + (way == _ARRIVED)
    epoch = (pl.col("epoch").cast(pl.Int64) + _EPOCHS // 2).fill_null(0)
    is_presence, delta = pl.col("kind") == PRESENCE, pl.when(way == _ARRIVED).then(1).otherwise(-1)
    first = facts.each(np.minimum, pl.col("row") * _WAYS + way)
    told = pl.DataFrame(
        {
            "run": facts.each(np.maximum, ordered * runs + pl.col("run")) % runs,
            "row": first // _WAYS,
            "is_told": first % _WAYS != _ENDED,
            "epoch": facts.each(np.maximum, ordered * _EPOCHS + epoch) % _EPOCHS,
            "is_there": facts.each(np.logical_or, is_presence),
            "presence": facts.each(np.add, pl.when(is_presence).then(delta).otherwise(0)),
            "was_away": facts.each(np.logical_or, pl.col("was_away")),
            "before_is_compacted": _may_be_older(facts, coverage),
            "since": facts.each(np.maximum, pl.col("since").fill_null(_NEVER)),
        }
    )
    return told.with_columns(
        pl.when(pl.col("epoch") > 0).then(pl.col("epoch") - _EPOCHS // 2).cast(pl.Int32),
        pl.when("is_there").then("presence").alias("presence"),
        pl.when(pl.col("since") > _NEVER).then("since").alias("since"),
    )


def with_places(moments: pl.DataFrame, held: Held) -> pl.DataFrame:
    """Add to some of `member_moments` whom they befell, and where.

    Returns:
        The moments with `GROUP_KEY`, `batch`, `member_id`, `about`, `life`, `LIFE`, `group_type`,
        `record_offset`, `at` and `position`.
    """
    run = held.runs[moments["run"]]
    of_run = held.columns_at(run["at"], *GROUP_KEY, "life", LIFE, "family")
    of_row = held.columns_at(moments["row"], "batch", "offset", "timestamp", "position")
    return (
        moments.with_columns(*of_run, *of_row, *held.named(run, "member_id"), held.about(run))
        .with_columns(pl.when("is_told").then("position").alias("position"))
        .rename({"offset": "record_offset", "timestamp": "at", "family": "group_type"})
    )


def _may_be_older(facts: Facts, coverage: Coverage) -> Flags:
    """Return of which moments a record that is gone may have told before."""
    if not (coverage.uncompacted_from or coverage.complete_from):
        return np.zeros(len(facts.begins), bool)
    offset, since = pl.col("offset"), pl.col("since")
    first = (pl.col("way") == _ARRIVED) & since.is_null()
    lost = lost_between(coverage, since.fill_null(-1), offset).is_not_null()
    may_be_older = lost | (first & (offset < born_from(coverage)))
    placed = facts.rows.with_columns(*facts.held.columns_at(facts.rows["row"], HOME, "offset"))
    rows = placed.select(may_be_older).to_series().to_numpy()
    found: Flags = np.logical_or.reduceat(rows, facts.begins)
    return found


def known_epochs(epochs: pl.DataFrame) -> pl.DataFrame:
    """Return by `LIFE` and `epoch` where each epoch begins, and whether what was before is gone.

    Args:
        epochs: Of `group_epochs`.
    """
    return epochs.group_by(LIFE, "epoch").agg(
        pl.col("from_offset").max().alias("begins"),
        pl.col("missing_is_compacted").any().alias("is_unknown"),
    )


def came_with_known_epoch(offset: pl.Expr, counts: pl.Expr) -> pl.Expr:
    """Return whether a record came with an epoch whose predecessor is known, and so is the first.

    Args:
        offset: Of the record; its row has the columns of `known_epochs`, `group_type` and `since`.
        counts: Of groups that are not classic, whether that says anything.
    """
    is_classic = pl.col("group_type") == CLASSIC
    told = pl.when(is_classic).then(pl.col("since").is_not_null()).otherwise(counts)
    came_with_it = ~pl.col("is_unknown") & (offset <= pl.col("begins"))
    return (came_with_it & told).fill_null(value=False)


def resubscribed(facts: Facts) -> Flags:
    """Return of which moments members changed their subscriptions."""
    runs = facts.rows.select("run", "way", facts.moment).filter(facts.rows["kind"] == SUBSCRIPTION)
    (topic,) = facts.held.named(facts.held.runs, "topic")
    came, went = runs.filter(pl.col("way") == _ARRIVED), runs.filter(pl.col("way") != _ARRIVED)
    both = went.join(came, on="moment", suffix="_now")
    changed = (
        both.select(
            "moment",
            topic.gather(both["run"]).alias("before"),
            topic.gather(both["run_now"]).alias("now"),
        )
        .group_by("moment")
        .agg(pl.col("before", "now").max())
        .filter(pl.col("before") != pl.col("now"))
    )
    found = np.zeros(len(facts.begins), bool)
    found[changed["moment"].to_numpy()] = True
    return found


def given_names(facts: Facts) -> tuple[pl.Series, pl.Series]:
    """Return by moment what members got and what they lost: lists of names.

    What came as well as went, as with a conversion, did neither.
    """
    of_thing, names = _names(facts.held)
    kept = (facts.rows["kind"] == CURRENT).to_numpy()
    moment, run, way = (
        each.to_numpy()[kept] for each in (facts.moment, facts.rows["run"], facts.rows["way"])
    )
    name = of_thing[facts.held.runs["thing"].to_numpy()[run]]
    order, begins = grouped(combined(moment, name))
    moment, name = moment[order[begins]], name[order[begins]]

    def listed(way_of: Flags) -> pl.Series:
        alone = np.logical_and.reduceat(way_of[order], begins)
        ends = np.searchsorted(moment[alone], np.arange(len(facts.begins) + 1))
        texts = names.gather(name[alone]).to_arrow(compat_level=pl.CompatLevel.oldest())
        return pl.Series(pa.LargeListArray.from_arrays(ends, texts))

    return listed(way == _ARRIVED), listed(way != _ARRIVED)


def _names(held: Held) -> tuple[Numbers, pl.Series]:
    """Return which name each thing has, and the names in their order."""
    thing = held.runs["thing"].to_numpy()
    size = int(thing.max(initial=-1)) + 1
    each = held.runs[first_row(thing, np.ones(len(thing), bool), size)]
    text = pl.concat_str(
        pl.coalesce("topic", "topic_id", "subtopology_id"),
        "partition",
        separator="-",
        ignore_nulls=True,
    )
    said = [*held.named(each, "topic", "topic_id", "subtopology_id"), each["partition"]]
    texts = pl.DataFrame(said).select(text.alias("name")).to_series()
    names = texts.unique().sort()
    return names.search_sorted(texts).to_numpy().astype(np.int64), names


JOINED, LEFT, RESTARTED, FENCED = "joined", "left", "restarted", "fenced"
SUBSCRIPTION_CHANGED, ASSIGNMENT_CHANGED = "subscription_changed", "assignment_changed"
_PLACE: Final = (*GROUP_KEY, "batch", "instance")


def membership_changes(
    held: Held, epochs: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `membership_changes`.

    Args:
        held: Of `held_items`.
        epochs: Of `group_epochs`.
        coverage: What the dump holds.
    """
    changes = _with_before(_changes(held, coverage), epochs, coverage)
    told = _restarts(changes.unnest("about", "position"))
    marked = with_marks_of_records(told, coverage, "record_offset")
    return contract_frame(marked, "membership_changes")


def _changes(held: Held, coverage: Coverage) -> pl.DataFrame:
    """Return what happened to each member at each moment, one row a kind of change."""
    facts = membership_facts(held)
    gained, lost = given_names(facts)
    moments = member_moments(facts, coverage).with_columns(
        gained.alias("gained"),
        lost.alias("lost"),
        pl.Series("resubscribed", resubscribed(facts)),
    )
    told = pl.concat(
        moments.with_columns(word.alias("change")).filter(pl.col("change").is_not_null())
        for word in _words()
    )
    is_subscription = pl.col("change") == SUBSCRIPTION_CHANGED
    nothing = pl.lit([], pl.List(pl.String))
    return with_places(told, held).with_columns(
        pl.when(is_subscription).then(nothing).otherwise(name).alias(name)
        for name in ("gained", "lost")
    )


def _words() -> tuple[pl.Expr, pl.Expr]:
    """Return the kinds of change at a moment, at most two; conversions alone are none."""
    came, went = pl.col("presence") > 0, pl.col("presence") < 0
    stays = ~(came | went).fill_null(value=False)
    assigned = (pl.col("gained").list.len() > 0) | (pl.col("lost").list.len() > 0)
    reassigned = pl.when(stays & assigned).then(pl.lit(ASSIGNMENT_CHANGED))
    first = (
        pl.when(came)
        .then(pl.lit(JOINED))
        .when(went & pl.col("was_away"))
        .then(pl.lit(FENCED))
        .when(went)
        .then(pl.lit(LEFT))
        .when("resubscribed")
        .then(pl.lit(SUBSCRIPTION_CHANGED))
        .otherwise(reassigned)
    )
    return first, pl.when("resubscribed").then(reassigned)


def _with_before(changes: pl.DataFrame, epochs: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Take what came with an epoch whose predecessor is known, or that is the first, for sure.

    A record of a member that brings an epoch stands before the epoch's own, in the same batch; had
    compaction taken an earlier one of the member, it would have taken the epoch before as well.
    Generations are stored again: only the one before tells what a generation changed.
    """
    if not (coverage.uncompacted_from or coverage.complete_from):
        return changes
    joined = (pl.col("presence") > 0) & (lost_until(coverage) == 0)
    sure = came_with_known_epoch(pl.col("record_offset"), joined)
    return changes.join(known_epochs(epochs), on=(LIFE, "epoch"), how="left").with_columns(
        pl.col("before_is_compacted") & ~sure
    )


def _restarts(changes: pl.DataFrame) -> pl.DataFrame:
    """Turn the leaving of a static member and the joining of its successor into one row."""
    told = changes.with_columns(pl.col("group_instance_id").alias("instance"))
    is_static, change = pl.col("instance").is_not_null(), pl.col("change")
    gone, here = change.is_in([LEFT, FENCED]) & is_static, (change == JOINED) & is_static
    before = (
        told.filter(gone)
        .sort("member_id")
        .group_by(_PLACE)
        .agg(
            pl.col("member_id").last().alias("predecessor"),
            pl.col("lost").last().alias("had"),
            pl.col("before_is_compacted").last().alias("compacted_of_it"),
        )
    )
    if before.is_empty():
        return changes.with_columns(pl.lit(None, pl.String).alias("previous_member_id"))
    after = told.filter(here).select(*_PLACE, pl.lit(value=True).alias("is_succeeded")).unique()
    paired = (
        told.join(before, on=_PLACE, how="left")
        .join(after, on=_PLACE, how="left")
        .filter(~gone | pl.col("is_succeeded").is_null())
    )
    restarted = here & pl.col("predecessor").is_not_null()
    had, has = pl.col("had"), pl.col("gained")
    lost, gained = (
        had.list.set_difference(has).list.sort(),
        has.list.set_difference(had).list.sort(),
    )
    return paired.with_columns(
        pl.when(restarted).then("predecessor").alias("previous_member_id"),
        pl.when(restarted).then(pl.lit(RESTARTED)).otherwise(change).alias("change"),
        pl.when(restarted)
        .then("compacted_of_it")
        .otherwise("before_is_compacted")
        .alias("before_is_compacted"),
        pl.when(restarted).then(lost).otherwise("lost").alias("lost"),
        pl.when(restarted).then(gained).otherwise("gained").alias("gained"),
    )
