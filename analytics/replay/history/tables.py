"""The history tables: what each is made of, besides what `STATE` makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.contracts import contract_frame
from analytics.replay.graph import TableStep
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.dependency_events import (
    DependencyRecords,
    config_events,
    config_records,
    coordinator_events,
    events_of_offsets,
    share_events,
    topic_changes,
    topic_events,
    topic_records,
    transaction_events,
)
from analytics.replay.history.group_history import (
    faults_of,
    group_history,
    group_records_in_time,
    group_steps,
)
from analytics.replay.history.group_life_events import with_causes_of_endings
from analytics.replay.history.partition_history import TABLES as EPOCHS_IN
from analytics.replay.history.partition_history import (
    births,
    coordinator_epochs,
    elections,
    epochs_seen,
    losses,
    merged_epochs,
    noted_epochs,
)
from analytics.replay.log.losses import with_marks_of_records
from analytics.replay.offsets.commit_rows import commit_rows, marker_rows
from analytics.replay.offsets.effective_commits import ended_commits
from analytics.replay.offsets.offset_history import OfGroups, OfTopics, offset_history
from analytics.replay.removals.removal_causes import (
    CAUSES,
    REMOVED,
    Around,
    causes_in_history,
    removed_and_times,
)
from analytics.replay.removals.removed_offsets import purges_in_all, topic_purges
from analytics.replay.removals.time_bounds import SAID_TIMES, time_bounds
from analytics.replay.share_partitions import (
    archives,
    share_partition_epochs,
    share_record_rows,
)
from analytics.replay.state import COMMITS, COORDINATOR_LOG
from analytics.replay.topics import named_topics, topic_names
from schemas import COORDINATOR_TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from analytics.replay.log.log_times import Decoded
    from analytics.replay.log.losses import Coverage
    from analytics.replay.log.rules import ReplayRules
    from analytics.replay.metadata_log import Beginning, MetadataLog

Frames = Mapping[str, pl.DataFrame]
_MARKERS: Final = "control_markers"
_USE: Final = ("group_id", "topic")


def _ended(commits: pl.DataFrame, cut: Decoded, rules: ReplayRules) -> pl.DataFrame:
    return ended_commits(commits, marker_rows(cut[_MARKERS]), rules)


def _removals_here(
    cut: Decoded, rules: ReplayRules, timeless: Collection[int] | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    commits = commit_rows(cut["offset_commit"])
    removed = commits.select("group_id", "committed_at", "is_tombstone").filter("is_tombstone")
    if not (timeless or removed["committed_at"].null_count()):
        if not removed.height:
            return REMOVED.to_frame(), SAID_TIMES.to_frame()
        # Only where tombstones have no time do commits of other groups bound it.
        commits = commits.filter(pl.col("group_id").is_in(removed["group_id"].unique().implode()))
    ended = ended_commits(commits, marker_rows(cut[_MARKERS]), rules)
    return removed_and_times(ended, cut, rules, timeless)


def _removals(
    removed: pl.DataFrame,
    bounds: pl.DataFrame,
    purges: pl.DataFrame,
    topics: pl.DataFrame,
    log: Beginning,
    rules: ReplayRules,
    coverage: Coverage,
) -> pl.DataFrame:
    if not removed.height:
        return CAUSES.to_frame()
    around, present = Around(bounds, purges), coverage.data_topics
    return causes_in_history(
        removed, around, topics, log, rules, present=present, coverage=coverage
    )


def _of_topics(topics: pl.DataFrame, elected: pl.DataFrame) -> OfTopics:
    return OfTopics(births(topics), losses(elected))


def _offset_history(
    ended: pl.DataFrame,
    of_groups: Frames,
    removals: pl.DataFrame,
    topics: OfTopics,
    rules: ReplayRules,
    coverage: Coverage,
) -> pl.DataFrame:
    rows = OfGroups(ended, of_groups["moments"], of_groups["owners"], removals)
    return offset_history(rows, topics, rules, coverage)


def _events_of_groups(of_groups: Frames, history: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    return with_causes_of_endings(of_groups["events"], history, coverage)


def _transaction_events(ended: pl.DataFrame, cut: Decoded) -> pl.DataFrame:
    return transaction_events(ended, marker_rows(cut[_MARKERS]))


def _epochs_here(cut: Decoded) -> pl.DataFrame:
    """A marker may be in several buckets: markers are looked at apart."""
    return epochs_seen({name: cut[name] for name in EPOCHS_IN if name != _MARKERS})


def _coordinators(
    whole: Decoded,
    markers: pl.DataFrame,
    here: Sequence[pl.DataFrame],
    elected: pl.DataFrame,
    coverage: Coverage,
) -> pl.DataFrame:
    led = elected.filter(pl.col("topic").is_in(COORDINATOR_TOPICS))
    seen = merged_epochs([epochs_seen(whole), markers, *here])
    return coordinator_epochs(seen, led, noted_epochs(coverage))


def _coordinator_epochs(coordinators: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    # That an epoch ended is told by the first record of the next.
    place = {"first": "from_offset", "last": "ended_by", "log": "topic", "partition": "partition"}
    ended = coordinators.with_columns(ended_by=pl.col("to_offset") + 1)
    return contract_frame(with_marks_of_records(ended, coverage, **place), "coordinator_epochs")


def _share_partition_epochs(cut: Decoded, names: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    return share_partition_epochs(share_record_rows(cut), names, coverage)


def _share_events(epochs: pl.DataFrame, cut: Decoded, names: pl.DataFrame) -> pl.DataFrame:
    return share_events(epochs, archives(cut), names)


def _topic_uses(offsets: pl.DataFrame, assigned: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Return where a group has to do with a topic.

    Returns:
        `GROUP_KEY`, `topic`, `seen_at` and `missing`: why that may not be part of its history.
    """
    seen = pl.concat(
        frame.select(*GROUP_KEY, "topic", pl.col(offset).alias("seen_at"))
        for frame, offset in ((offsets, "record_offset"), (assigned, "from_offset"))
    )
    return with_marks_of_records(seen, coverage, "seen_at")


def _dependency_records(metadata: MetadataLog, topics: pl.DataFrame) -> DependencyRecords:
    return DependencyRecords(
        topic_changes(topic_records(metadata), topics), config_records(metadata)
    )


def _events_of_topics(topic_uses: pl.DataFrame, dependencies: DependencyRecords) -> pl.DataFrame:
    # A group is its name here, whatever partition its records are in.
    pairs = _pairs(
        topic_uses.select(*_USE, pl.col("missing").alias("doubt")).filter(dependencies.is_told)
    )
    events = topic_events(pairs, dependencies.changes), config_events(pairs, dependencies.settings)
    return pl.concat(events)


def _pairs(uses: pl.DataFrame) -> pl.DataFrame:
    """Return each pair once; it is in doubt where all that shows it is."""
    is_sure = pl.col("doubt").is_null().any()
    return uses.group_by(_USE).agg(pl.when(~is_sure).then(pl.col("doubt").min()).alias("doubt"))


def _events(
    output: str,
    function: Callable[..., pl.DataFrame],
    inputs: tuple[str, ...],
) -> TableStep:
    """Return a step for some of the events, marked where the record that shows one may be lost."""
    # Steps go to the tasks of Spark, which a function within this one could not.
    marked = partial(_marked, function)
    return TableStep(output, marked, ("coverage", *inputs), part_of=_EVENTS)


def _marked(
    function: Callable[..., pl.DataFrame],
    coverage: Coverage,
    *arguments: Any,  # noqa: ANN401
) -> pl.DataFrame:
    """Return marked events; a function of the module, as tasks are sent it."""
    return with_marks_of_records(function(*arguments), coverage, "record_offset", log="log")


def _of_groups(name: str) -> TableStep:
    return TableStep(name, itemgetter(name), ("of_groups",))


_EVENTS: Final = "group_events"
_OF_RECORDS: Final = ("group_steps", "records_in_time", "topic_names", "rules", "coverage")

HISTORY = (
    COORDINATOR_LOG,
    TableStep("named_topics", named_topics, ("topics",), once=True),
    TableStep("topic_names", topic_names, ("named_topics",), once=True),
    TableStep("elections", elections, ("metadata", "topics"), once=True),
    TableStep("records_in_time", group_records_in_time, ("coordinator_log", "cut")),
    TableStep("group_steps", group_steps, ("records_in_time", "rules")),
    TableStep("of_groups", group_history, _OF_RECORDS),
    _of_groups("group_epochs"),
    _of_groups("membership_changes"),
    _of_groups("assignment_history"),
    TableStep(
        "load_faults", faults_of, ("group_steps", "records_in_time", "cut", "rules", "coverage")
    ),
    COMMITS,
    TableStep("ended", _ended, ("commits", "cut", "rules")),
    TableStep("removals_here", _removals_here, ("cut", "rules", "timeless")),
    TableStep("removed", itemgetter(0), ("removals_here",), is_kept=True),
    TableStep("said_times", itemgetter(1), ("removals_here",)),
    TableStep("time_bounds", time_bounds, ("said_times",), once=True, by_partition=True),
    TableStep("purges_here", topic_purges, ("removed", "topics"), together=purges_in_all),
    TableStep("purges", purges_in_all, ("purges_here",), once=True),
    TableStep("log_begins", attrgetter("begins"), ("metadata",), once=True),
    TableStep(
        "removals",
        _removals,
        ("removed", "time_bounds", "purges", "topics", "log_begins", "rules", "coverage"),
    ),
    TableStep("of_topics", _of_topics, ("topics", "elections"), once=True),
    TableStep(
        "offset_history",
        _offset_history,
        ("ended", "of_groups", "removals", "of_topics", "rules", "coverage"),
    ),
    _events("events_of_groups", _events_of_groups, ("of_groups", "offset_history", "coverage")),
    _events("events_of_offsets", events_of_offsets, ("offset_history",)),
    _events("transaction_events", _transaction_events, ("ended", "cut")),
    TableStep("epochs_seen", _epochs_here, ("cut",), together=merged_epochs),
    TableStep(
        "coordinators",
        _coordinators,
        ("whole", "marker_epochs", "epochs_seen", "elections", "coverage"),
        once=True,
    ),
    TableStep("coordinator_epochs", _coordinator_epochs, ("coordinators", "coverage"), once=True),
    TableStep(
        "share_partition_epochs", _share_partition_epochs, ("cut", "topic_names", "coverage")
    ),
    _events("share_events", _share_events, ("share_partition_epochs", "cut", "topic_names")),
    TableStep("seen", _topic_uses, ("offset_history", "assignment_history", "coverage")),
    _events("coordinator_events", coordinator_events, ("seen", "coordinators")),
    TableStep("dependencies", _dependency_records, ("metadata", "named_topics"), once=True),
    _events("events_of_topics", _events_of_topics, ("seen", "dependencies")),
)
"""The history tables, and what several of them are made of."""
