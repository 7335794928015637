"""What all questions about expiry are answered from, gathered once from the records of groups.

Takes frames of polars of whole groups, of any number of partitions of `__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.log_times import clocks_of_topic
from analytics.replay.log.losses import WHOLE, Coverage, of_partition
from analytics.replay.log.rules import ReplayRules
from analytics.replay.log.spans import SPAN, TIME
from analytics.replay.offsets.commit_rows import (
    GROUP,
    KEY,
    PLACE,
    TOPIC,
    numbered,
    places_and_names,
)
from analytics.replay.offsets.effective_commits import (
    REMOVED,
    ended_commits,
    offset_events,
    pending_spans,
)
from analytics.replay.removals.group_spans import group_spans, protection_spans
from analytics.replay.removals.removed_offsets import HEEDED
from schemas import CONSUMER_OFFSETS
from schemas.expiration_rules import ExpirationRules

# From where on the log shows all that happened to the offsets of a group.
#
# A what-if speaks for the time observed: from then on, up to the instant. Compaction, losses and
# the group's own beginning bound it.

COMPACTED = "history before that was compacted"
LOST = "records before that are lost"
CLOCK_SET_BACK = "a clock was set back in the period: how long offsets were idle cannot be told"


@dataclass(frozen=True)
class ObservedHistory:
    """What bounds the history of each partition of `__consumer_offsets`.

    Attributes:
        as_of_ms: The instant, in epoch milliseconds.
        instants: That of partitions that have another one.
        compacted_until: By partition, the offset before which compaction took records.
        coverage: Where records are lost.
    """

    as_of_ms: int
    instants: Mapping[int, int] = field(default_factory=dict)
    compacted_until: Mapping[int, int] = field(default_factory=dict)
    coverage: Coverage = WHOLE

    @property
    def now_ms(self) -> pl.Expr:
        """The instant of a row's `coordinator_partition`."""
        return pl.coalesce(of_partition(self.instants), pl.lit(self.as_of_ms, pl.Int64))

    @cached_property
    def lost_until(self) -> dict[int, int]:
        """By partition, the offset after its last loss."""
        losses = self.coverage.losses_of_topic(CONSUMER_OFFSETS)
        return {number: max(each.end for each in found) for number, found in losses.items()}

    @property
    def _compacted_until(self) -> pl.Expr:
        return of_partition(self.compacted_until).fill_null(0)

    @property
    def _whole(self) -> pl.Expr:
        return of_partition(self.lost_until).fill_null(0)

    @property
    def _is_set_back(self) -> pl.Expr:
        clocks = clocks_of_topic(self.coverage.clocks, CONSUMER_OFFSETS)
        return of_partition(dict.fromkeys(clocks, 1)).is_not_null()

    def is_known(self) -> pl.Expr:
        """Return whether all of a stretch is known that `exposures` tells of.

        What compaction left before its end is the last commit of each key; of what lies before a
        loss nobody knows whether it was.
        """
        return (pl.col("to_offset") > self._compacted_until) & (
            pl.col("commit_position") >= self._whole
        )

    def group_times(self, commits: pl.DataFrame) -> pl.DataFrame:
        """Return when each group committed first, and first where history is whole.

        Args:
            commits: Of `places_and_names`: of whole groups.

        Returns:
            `GROUP_KEY`, `first_ms` and `shown_ms` (bigint; null where it never did), and
            `is_set_back` (boolean: a clock was set back in its partition).
        """
        at_ms = pl.coalesce(pl.col("committed_at").dt.epoch("ms"), "commit_ms")
        is_shown = pl.col("record_offset") >= self._whole_from
        told = commits.select(
            GROUP, *GROUP_KEY, at_ms.alias("first_ms"), is_shown.alias("is_shown")
        )
        shown = pl.when("is_shown").then("first_ms").alias("shown_ms")
        return (
            told.with_columns(shown)
            .group_by(GROUP)
            .agg(pl.col(GROUP_KEY).first(), pl.col("first_ms", "shown_ms").min())
            .drop(GROUP)
            .with_columns(self._is_set_back.alias("is_set_back"))
        )

    def periods(self, times: pl.DataFrame, since: pl.DataFrame) -> pl.DataFrame:
        """Return the time observed of each group that ever committed.

        Args:
            times: Of `group_times`.
            since: Of `shown_since`, of all groups of the partitions that `times` has rows of.

        Returns:
            `GROUP_KEY`, `observed_from_ms` and `observed_to_ms` (bigint), and `bound` (what bounds
            it: `COMPACTED` or `LOST`, null where nothing was taken). A group that has its first
            commit behind what was compacted may have had others before, and their tombstones.
            `unmeasured`: why times do not tell how long offsets were idle; null where they do.
        """
        began = pl.when(self._whole_from > 0).then(pl.coalesce("began_ms", self.now_ms))
        lacks = (
            pl.when(self._whole >= self._compacted_until)
            .then(pl.lit(LOST))
            .otherwise(pl.lit(COMPACTED))
        )
        observed_from = pl.max_horizontal("first_ms", "since_ms")
        told = times.join(since, on="coordinator_partition", how="left", maintain_order="left")
        return told.with_columns(began.alias("since_ms")).select(
            *GROUP_KEY,
            pl.min_horizontal(observed_from, self.now_ms).alias("observed_from_ms"),
            self.now_ms.alias("observed_to_ms"),
            pl.when(pl.col("since_ms").is_not_null()).then(lacks).alias("bound"),
            pl.when("is_set_back").then(pl.lit(CLOCK_SET_BACK)).alias("unmeasured"),
        )

    @property
    def _whole_from(self) -> pl.Expr:
        return pl.max_horizontal(self._compacted_until, self._whole)


def shown_since(times: pl.DataFrame) -> pl.DataFrame:
    """Return `coordinator_partition` and `began_ms`, when a group committed first in what is whole.

    Args:
        times: Of `ObservedHistory.group_times`.
    """
    return times.group_by("coordinator_partition").agg(pl.col("shown_ms").min().alias("began_ms"))


def shown_since_in_all(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the same of all groups, of what it is of some."""
    return pl.concat(parts).group_by("coordinator_partition").agg(pl.col("began_ms").min())


def instants_of(times: pl.DataFrame, as_of_ms: int) -> dict[int, int]:
    """Return the instant of partitions that are cut at an offset, in epoch milliseconds.

    There it is the time of the last record before that.

    Args:
        times: `coordinator_partition` and `at` (timestamp) of the records that count.
        as_of_ms: No instant is later.
    """
    last = (
        times.group_by("coordinator_partition").agg(pl.col("at").max().dt.epoch("ms")).drop_nulls()
    )
    return {number: min(at, as_of_ms) for number, at in last.iter_rows()}


@dataclass(frozen=True)
class GroupRecords:
    """Records of whole groups, up to an instant.

    Attributes:
        commits: Of `commit_rows`.
        markers: Of `marker_rows`: all of their partitions.
        decoded: The other decoded tables about groups, by name.
    """

    commits: pl.DataFrame
    markers: pl.DataFrame
    decoded: Mapping[str, pl.DataFrame]


_NAMES: Final = ("group_id", "topic")
_NOTHING: Final = GroupRecords(pl.DataFrame(), pl.DataFrame(), {})
_LOOKED_AT: Final = (
    *(*KEY, GROUP, TOPIC, PLACE),
    *("record_offset", "committed_at", "is_tombstone", "commit_ms", "expire_ms", "producer_id"),
    *("waits", "end_offset", "end_at", "outcome"),
)
"""What is looked at of all commits; more is told of what was removed."""
_EVENTS: Final = (
    *(*KEY, GROUP, TOPIC, PLACE),
    *("event", "position", "at", "commit_ms", "expire_ms", "next_position"),
)
"""What is looked at of events once what was removed is gathered."""


@dataclass(frozen=True)
class OffsetLog:
    """Frames at an instant, and the rules.

    Attributes:
        records: What they are made of.
        replay: How the release replays.
        era: By which offsets expire.
        before: The era of what a release before an upgrade wrote; None where all is of one era.
        names: A row for each topic of a group, of `places_and_names`.
        events: `offset_events`, of each what changed which offset.
        removed_offsets: The tombstones among `offset_events`.
        pending: `pending_spans`.
        groups: `group_spans` of groups that have committed, by `GROUP` instead of names.
        protections: Such `protection_spans`, by `GROUP` and `TOPIC`.
    """

    records: GroupRecords
    replay: ReplayRules
    era: ExpirationRules
    before: ExpirationRules | None
    names: pl.DataFrame
    events: pl.DataFrame
    removed_offsets: pl.DataFrame
    pending: pl.DataFrame
    groups: pl.DataFrame
    protections: pl.DataFrame

    def with_some(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> OffsetLog:
        """Return what `retention_costs` takes and nothing else, each frame changed by its `GROUP`.

        Not even a frame without rows stays: its type would keep all names.
        """
        return replace(
            self,
            records=_NOTHING,
            names=pl.DataFrame(),
            events=change(self.events.select(_EVENTS)),
            removed_offsets=pl.DataFrame(),
            pending=pl.DataFrame(),
            groups=change(self.groups),
            protections=change(self.protections),
        )

    @property
    def protects(self) -> tuple[str, ...]:
        """What keeps an offset in this era, what goes before first."""
        return protecting(self.era)


def protecting(era: ExpirationRules) -> tuple[str, ...]:
    """Return what keeps an offset in an era; what does since 2.4 where nothing does."""
    return era.heeds or HEEDED


def offset_log(
    records: GroupRecords,
    replay: ReplayRules,
    era: ExpirationRules,
    before: ExpirationRules | None = None,
    *,
    by_numbers: bool = False,
) -> OffsetLog:
    """Gather what the questions share.

    Args:
        records: Of whole groups.
        replay: How the release replays.
        era: By which offsets expire.
        before: The era of what a release before an upgrade wrote; None where all is of one era.
        by_numbers: Groups and topics are enumerated: what many rows name is sooner looked up so.
    """
    groups = group_spans(
        records.decoded, records.commits if replay.groups_end_by_tombstones else None
    )
    protections = protection_spans(records.decoded, groups, protecting(era))
    commits, names = places_and_names(records.commits)
    groups, protections = numbered(groups, GROUP, names), _numbered(protections, names)
    if by_numbers:
        names = _enumerated(names)
        commits = commits.with_columns(names.select(_NAMES)[commits[TOPIC]])
    ended = ended_commits(commits, records.markers, replay)
    tombstoned = ended.filter("is_tombstone")[PLACE].unique()
    around = offset_events(ended.filter(pl.col(PLACE).is_in(tombstoned.implode())), replay)
    return OffsetLog(
        replace(records, commits=commits),
        replay,
        era,
        before,
        names,
        offset_events(ended.select(_LOOKED_AT), replay),
        around.filter(pl.col("event") == REMOVED),
        pending_spans(ended, replay),
        groups.drop(GROUP_KEY),
        protections,
    )


def _numbered(protections: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return protections by numbers; those of topics without commits are left out."""
    of_all = numbered(protections.filter(pl.col("topic").is_null()), GROUP, names)
    of_one = numbered(protections, TOPIC, names)
    rows = pl.concat([of_all, of_one.join(names.select(TOPIC, GROUP), on=TOPIC)], how="diagonal")
    return rows.select(GROUP, pl.col(TOPIC).cast(names.schema[TOPIC]), "why", *SPAN)


def _enumerated(names: pl.DataFrame) -> pl.DataFrame:
    """Return names as enumerations of all there are."""
    groups = names["group_id"].unique(maintain_order=True)
    group = pl.col("group_id").rle_id().cat.to(pl.Enum(groups))
    return names.with_columns(group, pl.col("topic").cast(pl.Enum(names["topic"].unique().sort())))


def with_transactions(places: pl.DataFrame, pending: pl.DataFrame) -> pl.DataFrame:
    """Add what transactions had pending on each offset at a place in the log.

    Args:
        places: `KEY` and `place`.
        pending: `pending_spans`.

    Returns:
        The places with `blocking_producers` (list of the ids of open transactions, null where there
        is none) and `blocked_until` (timestamp: when the last one before ended without taking
        effect; null where none did).
    """
    if pending.is_empty():
        nothing = {"blocked_until": TIME, "blocking_producers": pl.List(pl.Int64())}
        return places.with_columns(pl.lit(None, kind).alias(name) for name, kind in nothing.items())
    until, place = pl.col("until_position"), pl.col("place")
    is_open = until.is_null() | (until >= place)
    is_vain = (until < place) & (pl.col("outcome") != REMOVED)
    key = [*KEY, "place"]
    found = (
        places.select(key)
        .unique()
        .join(pending, on=list(KEY))
        .filter(pl.col("record_offset") < place)
        .group_by(key)
        .agg(
            pl.col("producer_id").filter(is_open).unique().sort().alias("open"),
            pl.col("until_at").filter(is_vain).max().alias("blocked_until"),
        )
        .with_columns(
            pl.when(pl.col("open").list.len() > 0).then("open").alias("blocking_producers")
        )
        .drop("open")
    )
    return places.join(found, on=key, how="left")


def modern_since(records: GroupRecords) -> int | None:
    """Return when a record first shows 2.1 or newer, in epoch milliseconds; None where none does.

    Before 2.1 every commit was stored in version 1 or 0 and with an expire time, and every group
    in version 1 or 0.
    """
    version = pl.col("value_version")
    is_modern = (version > 1) | ((version == 1) & (pl.col("expire_ms") == -1))
    said = _time("committed_at", pl.col("commit_ms"))
    told = [records.commits.select(said.filter(is_modern))]
    groups = records.decoded["group_metadata"]
    if groups.height:
        state = pl.col("value").struct.field("current_state_timestamp")
        told.append(groups.select(_time("timestamp", state).filter(version > 1)))
    first = pl.concat(told)["said_ms"].min()
    return first if isinstance(first, int) else None


def _time(name: str, otherwise: pl.Expr) -> pl.Expr:
    own = pl.col(name).dt.epoch("ms")
    return pl.coalesce(own, pl.when(otherwise > 0).then(otherwise)).alias("said_ms")
