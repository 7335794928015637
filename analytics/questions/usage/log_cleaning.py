"""The table `log_cleaning`: copy by copy, how dirty a log is and whether the cleaner keeps up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.contracts import arrow_rows, polars_rows, table_of
from analytics.questions.usage.cleaner import (
    CleanerSettings,
    Cleaning,
    LogFiles,
    cleaning_of,
    judged,
    milliseconds,
)
from analytics.questions.usage.records import Place, by_place
from analytics.questions.usage.sums import ranking
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.questions.usage.cleaner import LogSettings
    from analytics.questions.usage.key_usage import KnownLogs
    from schemas.manifest import AccountEntry, Manifest

HEADER: Final = 61
_RATIO: Final = "min.cleanable.dirty.ratio"
_LOG: Final = ("topic", "partition")


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
    manifest: Manifest,
    first_open: Mapping[Place, int],
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
    nodes: dict[str | None, int | None] = {
        each["name"]: each["node_id"] for each in manifest["copies"]
    }
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
        account: AccountEntry = accounts.get((copy, *place), {})
        use = account.get("bytes_of_batches")
        files = None if copy is None else LogFiles.of(each, account, first_open.get(place))
        found.append(
            CopyOfLog(
                place,
                copy,
                nodes.get(copy),
                each.get("is_leading", True),
                files if files is not None and files.segments else None,
                sum(segment.size for segment in files.segments) if files else 0,
                use is not None and bool(use["compressed"]),
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
    left: Mapping[Place, LeftInLog],
    usage: pa.Table,
) -> pa.Table:
    """Return the table, the worst verdict first.

    Args:
        logs: Copies of partitions.
        settings: Those in force.
        left: What a pass of the cleaner would leave of each partition.
        usage: The table `topic_usage`.
    """
    tombstones = _standing_tombstones(usage)
    rows = [
        {
            **_of_cleaning(each, found, settings),
            **_of_records(each, left.get(each.place, LeftInLog()), tombstones, found),
        }
        for each, found in zip(logs, _verdicts(logs, settings), strict=True)
    ]
    ranks = {verdict: rank for rank, verdict in enumerate(settings.rules.cleaner_verdicts)}
    rank = pl.col("verdict").replace_strict(ranks, return_dtype=pl.Int64)
    made = polars_rows(table_of("log_cleaning", rows))
    order = [rank, "cleanable_bytes", "topic", "partition", "copy"]
    worst = made.sort(order, descending=[False, True, False, False, False], nulls_last=True)
    return arrow_rows(worst)


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
    log: CopyOfLog, left: LeftInLog, tombstones: Mapping[Place, int], found: Cleaning
) -> dict[str, Any]:
    """Return what records say: of the copy that leads, whose records were decoded."""
    names = ("standing_tombstones", "overdue_tombstones", "overdue_bytes", "overdue_since")
    row: dict[str, Any] = dict.fromkeys([*names, "left_records", "left_bytes", "freed_bytes"])
    if not log.is_leading or log.files is None:
        return row
    bound = found.cleanable_to
    row["standing_tombstones"] = tombstones.get(log.place, 0)
    if bound is None:
        return row
    row |= {
        "overdue_tombstones": left.overdue_tombstones,
        "overdue_bytes": left.overdue_bytes,
        "overdue_since": left.overdue_since,
        "left_records": left.records,
    }
    if not log.is_packed:
        row["left_bytes"] = (
            left.record_bytes
            + left.marker_bytes
            + HEADER * (left.batches + left.markers)
            + sum(each.size for each in log.files.segments if each.base_offset >= bound)
        )
        row["freed_bytes"] = log.size - row["left_bytes"]
    return row


def _standing_tombstones(usage: pa.Table) -> dict[Place, int]:
    sums = (
        polars_rows(usage)
        .group_by("topic", "partition")
        .agg(pl.col("standing_tombstones").sum())
        .rows()
    )
    return {Place(topic, partition): count for topic, partition, count in sums}


@dataclass(frozen=True)
class LeftInLog:
    """What a pass leaves where the cleaner may go in a log, and the tombstones of all of it.

    Attributes:
        records: Data records that stay.
        record_bytes: Their bytes, uncompressed.
        batches: Batches that still hold one.
        markers: Control records that stay.
        marker_bytes: Their bytes.
        overdue_tombstones: Standing tombstones whose delete horizon is over.
        overdue_bytes: Their bytes.
        overdue_since: The first of those horizons, in milliseconds; None without any.
    """

    records: int = 0
    record_bytes: int = 0
    batches: int = 0
    markers: int = 0
    marker_bytes: int = 0
    overdue_tombstones: int = 0
    overdue_bytes: int = 0
    overdue_since: int | None = None


def left_rows(rows: pl.DataFrame, logs: KnownLogs) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what a pass would leave of the records of a bucket (``Cleaner.shouldRetainRecord``).

    The last record of each key where the cleaner may go stays: also where there is a later one
    beyond, which the cleaner does not look at. A tombstone goes once its delete horizon is over.

    Args:
        rows: What `ordered` returns.
        logs: What is known of the logs.

    Returns:
        By `topic` and `partition` the numbers of `LeftInLog` that are of records. And the `topic`,
        `partition`, `batch_offset` of the batches that still hold one.
    """
    is_standing = pl.col("fate") == "standing_tombstone"
    rows = _with_horizons(rows.filter(pl.col("is_left") | is_standing), logs)
    stays = pl.col("is_left") & ~(pl.col("is_tombstone") & pl.col("is_over"))
    is_overdue = is_standing & pl.col("is_over")
    sums = rows.group_by(_LOG).agg(
        stays.sum().cast(pl.Int64).alias("records"),
        pl.col("bytes").filter(stays).sum().alias("record_bytes"),
        is_overdue.sum().cast(pl.Int64).alias("overdue_tombstones"),
        pl.col("bytes").filter(is_overdue).sum().alias("overdue_bytes"),
        pl.col("horizon_ms").filter(is_overdue).min().alias("overdue_since"),
    )
    return sums, rows.filter(stays).select(*_LOG, "batch_offset").unique()


def left_in_logs(
    sums: pl.DataFrame, batches: Iterable[pl.DataFrame], markers: pl.DataFrame, logs: KnownLogs
) -> dict[Place, LeftInLog]:
    """Return what a pass would leave of each log.

    A marker gets a delete horizon once nothing is left of its transaction, and goes when that is
    over.

    Args:
        sums: What `left_rows` returned of all buckets.
        batches: Likewise, some at a time, in the order of `BY_BATCH`.
        markers: Control records, and whether they are needed.
        logs: What is known of the logs.
    """
    of_records = sums.group_by(_LOG).agg(
        pl.col("records", "record_bytes", "overdue_tombstones", "overdue_bytes").sum(),
        pl.col("overdue_since").min(),
    )
    of_batches = _batch_counts(batches).cast({name: sums.schema[name] for name in _LOG})
    placed = markers.cast({name: sums.schema[name] for name in _LOG})
    bounds = by_place(logs.bounds, "bound")
    below = placed.join(bounds, _LOG).filter(pl.col("offset") < pl.col("bound"))
    of_markers = (
        _with_horizons(below, logs)
        .filter(pl.col("is_needed") | ~pl.col("is_over"))
        .group_by(_LOG)
        .agg(pl.len().alias("markers"), pl.col("record_bytes").sum().alias("marker_bytes"))
    )
    joined = of_records.join(of_batches, _LOG, "full", coalesce=True)
    joined = joined.join(of_markers, _LOG, "full", coalesce=True)
    found = {}
    for row in joined.iter_rows(named=True):
        place = Place(row.pop("topic"), row.pop("partition"))
        found[place] = LeftInLog(**{name: each for name, each in row.items() if each is not None})
    return found


_BATCH: Final = (*_LOG, "batch_offset")
BY_BATCH: Final = ranking(dict.fromkeys(_BATCH, False))
"""The order of batches; several buckets may have the same."""


def _batch_counts(pieces: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return how many different batches each log has."""
    types = pl.Schema({"topic": pl.String, "partition": pl.Int32, "batch_offset": pl.Int64})
    last = pl.DataFrame(schema=types)
    counts = [pl.DataFrame(schema={"topic": pl.String, "partition": pl.Int32, "len": pl.UInt32})]
    for piece in pieces:
        rows = piece.cast(types).unique(_BATCH, maintain_order=True)
        counts.append(rows.join(last, list(_BATCH), "anti").group_by(_LOG).len())
        last = rows.tail(1) if rows.height else last
    return pl.concat(counts).group_by(_LOG).agg(pl.col("len").sum().alias("batches"))


def _with_horizons(rows: pl.DataFrame, logs: KnownLogs) -> pl.DataFrame:
    """Add the delete horizon of each record's batch, null without one, and whether it `is_over`."""
    horizons = pl.DataFrame(
        [(*place, *each) for place, every in logs.horizons.items() for each in every],
        {
            "topic": rows.schema["topic"],
            "partition": rows.schema["partition"],
            "horizon_ms": pl.Int64(),
            "first_offset": pl.Int64(),
            "end_offset": pl.Int64(),
        },
        orient="row",
    )
    joined = (
        rows.sort("offset")
        .join_asof(
            horizons.sort("first_offset"),
            left_on="offset",
            right_on="first_offset",
            by=_LOG,
            strategy="backward",
            check_sortedness=False,
        )
        .join(by_place(logs.now_ms, "now_ms"), _LOG, "left")
    )
    is_inside = pl.col("offset") < pl.col("end_offset")
    horizon = pl.when(is_inside).then(pl.col("horizon_ms"))
    return joined.with_columns(
        horizon_ms=horizon,
        is_over=(horizon <= pl.col("now_ms").fill_null(-1)).fill_null(value=False),
    )
