"""Groups at every epoch of theirs, cut where their topics changed meanwhile.

Members and subscriptions are those at the end of an epoch. What is judged is what was decided: the
assignment of a classic group, the target assignment of the others, as their members are still on
the way to it when an epoch begins.

What members held in every epoch, which no stored table tells: made of the records of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow.compute as pc

from analytics.contracts import polars_rows
from analytics.questions.balance.at_instant import (
    SPAN,
    assembled,
    needed_topics,
    tasks_of,
    with_assignable,
    with_wants,
)
from analytics.replay.groups.coordinator_log import coordinator_log
from analytics.replay.groups.group_records import (
    CLASSIC,
    CONSUMER_PROTOCOL,
    CURRENT,
    KINDS,
    PRESENCE,
    SUBSCRIPTION,
    TARGET,
)
from analytics.replay.history.group_history import group_records_in_time, group_steps
from analytics.replay.history.held_items import Held, held_items
from analytics.replay.log.rules import replay_rules
from analytics.replay.log.spans import EPOCH, LIFE
from analytics.replay.topics import named_topics, topic_names
from analytics.replayed.records import RecordGroups, Records
from analytics.replayed.whole_groups import parts_for
from analytics.tables.record_reader import without_records
from analytics.tables.stored_tables import StoredTables

if TYPE_CHECKING:
    from analytics.replay.log.rules import ReplayRules
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


AT_ONCE: Final = 30_000
"""So many group records are followed together, or those of one group: each holds many items."""

_MODERN: Final = tuple(name for name, kind in KINDS.items() if kind.family != CLASSIC)
_COMMITS: Final = "offset_commit"
_OF_COMMITS: Final = ("topic", "partition", "offset", "timestamp", "is_tombstone", "key")


@dataclass(frozen=True)
class Following:
    """Follows what members of some groups were given.

    Attributes:
        names: Of `topic_names`.
        rules: How the release replays.
    """

    names: pl.DataFrame
    rules: ReplayRules

    def held_of(self, decoded: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return what `cases_of_history` takes as `held`, of groups with these records.

        Commits count only where a tombstone may take over their group.
        """
        followed = {**{name: decoded[name] for name in KINDS}, _COMMITS: _taken_over(decoded)}
        rows = group_records_in_time(coordinator_log(followed), followed)
        return held_by_epoch_no(held_items(group_steps(rows, self.rules), self.names))


def _taken_over(decoded: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the commits of groups with a tombstone that is not of a classic group."""
    if _COMMITS not in decoded:
        return without_records(_COMMITS)
    taking = pl.concat(
        decoded[name]
        .filter("is_tombstone")
        .select(pl.col("key").struct.field(KINDS[name].group_field).alias("group"))
        for name in _MODERN
    )
    commits = decoded[_COMMITS]
    return commits.filter(pl.col("key").struct.field("group").is_in(taking["group"].implode()))


class HeldInEpochs:
    """What members held, of some whole groups after the others.

    Attributes:
        following: How it is found out.
    """

    def __init__(self, state: ReplayedWorkspace) -> None:
        self._records = Records(state)
        topics = StoredTables(state.tables.workspace).read("topics", ["topic_id", "topic"])
        names = topic_names(named_topics(polars_rows(topics)))
        self.following = Following(names, replay_rules(state.release))

    @cached_property
    def records(self) -> Mapping[str, RecordGroups]:
        """The records that are followed, and the commits of their groups where some may count."""
        reader = self._records.of_asked
        found = {
            name: self._groups(name, reader.empty(name).columns, kind.group_field)
            for name, kind in KINDS.items()
        }
        if reader.count(_MODERN, pc.field("is_tombstone")):
            found[_COMMITS] = self._groups(_COMMITS, _OF_COMMITS, "group")
        return found

    def _groups(self, name: str, columns: Iterable[str], group_field: str) -> RecordGroups:
        group = pl.col("key").struct.field(group_field)
        return RecordGroups(self._records, name, {each: each for each in columns}, group)

    @property
    def count(self) -> int:
        """How many records there are."""
        return self._records.of_asked.count(self.records)

    def at_once(self, rows: int, most: int) -> int:
        """Return how many rows a part has for the records that are followed together to be few.

        Args:
            rows: How many there are, these records among them.
            most: So many it has at most.
        """
        parts = parts_for(self._records.of_asked.count(KINDS), AT_ONCE)
        return min(-(-rows // parts), most)


def held_by_epoch_no(held: Held) -> pl.DataFrame:
    """Return what members held in replay, as `cases_of_history` takes it."""
    runs, epoch_no = held.runs, pl.col("epoch_no")
    ended = pl.DataFrame(held.columns_at(runs["ended_in"], "epoch_no"))
    last = ended.select(
        pl.when(runs["is_closing"]).then(epoch_no).otherwise(epoch_no - 1).alias("last_epoch_no")
    )
    told = runs.with_columns(
        *held.columns_at(runs["at"], "coordinator_partition", "group_id", "life", LIFE, "epoch_no"),
        *held.named(runs, "member_id", "role", "subtopology_id", "topic", "topic_id"),
        held.about(runs).struct.field("group_instance_id"),
        *last,
    )
    return told.filter(runs["until"].is_null() | ended["epoch_no"].is_not_null()).select(
        *("coordinator_partition", "group_id", "life", LIFE, "member", "member_id", "kind", "role"),
        *("subtopology_id", "topic", "topic_id", "partition", "group_instance_id"),
        epoch_no.fill_null(0).alias("first_epoch_no"),
        "last_epoch_no",
    )


# What members held at the ends of epochs: subscriptions, and what had been decided.
#
# Rows are many. Epochs and members go by numbers, which are quick to sort and group, and so do
# names as values of an `Enum`.

_GROUP = ("coordinator_partition", "group_id")
_LIFE = (*_GROUP, "life")
_BOUNDS = ("first_epoch_no", "last_epoch_no")
UNREAD = "an assignment in it is not of the consumer protocol"
OF_LIFE = ("life", "coordinator_partition", LIFE, "epoch_no", "is_classic")


def numbered(epochs: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Return the epochs in which somebody was there, with the numbers that `held` knows them by.

    `EPOCH` numbers those of all groups: where numbers follow each other it is one group's.
    """
    are_consumers = pl.col("protocol_type").eq_missing(pl.lit(CONSUMER_PROTOCOL))
    is_classic = pl.col("group_type") == CLASSIC
    is_unread = is_classic & pl.col("partitions_assigned").is_null()
    number = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(_GROUP)
    return (
        epochs.sort(*_GROUP, "from_offset")
        .with_columns(
            (pl.int_range(pl.len()) + pl.struct(_GROUP).rle_id()).alias(EPOCH),
            number.alias("epoch_no"),
        )
        .filter(pl.col("member_count") > 0)
        .join(held.select(*_LIFE, LIFE).unique(LIFE), on=_LIFE, maintain_order="left")
        .select(
            *("group_id", "group_type", "epoch", "assignment_epoch", "protocol_type", "protocol"),
            pl.when(is_unread & are_consumers).then(pl.lit(UNREAD)).alias("unread"),
            pl.col("partitions_moved").alias("moved"),
            *("from_offset", "from_timestamp", "to_timestamp", EPOCH),
            *("life", "coordinator_partition", LIFE, "epoch_no", is_classic.alias("is_classic")),
        )
    )


def during(held: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return what was held at the end of each epoch, with `EPOCH` and `is_classic`.

    Args:
        held: `LIFE`, `first_epoch_no`, `last_epoch_no` (null: still), and what is kept.
        epochs: `numbered`.
    """
    number = pl.col(EPOCH)
    lives = epochs.group_by(LIFE).agg(
        number.min().alias("first"),
        number.max().alias("last"),
        (number - pl.col("epoch_no")).first().alias("before"),
    )
    since, until = (pl.col(bound) + pl.col("before") for bound in _BOUNDS)
    there = pl.int_ranges(pl.max_horizontal(since, "first"), pl.min_horizontal(until, "last") + 1)
    its = epochs.select(EPOCH, pl.col(LIFE).alias("its_life"), "is_classic")
    return (
        held.join(lives, on=LIFE)
        .with_columns(there.alias(EPOCH))
        .drop("first", "last", "before", *_BOUNDS)
        .explode(EPOCH, empty_as_null=False)
        .join(its, on=EPOCH)
        .filter(pl.col(LIFE) == pl.col("its_life"))
        .drop(LIFE, "its_life")
    )


def in_order_of_ids(held: pl.DataFrame) -> pl.DataFrame:
    """Return what members held with `member` as their places among all ids in order."""
    members = held.select("member", "member_id").unique("member").sort("member_id")
    numbers = members["member"].to_numpy()
    places = np.zeros(int(numbers.max(initial=-1)) + 1, np.uint32)
    places[numbers] = np.arange(len(numbers))
    return held.with_columns(pl.Series("member", places).gather(held["member"]))


def members_at(held: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return the members of each epoch, in order: what their subscriptions say are `words`.

    Args:
        held: Of `in_order_of_ids`.
        epochs: `numbered`.

    Returns:
        `EPOCH`, `member`, `words`, `member_id`, `group_instance_id`.
    """
    kind = pl.col("kind")
    rows = held.filter(kind.is_in([PRESENCE, SUBSCRIPTION])).select(
        *(LIFE, *_BOUNDS, "member", "member_id", "group_instance_id"),
        pl.when(kind == SUBSCRIPTION).then("topic").alias("words"),
        (kind == PRESENCE).alias("is_there"),
    )
    ids = rows.select("member", "member_id").unique("member")
    texts = ("words", "group_instance_id")
    return (
        during(_with_enum(rows.drop("member_id"), *texts), epochs)
        .group_by(EPOCH, "member")
        .agg(pl.col(*texts).max(), pl.col("is_there").any())
        .filter("is_there")
        .sort(EPOCH, "member")
        .with_columns(pl.col(*texts).cast(pl.String))
        .join(ids, on="member", maintain_order="left")
        .select(EPOCH, "member", "words", "member_id", "group_instance_id")
    )


def assigned_at(held: pl.DataFrame, epochs: pl.DataFrame, removals: pl.DataFrame) -> pl.DataFrame:
    """Return what had been decided: of a classic group what members had, else their targets.

    Args:
        held: Of `in_order_of_ids`.
        epochs: `numbered`.
        removals: `topic_id`, `removed`.

    Returns:
        A partition or an active task a row: `EPOCH`, `member`, `partition`, `removed` (when its
        topic was, null while it lives), `topic` and `gone` (by what a topic goes while it lives and
        then; of a task both are its subtopology): of one `Enum`.
    """
    kind = pl.col("kind")
    rows = (
        held.filter(kind.is_in([CURRENT, TARGET]), pl.col("role").fill_null("active") == "active")
        .join(removals, on="topic_id", how="left")
        .select(
            *(LIFE, *_BOUNDS, "member", "partition", "removed"),
            (kind == CURRENT).alias("is_current"),
            pl.coalesce("subtopology_id", "topic", "topic_id").alias("topic"),
            pl.coalesce("subtopology_id", "topic_id").alias("gone"),
        )
    )
    return (
        during(_with_enum(rows, "topic", "gone"), epochs)
        .filter(pl.col("is_current") == pl.col("is_classic"))
        .drop("is_current", "is_classic")
    )


def _with_enum(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return rows with texts as values of one `Enum`, which are in the order of the texts."""
    distinct = pl.concat([rows[name].unique() for name in names]).unique().drop_nulls()
    return rows.with_columns(pl.col(names).cast(pl.Enum(distinct.sort())))


# Epochs of groups, cut where the partitions of their topics changed meanwhile.


def stretches(
    epochs: pl.DataFrame, subscriptions: pl.DataFrame, sizes: pl.DataFrame
) -> pl.DataFrame:
    """Cut epochs at the times when a topic that a member wants grew, came or went.

    Args:
        epochs: `EPOCH` and whatever else of an epoch, `from_timestamp` and `to_timestamp` among it.
        subscriptions: `EPOCH`, `subscriptions` (list of topics) of members.
        sizes: `topic_sizes`.

    Returns:
        The columns of `epochs`, with the times of the stretch, and `SPAN`.
    """
    changes = pl.concat(
        sizes.select("topic", pl.col(time).alias("change")) for time in ("since", "until")
    ).drop_nulls("change")
    wanted = (
        subscriptions.select(EPOCH, pl.col("wants").alias("topic"))
        .explode("topic")
        .filter(pl.col("topic").is_in(changes["topic"].unique().implode()))
        .unique()
    )
    begins, ends = pl.col("from_timestamp"), pl.col("to_timestamp")
    cuts = (
        epochs.select(EPOCH, "from_timestamp", "to_timestamp")
        .join(wanted, on=EPOCH)
        .join(changes, on="topic")
        .filter((pl.col("change") > begins) & (ends.is_null() | (pl.col("change") < ends)))
        .select(EPOCH, pl.col("change").alias("begins"))
    )
    starts = pl.concat([epochs.select(EPOCH, begins.alias("begins")), cuts.unique()])
    goes_on = pl.col(EPOCH) == pl.col(EPOCH).shift(-1)
    return (
        starts.sort(EPOCH, "begins", nulls_last=False)
        .with_columns(pl.when(goes_on).then(pl.col("begins").shift(-1)).alias("ends"))
        .with_row_index(SPAN)
        .join(epochs, on=EPOCH, maintain_order="left")
        .with_columns(
            pl.col("begins").alias("from_timestamp"),
            pl.coalesce("ends", "to_timestamp").alias("to_timestamp"),
        )
        .drop("begins", "ends")
    )


def sizes_in(spans: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """Return the topics there were while a stretch began, each with what is told of the stretch.

    Args:
        spans: `from_timestamp` of stretches and a `topic`: each with each topic it needs.
        sizes: `topic_sizes`.
    """
    begins, since, until = (pl.col(name) for name in ("from_timestamp", "since", "until"))
    there = (since.is_null() | (since <= begins)) & (until.is_null() | (until > begins))
    return spans.join(sizes, on="topic").filter(there).drop("since", "until")


_WISH = "wish"


def cases_of_history(
    epochs: pl.DataFrame,
    held: pl.DataFrame,
    sizes: pl.DataFrame,
    state: Mapping[str, pl.DataFrame],
    expressions: pl.DataFrame,
    parts: pl.DataFrame,
) -> pl.DataFrame:
    """Return every epoch in which a group had members.

    Args:
        epochs: The table `group_epochs`.
        held: What members held: `coordinator_partition`, `group_id`, `life`, `LIFE` (numbers these
            three), `member` (numbers ids), `member_id`, `kind`, `role`, `subtopology_id`, `topic`,
            `topic_id`, `partition`, `group_instance_id`, and at the ends of which epochs:
            `first_epoch_no`, `last_epoch_no` (null: still).
        sizes: `topic_sizes`.
        state: Tables `topics` and `share_partitions`.
        expressions: `resolved_expressions`.
        parts: `subtopologies`.

    Returns:
        What `case_rows.case_of` reads: one row a stretch.
    """
    at, held = numbered(epochs, held), in_order_of_ids(held)
    wants = _members_with_topics(members_at(held, at), at, expressions, parts)
    spans = stretches(at.drop(OF_LIFE), wants.unique([EPOCH, _WISH]), sizes)
    times = spans.select(EPOCH, SPAN, "group_id", "from_timestamp")
    span_wants = wants.join(times.select(EPOCH, SPAN), on=EPOCH, maintain_order="left")
    assigned = assigned_at(held, at, _removals(sizes))
    has = _held(assigned, times)
    needed = needed_topics(span_wants.unique([SPAN, _WISH]), has).join(times, on=SPAN)
    sources = (
        times.join(parts, on="group_id")
        .select(SPAN, "from_timestamp", "subtopology_id", "by_regex", topic="sources")
        .explode("topic")
        .drop_nulls("topic")
    )
    known = pl.concat(
        [
            with_assignable(sizes_in(needed, sizes), state["share_partitions"]),
            tasks_of(_with_sizes(sources, sizes)),
        ]
    )
    found = assembled(spans, span_wants, has, known, state["topics"])
    return found.drop(EPOCH).join(_owned_before(times, assigned), on=SPAN, how="left")


def _members_with_topics(
    members: pl.DataFrame, epochs: pl.DataFrame, expressions: pl.DataFrame, parts: pl.DataFrame
) -> pl.DataFrame:
    """Return members as `assembled` takes them; `_WISH` numbers what those of a group want."""
    words = pl.col("words").str.splitn(" ", 2).struct
    names, regex = words.field("field_0"), words.field("field_1")
    told = members.join(
        epochs.select(EPOCH, LIFE, "group_id", "group_type", member_epoch="assignment_epoch"),
        on=EPOCH,
        maintain_order="left",
    )
    wishes = (
        told.select(LIFE, "words", "group_id", "group_type")
        .unique([LIFE, "words"])
        .with_row_index(_WISH)
        .with_columns(
            names.str.split(",")
            .list.eval(pl.element().filter(pl.element() != ""))
            .alias("subscribed_topics"),
            pl.when(regex != "").then(regex).alias("subscribed_regex"),
        )
    )
    wanted = with_wants(wishes, expressions, parts).select(LIFE, "words", _WISH, "wants")
    return told.join(
        wanted, on=[LIFE, "words"], nulls_equal=True, maintain_order="left"
    ).with_columns(pl.lit(None, pl.String).alias(name) for name in ("rack_id", "state", "unread"))


def _removals(sizes: pl.DataFrame) -> pl.DataFrame:
    """Return when topics were removed: `topic_id`, `removed`."""
    return (
        sizes.drop_nulls("topic_id")
        .sort("partitions")
        .group_by("topic_id")
        .agg(pl.col("until").last().alias("removed"))
    )


def _held(assigned: pl.DataFrame, times: pl.DataFrame) -> pl.DataFrame:
    """Return what members had in each stretch; topics that were gone by then go by their id."""
    is_gone = (pl.col("removed") <= pl.col("from_timestamp")).fill_null(value=False)
    key = (SPAN, "member", "topic")
    held = (
        assigned.join(times.select(EPOCH, SPAN, "from_timestamp"), on=EPOCH)
        .select(
            *(SPAN, "member"),
            pl.when(is_gone).then("gone").otherwise("topic").alias("topic"),
            "partition",
        )
        .sort(*key, "partition")
    )
    return (
        _distinct(held)
        .group_by(key, maintain_order=True)
        .agg(pl.col("partition").alias("partitions"))
        .with_columns(pl.col("topic").cast(pl.String))
    )


def _owned_before(times: pl.DataFrame, assigned: pl.DataFrame) -> pl.DataFrame:
    """Return what had an owner in the epoch before: `SPAN`, `owned_before` (null without one)."""
    held = assigned.select(pl.col(EPOCH) + 1, "topic", "partition")
    there = times.select(EPOCH)
    owned = _distinct(held.join(there, on=EPOCH, how="semi").sort(held.columns))
    listed = (
        owned.with_columns(pl.col("topic").cast(pl.String))
        .group_by(EPOCH)
        .agg(pl.struct("topic", "partition").alias("owned_before"))
    )
    return times.join(listed, on=EPOCH, how="left").select(SPAN, "owned_before")


def _distinct(rows: pl.DataFrame) -> pl.DataFrame:
    """Return each of sorted rows once."""
    every = pl.all()
    return rows.filter(pl.any_horizontal(every.ne_missing(every.shift(1))))


def _with_sizes(sources: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """Return sources with the counts of their time, null where there were none."""
    key = [SPAN, "subtopology_id", "topic"]
    found = sizes_in(sources, sizes).select(*key, "partitions", "counted_by")
    return sources.join(found, on=key, how="left")
