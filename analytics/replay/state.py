"""All state tables at an instant, each computed once and from what was kept of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from analytics.replay.as_of import AsOf, Decoded, cut_all
from analytics.replay.assignments import assignments
from analytics.replay.configs import configs
from analytics.replay.coverage import WHOLE, Coverage
from analytics.replay.group_log import group_log
from analytics.replay.groups import groups
from analytics.replay.members import members
from analytics.replay.metadata_log import metadata_log
from analytics.replay.offsets import committed_offsets, pending_offsets
from analytics.replay.partition_leaders import partition_leaders
from analytics.replay.rules import ReplayRules
from analytics.replay.share_batches import share_batches
from analytics.replay.share_partitions import share_partitions
from analytics.replay.share_state import share_states
from analytics.replay.topics import topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Keep = Callable[[str, "DataFrame"], "DataFrame"]
"""Takes a table's name and rows, and returns the rows as they were kept (written, or cached)."""


def state_tables(
    decoded: Decoded,
    as_of: AsOf,
    rules: ReplayRules,
    *,
    coverage: Coverage = WHOLE,
    other_topics: Sequence[DataFrame] = (),
    keep: Keep = lambda _, frame: frame,
) -> dict[str, DataFrame]:
    """Return every state table by name.

    Args:
        decoded: The decoded tables, whole.
        as_of: The instant.
        rules: Of the release.
        coverage: What the dump holds.
        other_topics: Sources of names besides the records, as `topics` takes them.
        keep: Called for each table as soon as it is defined.
    """
    cut = cut_all(decoded, as_of)
    found: dict[str, DataFrame] = {}

    def kept(name: str, frame: DataFrame) -> DataFrame:
        found[name] = keep(name, frame)
        return found[name]

    metadata = metadata_log(cut)
    named = kept("topics", topics(metadata, other_topics))
    kept("configs", configs(metadata))
    kept("partition_leaders", partition_leaders(metadata))
    offsets = (
        kept("committed_offsets", committed_offsets(cut, rules)),
        kept("pending_offsets", pending_offsets(cut, rules)),
    )
    log = group_log(cut, rules)
    kept("groups", groups(log, offsets, coverage))
    kept("members", members(log))
    kept("assignments", assignments(log, named))
    states = share_states(cut)
    kept("share_partitions", share_partitions(states, cut, named, coverage))
    kept("share_batches", share_batches(states, named))
    return found
