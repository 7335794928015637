"""The cause of every offset tombstone, as far as the dump alone shows it.

Takes and gives frames of polars: first rows of whole groups, then what was removed of all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY, KINDS
from analytics.replay.offsets.effective_commits import EVENTS, offset_events, pending_spans
from analytics.replay.removals.removal_causes import (
    DEFAULT_RETENTION_MS,
    SHORTEST_RETENTION_MS,
    swept_while_rebalancing,
    with_removal_cause,
    with_topic_absence,
    with_undecided_removal,
)
from analytics.replay.removals.removed_offsets import (
    removed_of_groups,
    said_times,
    timeless_partitions,
    topic_purges,
    with_bounds,
    with_topic_deletion,
)
from analytics.replay.spans.conditions import EMPTY
from analytics.replay.spans.group_spans import group_spans, protection_spans

if TYPE_CHECKING:
    from analytics.replay.log.coverage import Coverage
    from analytics.replay.log.rules import ReplayRules
    from analytics.replay.metadata.metadata_log import Beginning

_RESULT_COLUMNS = ("position", "at", "removed_topic_id", "removed_position", "removed_at")
REMOVED: Final = pl.Schema(
    {
        **{name: EVENTS[name] for name in (*GROUP_KEY, "topic", "partition", *_RESULT_COLUMNS)},
        **{name: EVENTS[name] for name in ("removed_commit_ms", "removed_expire_ms")},
        "act": pl.Int64(),
        "repeats": pl.Boolean(),
        "offsets_left": pl.Int64(),
        "condition": pl.String(),
        "skips_generation": pl.Boolean(),
        "state_ms": pl.Int64(),
        "kept_by": pl.String(),
        "removed_pending": pl.Boolean(),
        "group_ended": pl.Boolean(),
    }
)
"""Columns of `removed_of_groups` that causes are told from."""
CAUSES: Final = pl.Schema(
    {
        **{name: EVENTS[name] for name in GROUP_KEY},
        "record_offset": pl.Int64(),
        "cause": pl.String(),
        "confidence": pl.String(),
    }
)


def removed_and_times(
    ended: pl.DataFrame,
    decoded: Mapping[str, pl.DataFrame],
    rules: ReplayRules,
    timeless: Collection[int] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `REMOVED` of some groups, and what bounds the times of tombstones without one.

    Args:
        ended: Of `ended_commits`.
        decoded: The other decoded tables of these groups, cut at the same instant.
        rules: Of the release.
        timeless: The partitions in which some tombstone carries no time; None: the groups are all
            there are.
    """
    events = offset_events(ended, rules)
    records = _records_of(decoded, ended.filter("is_tombstone")["group_id"].unique())
    spans = group_spans(records)
    gone = removed_of_groups(
        events, pending_spans(ended, rules), spans, protection_spans(records, spans)
    )
    partitions = timeless_partitions(gone) if timeless is None else sorted(timeless)
    return gone.select(REMOVED.names()), said_times(events, partitions)


def _records_of(decoded: Mapping[str, pl.DataFrame], names: pl.Series) -> dict[str, pl.DataFrame]:
    """Return the records of groups of some names, by table."""
    found = {}
    for table, kind in KINDS.items():
        rows = decoded[table]
        name = pl.col("key").struct.field(kind.group_field)
        found[table] = rows.filter(name.is_in(names.implode())) if rows.height else rows
    return found


def causes_in_history(
    removed: pl.DataFrame,
    times: pl.DataFrame,
    topics: pl.DataFrame,
    log: Beginning,
    rules: ReplayRules,
    *,
    present: Collection[str] | None,
    coverage: Coverage,
) -> pl.DataFrame:
    """Return the cause of every tombstone: `CAUSES`.

    Args:
        removed: `REMOVED` of all groups.
        times: Of `said_times`, of all groups.
        topics: The state table at that instant.
        log: How the metadata log begins.
        rules: Of the release.
        present: The topics of the data directories in the dump; None where others may be there too.
        coverage: What the dump holds.
    """
    rows = with_topic_deletion(with_bounds(removed, times), topics, topic_purges(removed, topics))
    rows = with_undecided_removal(with_topic_absence(rows, topics, log, present), coverage)
    judged = with_removal_cause(
        rows.with_columns(
            _surely_due().alias("is_surely_due"),
            pl.lit(None, pl.Boolean).alias("is_due"),
            pl.lit(value=True).alias("retention_may_differ"),
            *swept_while_rebalancing(
                DEFAULT_RETENTION_MS, rebalance_keeps=rules.rebalancing_groups_keep_all
            ),
        ),
        group_always_ends=rules.groups_end_by_tombstones,
        streams_groups_keep=rules.streams_readiness_is_recorded,
    )
    return judged.with_columns(pl.col("position").alias("record_offset")).select(CAUSES.names())


def _surely_due() -> pl.Expr:
    """Return whether a removed offset was due whatever the retention was; null where that matters.

    Under a retention of less than the default of seven days the offset may have been due earlier,
    under none before a minute was over.
    """
    state = pl.when(pl.col("condition") == EMPTY).then("state_ms")
    base = pl.coalesce(state, "removed_commit_ms")
    earliest, latest = pl.col("not_before_ms"), pl.col("not_after_ms")
    expire = pl.col("removed_expire_ms")
    is_late = pl.when(earliest >= expire).then(pl.lit(value=True))
    by_itself = is_late.when(latest < expire).then(pl.lit(value=False))
    return (
        pl.when(pl.col("kept_by").is_not_null())
        .then(pl.lit(value=False))
        .when(expire != -1)
        .then(by_itself)
        .when(latest - base < SHORTEST_RETENTION_MS)
        .then(pl.lit(value=False))
        .when(earliest - base >= DEFAULT_RETENTION_MS)
        .then(pl.lit(value=True))
    )
