"""Marks of what a dump lacks, on rows that rest on other rows, or on records of the past.

What is said of a member rests on what is known of its group; a row of history rests on the records
from its first to its last. Where those are marked, or records there may be lost, the row is marked
with the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from analytics.replay.log.coverage import Coverage
from analytics.replay.log.frames import disputed
from analytics.replay.log.losses import (
    HOME,
    between_cuts,
    lost_between,
    of_disputed_home,
    with_missing,
)
from analytics.replay.log.record_position import AFTER_ALL
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS, COORDINATOR_TOPICS

MARKS: Final = ("complete", "missing")
"""The columns that mark a row: whether all is known, and what is lacking, in words."""


def with_marks_of(rows: pl.DataFrame, owners: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Mark rows with what is lacking of the rows of another table that they rest on.

    Args:
        rows: What they lack themselves may be in `missing`.
        owners: Has `key` and `missing`; where they have a key twice, one of them is lacking it.
        key: Columns of both.
    """
    lacking = owners.filter(pl.col("missing").is_not_null())
    own = [] if "missing" not in rows.columns else ["missing"]
    if lacking.is_empty():
        return rows if {*MARKS} <= {*rows.columns} else with_missing(rows, _joined(own))
    handed = lacking.group_by(key).agg(pl.col("missing").first().alias("handed_down"))
    joined = rows.join(handed, on=list(key), how="left", nulls_equal=True, maintain_order="left")
    reason = pl.col("handed_down")
    if own:
        reason = pl.when(reason.ne_missing(pl.col("missing"))).then(reason)
    return with_missing(joined, _joined([reason, *own])).drop("handed_down")


def with_marks_of_records(
    rows: pl.DataFrame,
    coverage: Coverage,
    first: str,
    last: str | None = None,
    *,
    log: str | None = None,
    partition: str = HOME,
) -> pl.DataFrame:
    """Mark rows of history for which a record may be lost from their first record to their last.

    A record of a line that may not have survived lies in a loss itself. Where the times of a log go
    back, rows that begin or end with a record between its two cuts are marked, too.

    Args:
        rows: What they lack already may be in `missing`.
        coverage: What the dump holds.
        first: The column of the offset of the first record.
        last: That of the last one, null where the row has no end; by default the first is the last.
        log: The column that has the internal topic; by default it is that of offsets.
        partition: The column that has its partition.
    """
    end = pl.col(first) if last is None else pl.col(last).fill_null(AFTER_ALL - 1)
    own = [] if "missing" not in rows.columns else ["missing"]

    newest = pl.max_horizontal(first, last or first)

    def lost(topic: str) -> list[pl.Expr]:
        found = []
        if coverage.losses_of_topic(topic):
            found = [lost_between(coverage, pl.col(first) - 1, end + 1, topic, partition)]
        if disputed(coverage.frames, topic):
            found.append(between_cuts(coverage, newest, topic, partition))
        return found

    if log is None:
        elsewhere = [of_disputed_home(coverage)] if "group_id" in rows.columns else []
        return with_missing(rows, _joined([*lost(CONSUMER_OFFSETS), *elsewhere, *own]))
    of_logs = [
        pl.when(pl.col(log) == topic).then(each)
        for topic in sorted({*COORDINATOR_TOPICS, CLUSTER_METADATA})
        for each in lost(topic)
    ]
    return with_missing(rows, _joined([*of_logs, *own]))


def _joined(reasons: Sequence[pl.Expr | str]) -> pl.Expr:
    if not reasons:
        return pl.lit(None, pl.String)
    return pl.concat_str(reasons, separator="; ", ignore_nulls=True)
