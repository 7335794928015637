"""When the disk of a broker is full, at the rate at which what the dump shows of it grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import polars as pl

from analytics.questions.trend.figures import copies_as_named_by, frames, usage_by_copy
from analytics.questions.trend.runs import TOO_CLOSE, AuditedRun, Pair

READ: Final[Mapping[str, Sequence[str]]] = {
    "partition_usage": ("topic", "partition", "copy", "is_leading", "file_bytes"),
    "data_segments": ("topic", "partition", "copy", "size_bytes"),
}
"""What is read of each run."""
_FAR: Final = timedelta(days=100 * 366)
_PLACE: Final = ["topic", "partition", "copy"]
_NO_DISK: Final = "a snapshot is of the leaders of all partitions, not of the disk of one broker"
_ONE_RUN: Final = "there is one run of the cluster"
_NO_GROWTH: Final = (
    "what the dump shows of it does not grow, and what else lies on the disk is not in the dump"
)
_FAR_OFF: Final = (
    "what the dump shows of it does not fill it within a hundred years, and what else lies on the "
    "disk is not in the dump"
)


def disk_rows(pair: Pair, disk_bytes: int | None) -> list[dict[str, Any]]:
    """Return `trend_disks` of the last run of a cluster: a row a copy.

    What lies on a disk beside what the dump shows takes room, too: it is full at the latest then.

    Args:
        pair: The run, and the one before it.
        disk_bytes: Size of each disk; None where nobody said.
    """
    if not pair.run.tables.has("partition_usage"):
        return []
    now = _files(pair.run)
    before = None
    if pair.comparable is not None and pair.comparable.tables.has("partition_usage"):
        names = copies_as_named_by(pair.run, pair.comparable)
        before = _files(pair.comparable).with_columns(pl.col("copy").replace(names))
    rows = []
    for copy in sorted(now["copy"].drop_nulls().unique()):
        mine = now.filter(pl.col("copy") == copy)
        is_same = (pl.col("copy") == copy) & ~pl.col("is_fetched")
        earlier = None if before is None else before.filter(is_same)
        rows.append(_row(pair, copy, mine, earlier, disk_bytes))
    return rows


def _files(run: AuditedRun) -> pl.DataFrame:
    """Return `bytes` by `topic`, `partition` and `copy`.

    Beside them whether it `is_internal`, and whether the copy `is_fetched` from a cluster.
    """
    internal = usage_by_copy(run).select(
        *_PLACE,
        pl.col("file_bytes").alias("bytes"),
        pl.lit(value=True).alias("is_internal"),
        "is_fetched",
    )
    parts = [internal]
    if run.tables.has("data_segments"):
        for rows in frames(run, "data_segments", [*_PLACE, "size_bytes"]):
            by_log = rows.group_by(_PLACE).agg(pl.col("size_bytes").sum().alias("bytes"))
            is_neither = pl.lit(value=False)
            parts.append(
                by_log.with_columns(is_neither.alias("is_internal"), is_neither.alias("is_fetched"))
            )
    keys = [*_PLACE, "is_internal", "is_fetched"]
    rows = pl.concat(each.select(*keys, pl.col("bytes").cast(pl.Int64)) for each in parts)
    is_open = pl.col("bytes").is_null().any()
    return rows.group_by(keys).agg(
        pl.when(is_open).then(None).otherwise(pl.col("bytes").sum()).alias("bytes")
    )


def _row(
    pair: Pair,
    copy: str,
    now: pl.DataFrame,
    before: pl.DataFrame | None,
    disk_bytes: int | None,
) -> dict[str, Any]:
    size = _sum(now)
    rate, why = _rate(pair, now, before)
    full_at, bound = None, "unknown"
    if now["is_fetched"].any():
        why = _NO_DISK
    elif size is not None and disk_bytes is not None and size >= disk_bytes:
        full_at, bound, why = pair.run.instant, "at_latest", "the dump alone has as many bytes"
    elif disk_bytes is None:
        why = why or "nobody said how large the disk is (--disk-size)"
    elif size is not None and rate is not None:
        days = (disk_bytes - size) / rate if rate > 0 else None
        if days is None:
            why = _NO_GROWTH
        elif days >= _FAR / timedelta(days=1):
            why = _FAR_OFF
        else:
            full_at, bound = pair.run.instant + timedelta(days=days), "at_latest"
    return {
        "cluster": pair.cluster,
        "as_of": pair.run.as_of,
        "copy": copy,
        "file_bytes": size,
        "disk_bytes": disk_bytes,
        "bytes_per_day": None if rate is None else round(rate),
        "full_at": full_at,
        "full_bound": bound,
        "reason": why,
    }


def _rate(
    pair: Pair, now: pl.DataFrame, before: pl.DataFrame | None
) -> tuple[float | None, str | None]:
    """Return how many bytes more the partitions take a day that both runs have of a copy.

    Else why that cannot be told.
    """
    size = _sum(now)
    earlier = None if before is None else _sum(before)
    if pair.before is None:
        why = _ONE_RUN
    elif pair.difference is not None:
        why = pair.difference.words
    elif before is None:
        why = "the run before has no table partition_usage"
    elif pair.days is None:
        why = TOO_CLOSE
    elif not before.height:
        why = "the run before has no copy of that broker"
    elif not _internal(now).equals(_internal(before)):
        why = "it has other internal partitions than in the run before"
    elif size is None or earlier is None:
        why = "nothing tells how large its files are"
    else:
        # A data partition that one of both lacks may have been moved, or was not copied.
        place = ["topic", "partition"]
        common = [_sum(now.join(before, place, "semi")), _sum(before.join(now, place, "semi"))]
        return ((common[0] or 0) - (common[1] or 0)) / pair.days, None
    return None, why


def _internal(files: pl.DataFrame) -> pl.DataFrame:
    return files.filter("is_internal").select("topic", "partition").sort("topic", "partition")


def _sum(files: pl.DataFrame) -> int | None:
    return None if files["bytes"].null_count() else int(files["bytes"].sum())
