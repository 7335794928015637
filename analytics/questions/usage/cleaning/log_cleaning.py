"""The table `log_cleaning`: copy by copy, how dirty a log is and whether the cleaner keeps up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import table_of
from analytics.questions.usage.cleaning.cleaner import (
    CleanerSettings,
    Cleaning,
    cleaning_of,
    judged,
)
from analytics.questions.usage.cleaning.log_files import LogFiles, milliseconds
from analytics.questions.usage.cleaning.retained import Retained, retained
from analytics.questions.usage.keys.key_states import Place
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    from analytics.questions.usage.cleaning.log_settings import LogSettings
    from analytics.questions.usage.cleaning.transaction_ends import TransactionEnds
    from analytics.questions.usage.keys.key_states import KeyStates

HEADER: Final = 61
_RATIO: Final = "min.cleanable.dirty.ratio"


@dataclass(frozen=True)
class CopyOfLog:
    """A copy of an internal partition.

    Attributes:
        place: The partition.
        copy: The broker's copy, None for archived rows.
        node: The broker, None where not known.
        is_leading: Its line survived.
        files: Its segments; None for archived rows.
        size: Bytes of its segments.
        is_packed: Some of its batches are compressed.
        now_ms: The end of everything that the broker's copy has; None where nothing has a time.
        complete_from: From this offset on every record is there; None where nothing tells.
    """

    place: Place
    copy: str | None
    node: int | None
    is_leading: bool
    files: LogFiles | None
    size: int
    is_packed: bool
    now_ms: int | None
    complete_from: int | None = None


def copies_of_logs(
    manifest: Mapping[str, Any],
    first_open: Mapping[tuple[str, int], int],
    now_ms: int | None = None,
) -> list[CopyOfLog]:
    """Return the copies of internal partitions, those of the metadata log apart.

    Args:
        manifest: Of a decode run.
        first_open: By partition, the first record of a transaction that had not ended.
        now_ms: The instant; None is the end of each broker's copy.
    """
    accounts = {
        (each["copy"], each["topic"], each["partition"]): each
        for each in manifest["reconciliation"]
    }
    nodes = {each["name"]: each["node_id"] for each in manifest["copies"]}
    ends: dict[str | None, int] = {}
    for each in manifest["partitions"]:
        last = milliseconds(each["last_timestamp"])
        if last is not None:
            ends[each["copy"]] = max(last, ends.get(each["copy"], last))
    found = []
    for each in manifest["partitions"]:
        if each["topic"] == CLUSTER_METADATA:
            continue
        copy, place = each["copy"], Place(each["topic"], each["partition"])
        account = accounts.get((copy, *place), {})
        use = account.get("bytes_of_batches") or {}
        files = None if copy is None else LogFiles.of(each, account, first_open.get(place))
        found.append(
            CopyOfLog(
                place,
                copy,
                nodes.get(copy),
                each.get("is_leading", True),
                files if files is not None and files.segments else None,
                sum(segment.size for segment in files.segments) if files else 0,
                bool(use.get("compressed")),
                now_ms or ends.get(copy),
                each.get("complete_from"),
            )
        )
    return found


def bounds_of(logs: list[CopyOfLog], settings: LogSettings) -> dict[Place, int]:
    """Return up to where the cleaner may go on each partition of a compacted topic."""
    return {
        each.place: each.files.cleanable_to(_not_after(each, settings))
        for each in logs
        if each.is_leading and each.files is not None and settings.is_compacted(each.place.topic)
    }


def log_cleaning(
    logs: list[CopyOfLog],
    settings: LogSettings,
    states: KeyStates,
    usage: pa.Table,
) -> pa.Table:
    """Return the table, the worst verdict first.

    Args:
        logs: Copies of partitions.
        settings: Those in force.
        states: What is known of keys.
        usage: The table `topic_usage`.
    """
    verdicts = _verdicts(logs, settings)
    leading = {each.place: each for each in logs if each.is_leading}
    left = retained(
        states,
        {place: each.files.horizons for place, each in leading.items() if each.files},
        {place: each.now_ms for place, each in leading.items() if each.now_ms is not None},
    )
    tombstones = _standing_tombstones(usage)
    rows = [
        {
            **_of_cleaning(each, found, settings),
            **_of_records(each, left.get(each.place, Retained()), tombstones, states.ends, found),
        }
        for each, found in zip(logs, verdicts, strict=True)
    ]
    made = table_of("log_cleaning", rows)
    rank = pc.index_in(made["verdict"], pa.array(list(settings.rules.cleaner_verdicts)))
    order = [("rank", "ascending"), ("cleanable_bytes", "descending")]
    keys = [(name, "ascending") for name in ("topic", "partition", "copy")]
    return made.append_column("rank", rank).sort_by([*order, *keys]).drop_columns(["rank"])


def _verdicts(logs: list[CopyOfLog], settings: LogSettings) -> list[Cleaning]:
    """Return what is known of each log; one cleaner serves all logs of a broker."""
    found = [cleaning_of(each.files, _settings_of(each, settings), each.now_ms) for each in logs]
    for copy in {each.copy for each in logs}:
        rows = [place for place, each in enumerate(logs) if each.copy == copy]
        of_broker = judged(
            [found[row] for row in rows], logs[rows[0]].now_ms, settings.rules.late_minutes
        )
        for row, each in zip(rows, of_broker, strict=True):
            found[row] = each
    return found


def _settings_of(log: CopyOfLog, settings: LogSettings) -> CleanerSettings:
    def number(name: str) -> float:
        return settings.number(name, log.place.topic, log.node)

    return CleanerSettings(
        is_compacted=settings.is_compacted(log.place.topic),
        is_on=settings.is_cleaner_on(log.place.topic, log.node),
        min_dirty_ratio=number(_RATIO),
        delete_retention_ms=number("delete.retention.ms"),
        min_lag_ms=number("min.compaction.lag.ms"),
        max_lag_ms=number("max.compaction.lag.ms"),
    )


def _not_after(log: CopyOfLog, settings: LogSettings) -> float | None:
    lag = settings.number("min.compaction.lag.ms", log.place.topic, log.node)
    return (log.now_ms or 0) - lag if lag > 0 else None


def _of_cleaning(log: CopyOfLog, found: Cleaning, settings: LogSettings) -> dict[str, Any]:
    ratio = settings.in_force(_RATIO, log.place.topic, log.node)
    return {
        "topic": log.place.topic,
        "partition": log.place.partition,
        "copy": log.copy,
        "is_leading": log.is_leading,
        "verdict": found.verdict,
        "evidence": found.evidence,
        "due_since": found.due_since_ms,
        "last_pass_at": found.passed_at_ms,
        "dirty_ratio": found.dirty_ratio,
        "min_dirty_ratio": settings.number(_RATIO, log.place.topic, log.node),
        "ratio_source": ratio.source,
        "first_dirty_offset": found.dirty_from,
        "cleanable_to": found.cleanable_to,
        "clean_bytes": found.clean_bytes,
        "cleanable_bytes": found.cleanable_bytes,
        "active_bytes": found.active_bytes,
        "oldest_dirty_at": found.oldest_dirty_ms,
    }


def _of_records(
    log: CopyOfLog,
    left: Retained,
    tombstones: Mapping[Place, int],
    ends: TransactionEnds,
    found: Cleaning,
) -> dict[str, Any]:
    """Return what records say: of the copy that leads, whose records were decoded."""
    names = ("standing_tombstones", "overdue_tombstones", "overdue_bytes", "overdue_since")
    told: dict[str, Any] = dict.fromkeys([*names, "left_records", "left_bytes", "freed_bytes"])
    if not log.is_leading or log.files is None:
        return told
    bound = found.cleanable_to
    told["standing_tombstones"] = tombstones.get(log.place, 0)
    if bound is None:
        return told
    told |= {
        "overdue_tombstones": left.overdue_tombstones,
        "overdue_bytes": left.overdue_bytes,
        "overdue_since": left.oldest_horizon_ms,
        "left_records": left.records,
    }
    if not log.is_packed:
        markers = _markers_left(log, ends, bound)
        told["left_bytes"] = (
            left.record_bytes
            + sum(markers)
            + HEADER * (left.batches + len(markers))
            + sum(each.size for each in log.files.segments if each.base_offset >= bound)
        )
        told["freed_bytes"] = log.size - told["left_bytes"]
    return told


def _markers_left(log: CopyOfLog, ends: TransactionEnds, bound: int) -> list[int]:
    """Return the bytes of the markers that a pass would leave where the cleaner may go.

    A marker gets a delete horizon once nothing is left of its transaction, and goes when that is
    over.
    """
    assert log.files is not None
    found = []
    for offset, size, is_needed in ends.markers_below(log.place, bound):
        horizon = log.files.horizon_of(offset)
        if is_needed or horizon is None or horizon > (log.now_ms or 0):
            found.append(size)
    return found


def _standing_tombstones(usage: pa.Table) -> dict[Place, int]:
    sums: dict[Place, int] = {}
    names = ("topic", "partition", "standing_tombstones")
    for topic, partition, count in zip(*(usage[name].to_pylist() for name in names), strict=True):
        place = Place(topic, partition)
        sums[place] = sums.get(place, 0) + (count or 0)
    return sums
