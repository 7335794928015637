"""Offsets that no client reaches since their group is looked for in another internal partition."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.compute as pc

from analytics.engine.key_places import homes_in
from analytics.questions.timeline.history import OffsetHistory
from analytics.questions.timeline.lost_commits import LAST, commits_in, last_on_line, markers_in
from analytics.questions.timeline.words import (
    HIGH,
    LOST_BY_GROWTH,
    PLACE,
    VERDICTS,
    record_at,
    verdicts_on,
)
from analytics.replay.dump.choices import iso_time
from analytics.replay.log.rules import replay_rules
from analytics.replay.log.topic_homes import internal_partition
from analytics.replay.offsets.effective_commits import ended_commits
from analytics.workspace import DECODED
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_EVERYWHERE: Final = pc.field("offset") >= 0
OUT_OF_REACH: Final = pl.Schema(
    {
        **LAST,
        "coordinator_partition": pl.Int32(),
        "partitions": pl.Int32(),
        "since": VERDICTS["at"],
        "not_before": VERDICTS["not_before"],
        "is_newest": pl.Boolean(),
        "next_offset": pl.Int64(),
    }
)
"""What was in force in partitions nobody asks any more (`LAST`): in which, and by which number of
partitions clients went since when, after `not_before`; then what was committed first where they
went, unless the era `is_newest`: the history has that."""
_ENDED: Final = pl.Schema({**LAST, "coordinator_partition": pl.Int32(), "first_offset": pl.Int64()})


def left_behind(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return what was in force in partitions nobody asks any more: `OUT_OF_REACH`.

    What the coordinator of such a partition does later, as to expire what it still has in memory,
    changes nothing. A log that lies where no number of partitions sent clients was never asked.
    """
    homes = homes_in(state.manifest).get(CONSUMER_OFFSETS)
    found = [OUT_OF_REACH.to_frame()]
    if homes is None:
        return found[0]
    partitions, since = homes.partitions, homes.since
    firsts: pl.DataFrame | None = None
    for era in homes.before:
        if since is None:
            break
        lasts = pl.concat(
            [
                _ENDED.to_frame(),
                *(
                    _in_force(state, partition, era.partitions, homes, since)
                    for partition in homes.misplaced
                ),
            ]
        )
        known = _ENDED.to_frame() if firsts is None else firsts
        next_offsets = known.select(*PLACE, pl.col("first_offset").alias("next_offset"))
        told = lasts.filter(pl.col("committed_offset").is_not_null())
        told = told.join(next_offsets, PLACE, "left", maintain_order="left").with_columns(
            partitions=pl.lit(partitions),
            since=pl.lit(since),
            not_before=pl.lit(era.last),
            is_newest=pl.lit(firsts is None),
        )
        found.append(told.select(pl.col(name).cast(kind) for name, kind in OUT_OF_REACH.items()))
        firsts = pl.concat([known, lasts]).unique(PLACE, keep="last")
        partitions, since = era.partitions, era.first
    return pl.concat(found)


def offsets_out_of_reach(behind: pl.DataFrame, history: OffsetHistory) -> pl.DataFrame:
    """Return a verdict for each offset that was in force in a partition nobody asks any more.

    Args:
        behind: `OUT_OF_REACH`.
        history: Of the partitions where clients look.
    """
    if behind.is_empty():
        return VERDICTS.to_frame()
    here = history.first_changes.select(*PLACE, pl.col("committed_offset").alias("here"))
    rows = behind.join(here, PLACE, "left", maintain_order="left")
    rows = rows.with_columns(
        pl.when("is_newest").then("here").otherwise("next_offset").alias("next_offset")
    )
    was, first = pl.col("committed_offset"), pl.col("next_offset")
    reasons = (
        pl.format(
            f"brokers that were started since go by {{}} partitions of {CONSUMER_OFFSETS}: none "
            "looks for the group in partition {} any more",
            "partitions",
            "coordinator_partition",
        ),
        pl.format("then {} was committed", first),
    )
    return verdicts_on(
        rows,
        LOST_BY_GROWTH,
        "out_of_reach",
        at=pl.col("since"),
        not_before=pl.col("not_before"),
        was=was,
        committed_at=pl.col("timestamp"),
        cost=pl.when(first < was).then(was - first),
        confidence=HIGH,
        record=record_at("record_offset"),
        reason=pl.concat_str(*reasons, separator="; ", ignore_nulls=True),
    )


def looked_for_elsewhere(
    state: ReplayedWorkspace, groups: pl.DataFrame, until: datetime
) -> pl.DataFrame:
    """Return why the history of groups up to an instant is not that of the partition they are in.

    Args:
        state: A replayed workspace.
        groups: Has `group_id`.
        until: The last instant asked about, within what was replayed.

    Returns:
        `group_id` and `why`, of those groups of which that is so.
    """
    group = pl.col("group_id")
    homes = homes_in(state.manifest).get(CONSUMER_OFFSETS)
    if homes is None or homes.since is None or until >= homes.since:
        return pl.DataFrame(schema={"group_id": pl.String, "why": pl.String})
    why = pl.format(
        f"until {iso_time(homes.since)} clients looked for {{}} in another partition of "
        f"{CONSUMER_OFFSETS}: ask with --as-of {iso_time(until)}",
        group,
    ).alias("why")
    here = internal_partition(group, homes.partitions)
    was_elsewhere = pl.any_horizontal(
        pl.lit(value=False),
        *(internal_partition(group, each.partitions) != here for each in homes.before),
    )
    return groups.filter(was_elsewhere).select(group, why)


def _in_force(
    state: ReplayedWorkspace, partition: int, number: int, homes: TopicHomes, until: datetime
) -> pl.DataFrame:
    """Return what was in force at the end of an era in one of its partitions: `_ENDED`."""
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
    written = ended.filter(~pl.col("is_tombstone")).sort("record_offset")
    firsts = written.unique(PLACE, keep="first", maintain_order=True)
    firsts = firsts.select(*PLACE, pl.col("committed_offset").alias("first_offset"))
    rows = last_on_line(ended, 0).join(firsts, PLACE, "left", maintain_order="left")
    rows = rows.with_columns(pl.lit(partition, pl.Int32).alias("coordinator_partition"))
    return rows.select(_ENDED.names())
