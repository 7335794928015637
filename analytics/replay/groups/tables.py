"""The tables `groups`, `members` and `assignments`, read off the fold of group records.

A lost record can matter to a group only if it lies behind what the group is known from: the record
that is the whole of a classic group, or the end of the life before the present one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.between_cuts import NOTHING, BetweenCuts
from analytics.replay.groups.coded_log import NONE
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import may_be_elsewhere, may_be_superseded, with_missing
from analytics.replay.log.marks import with_marks_of
from analytics.replay.log.meanings import instant
from analytics.replay.offsets.commit_places import first_of_runs

if TYPE_CHECKING:
    from analytics.replay.groups.state import GroupState

SIMPLE = "simple"
NO_GROUP_RECORD = "the group's own record is not in the dump"


def groups(
    state: GroupState,
    committed: pl.DataFrame,
    pending: pl.DataFrame,
    coverage: Coverage = WHOLE,
    uncertain: BetweenCuts = NOTHING,
) -> pl.DataFrame:
    """Return every group the broker would list (``GroupMetadataManager.listGroups``).

    Args:
        state: The groups at the instant.
        committed: The table `committed_offsets` at the same instant, of the same groups.
        pending: The table `pending_offsets`; a group that has one of these offsets and no record
            of its own is a simple group, but where a tombstone removed it (since 4.0).
        coverage: What the dump holds.
        uncertain: What lies between the two cuts of logs whose times go back.
    """
    told = state.rows["a_group"].with_columns(state_timestamp=instant(pl.col("state_ms")))
    sources = [committed, pending]
    if state.committed is not None:
        sources[1] = pending.join(state.removed_groups, on=GROUP_KEY, how="anti")
        # That a commit was deleted since, or aborted, does not remove the group it made.
        sources.append(state.committed)
    simple = (
        pl.concat(first_of_runs(each, GROUP_KEY) for each in sources)
        .unique()
        .join(told, GROUP_KEY, "anti")
        .with_columns(
            group_type=pl.lit(SIMPLE),
            state=pl.lit("Empty"),
            member_count=pl.lit(0, pl.Int32()),
            known_from=pl.lit(NONE, pl.Int64()),
        )
    )
    # A group without records of its own is there by its offsets.
    of_offsets = uncertain.offsets.select(uncertain.groups.columns).unique()
    rows = pl.concat(
        [
            told.join(uncertain.groups, on=GROUP_KEY, how="left", maintain_order="left"),
            simple.join(of_offsets, on=GROUP_KEY, how="left", maintain_order="left"),
        ],
        how="diagonal",
    )
    return contract_frame(_with_completeness(rows, coverage), "groups")


def members(state: GroupState, of_groups: pl.DataFrame) -> pl.DataFrame:
    """Return every member of every group.

    What clients wrote may be unreadable (`unread`); other records are the broker's own.

    Args:
        state: The groups at the instant.
        of_groups: The table `groups`: what is lacking of a group is lacking of its members.
    """
    told = state.rows["a_member"].with_columns(unread=pl.col("missing"))
    return contract_frame(with_marks_of(told, of_groups, GROUP_KEY), "members")


def assignments(state: GroupState, topics: pl.DataFrame, of_groups: pl.DataFrame) -> pl.DataFrame:
    """Return who owns what.

    Args:
        state: The groups at the instant.
        topics: All rows of the table `topics`; ids that it does not name stay without a name.
        of_groups: The table `groups`: what is lacking of one is lacking of what its members own.
    """
    named = topics.filter(pl.col("topic_id").is_not_null())
    names = named.group_by("topic_id").agg(name=pl.col("topic").max())
    told = state.rows["an_assignment"].join(names, "topic_id", "left")
    told = with_marks_of(told, of_groups, GROUP_KEY)
    return contract_frame(told.with_columns(topic=pl.coalesce("topic", "name")), "assignments")


def _with_completeness(rows: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Add `complete` and `missing` to groups.

    Args:
        rows: Has `coordinator_partition`, `group_type`, `record_offset`, `known_from` and
            `between_cuts`: why records of the group may not count, null where they do.
        coverage: What the dump holds.
    """
    unnamed = pl.col("record_offset").is_null() & (pl.col("group_type") != "simple")
    without_record = pl.when(unnamed).then(pl.lit(NO_GROUP_RECORD))
    # The record at `known_from` is there; those behind it may not be.
    lost = may_be_superseded(coverage, pl.col("known_from") + 1)
    why = (without_record, lost, may_be_elsewhere(coverage), "between_cuts")
    missing = pl.concat_str(why, separator="; ", ignore_nulls=True)
    return with_missing(rows, missing)
