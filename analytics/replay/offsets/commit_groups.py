"""The history of offsets of decoded tables on Spark: whole groups handed to polars."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
from pyspark.sql import functions as F

from analytics.dump.files.model import CONSUMER_OFFSETS
from analytics.replay.contract_frame import contract_schema
from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.log.group_buckets import group_rows
from analytics.replay.offsets.commit_rows import COMMIT_FIELDS, COMMITS, MARKER_FIELDS, MARKERS
from analytics.replay.offsets.effective_commits import NO_PRODUCER, ended_commits
from analytics.replay.offsets.offset_changes import MOMENTS, OWNERS
from analytics.replay.offsets.offset_events import events_of_offsets, transaction_events
from analytics.replay.offsets.offset_history import OfGroups, OfTopics, offset_history

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from analytics.replay.log.as_of import Decoded
    from analytics.replay.log.coverage import Coverage
    from analytics.replay.log.group_buckets import Frames, Make
    from analytics.replay.log.rules import ReplayRules

HISTORY, EVENTS = "offset_history", "events"
_MADE = {HISTORY: contract_schema(HISTORY), EVENTS: contract_schema("group_events")}

_SLICES = 8
"""Into how many parts the offsets of one group are laid, so that no task has to hold them all."""
_SLICE = (*GROUP_KEY, "slice")


def commit_frames(decoded: Decoded) -> dict[str, DataFrame]:
    """Return `commits`, and `markers` once for each group whose transactions they may end.

    Args:
        decoded: Decoded tables, cut at an instant.
    """
    commits = decoded["offset_commit"].select(
        *(F.col(field).alias(name) for name, field in COMMIT_FIELDS.items())
    )
    producers = (
        commits.where(F.col("producer_id") != NO_PRODUCER)
        .select(*GROUP_KEY, "producer_id")
        .distinct()
    )
    markers = (
        decoded["control_markers"]
        .where(F.col("topic") == CONSUMER_OFFSETS)
        .select(*(F.col(field).alias(name) for name, field in MARKER_FIELDS.items()))
        .join(producers, ["coordinator_partition", "producer_id"])
    )
    return {"commits": commits, "markers": markers}


def made_of_offsets(
    commits: Mapping[str, DataFrame],
    around: Mapping[str, DataFrame],
    topics: OfTopics,
    rules: ReplayRules,
    coverage: Coverage,
) -> dict[str, DataFrame]:
    """Return the table `offset_history`, and the `events` of offsets and their transactions.

    Args:
        commits: Of `commit_frames`.
        around: What commits are looked at beside: `moments` (`group_moments`), `owners` and
            `removals` (causes of tombstones: `GROUP_KEY`, `record_offset`, `cause`, `confidence`).
        topics: What befell all topics.
        rules: Of the release.
        coverage: What the dump holds.
    """
    rows = group_rows({**commits, **around})
    history = partial(_history, topics=topics, rules=rules, coverage=coverage)
    transactions = partial(_transactions, rules=rules)
    if rows.here is not None:
        return rows.made(partial(_both, history=history, transactions=transactions), _MADE)
    sliced = replace(rows, frames=_sliced(rows.frames), key=_SLICE)
    of_slices = sliced.made(partial(_one_by_one, history=history), _MADE)
    pending = commits["commits"].where(F.col("producer_id") != NO_PRODUCER)
    told = group_rows({**commits, "commits": pending}).made(transactions, {EVENTS: _MADE[EVENTS]})
    return {**of_slices, EVENTS: of_slices[EVENTS].unionByName(told[EVENTS])}


def _sliced(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Lay the offsets of a group into slices, each with all that is not of one offset."""
    own = F.pmod(F.xxhash64("topic", "partition"), F.lit(_SLICES)).cast("int")
    all_ = F.explode(F.sequence(F.lit(0), F.lit(_SLICES - 1)))
    return {
        name: frame.withColumn("slice", own if "topic" in frame.columns else all_)
        for name, frame in frames.items()
    }


def _history(
    rows: Frames, topics: OfTopics, rules: ReplayRules, coverage: Coverage
) -> dict[str, pl.DataFrame]:
    ended, _ = _ended(rows, rules)
    moments, owners = rows["moments"].select(_typed(MOMENTS)), rows["owners"].select(_typed(OWNERS))
    of_groups = OfGroups(ended, moments, owners, rows["removals"])
    history = offset_history(of_groups, topics, rules, coverage)
    return {HISTORY: history, EVENTS: events_of_offsets(history)}


def _one_by_one(rows: Frames, history: Make) -> Frames:
    """Make the history of one slice of all groups after the other: each has all of its group."""
    parts = [
        history({name: frame.filter(pl.col("slice") == each) for name, frame in rows.items()})
        for each in range(_SLICES)
    ]
    return {name: pl.concat([part[name] for part in parts]) for name in _MADE}


def _both(rows: Frames, history: Make, transactions: Make) -> Frames:
    made = history(rows)
    return {**made, EVENTS: pl.concat([made[EVENTS], transactions(rows)[EVENTS]])}


def _transactions(rows: Frames, rules: ReplayRules) -> dict[str, pl.DataFrame]:
    return {EVENTS: transaction_events(*_ended(rows, rules))}


def _ended(rows: Frames, rules: ReplayRules) -> tuple[pl.DataFrame, pl.DataFrame]:
    markers = rows["markers"].select(_typed(MARKERS))
    return ended_commits(rows["commits"].select(_typed(COMMITS)), markers, rules), markers


def _typed(schema: pl.Schema) -> list[pl.Expr]:
    return [pl.col(name).cast(kind) for name, kind in schema.items()]
