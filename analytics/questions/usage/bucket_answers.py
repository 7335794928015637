"""What the records of a bucket of whole groups give to the tables about usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from analytics.contracts import arrow_rows, polars_rows, table_of_frame
from analytics.decode.selection import Selection, names_wanted
from analytics.engine.part_runs import PartAnswer
from analytics.questions.sums import divided
from analytics.questions.usage.accounts import (
    PlacedPart,
    groups_placed,
    log_sums,
    placed_part,
    untabled_usage,
)
from analytics.questions.usage.cleaner import DEFAULT
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
from analytics.questions.usage.log_cleaning import BY_BATCH, left_rows
from analytics.questions.usage.records import (
    COMMITS,
    MOST_APART,
    ROWS,
    clock_differences,
    stated_times,
)
from analytics.questions.usage.sums import GROUP, ranking, sums_of, together
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.questions.usage.cleaner import LogSettings
    from schemas.usage_rules import GrowingRecord

# How near records come to what brokers take: the tables `size_limits` and `record_growth`.
#
# A classic group is one record, which holds all members; a broker refuses a batch above
# `max.message.bytes`, and the group cannot rebalance any more (KAFKA-7149). What one more member,
# or topic, takes is told by the group's own records of different lengths.

HEADER: Final = 61
"""A batch that holds the record alone has a header, too: the limit is of batches."""
NOT_GROWN: Final = "its records did not grow with them"
NO_LIMIT: Final = "brokers took more than the default; the limit in force is not known"
ONLY_ONE: Final = "none of its records has any"

_MESSAGE: Final = "max.message.bytes"
_METADATA: Final = "offset.metadata.max.bytes"
_HISTORY, _RECORD = "history", "record"


def size_limits(usage: pa.Table, settings: LogSettings) -> pa.Table:
    """Return each group's largest record of a type, and its longest metadata, the nearest first.

    Args:
        usage: The table `topic_usage`.
        settings: The limits in force.
    """
    sums = (
        polars_rows(usage)
        .filter((pl.col("topic") == CONSUMER_OFFSETS) & pl.col("group_id").is_not_null())
        .group_by("group_id", "record_type")
        .agg(pl.col("max_record_bytes", "max_metadata_bytes").max())
    )
    metadata = pl.when(pl.col("record_type") == COMMITS).then(pl.col("max_metadata_bytes"))
    found = pl.concat(
        [
            _limited(sums, pl.col("max_record_bytes") + HEADER, _MESSAGE, settings),
            _limited(sums, metadata, _METADATA, settings),
        ]
    )
    return table_of_frame("size_limits", NEAREST.sort(found))


NEAREST: Final = ranking({"share": True, "group_id": False, "record_type": False, "setting": False})
"""The order of `size_limits`."""


def _limited(sums: pl.DataFrame, size: pl.Expr, name: str, settings: LogSettings) -> pl.DataFrame:
    """Return what is not nothing against the limit of a setting."""
    limit = round(settings.number(name, CONSUMER_OFFSETS, None))
    source = settings.in_force(name, CONSUMER_OFFSETS, None).source
    # Brokers took what the default forbids: somebody has set it, and the dump does not say how.
    is_known = pl.lit(source != DEFAULT) | (size <= limit)
    share = pl.when(is_known).then(divided(size.cast(pl.Float64), limit))
    return sums.select(
        "group_id",
        "record_type",
        setting=pl.lit(name),
        largest_bytes=size,
        limit_bytes=pl.when(is_known).then(pl.lit(limit, pl.Int64)),
        limit_source=pl.lit(source),
        share=share,
        is_near=(share > settings.rules.near_share).fill_null(value=False),
    ).filter(pl.col("largest_bytes") > 0)


def growth_rows(records: pl.DataFrame) -> pl.DataFrame:
    """Return the shortest and the longest lists of each group and record type.

    Args:
        records: `RECORD`, of whole groups.

    Returns:
        `group_id`, `record_type`, how many items they have (`least`, `most`), and the bytes of the
        largest record with so many (`least_bytes`, `most_bytes`).
    """
    return (
        records.filter(
            pl.col("items").is_not_null() & ~pl.col("is_tombstone") & pl.col("bytes").is_not_null()
        )
        .group_by("group_id", pl.col("table").cast(pl.String).alias("record_type"), "items")
        .agg(pl.col("bytes").max())
        .sort("items")
        .group_by("group_id", "record_type")
        .agg(
            pl.col("items").first().alias("least"),
            pl.col("bytes").first().alias("least_bytes"),
            pl.col("items").last().alias("most"),
            pl.col("bytes").last().alias("most_bytes"),
        )
    )


def record_growth(
    made: pl.DataFrame, growing: Mapping[str, GrowingRecord], settings: LogSettings
) -> pa.Table:
    """Return the table `record_growth`, where the fewest more fit first.

    Args:
        made: What `growth_rows` returned of all buckets.
        growing: What grows with what, by the record type's table.
        settings: The limits in force.
    """
    limit = round(settings.number(_MESSAGE, CONSUMER_OFFSETS, None))
    source = settings.in_force(_MESSAGE, CONSUMER_OFFSETS, None).source
    batch = pl.max_horizontal("least_bytes", "most_bytes") + HEADER
    is_unknown = pl.lit(source == DEFAULT) & (batch > limit)
    has_history = pl.col("most") > pl.col("least")
    before = pl.when(has_history)
    gain = before.then(pl.col("most_bytes") - pl.col("least_bytes")).otherwise("most_bytes")
    items = before.then(pl.col("most") - pl.col("least")).otherwise("most")
    has_grown = (items > 0) & (gain > 0)
    names = {name: each.grows_with for name, each in growing.items()}
    found = made.with_columns(
        grows_with=pl.col("record_type").replace_strict(names, return_dtype=pl.String),
        bytes_each=pl.when(has_grown).then(gain / items),
        basis=before.then(pl.lit(_HISTORY)).otherwise(pl.lit(_RECORD)),
        limit_bytes=pl.when(~is_unknown).then(pl.lit(limit, pl.Int64)),
        limit_source=pl.lit(source),
        more_fit=pl.when(has_grown & ~is_unknown).then(
            ((limit - batch) * items // gain).clip(lower_bound=0)
        ),
        reason=pl.when(pl.col("most") == 0)
        .then(pl.lit(ONLY_ONE))
        .when(~has_grown)
        .then(pl.lit(NOT_GROWN))
        .when(is_unknown)
        .then(pl.lit(NO_LIMIT)),
    )
    return table_of_frame("record_growth", FEWEST_FIT.sort(found))


FEWEST_FIT: Final = ranking(
    {"more_fit": False, "most_bytes": True, "group_id": False, "record_type": False}
)
"""The order of `record_growth`."""


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
        self.asked = selection
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
    nothing = untabled_usage([])
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
