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

import pyarrow.compute as pc

from analytics.questions.expiration.offset_expiration import offset_expiration
from schemas.expiration_rules import expiration_eras
from tests.support.expiration_logs import Row, committed_in, log_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from analytics.questions.expiration.retention_settings import Retention

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
    decoded: Mapping[str, pa.Table],
    sweeps: list[Sweep],
    release: str,
    era: str,
    retention: Retention,
) -> list[Prediction]:
    """Say what was due right before every sweep."""
    return [
        _prediction(each, _rows_before(decoded, each, release, era, retention), era)
        for each in sweeps
    ]


def _rows_before(
    decoded: Mapping[str, pa.Table], sweep: Sweep, release: str, era: str, retention: Retention
) -> list[Row]:
    before = (pc.field("partition") == sweep.partition) & (pc.field("offset") < sweep.first_offset)
    log = log_of({name: rows.filter(before) for name, rows in decoded.items()}, release, era)
    found = offset_expiration(committed_in(log), log, retention, FAR_AHEAD_MS)
    return rows_of("offset_expiration", found)


def _prediction(sweep: Sweep, rows: list[Row], era: str) -> Prediction:
    due: set[Key] = set()
    unless: set[Key] = set()
    expires: dict[Key, int] = {}
    for row in rows:
        key = (row.group_id, row.topic, row.partition)
        if row.expires_at is None or row.status == "blocked":
            continue
        expires[key] = round(row.expires_at.timestamp() * 1000)
        is_due = expires[key] < sweep.at_ms or (
            expiration_eras()[era].due == "at" and expires[key] == sweep.at_ms
        )
        if is_due:
            (unless if row.rule == "unsubscribed_topic" else due).add(key)
    return Prediction(sweep, due, unless, expires)
