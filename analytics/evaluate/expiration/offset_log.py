"""What all questions about expiry are answered from, gathered once from the records of groups.

Takes frames of polars of whole groups, of any number of partitions of `__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.rules import ReplayRules
from analytics.replay.offsets.commit_rows import KEY
from analytics.replay.offsets.effective_commits import (
    REMOVED,
    ended_commits,
    offset_events,
    pending_spans,
)
from analytics.replay.removals.removed_offsets import HEEDED
from analytics.replay.spans.group_spans import group_spans, protection_spans
from analytics.replay.spans.intervals import TIME
from schemas.expiration_rules import ExpirationRules


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
_EVENTS = (*KEY, "event", "position", "at", "commit_ms", "expire_ms", "next_position")
"""What is looked at of events once what was removed is gathered."""


@dataclass(frozen=True)
class OffsetLog:
    """Frames at an instant, and the rules.

    Attributes:
        records: What they are made of.
        replay: How the release replays.
        era: By which offsets expire.
        before: The era of what a release before an upgrade wrote; None where all is of one era.
        events: `offset_events`.
        pending: `pending_spans`.
        groups: `group_spans`.
        protections: `protection_spans`.
    """

    records: GroupRecords
    replay: ReplayRules
    era: ExpirationRules
    before: ExpirationRules | None
    events: pl.DataFrame
    pending: pl.DataFrame
    groups: pl.DataFrame
    protections: pl.DataFrame

    def of(self, groups: pl.DataFrame, *, are_they: bool) -> OffsetLog:
        """Return the log of these groups (`GROUP_KEY`), or of all others, without its records."""
        how: Literal["semi", "anti"] = "semi" if are_they else "anti"
        light = replace(self, records=_NOTHING, events=self.events.select(_EVENTS))
        return light.map(lambda rows: rows.join(groups, on=list(GROUP_KEY), how=how))

    def map(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> OffsetLog:
        """Return the log with each of its frames changed, but for its records."""
        return replace(
            self,
            events=change(self.events),
            pending=change(self.pending),
            groups=change(self.groups),
            protections=change(self.protections),
        )

    @property
    def protects(self) -> tuple[str, ...]:
        """What keeps an offset in this era, what goes before first; else what does since 2.4."""
        return self.era.heeds or HEEDED


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
    protections = protection_spans(records.decoded, groups)
    names = _NAMES if by_numbers else ()
    numbers = {name: pl.Enum(records.commits[name].unique().sort()) for name in names}
    commits = records.commits.with_columns(pl.col(each).cast(to) for each, to in numbers.items())
    ended = ended_commits(commits, records.markers, replay)
    return OffsetLog(
        replace(records, commits=commits),
        replay,
        era,
        before,
        offset_events(ended, replay),
        pending_spans(ended, replay),
        _numbered(groups, numbers),
        _numbered(protections, numbers),
    )


def _numbered(spans: pl.DataFrame, numbers: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return spans with numbers for names; those of names without commits are left out."""
    for name in numbers.keys() & set(spans.columns):
        number = pl.col(name).cast(numbers[name], strict=False)
        is_there = pl.col(name).is_null() | number.is_not_null()
        spans = spans.filter(is_there).with_columns(number)
    return spans


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
    told = [records.commits.filter(is_modern).select(_time("committed_at", pl.col("commit_ms")))]
    groups = records.decoded["group_metadata"]
    if groups.height:
        state = pl.col("value").struct.field("current_state_timestamp")
        told.append(groups.filter(version > 1).select(_time("timestamp", state)))
    first = pl.concat(told)["said_ms"].min()
    return first if isinstance(first, int) else None


def _time(name: str, otherwise: pl.Expr) -> pl.Expr:
    own = pl.col(name).dt.epoch("ms")
    return pl.coalesce(own, pl.when(otherwise > 0).then(otherwise)).alias("said_ms")
