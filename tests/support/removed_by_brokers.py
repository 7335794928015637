"""What brokers removed, as `removals.json` tells it, held against what is predicted right before.

`removals.json` names the true cause of every offset tombstone of a dump. The tombstones that one
cleanup wrote into a partition are one sweep; each sweep becomes a cut right before its first one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.evaluate.expiration.offset_expiration import offset_expiration
from analytics.evaluate.expiration.offset_log import offset_log
from analytics.replay.offsets.offset_state import committed_offsets
from tests.support.cuts import Cut
from tests.support.replayed_cuts import OFFSETS, side_by_side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, Row, SparkSession

    from analytics.evaluate.expiration.retention import Retention
    from analytics.replay.log.rules import ReplayRules
    from schemas.expiration_rules import ExpirationRules

ONE_SWEEP_MS = 1000
FAR_AHEAD_MS = 4_000_000_000_000
Key = tuple[str, str, int]


@dataclass
class Sweep:
    """What one cleanup removed from a coordinator's partition, and when."""

    partition: int
    first_offset: int
    at_ms: int
    removed: set[Key] = field(default_factory=set)


@dataclass(frozen=True)
class Prediction:
    """What was due right before a sweep, and what was due only if no rebalance was under way."""

    sweep: Sweep
    due: set[Key]
    due_unless_rebalancing: set[Key]
    expires_ms: Mapping[Key, int]


def read_removals(path: Path) -> dict[tuple[int, int], dict[str, Any]]:
    """Read the offset tombstones of a `removals.json`, by partition and offset."""
    told = json.loads(path.read_text("utf-8"))["offset_tombstones"]
    return {(each["partition"], each["offset"]): each for each in told}


def sweeps_of(removals: Iterable[dict[str, Any]]) -> list[Sweep]:
    """Gather the expirations with a time and a commit into sweeps."""
    found: dict[int, list[Sweep]] = defaultdict(list)
    for each in sorted(removals, key=lambda row: (row["partition"], row["offset"])):
        if each["cause"] != "expiration" or not each["removed"] or each["append_time"] is None:
            continue
        known = found[each["partition"]]
        if not known or each["append_time"] - known[-1].at_ms > ONE_SWEEP_MS:
            known.append(Sweep(each["partition"], each["offset"], each["append_time"]))
        known[-1].removed.add((each["group"], each["topic"], each["topic_partition"]))
    return [sweep for sweeps in found.values() for sweep in sweeps]


def predictions(
    spark: SparkSession,
    decoded: Mapping[str, DataFrame],
    sweeps: list[Sweep],
    replay: ReplayRules,
    era: ExpirationRules,
    retention: Retention,
) -> list[Prediction]:
    """Replay right before every sweep, all in one query, and say what was due then."""
    cuts = [
        Cut(
            "",
            str(number),
            "",
            "offsets",
            None,
            {(OFFSETS, each.partition): each.first_offset},
            Path(),
        )
        for number, each in enumerate(sweeps)
    ]
    cut = side_by_side(spark, decoded, cuts)
    log = offset_log(cut, replay, era)
    rows = offset_expiration(committed_offsets(cut, replay), log, retention, FAR_AHEAD_MS)
    by_sweep: dict[int, list[Row]] = defaultdict(list)
    for row in rows.collect():
        number, _, _ = row.group_id.partition("|")
        by_sweep[int(number)].append(row)
    return [_prediction(each, by_sweep[number], era) for number, each in enumerate(sweeps)]


def _prediction(sweep: Sweep, rows: list[Row], era: ExpirationRules) -> Prediction:
    due: set[Key] = set()
    unless: set[Key] = set()
    expires: dict[Key, int] = {}
    for row in rows:
        key = (row.group_id.partition("|")[2], row.topic, row.partition)
        if row.expires_at is None or row.status == "blocked":
            continue
        expires[key] = round(row.expires_at.timestamp() * 1000)
        is_due = expires[key] < sweep.at_ms or (era.due == "at" and expires[key] == sweep.at_ms)
        if is_due:
            (unless if row.rule == "unsubscribed_topic" else due).add(key)
    return Prediction(sweep, due, unless, expires)
