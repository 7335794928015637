"""What members held in every epoch, which no stored table tells: made of the records of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.library.cut_tables import cut_of
from analytics.library.replayed.cut_records import CutRecords
from analytics.library.replayed.replayed_instant import replayed_instant
from analytics.library.replayed.whole_groups import frame_of
from analytics.replay.dump.coverage import log_starts
from analytics.replay.groups.coordinator_log import coordinator_log
from analytics.replay.groups.group_records import CLASSIC, KINDS
from analytics.replay.history.groups.group_history import intervals_of
from analytics.replay.history.groups.group_records_in_time import group_records_in_time
from analytics.replay.history.topic_names import named_topics, topic_names
from analytics.replay.log.rules import replay_rules
from analytics.tables.buckets import MOST_ROWS, buckets
from analytics.tables.stored_tables import StoredTables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.library.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.replay.log.as_of import Decoded

_COMMITS: Final = "offset_commit"
_TOPOLOGY: Final = "streams_group_topology"
_AT_ONCE: Final = 100_000
"""So many group records are followed together, or those of one group: each holds many items."""


def held_in_epochs(state: ReplayedWorkspace) -> Iterator[pl.DataFrame]:
    """Yield what `cases_of_history` takes as `held`, of some whole groups after the others.

    Raises:
        WorkspaceError: A file is damaged.
    """
    instant, reader = replayed_instant(state.as_of), CutRecords(state).prepared()
    cut = cut_of(reader, instant, log_starts(state.manifest) if instant.is_end else {})
    topics = frame_of(StoredTables(state.tables.workspace).read("topics", ["topic_id", "topic"]))
    names, rules = topic_names(named_topics(topics)), replay_rules(state.release)
    nothing = reader.empty(_COMMITS)
    for bucket in buckets(CONSUMER_OFFSETS, reader.counts(KINDS), MOST_ROWS):
        for records in _records(cut.of(bucket), nothing):
            yield numbered(intervals_of(records, names, rules))


def _records(decoded: Decoded, no_commits: pl.DataFrame) -> Iterator[dict[str, pl.DataFrame]]:
    """Yield what is followed, of some whole groups after the others.

    Commits count only where a tombstone may take over their group.
    """
    log = coordinator_log(decoded)
    is_taking = (pl.col("family") != CLASSIC) & pl.col("is_tombstone")
    commits = decoded[_COMMITS] if log.select(is_taking.any()).item() else no_commits
    records = group_records_in_time(log, {_COMMITS: commits, _TOPOLOGY: decoded[_TOPOLOGY]})
    # Values as they were decoded take more room than all that follows.
    del decoded, commits, log
    slices = -(-records["log"].height // _AT_ONCE)
    if slices <= 1:
        yield records
        return
    for number in range(slices):
        is_here = pl.col("group_id").hash() % slices == number
        yield {**records, "log": records["log"].filter(is_here)}


def numbered(runs: pl.DataFrame) -> pl.DataFrame:
    """Return what `assignment_intervals` of replay makes, as `cases_of_history` takes it."""
    at, until = pl.col("at").struct, pl.col("until").struct
    number = until.field("epoch_no")
    last = pl.when(until.field("is_closing")).then(number).otherwise(number - 1)
    return runs.filter(pl.col("until").is_null() | number.is_not_null()).select(
        *("coordinator_partition", "group_id", "life", "member_id", "kind", "role"),
        *("subtopology_id", "topic", "topic_id", "partition"),
        pl.col("about").struct.field("group_instance_id"),
        at.field("epoch_no").fill_null(0).alias("first_epoch_no"),
        pl.when(pl.col("until").is_not_null()).then(last).alias("last_epoch_no"),
    )
