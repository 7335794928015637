"""Which partitions of `__share_group_state` a dump does not show whole at an instant, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.dump.inspection.found_losses import lacks
from analytics.gaps.gap import joined, words_expression
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.internal_topics import (
    ends_of,
    filters_of,
    filters_sentence,
    losses_of,
    partition_count,
)
from analytics.replay.dump.assumptions import COMPLETE_ARCHIVE, assumed_in
from analytics.replay.log.frames import disputed, frames_of_rows
from analytics.replay.log.internal_partitions import internal_partition, share_key
from analytics.replay.log.losses_at import leading
from schemas import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

ORPHAN = "orphan"
_GROUP_FILTERS: Final = ("groups", "exclude_groups")


def gaps_of_state(state: ReplayedWorkspace) -> Mapping[int, str]:
    """Return by partition, as far as the dump says that there are, what it lacks of it."""
    there = {
        each["partition"] for each in leading(state.manifest) if each["topic"] == SHARE_GROUP_STATE
    }
    losses = losses_of(state, SHARE_GROUP_STATE, ends_of(state, SHARE_GROUP_STATE))
    found = {number: lacks(SHARE_GROUP_STATE, number, each) for number, each in losses.items()}
    frames = disputed(frames_of_rows(state.frames), SHARE_GROUP_STATE)
    found |= {number: each.why(SHARE_GROUP_STATE, number) for number, each in frames.items()}
    if COMPLETE_ARCHIVE in assumed_in(state.manifest):
        return found
    count = partition_count(state, SHARE_GROUP_STATE)
    absent = set(range(count or 0)) - there
    absent |= set(state.manifest["absent_partitions"].get(SHARE_GROUP_STATE, ()))
    absent_ones = {
        number: f"this dump has no copy of {SHARE_GROUP_STATE}-{number}"
        for number in sorted(absent)
    }
    return {**found, **absent_ones}


def gaps_of_all_groups(manifest: Mapping[str, Any], gaps: Mapping[int, str]) -> Mapping[int, str]:
    """Return by partition why not the state of all groups in it is at hand.

    Args:
        manifest: Of the workspace: what it was made without.
        gaps: Of `gaps_of_state`.
    """
    filters = {name: some for name, some in filters_of(manifest).items() if name in _GROUP_FILTERS}
    sentence = filters_sentence(filters)
    if sentence is None:
        return gaps
    there = {each["partition"] for each in leading(manifest) if each["topic"] == SHARE_GROUP_STATE}
    return {number: gaps.get(number, sentence) for number in sorted({*there, *gaps})}


def with_possible_claims(shares: pl.DataFrame, state: ReplayedWorkspace) -> pl.DataFrame:
    """Say of state that no group claims where its group may be among lost records.

    Args:
        shares: Rows of `share_partitions`.
        state: Says the instant, and what the dump lacks of groups.
    """
    is_orphan = pl.col("phase") == ORPHAN
    completeness = GroupCompleteness(state)
    groups = shares.filter(is_orphan)["group_id"].unique().to_list()
    reasons = [joined(completeness.gaps_of(group).membership) for group in groups]
    lacking = pl.DataFrame(
        {"group_id": groups, "why": reasons}, {"group_id": pl.String, "why": pl.String}
    )
    if not lacking["why"].count():
        return shares
    why = pl.when(is_orphan).then("why")
    return (
        shares.join(lacking, "group_id", "left", maintain_order="left")
        .with_columns(missing=pl.coalesce("missing", why))
        .with_columns(complete=pl.col("missing").is_null())
        .drop("why")
    )


@dataclass(frozen=True)
class StateCoverage:
    """What the dump shows of `__share_group_state`.

    Attributes:
        partitions: How many partitions it has; None where that is not known.
        gaps: By partition, what the dump lacks of it, in words; others are whole.
    """

    partitions: int | None = None
    gaps: Mapping[int, str] = field(default_factory=dict)


def with_absence(shares: pl.DataFrame, coverage: StateCoverage) -> pl.DataFrame:
    """Say of share partitions without state whether that is known: `complete` and `missing`.

    Args:
        shares: Rows of `share_partitions`.
        coverage: What the dump shows.
    """
    has_none = pl.col("record_offset").is_null() & (pl.col("phase") == "initialized")
    topic = pl.lit(SHARE_GROUP_STATE)
    why = words_expression("share_state_home_unknown", topic=topic)
    if coverage.partitions is not None:
        key = share_key(*(pl.col(name) for name in ("group_id", "topic_id", "partition")))
        home = internal_partition(pl.when(has_none).then(key), coverage.partitions)
        gap = home.cast(pl.Int64).replace_strict(
            list(coverage.gaps), list(coverage.gaps.values()), default=None, return_dtype=pl.String
        )
        why = words_expression("share_state_absent", why=gap)
    return shares.with_columns(
        missing=pl.when(has_none).then(why).otherwise("missing")
    ).with_columns(
        complete=pl.when(has_none).then(pl.col("missing").is_null()).otherwise("complete")
    )
