"""What becomes of every record of a key: the tables `topic_usage` and `committers`.

What survives compaction is the last record of each key. A bucket's records are sorted by key and
offset once (`ordered`); all else is read off the neighbours of a row. The tables are made of whole
groups, so a bucket has whole rows of them; what is of whole logs are sums that add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import polars_rows, table_of_frame
from analytics.questions.usage.records import (
    COMMITS,
    MARKED,
    Place,
    Transactions,
    by_place,
    is_keyed,
    with_complete,
)
from analytics.questions.usage.sums import ranking
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    import pyarrow as pa

    from schemas.usage_rules import UsageRules

DAY_MS: Final = 86_400_000
EXPIRED: Final = ("due", "overdue", "blocked")
"""Words of the column `status` of `offset_expiration`."""
_TIME: Final = pl.Datetime("ms", "UTC")
_LOG: Final = ("topic", "partition")
_ROW: Final = ("topic", "partition", "group_id", "table")
_KEY: Final = ("topic", "partition", "record_type", "group_id", "name", "number")
_TEXTS: Final = ("topic", "group_id", "name")
_FATES: Final = ("live", "superseded", "tombstoned", "aborted", "open", "standing_tombstone")


@dataclass(frozen=True)
class KnownLogs:
    """What is known of whole logs when the records of a bucket are looked at.

    Attributes:
        transactions: How transactions ended; none where records say of theirs (`MARKED`).
        bounds: By partition the offset from which on the cleaner may not go; absent: nowhere.
        complete_from: By partition the offset from which on every record is there; absent: none.
        since: By `topic` and `partition`, the time of the first such record: `since_ms`.
        now_ms: The end of the log by partition.
        horizons: By partition delete horizons: (milliseconds, first offset, end offset), by offset.
    """

    transactions: Transactions
    bounds: Mapping[Place, int]
    complete_from: Mapping[Place, int]
    since: pl.DataFrame
    now_ms: Mapping[Place, int]
    horizons: Mapping[Place, tuple[tuple[int, int, int], ...]]


def ordered(records: pl.DataFrame, logs: KnownLogs) -> pl.DataFrame:
    """Return the records of a bucket by key and offset, and what becomes of each.

    Of every key the last record that was not aborted, and whose transaction is not open, is live if
    it has a value, and a standing tombstone if it has none. The others are superseded; or, where
    a tombstone stands, and they had a value, tombstoned.

    Args:
        records: `RECORD`, of whole groups, with `MARKED` or without.
        logs: What is known of the logs.

    Returns:
        They, and `fate`; `key`, a number; `is_first` of its key; `counts`, neither aborted nor
        open; `is_unchanged`, a commit of the offset that the record before it had committed;
        `is_left`, the last of its key where the cleaner may go; `is_seen`, a value where every
        record is still there.
    """
    are_marked = MARKED.keys() <= set(records.columns)
    ended = records if are_marked else logs.transactions.outcomes(records)
    rows = with_complete(ended, logs.complete_from)
    rows = rows.join(by_place(logs.bounds, "bound"), _LOG, "left")
    # Names by number are sorted in an eighth of the time; any order of keys will do.
    codes = [
        pl.col(name).cast(pl.Categorical).to_physical() if name in _TEXTS else name for name in _KEY
    ]
    rows = rows.with_columns(counts=~(pl.col("is_aborted") | pl.col("is_open")))
    rows = rows.sort([*codes, "counts", "offset"])
    is_first = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in _KEY)
    rows = rows.with_columns(
        is_first=is_first if len(rows) < 2 else (pl.int_range(pl.len()) == 0) | is_first,
        is_cleanable=pl.col("counts") & (pl.col("offset") < pl.col("bound")).fill_null(value=False),
    )
    is_last = pl.col("is_first").shift(-1, fill_value=True)
    is_end = is_last & pl.col("counts")
    stands = pl.when(is_last).then(is_end & pl.col("is_tombstone")).backward_fill()
    is_same = pl.col("value") == pl.col("value").shift()
    is_neighbour = ~pl.col("is_first") & pl.col("counts") & pl.col("counts").shift()
    fate = (
        pl.when("is_aborted")
        .then(pl.lit("aborted"))
        .when("is_open")
        .then(pl.lit("open"))
        .when(is_end & pl.col("is_tombstone"))
        .then(pl.lit("standing_tombstone"))
        .when(is_end)
        .then(pl.lit("live"))
        .when(stands & ~pl.col("is_tombstone"))
        .then(pl.lit("tombstoned"))
        .otherwise(pl.lit("superseded"))
    )
    return rows.with_columns(
        fate=fate.cast(pl.Enum(_FATES)),
        key=pl.col("is_first").cum_sum(),
        is_unchanged=(is_same & is_neighbour).fill_null(value=False),
        is_left=pl.col("is_cleanable")
        & (is_last | ~pl.col("is_cleanable").shift(-1, fill_value=False)),
        is_seen=pl.col("is_complete") & ~pl.col("is_tombstone"),
    ).drop("marker", "is_aborted", "is_open", "is_complete", "is_cleanable", "bound")


def usage_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return records and bytes of a bucket by partition, group and record type.

    Args:
        rows: What `ordered` returns.

    Returns:
        The columns of `topic_usage`; times are milliseconds. `without_bytes` counts records of
        which nobody knows how many bytes they took.
    """
    size = pl.col("bytes").fill_null(0)

    def sums(name: str, chosen: pl.Expr) -> list[pl.Expr]:
        return [
            chosen.sum().cast(pl.Int64).alias(f"{name}_records"),
            pl.when(chosen).then(size).otherwise(0).sum().alias(f"{name}_bytes"),
        ]

    found = rows.group_by(_ROW).agg(
        pl.col("is_first").sum().cast(pl.Int64).alias("keys"),
        pl.len().cast(pl.Int64).alias("records"),
        size.sum().alias("bytes"),
        *(each for name in _FATES for each in sums(name, pl.col("fate") == name)),
        *sums("unchanged", pl.col("is_unchanged")),
        (pl.col("counts") & pl.col("is_tombstone")).sum().cast(pl.Int64).alias("tombstones"),
        size.max().alias("max_record_bytes"),
        pl.col("metadata_bytes").fill_null(0).max().alias("max_metadata_bytes"),
        pl.col("time_ms").min().alias("first_timestamp"),
        pl.col("time_ms").max().alias("last_timestamp"),
        pl.col("bytes").null_count().cast(pl.Int64).alias("without_bytes"),
    )
    names = {
        "table": "record_type",
        "standing_tombstone_records": "standing_tombstones",
        "unchanged_records": "unchanged_commits",
    }
    texts = pl.col("topic", "table").cast(pl.String)
    return found.with_columns(texts).rename(names)


def topic_usage(
    made: pl.DataFrame,
    others: pl.DataFrame,
    expiration: pa.Table | None = None,
    *,
    lacks_bytes: bool | None = None,
) -> pa.Table:
    """Return the table `topic_usage`, the most bytes first.

    Args:
        made: What `usage_rows` returned.
        others: Records that are in no decoded table (`untabled_usage`).
        expiration: The table `offset_expiration` of the same instant; None where there is none.
        lacks_bytes: Nobody knows how many bytes some records took; None is as `made` says.
    """
    whole, without = with_and_without_keys(made)
    found = pl.concat([whole, _without_keys(without).select(whole.columns)])
    if found["without_bytes"].sum() if lacks_bytes is None else lacks_bytes:
        of_bytes = [name for name in found.columns if "bytes" in name and "metadata" not in name]
        found = found.with_columns(pl.lit(None, pl.Int64).alias(name) for name in of_bytes)
    times = pl.col("first_timestamp", "last_timestamp").cast(_TIME)
    rows = pl.concat([found.with_columns(times), others], how="diagonal")
    rows = with_expired(rows, None if expiration is None else polars_rows(expiration))
    return table_of_frame("topic_usage", MOST_USED.sort(rows))


MOST_USED: Final = ranking(
    {"bytes": True, "records": True, "topic": False, "partition": False}
    | {"group_id": False, "record_type": False}
)
"""The order of `topic_usage`."""


def with_and_without_keys(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return rows of `usage_rows` of records with keys, and those of records without.

    Groups have keys. Of what has none a row is of some of the records: they are in any bucket.
    """
    pairs = rows.select("topic", "record_type").unique().rows()
    keyed = [each for each in pairs if is_keyed(*each)]
    if not keyed:
        return rows.clear(), rows
    has_keys = pl.struct("topic", "record_type").is_in(
        [{"topic": topic, "record_type": name} for topic, name in keyed]
    )
    return rows.filter(has_keys), rows.filter(~has_keys)


def _without_keys(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of records without keys: none is the last of one, and they are in any bucket."""
    key = ["topic", "partition", "group_id", "record_type"]
    least, most = ["first_timestamp"], ["last_timestamp", "max_record_bytes", "max_metadata_bytes"]
    sums = ["records", "bytes", "tombstones", "without_bytes"]
    others = [name for name in rows.columns if name not in {*key, *least, *most, *sums}]
    return (
        rows.group_by(key)
        .agg(pl.col(sums).sum(), pl.col(least).min(), pl.col(most).max())
        .with_columns(pl.lit(None, pl.Int64).alias(name) for name in others)
    )


def with_expired(rows: pl.DataFrame, expiration: pl.DataFrame | None) -> pl.DataFrame:
    """Add how many live commits have expired: the next sweep of the coordinator deletes them.

    Args:
        rows: Of `topic_usage`.
        expiration: The table `offset_expiration` of the same instant; None where there is none.
    """
    if expiration is None:
        return rows.with_columns(expired_records=pl.lit(None, pl.Int64))
    counts = (
        expiration.filter(pl.col("status").is_in(EXPIRED))
        .group_by(pl.col("coordinator_partition").alias("partition"), "group_id")
        .agg(pl.len().cast(pl.Int64).alias("expired_records"))
        .with_columns(topic=pl.lit(CONSUMER_OFFSETS), record_type=pl.lit(COMMITS))
    )
    joined = rows.join(counts, ["topic", "partition", "group_id", "record_type"], "left")
    is_commit = pl.col("record_type") == COMMITS
    expired = pl.col("expired_records")
    return joined.with_columns(pl.when(is_commit).then(expired.fill_null(0)).otherwise(expired))


def commit_rows(rows: pl.DataFrame, logs: KnownLogs, interval_ms: int) -> pl.DataFrame:
    """Return what the commits of each group of a bucket add up to, partition by partition.

    Args:
        rows: What `ordered` returns.
        logs: What is known of the logs.
        interval_ms: What commits are held against.

    Returns:
        `group_id`, `partition`, `offsets` with commits where every record is there, `commits` and
        `bytes` there, `all_commits`, `unchanged_commits`, `saved_commits` and `saved_bytes` that
        one commit an interval would spare, `last_ms`; `since_ms` and `observed_ms` of the log, null
        where nothing is known of it.
    """
    since = logs.since.cast({"topic": rows.schema["topic"]})
    observed = pl.when(pl.col("now_ms") >= pl.col("since_ms")).then(
        pl.col("now_ms") - pl.col("since_ms")
    )
    keys = (
        rows.filter(pl.col("table") == COMMITS)
        .group_by("key")
        .agg(
            pl.col("topic", "partition", "group_id").first(),
            pl.col("is_seen").sum().cast(pl.Int64).alias("seen"),
            pl.col("bytes").filter(pl.col("is_seen")).sum().alias("seen_bytes"),
            # Only a tombstone that counts commits nothing.
            (~pl.col("is_tombstone") | ~pl.col("counts")).sum().cast(pl.Int64).alias("all_commits"),
            pl.col("is_unchanged").sum().cast(pl.Int64).alias("unchanged_commits"),
            pl.col("time_ms").max().alias("last_ms"),
        )
        .join(since, _LOG, "left")
        .join(by_place(logs.now_ms, "now_ms"), _LOG, "left")
        .with_columns(observed_ms=observed)
        .with_columns(
            saved=(pl.col("seen") - (pl.col("observed_ms") // interval_ms + 1))
            .clip(lower_bound=0)
            .fill_null(0)
        )
    )
    # Bytes of what is spared: each key's commits are taken to be of one size.
    spared = pl.col("saved") * pl.col("seen_bytes") // pl.max_horizontal("seen", 1)
    return keys.group_by("group_id", "partition").agg(
        (pl.col("seen") > 0).sum().cast(pl.Int64).alias("offsets"),
        pl.col("seen").sum().alias("commits"),
        pl.col("seen_bytes").sum().alias("bytes"),
        pl.col("all_commits", "unchanged_commits").sum(),
        pl.col("saved").sum().alias("saved_commits"),
        spared.sum().alias("saved_bytes"),
        pl.col("last_ms").max(),
        pl.col("since_ms", "observed_ms").first(),
    )


def committers(
    made: pl.DataFrame, rules: UsageRules, interval_ms: int, *, lacks_bytes: bool
) -> pa.Table:
    """Return the table `committers`, the most bytes a day first.

    Compaction takes commits away: rates are of the time behind what it has seen, of which every
    record is there. That time begins with the partition's first such record, of whatever group.
    A group has one partition; where it has commits in others, that of its last commit counts.

    Args:
        made: What `commit_rows` returned of all buckets.
        rules: From when on a rate is told.
        interval_ms: What commits are held against.
        lacks_bytes: Some records are archived rows, which do not say how many bytes they took.
    """
    observed = pl.col("observed_ms")
    time = pl.max_horizontal(observed, 1)
    is_long = observed >= rules.observed_seconds * 1000

    def a_day(size: str) -> pl.Expr:
        rate = (pl.col(size) * float(DAY_MS) / time).round().cast(pl.Int64)
        return pl.when(is_long & (not lacks_bytes)).then(rate)

    gap = (observed * pl.col("offsets") / pl.max_horizontal("commits", 1)).round().cast(pl.Int64)
    share = pl.col("unchanged_commits") / pl.col("all_commits")
    found = (
        made.sort("group_id", "last_ms", "partition", nulls_last=False)
        .group_by("group_id")
        .last()
        .with_columns(
            observed_from=pl.col("since_ms").cast(_TIME),
            wanted_interval_ms=pl.lit(interval_ms, pl.Int64),
            commits_per_second=pl.when(is_long).then(pl.col("commits") * 1000 / time),
            bytes_per_day=a_day("bytes"),
            interval_ms=pl.when(is_long & (pl.col("commits") > 0)).then(gap),
            unchanged_share=pl.when(pl.col("all_commits") > 0).then(share),
            saved_bytes_per_day=a_day("saved_bytes"),
            bytes=None if lacks_bytes else pl.col("bytes"),
        )
    )
    return table_of_frame("committers", MOST_WRITTEN.sort(found))


MOST_WRITTEN: Final = ranking({"bytes_per_day": True, "commits": True, "group_id": False})
"""The order of `committers`."""
