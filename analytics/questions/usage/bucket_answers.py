"""What the records of a bucket of whole groups give to the tables about usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from analytics.decode.selection import Selection, names_wanted
from analytics.engine.part_runs import PartAnswer
from analytics.questions.usage.accounts import untabled_usage
from analytics.questions.usage.clock_differences import (
    MOST_APART,
    clock_differences,
    stated_times,
)
from analytics.questions.usage.coordinator_load import (
    PlacedPart,
    groups_placed,
    log_sums,
    placed_part,
)
from analytics.questions.usage.deletions import (
    BY_PATTERN,
    DELETIONS,
    MOST_OFFSETS,
    generated_names,
    group_deletions,
    offset_deletions,
    pattern_sums,
)
from analytics.questions.usage.key_usage import (
    MOST_USED,
    MOST_WRITTEN,
    KnownLogs,
    commit_rows,
    committers,
    ordered,
    topic_usage,
    usage_rows,
    with_and_without_keys,
)
from analytics.questions.usage.limits import (
    FEWEST_FIT,
    NEAREST,
    growth_rows,
    record_growth,
    size_limits,
)
from analytics.questions.usage.log_cleaning import BY_BATCH, left_rows
from analytics.questions.usage.records import ROWS
from analytics.questions.usage.sums import GROUP, sums_of, together
from analytics.replay.log.arrow_rows import arrow_rows, polars_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.questions.usage.log_settings import LogSettings

GROUPS, COMMITTED, EXPIRATION = "groups", "committed", "expiration"
"""What buckets have besides records: rows of state tables of their groups."""
BATCHES, PATTERNS, SUMS = "batches", "patterns", "sums"
"""Tables of buckets that are no table of the answer."""
ORDERS: Final = {
    "topic_usage": MOST_USED,
    "committers": MOST_WRITTEN,
    "size_limits": NEAREST,
    "record_growth": FEWEST_FIT,
    "clock_differences": MOST_APART,
    "group_deletions": DELETIONS,
    "offset_deletions": MOST_OFFSETS,
    BATCHES: BY_BATCH,
    PATTERNS: BY_PATTERN,
}


@dataclass(frozen=True)
class WantedGroups:
    """The groups whose rows are shown.

    Attributes:
        selection: Names and patterns; nothing is all.
        names_like_patterns: Those among them that a group is called.
    """

    selection: Selection = field(default_factory=Selection)
    names_like_patterns: Sequence[str] = ()

    @property
    def is_all(self) -> bool:
        """Whether all rows are shown."""
        return not (self.selection.groups or self.selection.exclude_groups)

    @property
    def condition(self) -> pl.Expr:
        """Whether a row is shown of a table that has `group_id`."""
        return pl.col("group_id").map_batches(partial(_are_wanted, self), return_dtype=pl.Boolean)


def _are_wanted(wanted_groups: WantedGroups, groups: pl.Series) -> pl.Series:
    asked = wanted_groups.selection
    there = groups.drop_nulls().unique().to_list()
    names = names_wanted(
        there, asked.groups, asked.exclude_groups, wanted_groups.names_like_patterns
    )
    return groups.is_in(names).fill_null(value=False)


class NamesThere:
    """Finds which of the patterns that are asked for are names of groups."""

    def __init__(self, selection: Selection) -> None:
        self._asked = [*selection.groups, *selection.exclude_groups]
        self.found: set[str] = set()

    def add(self, records: pl.DataFrame) -> None:
        """Take records: `RECORD`."""
        if self._asked:
            there = records["group_id"]
            self.found.update(there.filter(there.is_in(self._asked)).unique().to_list())


@dataclass(frozen=True)
class BucketQuestion:
    """What is the same for all buckets.

    Attributes:
        logs: What is known of the logs.
        settings: Those in force.
        interval_ms: What commits are held against.
        topics: The state table `topics`.
        partitions: How many partitions `__consumer_offsets` has; None where nothing says.
        lacks_bytes: Nobody knows how many bytes some records took.
        wanted_groups: The groups whose rows are added up.
        by: What they are added up by.
    """

    logs: KnownLogs
    settings: LogSettings
    interval_ms: int
    topics: pa.Table
    partitions: int | None
    lacks_bytes: bool
    wanted_groups: WantedGroups
    by: str


class BucketSums(NamedTuple):
    """What buckets are asked for together.

    Attributes:
        without_keys: `usage_rows` of records without keys.
        left: What a pass of the cleaner leaves, by log (`left_rows`).
        logs: Of `log_sums`.
        sums: Of `sums_of`; those by group are rows of the table `SUMS`, and here their bytes alone.
        places: How groups lie.
    """

    without_keys: pl.DataFrame
    left: pl.DataFrame
    logs: pl.DataFrame
    sums: pl.DataFrame
    places: PlacedPart


def usage_of_bucket(question: BucketQuestion, read: Mapping[str, pl.DataFrame]) -> PartAnswer:
    """Return the rows of tables that the records of one bucket give, and sums that add up.

    Args:
        question: What is the same for all buckets.
        read: `ROWS`, records of whole groups, and rows of state tables: `GROUPS`, `COMMITTED`, and
            `EXPIRATION` where that was evaluated.
    """
    logs, settings, records = question.logs, question.settings, read[ROWS]
    rules, lacks_bytes = settings.rules, question.lacks_bytes
    rows = ordered(records, logs)
    left, batches = left_rows(rows, logs)
    with_keys, without_keys = with_and_without_keys(usage_rows(rows))
    expiration = arrow_rows(read[EXPIRATION]) if EXPIRATION in read else None
    nothing = untabled_usage({"reconciliation": []})
    usage = topic_usage(with_keys, nothing, expiration, lacks_bytes=lacks_bytes)
    groups = arrow_rows(read[GROUPS])
    names = generated_names(usage, groups, rules)
    commits = commit_rows(rows, logs, question.interval_ms)
    apart = stated_times(records, clock_limit(settings))
    found = {
        "topic_usage": usage,
        "committers": committers(commits, rules, question.interval_ms, lacks_bytes=lacks_bytes),
        "size_limits": size_limits(usage, settings),
        "record_growth": record_growth(growth_rows(records), rules.growing, settings),
        "clock_differences": clock_differences(apart),
        "group_deletions": group_deletions(names),
        "offset_deletions": offset_deletions(arrow_rows(read[COMMITTED]), groups, question.topics),
    }
    made = {name: polars_rows(each) for name, each in found.items()}
    made[BATCHES] = BY_BATCH.sort(_plain(batches))
    made[PATTERNS] = pattern_sums(names)
    sums = sums_of(chosen(made["topic_usage"], question.wanted_groups), question.by)
    if question.by == GROUP:
        made[SUMS] = together([sums], GROUP)
        sums = sums.select("bytes")
    return PartAnswer(
        made,
        BucketSums(
            without_keys,
            _plain(left),
            log_sums(made["topic_usage"]),
            sums,
            placed_part(groups_placed(usage), question.partitions),
        ),
    )


def chosen(rows: pl.DataFrame, wanted_groups: WantedGroups) -> pl.DataFrame:
    """Return the rows that are shown of a table that has `group_id`."""
    return rows if wanted_groups.is_all else rows.filter(wanted_groups.condition)


def _plain(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the names of topics as texts: numbers of names are those of a process."""
    return rows.with_columns(pl.col("topic").cast(pl.String))


def clock_limit(settings: LogSettings) -> int:
    """Return by how many milliseconds times may differ."""
    return round(settings.rules.clock_seconds * 1000)
