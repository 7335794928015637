"""All tables of a replay: what each is made of, and each computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from analytics.replay.graph import TableStep, resolve
from analytics.replay.groups.coordinator_log import COORDINATOR_LOG
from analytics.replay.groups.state import folded_groups, groups_gone
from analytics.replay.groups.tables import assignments, groups, members
from analytics.replay.log.as_of import Decoded, cut_all
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.instants import AsOf
from analytics.replay.log.rules import ReplayRules
from analytics.replay.metadata.configs import configs
from analytics.replay.metadata.metadata_log import metadata_log
from analytics.replay.metadata.partition_leaders import partition_leaders
from analytics.replay.metadata.topics import topics
from analytics.replay.offsets.offset_state import committed_offsets, pending_offsets
from analytics.replay.share.share_batches import share_batches
from analytics.replay.share.share_partitions import share_partitions
from analytics.replay.share.share_state import share_states
from schemas import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Keep = Callable[[str, "DataFrame"], "DataFrame"]
"""Takes a table's name and rows, and returns the rows as they were kept (written, or cached)."""


def _share_states(cut: Decoded, rules: ReplayRules) -> DataFrame:
    return share_states(cut, rules.share_epoch_without_snapshot).localCheckpoint()


STATE = (
    TableStep("metadata", metadata_log, ("cut",)),
    COORDINATOR_LOG,
    TableStep("group_state", folded_groups, ("coordinator_log", "cut", "rules")),
    TableStep("topics", topics, ("metadata", "other_topics")),
    TableStep("groups_gone", groups_gone, ("group_state",)),
    TableStep("pending_offsets", pending_offsets, ("cut", "rules", "groups_gone", "coverage")),
    TableStep(
        "committed_offsets",
        committed_offsets,
        ("cut", "rules", "groups_gone", "coverage", "pending_offsets"),
    ),
    TableStep(
        "groups", groups, ("group_state", "committed_offsets", "pending_offsets", "coverage")
    ),
    TableStep("assignments", assignments, ("group_state", "topics")),
    TableStep("members", members, ("group_state",)),
    TableStep("share_states", _share_states, ("cut", "rules")),
    TableStep("share_partitions", share_partitions, ("share_states", "cut", "topics", "coverage")),
    TableStep("share_batches", share_batches, ("share_states", "topics")),
    TableStep("partition_leaders", partition_leaders, ("metadata",)),
    TableStep("configs", configs, ("metadata",)),
)
"""The state tables, and what several of them are made of."""


def replay_tables(  # noqa: PLR0913 - what tables are made of
    decoded: Decoded,
    as_of: AsOf,
    rules: ReplayRules,
    *,
    steps: Sequence[TableStep] = STATE,
    coverage: Coverage = WHOLE,
    other_topics: Sequence[DataFrame] = (),
    keep: Keep = lambda _, frame: frame,
    at_once: int = 1,
) -> dict[str, DataFrame]:
    """Return every table of a replay by name.

    Args:
        decoded: The decoded tables, whole.
        as_of: The instant.
        rules: Of the release.
        steps: What is made.
        coverage: What the dump holds.
        other_topics: Sources of names besides the records, as `topics` takes them.
        keep: Called for each table as soon as it is defined.
        at_once: How many tables are made at the same time.
    """
    given = {
        "cut": cut_all(decoded, as_of),
        "rules": rules,
        "coverage": coverage,
        "other_topics": other_topics,
    }
    made = resolve([_keeping(step, keep) for step in steps], given, at_once=at_once)
    return {name: made[name] for name in made.keys() & tables().keys()}


def _keeping(step: TableStep, keep: Keep) -> TableStep:
    """Return the step, with its table kept where it makes one."""
    if step.output not in tables():
        return step

    def kept(*of: Any) -> DataFrame:  # noqa: ANN401 - as the step takes it
        return keep(step.output, step.function(*of))

    return TableStep(step.output, kept, step.inputs)
