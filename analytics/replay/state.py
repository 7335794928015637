"""The state tables: what each is made of, and those of groups.

Steps take what is given (`replay_given`) and what other steps make. `cut` are the decoded tables of
groups and share partitions of a bucket, `whole` those of the metadata and the transaction log,
`marker_epochs` what the markers of all groups and share partitions tell of leader epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from analytics.contracts import contract_frame, contract_schema, instant
from analytics.replay.between_cuts import (
    NOTHING,
    BetweenCuts,
    MetadataCuts,
    between_cuts,
    marked_configs,
    marked_leaders,
    marked_topics,
    metadata_cuts,
)
from analytics.replay.graph import TableStep
from analytics.replay.groups.coordinator_log import coordinator_log
from analytics.replay.groups.fold import GroupState, folded_groups, groups_gone
from analytics.replay.groups.group_records import GROUP_KEY, NONE
from analytics.replay.log.losses import (
    WHOLE,
    Coverage,
    may_be_elsewhere,
    may_be_superseded,
    with_marks_of,
    with_missing,
)
from analytics.replay.metadata_log import (
    SETTING_KEY,
    MetadataLog,
    configs,
    metadata_log,
    partition_leaders,
)
from analytics.replay.offsets.commit_rows import first_of_runs, placed_commits
from analytics.replay.offsets.effective_commits import transaction_owners
from analytics.replay.offsets.offset_state import (
    committed_offsets,
    last_epochs,
    merged_epochs,
    pending_offsets,
)
from analytics.replay.share_fold import share_states
from analytics.replay.share_partitions import (
    claims_of,
    merged_claims,
    share_batches,
    share_partitions,
)
from analytics.replay.topics import named_in_records, topics

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Decoded
    from analytics.replay.log.rules import ReplayRules

# The tables `groups`, `members` and `assignments`, read off the fold of group records.
#
# A lost record can matter to a group only if it lies behind what the group is known from: the
# record that is the whole of a classic group, or the end of the life before the present one.

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


# The steps.

COORDINATOR_LOG = TableStep("coordinator_log", coordinator_log, ("cut",))
"""What both the state and the history of groups are made of."""


def _commits(cut: Decoded) -> pl.DataFrame:
    return placed_commits(cut["offset_commit"])


COMMITS = TableStep("commits", _commits, ("cut",))
"""What both the state and the history of offsets are made of."""


def _named_together(named: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(named).unique()


def _topics(
    metadata: MetadataLog,
    cuts: MetadataCuts | None,
    others: Sequence[pl.DataFrame],
    named: Sequence[pl.DataFrame],
) -> pl.DataFrame:
    pairs = _named_together(named)
    rows = topics(metadata, others, pairs)
    return rows if cuts is None else marked_topics(rows, topics(cuts.earlier, others, pairs), cuts)


def _partition_leaders(metadata: MetadataLog, cuts: MetadataCuts | None) -> pl.DataFrame:
    rows = partition_leaders(metadata)
    return rows if cuts is None else marked_leaders(rows, cuts)


def _configs(
    metadata: MetadataLog, cuts: MetadataCuts | None, others: pl.DataFrame
) -> pl.DataFrame:
    rows = configs(metadata)
    marked = rows if cuts is None else marked_configs(rows, cuts)
    # What the metadata log has of a setting goes before another source.
    return pl.concat([marked, others.join(marked, SETTING_KEY, "anti")])


def _no_configs() -> pl.DataFrame:
    return pl.DataFrame(schema=contract_schema("configs"))


def _owners(whole: Decoded, coverage: Coverage) -> pl.DataFrame:
    return transaction_owners(whole["transaction_log"], coverage)


def _share_states(cut: Decoded, rules: ReplayRules) -> pl.DataFrame:
    return share_states(cut, rules.share_epoch_without_snapshot)


def _share_partitions(
    states: Sequence[pl.DataFrame],
    claims: Sequence[pl.DataFrame],
    topics: pl.DataFrame,
    coverage: Coverage,
) -> pl.DataFrame:
    return share_partitions(pl.concat(states), merged_claims(claims), topics, coverage)


def _share_batches(
    states: Sequence[pl.DataFrame], topics: pl.DataFrame, partitions: pl.DataFrame
) -> pl.DataFrame:
    return share_batches(pl.concat(states), topics, partitions)


UNCERTAIN = TableStep("uncertain", between_cuts, ("cut", "rules", "coverage"))
"""What lies between the two cuts of logs whose times go back."""

_OF_OFFSETS = ("cut", "rules", "groups_gone", "coverage")

STATE = (
    TableStep("metadata", metadata_log, ("whole",), once=True),
    TableStep("owners", _owners, ("whole", "coverage"), once=True),
    COORDINATOR_LOG,
    TableStep("group_state", folded_groups, ("coordinator_log", "cut", "rules")),
    TableStep("groups_gone", groups_gone, ("group_state",)),
    TableStep("named_in_records", named_in_records, ("cut",), together=_named_together),
    TableStep("metadata_cuts", metadata_cuts, ("metadata", "coverage"), once=True),
    TableStep(
        "topics",
        _topics,
        ("metadata", "metadata_cuts", "other_topics", "named_in_records"),
        once=True,
    ),
    TableStep("epochs_here", last_epochs, ("cut", "rules"), together=merged_epochs),
    TableStep("last_epochs", merged_epochs, ("epochs_here",), once=True),
    COMMITS,
    UNCERTAIN,
    TableStep(
        "pending_offsets",
        pending_offsets,
        ("cut", "rules", "coverage", "owners", "last_epochs", "commits"),
    ),
    TableStep(
        "committed_offsets",
        committed_offsets,
        (*_OF_OFFSETS, "pending_offsets", "last_epochs", "commits"),
    ),
    TableStep(
        "groups",
        groups,
        ("group_state", "committed_offsets", "pending_offsets", "coverage", "uncertain"),
    ),
    TableStep("assignments", assignments, ("group_state", "topics", "groups")),
    TableStep("members", members, ("group_state", "groups")),
    TableStep("share_states", _share_states, ("cut", "rules")),
    TableStep("claims", claims_of, ("cut",)),
    TableStep(
        "share_partitions",
        _share_partitions,
        ("share_states", "claims", "topics", "coverage"),
        once=True,
    ),
    TableStep(
        "share_batches", _share_batches, ("share_states", "topics", "share_partitions"), once=True
    ),
    TableStep("partition_leaders", _partition_leaders, ("metadata", "metadata_cuts"), once=True),
    TableStep("configs", _configs, ("metadata", "metadata_cuts", "other_configs"), once=True),
)
"""The state tables, and what several of them are made of."""


def replay_given(
    rules: ReplayRules,
    coverage: Coverage,
    other_topics: Sequence[pl.DataFrame] = (),
    timeless: Sequence[int] | None = None,
    other_configs: pl.DataFrame | None = None,
) -> Mapping[str, Any]:
    """Return what the steps of a replay take besides records.

    Args:
        rules: Of the release.
        coverage: What the dump holds.
        other_topics: Sources of names besides the records, as `topics` takes them.
        timeless: The partitions in which a tombstone has no time; None where all records are in one
            bucket, which tells.
        other_configs: Rows of the table `configs` from another source than records.
    """
    return {
        "rules": rules,
        "coverage": coverage,
        "other_topics": other_topics,
        "timeless": timeless,
        "other_configs": _no_configs() if other_configs is None else other_configs,
    }
