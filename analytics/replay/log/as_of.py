"""Decoded records cut at the instant asked about, as frames of polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics.replay.log.log_times import AsOf
from analytics.replay.metadata.metadata_log import snapshot_end
from schemas import CLUSTER_METADATA

# Records without a time (message format 0): which of them are later than an instant.
#
# A partition's records were appended in the order of their offsets. So one without a time that lies
# behind a record of a later time is later itself. A commit says its own time in its value.

COMMITS, GROUPS = "offset_commit", "group_metadata"
"""What releases wrote that knew message format 0."""
_PLACE: Final = ("topic", "partition", "offset", "timestamp")


def timeless_ends(decoded: Mapping[str, pl.DataFrame], as_of: AsOf) -> dict[tuple[str, int], int]:
    """Return from which offset on records without a time are later than an instant.

    Args:
        decoded: Decoded tables of whole partitions; of each at least where and when its records
            were written, of commits their `value`, too.
        as_of: The instant.

    Returns:
        By topic and partition, of partitions with such records of which any is surely later.
    """
    if as_of.timestamp_ms is None or not {COMMITS, GROUPS} <= decoded.keys():
        return {}
    commits, groups = decoded[COMMITS], decoded[GROUPS]
    # Hardly any dump has one.
    if not any(each["timestamp"].null_count() for each in (commits, groups)):
        return {}
    said = pl.col("value").struct.field("commit_timestamp")
    told = pl.concat(
        [
            commits.select(*_PLACE, pl.when(said > 0).then(said).alias("said")),
            groups.select(*_PLACE, pl.lit(None, pl.Int64).alias("said")),
        ]
    )
    at = pl.coalesce(pl.col("timestamp").dt.epoch("ms"), "said")
    ends = (
        told.group_by("topic", "partition")
        .agg(
            pl.col("timestamp").is_null().any().alias("has_timeless"),
            pl.col("offset").filter(at > as_of.timestamp_ms).min().alias("end"),
        )
        .filter(pl.col("has_timeless") & pl.col("end").is_not_null())
    )
    rows = ends.select("topic", "partition", "end").iter_rows()
    return {(topic, partition): end for topic, partition, end in rows}


Decoded = Mapping[str, pl.DataFrame]
"""Decoded tables by name; every one that the schemas declare is there, possibly without rows."""

Ends = Mapping[tuple[str, int], int]
"""An offset by topic and partition."""

_OWN: Final = ("topic", "partition", "offset", "timestamp")
_PREFIX: Final = "_"
PLACE: Final = {_PREFIX + name: name for name in _OWN}
"""Where and when a record was written, where its own columns have such names, too: the columns, and
of which field of a decoded record each is."""


def cut_all(decoded: Decoded, as_of: AsOf, *, timeless: Ends | None = None) -> Decoded:
    """Cut every decoded table.

    A snapshot of the metadata log counts as a whole where all that it stands for counts.

    Args:
        decoded: Tables by name.
        as_of: The instant.
        timeless: Of `timeless_ends`, of whole partitions; None where `decoded` has them.
    """
    if as_of.is_end:
        return decoded
    ends = timeless_ends(decoded, as_of) if timeless is None else timeless
    return {name: _cut(frame, as_of, ends) for name, frame in decoded.items()}


def above_log_starts(decoded: Decoded, log_starts: Ends) -> Decoded:
    """Leave out records that were deleted before the end of the dump (``DeleteRecords``).

    Args:
        decoded: Tables that hold them too.
        log_starts: The log start offset by topic and partition, where it is not the first offset.
    """
    if not log_starts:
        return decoded
    return {name: _above(frame, log_starts) for name, frame in decoded.items()}


def cut(
    records: pl.DataFrame, as_of: AsOf, *, log_starts: Ends, timeless_ends: Ends
) -> pl.DataFrame:
    """Keep the records that count, without `PLACE`.

    Args:
        records: Has `PLACE`; of the metadata log also `segment`.
        as_of: The instant.
        log_starts: Where logs start whose deleted records are there nevertheless.
        timeless_ends: From where on records without a time are later than the instant.
    """
    above = _above(records, log_starts, _PREFIX)
    return _cut(above, as_of, timeless_ends, _PREFIX).drop(list(PLACE))


def _above(records: pl.DataFrame, log_starts: Ends, prefix: str = "") -> pl.DataFrame:
    if not log_starts:
        return records
    start = _looked_up(log_starts, prefix)
    return records.filter(start.is_null() | (pl.col(f"{prefix}offset") >= start))


def _cut(records: pl.DataFrame, as_of: AsOf, timeless: Ends, prefix: str = "") -> pl.DataFrame:
    topic, offset = pl.col(f"{prefix}topic"), pl.col(f"{prefix}offset")
    if as_of.offsets:
        place = offset
        if (
            "segment" in records.columns
            and records.select((topic == CLUSTER_METADATA).any()).item()
        ):
            of_snapshot = pl.when(topic == CLUSTER_METADATA).then(snapshot_end() - 1)
            place = pl.coalesce(of_snapshot, offset)
        records = records.filter(_is_below(as_of.offsets, place, prefix))
    if as_of.timestamp_ms is not None:
        time = pl.col(f"{prefix}timestamp")
        is_in_time = time.dt.epoch("us") <= as_of.timestamp_ms * 1000
        by_time = (
            pl.when(time.is_null()).then(_is_below(timeless, offset, prefix)).otherwise(is_in_time)
        )
        records = records.filter(_is_before_frame_end(records, as_of, by_time, prefix))
    return records


def _is_before_frame_end(
    records: pl.DataFrame, as_of: AsOf, by_time: pl.Expr, prefix: str
) -> pl.Expr:
    """Return which records count: where times go back, those before an offset."""
    if not as_of.frames:
        return by_time
    ends = {key: each.possible_end for key, each in as_of.frames.items()}
    end = _looked_up(ends, prefix)
    if "segment" in records.columns:
        # A snapshot counts by its own time.
        end = pl.when(snapshot_end().is_null()).then(end)
    return pl.when(end.is_null()).then(by_time).otherwise(pl.col(f"{prefix}offset") < end)


def _is_below(ends: Ends, place: pl.Expr, prefix: str) -> pl.Expr:
    if not ends:
        return pl.lit(value=True)
    end = _looked_up(ends, prefix)
    return end.is_null() | (place < end)


def _looked_up(offsets: Ends, prefix: str) -> pl.Expr:
    found = pl.lit(None, pl.Int64)
    for topic in sorted({topic for topic, _ in offsets}):
        of_topic = {partition: at for (name, partition), at in offsets.items() if name == topic}
        here = pl.col(f"{prefix}partition").replace_strict(
            pl.Series(list(of_topic), dtype=pl.Int32),
            pl.Series(list(of_topic.values()), dtype=pl.Int64),
            default=None,
            return_dtype=pl.Int64,
        )
        found = pl.when(pl.col(f"{prefix}topic") == topic).then(here).otherwise(found)
    return found
