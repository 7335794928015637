"""Offsets that no client reaches since their group is looked for in another internal partition."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.compute as pc

from analytics.engine.key_places import homes_in
from analytics.questions.timeline.lost_commits import commits_in, markers_in
from analytics.questions.timeline.lost_lines import last_on_line
from analytics.questions.timeline.words import (
    HIGH,
    LOST_BY_GROWTH,
    Place,
    Row,
    Verdict,
    place_of,
    record_of,
    verdict_row,
)
from analytics.replay.dump.written_instants import iso_time
from analytics.replay.log.internal_partitions import internal_partition
from analytics.replay.log.key_homes import home_of
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.effective_commits import ended_commits
from analytics.workspace import DECODED
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.questions.timeline.history import OffsetHistory
    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_EVERYWHERE: Final = pc.field("offset") >= 0


def offsets_out_of_reach(state: ReplayedWorkspace, history: OffsetHistory) -> list[Verdict]:
    """Return a verdict for each offset that was in force in a partition nobody asks any more.

    What the coordinator of that partition does later, as to expire what it still has in memory,
    changes nothing. A log that lies where no number of partitions sent clients was never asked.

    Args:
        state: A replayed workspace.
        history: Of the partitions where clients look.
    """
    homes = homes_in(state.manifest).get(CONSUMER_OFFSETS)
    if homes is None:
        return []
    found: list[Verdict] = []
    after = _Next(history, {}, homes.partitions, homes.since)
    for era in homes.before:
        if after.since is None:
            break
        lasts = [
            each
            for partition in homes.misplaced
            for each in _in_force(state, partition, era.partitions, homes, after.since)
        ]
        found += [_verdict(last, after, era.last) for last in lasts if _is_there(last)]
        firsts = {place_of(each): each["first_offset"] for each in lasts}
        after = _Next(None, {**after.firsts, **firsts}, era.partitions, era.first)
    return found


def looked_for_elsewhere(state: ReplayedWorkspace, group: str, until: datetime) -> str | None:
    """Return why a group's history up to an instant is not that of the partition it is in now.

    Args:
        state: A replayed workspace.
        group: The group.
        until: The last instant asked about, within what was replayed.
    """
    homes = homes_in(state.manifest).get(CONSUMER_OFFSETS)
    if homes is None or homes.since is None or until >= homes.since:
        return None
    here = home_of(group, homes.partitions)
    if all(home_of(group, each.partitions) == here for each in homes.before):
        return None
    return (
        f"until {iso_time(homes.since)} clients looked for {group} in another partition of "
        f"{CONSUMER_OFFSETS}: ask with --as-of {iso_time(until)}"
    )


def _is_there(last: Row) -> bool:
    return last["committed_offset"] is not None


class _Next:
    """Where groups went on: the number of partitions, since when, and what they committed first."""

    def __init__(
        self,
        history: OffsetHistory | None,
        firsts: dict[Place, int | None],
        partitions: int,
        since: datetime | None,
    ) -> None:
        self._history, self.firsts = history, firsts
        self.partitions, self.since = partitions, since

    def first_of(self, place: Place) -> int | None:
        """Return the first offset committed for a place; None where there is none."""
        if self._history is None:
            return self.firsts.get(place)
        change = self._history.first_from(place, 0)
        found: int | None = None if change is None else change["committed_offset"]
        return found


def _in_force(
    state: ReplayedWorkspace, partition: int, number: int, homes: TopicHomes, until: datetime
) -> Iterator[Row]:
    """Yield what was in force at the end of an era in one of its partitions."""
    line = {"topic": CONSUMER_OFFSETS, "partition": partition}
    commits = commits_in(state, line, DECODED, _EVERYWHERE)
    group, newer = pl.col("group_id"), [homes.partitions]
    newer += [each.partitions for each in homes.before if each.partitions > number]
    is_of_era = internal_partition(group, number) == partition
    for each in newer:
        is_of_era &= internal_partition(group, each) != partition
    is_in_time = pl.col("committed_at").is_null() | (pl.col("committed_at") < until)
    ended = ended_commits(
        commits.filter(is_of_era & is_in_time),
        markers_in(state, line, DECODED, _EVERYWHERE).filter(
            pl.col("end_at").is_null() | (pl.col("end_at") < until)
        ),
        replay_rules(state.release),
    )
    firsts: dict[Place, int | None] = {}
    for row in ended.filter(~pl.col("is_tombstone")).sort("record_offset").iter_rows(named=True):
        firsts.setdefault(place_of(row), row["committed_offset"])
    for last in last_on_line(ended, 0):
        first = firsts.get(place_of(last))
        yield {**last, "coordinator_partition": partition, "first_offset": first}


def _verdict(last: Row, after: _Next, not_before: datetime | None) -> Verdict:
    place, was = place_of(last), last["committed_offset"]
    first = after.first_of(place)
    reason = (
        f"brokers that were started since go by {after.partitions} partitions of "
        f"{CONSUMER_OFFSETS}: none looks for the group in partition "
        f"{last['coordinator_partition']} any more"
    )
    if first is not None:
        reason += f"; then {first} was committed"
    return verdict_row(
        place,
        LOST_BY_GROWTH,
        at=after.since,
        not_before=not_before,
        was=was,
        committed_at=last["timestamp"],
        cost=was - first if first is not None and first < was else None,
        confidence=HIGH,
        record=record_of(last),
        reason=reason,
    )
