"""The state tables: what each is made of.

Steps take what is given (`replay_given`) and what other steps make. `cut` are the decoded tables of
groups and share partitions of a bucket, `whole` those of the metadata and the transaction log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from analytics.replay.between_cuts import between_cuts
from analytics.replay.graph import TableStep
from analytics.replay.groups.coordinator_log import coordinator_log
from analytics.replay.groups.fold import folded_groups, groups_gone
from analytics.replay.groups.tables import assignments, groups, members
from analytics.replay.log.transaction_owners import transaction_owners
from analytics.replay.metadata.configs import configs
from analytics.replay.metadata.metadata_cuts import (
    MetadataCuts,
    marked_configs,
    marked_leaders,
    marked_topics,
    metadata_cuts,
)
from analytics.replay.metadata.metadata_log import MetadataLog, metadata_log
from analytics.replay.metadata.partition_leaders import partition_leaders
from analytics.replay.metadata.topics import named_in_records, topics
from analytics.replay.offsets.commit_rows import placed_commits
from analytics.replay.offsets.offset_state import (
    committed_offsets,
    last_epochs,
    merged_epochs,
    pending_offsets,
)
from analytics.replay.share.share_fold import share_states
from analytics.replay.share.share_partitions import (
    claims_of,
    merged_claims,
    share_batches,
    share_partitions,
)

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded
    from analytics.replay.log.coverage import Coverage
    from analytics.replay.log.rules import ReplayRules

COORDINATOR_LOG = TableStep("coordinator_log", coordinator_log, ("cut",))
"""What both the state and the history of groups are made of."""


def _commits(cut: Decoded) -> pl.DataFrame:
    return placed_commits(cut["offset_commit"])


COMMITS = TableStep("commits", _commits, ("cut",))
"""What both the state and the history of offsets are made of."""


def _topics(
    metadata: MetadataLog,
    cuts: MetadataCuts | None,
    others: Sequence[pl.DataFrame],
    named: Sequence[pl.DataFrame],
) -> pl.DataFrame:
    pairs = pl.concat(named).unique()
    rows = topics(metadata, others, pairs)
    return rows if cuts is None else marked_topics(rows, topics(cuts.earlier, others, pairs), cuts)


def _partition_leaders(metadata: MetadataLog, cuts: MetadataCuts | None) -> pl.DataFrame:
    rows = partition_leaders(metadata)
    return rows if cuts is None else marked_leaders(rows, cuts)


def _configs(metadata: MetadataLog, cuts: MetadataCuts | None) -> pl.DataFrame:
    rows = configs(metadata)
    return rows if cuts is None else marked_configs(rows, cuts)


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
    TableStep("named_in_records", named_in_records, ("cut",)),
    TableStep("metadata_cuts", metadata_cuts, ("metadata", "coverage"), once=True),
    TableStep(
        "topics",
        _topics,
        ("metadata", "metadata_cuts", "other_topics", "named_in_records"),
        once=True,
    ),
    TableStep("epochs_here", last_epochs, ("cut", "rules")),
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
    TableStep("configs", _configs, ("metadata", "metadata_cuts"), once=True),
)
"""The state tables, and what several of them are made of."""


def replay_given(
    rules: ReplayRules,
    coverage: Coverage,
    other_topics: Sequence[pl.DataFrame] = (),
    timeless: Sequence[int] | None = None,
) -> Mapping[str, Any]:
    """Return what the steps of a replay take besides records.

    Args:
        rules: Of the release.
        coverage: What the dump holds.
        other_topics: Sources of names besides the records, as `topics` takes them.
        timeless: The partitions in which a tombstone has no time; None where all records are in one
            bucket, which tells.
    """
    return {
        "rules": rules,
        "coverage": coverage,
        "other_topics": other_topics,
        "timeless": timeless,
    }
