"""Whether a lost record may lie at a place in an internal partition: expressions of polars.

Rows have the partition of the coordinator's log as `coordinator_partition`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from analytics.dump.inspection.found_losses import Loss, lacks
from analytics.replay.log.coverage import Coverage
from analytics.replay.log.frames import disputed
from analytics.replay.log.internal_partitions import internal_partition, is_one_of
from analytics.replay.log.record_position import AFTER_ALL
from schemas import CONSUMER_OFFSETS

HOME: Final = "coordinator_partition"
_MOST_RANGES: Final = 32
"""So many losses of a partition are looked at one by one; more are taken together."""


def with_missing(rows: pl.DataFrame, missing: pl.Expr) -> pl.DataFrame:
    """Add `missing`, the reason in words, and `complete`; null or empty is complete."""
    return rows.with_columns(missing=pl.when(missing != "").then(missing)).with_columns(
        complete=pl.col("missing").is_null()
    )


def may_be_superseded(coverage: Coverage, record: pl.Expr) -> pl.Expr:
    """Return why what a record says may not hold any more, null where it does.

    No lost record can have changed it where the record lies after all losses of its partition:
    neither a later commit or tombstone of the same key nor the marker of a transaction.

    Args:
        coverage: What the dump holds.
        record: Offset of the record.
    """
    lost = coverage.losses_of_topic(CONSUMER_OFFSETS)
    last = {number: max(each.end for each in losses) for number, losses in lost.items()}
    text = pl.lit("a lost record may have changed it: ") + what_is_lost(coverage)
    return pl.when(record < of_partition(last)).then(text)


def may_be_elsewhere(
    coverage: Coverage, key: pl.Expr | None = None, topic: str = CONSUMER_OFFSETS
) -> pl.Expr:
    """Return why clients may have looked in another partition, null where they did not.

    Args:
        coverage: What the dump holds.
        key: Of the coordinator; by default `group_id`.
        topic: The internal topic.
    """
    homes = coverage.homes.get(topic)
    key = pl.col("group_id") if key is None else key
    if homes is None or homes.perhaps is None:
        return of_disputed_home(coverage, key, topic)
    one, other = (internal_partition(key, each) for each in (homes.partitions, homes.perhaps))
    text = (
        f"{topic} was given {homes.perhaps} partitions instead of {homes.partitions}, and nothing "
        f"shows whether the brokers had been started again: clients were sent to partition {{}} "
        f"or to {{}}"
    )
    several = pl.when(one != other).then(pl.format(text, one, other))
    return pl.coalesce(of_disputed_home(coverage, key, topic), several)


def of_disputed_home(
    coverage: Coverage, key: pl.Expr | None = None, topic: str = CONSUMER_OFFSETS
) -> pl.Expr:
    """Return why nothing shows where clients look for a key, null where it does.

    Args:
        coverage: What the dump holds.
        key: Of the coordinator; by default `group_id`.
        topic: The internal topic.
    """
    homes = coverage.homes.get(topic)
    if homes is None or not homes.disputed:
        return pl.lit(None, pl.String)
    key = pl.col("group_id") if key is None else key
    return pl.when(is_one_of(key, homes.disputed)).then(pl.lit(why_disputed(topic)))


def why_disputed(topic: str) -> str:
    """Return in words why nothing shows where clients look for a key of a topic."""
    return (
        f"no number of partitions of {topic} explains where its records lie: nothing shows in "
        f"which partition clients looked for it"
    )


def lost_between(
    coverage: Coverage,
    after: pl.Expr,
    before: pl.Expr,
    topic: str = CONSUMER_OFFSETS,
    partition: str = HOME,
) -> pl.Expr:
    """Return what the partition lacks where a lost record may lie between two offsets, else null.

    Args:
        coverage: What the dump holds.
        after: Offset of the earlier record; -1 where there is none.
        before: Offset of the later one. One more, and what may be lost is that record itself: the
            line that it lies on may not have survived.
        topic: The internal topic.
        partition: The column that has its partition.
    """
    hits = [
        (pl.col(partition) == number) & (first < before) & (pl.lit(end, pl.Int64) > after + 1)
        for number, losses in coverage.losses_of_topic(topic).items()
        for first, end in _ranges(losses)
    ]
    if not hits:
        return pl.lit(None, pl.String)
    return pl.when(pl.any_horizontal(hits)).then(what_is_lost(coverage, topic, partition))


def between_cuts(
    coverage: Coverage, record: pl.Expr, topic: str = CONSUMER_OFFSETS, partition: str = HOME
) -> pl.Expr:
    """Return why a record may not count at the instant, null where it does.

    Args:
        coverage: Says where logs whose times go back were cut.
        record: Offset of the record.
        topic: The internal topic.
        partition: The column that has its partition.
    """
    frames = disputed(coverage.frames, topic)
    starts = {number: each.certain_end for number, each in frames.items()}
    words = {number: each.why(topic, number) for number, each in frames.items()}
    begins = _looked_up(starts, None, pl.Int64(), partition)
    return pl.when(record >= begins).then(_looked_up(words, None, pl.String(), partition))


def what_is_lost(
    coverage: Coverage, topic: str = CONSUMER_OFFSETS, partition: str = HOME
) -> pl.Expr:
    """Return in words what a row's partition lacks; null where that is nothing.

    Args:
        coverage: What the dump holds.
        topic: The internal topic.
        partition: The column that has its partition.
    """
    lost = coverage.losses_of_topic(topic)
    said = {number: lacks(topic, number, losses) for number, losses in lost.items()}
    return pl.col(partition).replace_strict(
        pl.Series(list(said), dtype=pl.Int32),
        pl.Series(list(said.values()), dtype=pl.String),
        default=None,
        return_dtype=pl.String,
    )


def uncompacted_from(coverage: Coverage, topic: str = CONSUMER_OFFSETS) -> pl.Expr:
    """Return the first offset behind all that compaction or a loss took; 0 where nothing is gone.

    Args:
        coverage: What the dump holds.
        topic: The internal topic whose partition `coordinator_partition` is.
    """
    return _starts(coverage.uncompacted_from, topic)


def lost_until(coverage: Coverage) -> pl.Expr:
    """Return the first offset behind all losses; 0 where nothing was lost. Compaction is no loss.

    Args:
        coverage: What the dump holds.
    """
    return _starts(coverage.complete_from)


def born_from(coverage: Coverage) -> pl.Expr:
    """Return the first offset where what has no earlier record had none; 0 where none is gone.

    The cleaner leaves the last record of every key. Where anything else took records, or nothing
    tells how far the cleaner has been, no first record is sure to be the first: `AFTER_ALL`.

    Args:
        coverage: What the dump holds.
    """
    return _starts(
        {key: coverage.cleaned_until.get(key, AFTER_ALL) for key in coverage.uncompacted_from}
    )


def of_partition(
    values: Mapping[int, int] | Mapping[int, str], kind: pl.DataType | None = None
) -> pl.Expr:
    """Return the number of a row's `coordinator_partition`; null where it has none."""
    return _looked_up(values, None, kind or pl.Int64())


def _starts(offsets: Mapping[tuple[str, int], int], topic: str = CONSUMER_OFFSETS) -> pl.Expr:
    of_topic = {number: start for (name, number), start in offsets.items() if name == topic}
    return _looked_up(of_topic, 0, pl.Int64())


def _looked_up(
    values: Mapping[int, int] | Mapping[int, str],
    default: int | None,
    kind: pl.DataType,
    partition: str = HOME,
) -> pl.Expr:
    numbers = pl.Series(list(values), dtype=pl.Int32)
    found = pl.Series(list(values.values()), dtype=kind)
    return pl.col(partition).replace_strict(numbers, found, default=default, return_dtype=kind)


def _ranges(losses: Sequence[Loss]) -> list[tuple[int, int]]:
    ranges = [(each.first, each.end) for each in losses]
    if len(ranges) <= _MOST_RANGES:
        return ranges
    return [*ranges[: _MOST_RANGES - 1], (ranges[_MOST_RANGES - 1][0], ranges[-1][1])]
