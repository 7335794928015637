"""The tables `rebalances`, each epoch with what led to it, and `rebalance_storms`, many of them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl

from analytics.questions.sums import divided
from analytics.replay.groups.group_records import CLASSIC
from analytics.replay.log.losses import (
    HOME,
    WHOLE,
    Coverage,
    lost_between,
    uncompacted_from,
    with_missing,
)

if TYPE_CHECKING:
    from datetime import datetime

# The table `rebalance_storms`: so many epochs of a group in so many minutes.

# The table `group_churn`: how often each group rebalanced, and who came and went.

"""Seconds: a rate over less says nothing."""
_NEVER = 2**63 - 1


def group_churn(
    rebalances: pl.DataFrame,
    changes: pl.DataFrame,
    storms: pl.DataFrame,
    until: datetime | None,
    coverage: Coverage = WHOLE,
) -> pl.DataFrame:
    """Return the table `group_churn`.

    Args:
        rebalances: The table, as far as the time asked about goes.
        changes: The table `membership_changes`, likewise.
        storms: The table `rebalance_storms`, likewise.
        until: The end of that time; None: when the last epoch of all began.
        coverage: What the dump holds.
    """
    told = changes.filter(pl.col("change").is_in(CHURN))
    rows = (
        _counted(rebalances, coverage)
        .join(_comings_and_goings(told), on="group_id", how="left")
        .join(top_clients(told, ("group_id",)), on="group_id", how="left")
        .join(storms.group_by("group_id").agg(pl.len().alias("storms")), on="group_id", how="left")
    )
    end = pl.col("to_timestamp") if until is None else pl.lit(until)
    seconds = divided((end - pl.col("from_timestamp")).dt.total_microseconds(), 1e6)
    # Those before the first epoch began at a time that nobody knows: they have no part in the rate.
    rate = (pl.col("epochs") + pl.col("missing_since")) / divided(seconds, _HOUR)
    return rows.with_columns(
        divided(pl.col("median_ms"), 1000).alias("median_seconds_between"),
        *(
            pl.when((pl.col(each) > 0) | ~pl.col(f"{each}_not_known"))
            .then(pl.col(each).fill_null(0))
            .alias(each)
            for each in CHURN
        ),
        pl.col("storms").fill_null(0),
        pl.when(seconds >= _SHORTEST).then(rate).alias("per_hour"),
        pl.col("incomplete_because").is_null().alias("complete"),
    )


def _counted(rebalances: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    anything = lost_between(coverage, pl.lit(-1), pl.lit(_NEVER))
    last_type = pl.col("group_type").sort_by("life", "from_offset").last()
    return (
        rebalances.with_columns(
            pl.col("missing_before").fill_null(0).alias("missing"), anything.alias("anything")
        )
        .sort("at", "from_offset")
        .group_by("group_id")
        .agg(
            pl.col("anything").max().alias("incomplete_because"),
            last_type,
            pl.len().alias("epochs"),
            pl.col("missing").sum(),
            missing_since_first().alias("missing_since"),
            _may_lack_changes().sum().alias("compacted"),
            *(pl.col(each).has_nulls().alias(f"{each}_not_known") for each in CHURN),
            pl.col("at").min().alias("from_timestamp"),
            pl.col("at").max().alias("to_timestamp"),
            pl.col("since_previous_ms").median().alias("median_ms"),
            pl.col("stored_again").sum(),
            pl.col("coordinator_change").count().alias("coordinator_changes"),
        )
    )


def _may_lack_changes() -> pl.Expr:
    """Return in which epochs, or before which, compaction may have taken what tells of a change."""
    is_untold = pl.any_horizontal(pl.col(each).is_null() for each in CHURN)
    return pl.col("missing_is_compacted") | is_untold


def _comings_and_goings(changes: pl.DataFrame) -> pl.DataFrame:
    return changes.group_by("group_id").agg(
        (pl.col("change") == word).sum().alias(word) for word in CHURN
    )


CHURN = ("joined", "left", "restarted", "fenced", "subscription_changed")
"""Changes of `membership_changes` that can make a rebalance necessary."""

WORDS = {
    "joined": "joined",
    "left": "left or timed out",
    "restarted": "restarted",
    "fenced": "fenced",
    "subscription_changed": "subscribed to something else",
}
_HOUR = 3600.0
_SHORTEST = 60.0
"""Seconds: what happened in less counts as if it had taken that long."""
_STORM = ("group_id", "from_timestamp")
_COMPACTED = "records before one of its epochs may be compacted"
_IN_DOUBT = "whether members came in it or before cannot be told: earlier ones may be compacted"
_NOTHING = "no member came or went: topics, assignors or joins again by members themselves"


def rebalance_storms(
    epochs: pl.DataFrame,
    changes: pl.DataFrame,
    storm_epochs: int,
    storm_minutes: float,
    doubtful: pl.DataFrame | None = None,
    coverage: Coverage = WHOLE,
) -> pl.DataFrame:
    """Return the table `rebalance_storms`.

    Generations that left no record count: they began after the one before them.

    Args:
        epochs: The table `group_epochs`, as far as the time asked about goes.
        changes: The table `membership_changes`.
        storm_epochs: So many epochs,
        storm_minutes: that begin within so many minutes, are a storm, or a part of one.
        doubtful: Of `membership_changes` those that may be older than their record: they are not
            counted, and may be a part of a storm all the same.
        coverage: What the dump holds.

    Returns:
        With `complete` and `missing`: what is lacking of its epochs, or may be of its changes.
    """
    begun = _begun(epochs, storm_epochs, coverage)
    storms = _islands(_hot(begun, storm_epochs, storm_minutes))
    counted = (
        _inside(begun, storms)
        .sort("at", "from_offset")
        .group_by(*_STORM, "to_timestamp")
        .agg(
            missing_since_first().alias("missing"),
            pl.len().alias("shown"),
            pl.col("lacks").drop_nulls().first(),
        )
        .with_columns((pl.col("shown") + pl.col("missing")).alias("epochs"))
    )
    micros = (pl.col("to_timestamp") - pl.col("from_timestamp")).dt.total_microseconds()
    hours = divided(pl.max_horizontal(divided(micros, 1e6), pl.lit(_SHORTEST)), _HOUR)
    told = counted.join(_who_took_part(storms, changes), on=_STORM, how="left").with_columns(
        (pl.col("epochs") / hours).alias("per_hour"),
        pl.col("members_involved").fill_null([]),
        _cause().alias("cause"),
    )
    hidden = _inside(changes.clear() if doubtful is None else doubtful, storms)
    in_doubt = hidden.select(_STORM).unique().with_columns(pl.lit(_IN_DOUBT).alias("doubt"))
    marked = told.join(in_doubt, on=_STORM, how="left")
    return with_missing(marked, pl.coalesce("lacks", "doubt"))


def missing_since_first() -> pl.Expr:
    """Count generations without a record; those before the first epoch were before all of it.

    Rows are in the order of time.
    """
    return pl.col("missing").sum() - pl.col("missing").first()


def top_clients(changes: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Return for each key the client id behind most changes, and how many these are.

    Args:
        changes: Of these kinds only (`CHURN`), with the key and `client_id`.
        key: What changes are counted for.

    Returns:
        The key, `top_client_id` and `top_client_changes`.
    """
    return (
        changes.filter(pl.col("client_id").is_not_null())
        .group_by(*key, "client_id")
        .agg(pl.len().cast(pl.Int64).alias("top_client_changes"))
        .sort(*key, -pl.col("top_client_changes"), "client_id")
        .group_by(key, maintain_order=True)
        .first()
        .rename({"client_id": "top_client_id"})
    )


def _begun(epochs: pl.DataFrame, storm_epochs: int, coverage: Coverage) -> pl.DataFrame:
    """Return the epochs of groups that have enough of them, in the order of time."""
    before = pl.col("from_offset").shift(1).over(HOME, "group_id").fill_null(-1)
    lost = lost_between(coverage, before, pl.col("from_offset") + 1)
    return (
        epochs.filter(pl.col("from_timestamp").is_not_null())
        .sort(HOME, "group_id", "from_offset")
        .select(
            "group_id",
            pl.col("from_timestamp").alias("at"),
            "from_offset",
            pl.col("missing_before").fill_null(0).cast(pl.Int64).alias("missing"),
            pl.coalesce(lost, pl.when("missing_is_compacted").then(pl.lit(_COMPACTED))).alias(
                "lacks"
            ),
        )
        .filter((pl.len() + pl.col("missing").sum()).over("group_id") >= storm_epochs)
        .sort("group_id", "at", "from_offset", "missing")
    )


def _hot(begun: pl.DataFrame, storm_epochs: int, storm_minutes: float) -> pl.DataFrame:
    """Return the epochs with which enough have begun, and when the first of these did."""
    reach = timedelta(microseconds=round(storm_minutes * 60_000_000))
    return (
        begun.with_columns(pl.col("at").alias("begun_at"))
        .rolling("at", period=reach, closed="both", group_by="group_id")
        .agg(
            pl.col("begun_at").first().alias("since"),
            (pl.len() + missing_since_first()).alias("count"),
        )
        .filter(pl.col("count") >= storm_epochs)
        .select("group_id", "at", "since")
    )


def _islands(hot: pl.DataFrame) -> pl.DataFrame:
    """Put stretches that overlap together: `group_id`, `from_timestamp`, `to_timestamp`."""
    starts = (pl.col("since") > pl.col("at").shift(1)).fill_null(value=True)
    return (
        hot.sort("group_id", "at")
        .with_columns(starts.cast(pl.Int64).cum_sum().over("group_id").alias("island"))
        .group_by("group_id", "island")
        .agg(
            pl.col("since").min().alias("from_timestamp"),
            pl.col("at").max().alias("to_timestamp"),
        )
        .drop("island")
    )


def _inside(rows: pl.DataFrame, storms: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose time, `at`, lies in a storm of their group; storms do not overlap."""
    return (
        rows.filter(pl.col("at").is_not_null())
        .join(storms.select("group_id").unique(), on="group_id", how="semi")
        .sort("at")
        .join_asof(
            storms.with_columns(pl.col("from_timestamp").alias("begins")).sort("begins"),
            left_on="at",
            right_on="begins",
            by="group_id",
            check_sortedness=False,
        )
        .filter(pl.col("at") <= pl.col("to_timestamp"))
    )


def _who_took_part(storms: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """Return who came and went in each storm, and how often."""
    churn = changes.filter(pl.col("change").is_in(CHURN)).select(
        "group_id", "at", "change", "member_id", "client_id"
    )
    there = _inside(churn, storms)
    counts = ((pl.col("change") == word).sum().alias(f"times_{word}") for word in CHURN)
    members = pl.col("member_id").drop_nulls().unique().sort().alias("members_involved")
    return (
        there.group_by(_STORM)
        .agg(*counts, members)
        .join(top_clients(there, _STORM), on=_STORM, how="left")
    )


def _cause() -> pl.Expr:
    told = [
        pl.when(pl.col(f"times_{word}") > 0).then(pl.format(f"{{}} {text}", f"times_{word}"))
        for word, text in WORDS.items()
    ]
    missing = pl.when(pl.col("missing") > 0).then(
        pl.format("{} generations were joined and left no record", "missing")
    )
    words = pl.concat_str([*told, missing], separator=", ", ignore_nulls=True)
    return pl.when(words == "").then(pl.lit(_NOTHING)).otherwise(words)


# The table `rebalances`: each epoch with what led to it.
#
# Whether a member timed out or left by itself is in no record, nor is a generation that was
# joined and never synced. Of a coordinator that failed only what it had stored is known.

_GROUP = ("coordinator_partition", "group_id")
_LIFE = (*_GROUP, "life")
_CHANGE = ("change", "member_id")
_EMPTY = "Empty"
_LEAVING = ("left", "fenced")
_COMING = ("joined", "subscription_changed")
_HIDDEN = "_hidden"


def rebalances(
    epochs: pl.DataFrame,
    changes: pl.DataFrame,
    again: pl.DataFrame,
    coverage: Coverage = WHOLE,
) -> pl.DataFrame:
    """Return the table `rebalances`.

    Args:
        epochs: The table `group_epochs`.
        changes: The table `membership_changes`.
        again: Of `stored_again`.
        coverage: What the dump holds.

    Returns:
        Of each kind of change (`CHURN`) who made it; null where nobody is known to have, and what
        compaction took may have told of some.
    """
    is_hidden = pl.col("before_is_compacted")
    known, hidden = changes.filter(~is_hidden), changes.filter(is_hidden)
    last = ("state", "leader_epoch", "from_timestamp", "from_offset")
    key = (*_LIFE, "epoch")
    since = (pl.col("from_timestamp") - pl.col("before_from_timestamp")).dt.total_microseconds()
    after = pl.col("before_from_offset").fill_null(-1)
    return (
        epochs.sort(*_LIFE, "from_offset")
        .with_columns(in_life_before(pl.col(name)).alias(f"before_{name}") for name in last)
        .join(_who(_led_to(known, epochs)), on=key, how="left")
        .join(_who(_led_to(hidden, epochs)), on=key, how="left", suffix=_HIDDEN)
        .join(again, on=[*_GROUP, "epoch", "from_offset"], how="left")
        .with_columns(
            pl.col("from_timestamp").alias("at"),
            # Where the coordinator's clock went back, nothing tells how long it was.
            pl.when(since >= 0)
            .then(divided(since, 1000).cast(pl.Int64))
            .alias("since_previous_ms"),
            pl.col("times").fill_null(0).alias("stored_again"),
            _coordinator_change().alias("coordinator_change"),
            *(_known_or_none(each, coverage) for each in CHURN),
            lost_between(coverage, after, pl.col("from_offset") + 1).alias("missing"),
        )
        .with_columns(pl.col("missing").is_null().alias("complete"))
    )


def _known_or_none(change: str, coverage: Coverage) -> pl.Expr:
    """Return who made a change, a list; null where it is empty and compaction may be why."""
    # A generation has all of its members in one record; else each member has its own, and the
    # cleaner takes those of members that are gone.
    is_after = (pl.col("before_from_offset") < uncompacted_from(coverage)).fill_null(value=False)
    is_taken = pl.col("missing_is_compacted") | ((pl.col("group_type") != CLASSIC) & is_after)
    # The first record left of a member may be one of many: of its coming, going, and change.
    is_hidden = pl.any_horizontal(pl.col(f"{each}{_HIDDEN}").list.len() > 0 for each in CHURN)
    may_be_more = is_taken | is_hidden.fill_null(value=False)
    known = pl.col(change).fill_null([])
    return pl.when((known.list.len() > 0) | ~may_be_more).then(known).alias(change)


def in_life_before(value: pl.Expr) -> pl.Expr:
    """Return the value of the row before, null in the first row of a life; rows are in order."""
    is_same = pl.all_horizontal(pl.col(each) == pl.col(each).shift(1) for each in _LIFE)
    return pl.when(is_same).then(value.shift(1))


def stored_again(generations: pl.DataFrame) -> pl.DataFrame:
    """Return how often a generation was stored once more than it was made.

    Args:
        generations: Records of classic groups, cut at the instant: `coordinator_partition`,
            `group_id`, `offset`, `leader_epoch`, `is_tombstone`, `generation`.

    Returns:
        `coordinator_partition`, `group_id`, `epoch`, `from_offset` (of its first record), `times`,
        `by_another` (boolean: a later coordinator did).
    """
    told = (*_GROUP, "generation")
    is_same = pl.all_horizontal(pl.col(each) == pl.col(each).shift(1) for each in told)
    again = (is_same & ~pl.col("is_tombstone").shift(1)).fill_null(value=False)
    return (
        generations.sort(*_GROUP, "offset")
        .with_columns(again.alias("again"), (~again).cum_sum().alias("run"))
        # Hardly any is: what was stored once is no run.
        .filter(pl.col("again") | pl.col("again").shift(-1))
        .group_by("run")
        .agg(
            pl.col(_GROUP).first(),
            pl.col("generation").first().alias("epoch"),
            pl.col("offset").min().alias("from_offset"),
            (pl.len().cast(pl.Int32) - 1).alias("times"),
            (pl.col("leader_epoch").drop_nulls().n_unique() > 1).alias("by_another"),
        )
        .drop("run")
    )


def _led_to(changes: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return changes with the epoch they led to: the next, where theirs left no record.

    A member of a group of the newer types that joins or subscribes to something else without an
    epoch of its own record does so while an epoch is in force, and leads to the one after that: the
    coordinator resolves regular expressions later.
    """
    shown = epochs.select(*_LIFE, "epoch").unique().sort("epoch")
    begins = epochs.group_by(*_LIFE, "epoch").agg(
        pl.col("group_type").first().alias("family"), pl.col("from_offset").max().alias("begins")
    )
    is_later = (pl.col("family") != CLASSIC) & pl.col("change").is_in(_COMING)
    is_later &= pl.col("record_offset") > pl.col("begins")
    led = changes.join(begins, on=[*_LIFE, "epoch"], how="left").with_columns(
        pl.col("epoch").fill_null(0) + is_later.fill_null(value=False).cast(pl.Int32)
    )
    told = _in_lives(led.select(*_LIFE, "at", "epoch", *_CHANGE), epochs).sort("epoch")
    return told.join_asof(
        shown.with_columns(pl.col("epoch").alias("next")),
        on="epoch",
        by=list(_LIFE),
        strategy="forward",
        check_sortedness=False,
    ).select(*_LIFE, pl.col("next").alias("epoch"), *_CHANGE)


def _in_lives(changes: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return changes in the life they led to: who leaves with a conversion is in that before."""
    next_life = (
        epochs.sort("from_offset")
        .group_by(_LIFE, maintain_order=True)
        .agg(pl.col("epoch").first().alias("next_epoch"), pl.col("from_timestamp").first())
        .select(
            *_GROUP,
            (pl.col("life") - 1).alias("life"),
            pl.col("life").alias("next_life"),
            "next_epoch",
            pl.col("from_timestamp").alias("at"),
        )
    )
    is_converted = pl.col("change").is_in(_LEAVING) & pl.col("next_life").is_not_null()
    return changes.join(next_life, on=[*_LIFE, "at"], how="left").select(
        *_GROUP,
        *(
            pl.when(is_converted).then(f"next_{name}").otherwise(name).alias(name)
            for name in ("life", "epoch")
        ),
        *_CHANGE,
    )


def _who(changes: pl.DataFrame) -> pl.DataFrame:
    """Return members by kind of change, for each epoch."""
    named = (
        pl.col("member_id").filter(pl.col("change") == change).unique().sort().alias(change)
        for change in CHURN
    )
    return changes.drop_nulls("member_id").group_by(*_LIFE, "epoch").agg(*named)


def _coordinator_change() -> pl.Expr:
    """Return what the coordinator before had stored, where another wrote the epoch's record."""
    changed = pl.col("leader_epoch") != pl.col("before_leader_epoch")
    what = (
        pl.when(pl.col("group_type") != CLASSIC)
        .then(pl.lit("kept"))
        .when(pl.col("missing_before") > 0)
        .then(pl.lit("unsynced"))
        .when(pl.col("before_state") == _EMPTY)
        .then(pl.lit("empty"))
        .otherwise(pl.lit("synced"))
    )
    return pl.when(pl.col("by_another")).then(pl.lit("stored_again")).when(changed).then(what)
