"""The history of offsets of decoded tables on Spark: whole groups handed to polars."""

from __future__ import annotations

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
    from analytics.replay.log.group_buckets import Frames
    from analytics.replay.log.rules import ReplayRules

HISTORY, EVENTS = "offset_history", "events"
_MADE = {HISTORY: contract_schema(HISTORY), EVENTS: contract_schema("group_events")}


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
    return rows.made(partial(_made, topics=topics, rules=rules, coverage=coverage), _MADE)


def _made(
    rows: Frames, topics: OfTopics, rules: ReplayRules, coverage: Coverage
) -> dict[str, pl.DataFrame]:
    markers = rows["markers"].select(_typed(MARKERS))
    ended = ended_commits(rows["commits"].select(_typed(COMMITS)), markers, rules)
    moments, owners = rows["moments"].select(_typed(MOMENTS)), rows["owners"].select(_typed(OWNERS))
    of_groups = OfGroups(ended, moments, owners, rows["removals"])
    history = offset_history(of_groups, topics, rules, coverage)
    events = pl.concat([events_of_offsets(history), transaction_events(ended, markers)])
    return {HISTORY: history, EVENTS: events}


def _typed(schema: pl.Schema) -> list[pl.Expr]:
    return [pl.col(name).cast(kind) for name, kind in schema.items()]
