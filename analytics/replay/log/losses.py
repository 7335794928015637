"""What a dump holds of a log, where a lost record may lie, and the marks that say so on rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Self

import polars as pl

from analytics.contracts import AFTER_ALL
from analytics.dump.inspection.found_losses import Loss, lacks
from analytics.replay.log.log_times import Clocks, Frame, disputed
from analytics.replay.log.topic_homes import TopicHomes, internal_partition, is_one_of
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS, COORDINATOR_TOPICS

# What a dump holds, as far as the completeness of state and its causes rest on it.

_NO_BEGINNING = "its beginning is not in the dump"


@dataclass(frozen=True)
class Coverage:
    """Where the dump's edges are.

    Attributes:
        complete_from: By topic and partition, the offset from which on no record is missing;
            partitions not named are taken to be whole.
        partitions: How many partitions each internal topic has.
        absent: Which of them the dump has no copy of.
        uncompacted_from: By topic and partition, the offset from which on not even compaction took
            a record; partitions not named show all.
        cleaned_until: By topic and partition, how far the cleaner has been where nothing else took
            records: what has its first record from there on was not there before.
        data_topics: Whose partition directories the dump holds; None where other topics may be
            there too.
        losses: By topic and partition, where records are missing, in order; the last ends at
            `complete_from`. Where none are named, all before `complete_from` may be missing.
        undecided: Partitions of the offsets topic whose records are archived rows, which do not
            show transactions.
        frames: By topic and partition, where logs whose times go back were cut.
        homes: By internal topic where keys are looked for, of topics where that is not simply the
            partition that they lie in.
        leader_epochs: By topic and partition, the leader epochs that logs and checkpoints note,
            with their first offsets: those that had begun at the instant.
        clocks: By topic and partition, where clocks were set or wrong up to the instant.
        has_topic_filter: Offsets of topics that were not asked for were left out.
        believed_until: The last time that is believed of any record: a later one measures nothing.
        is_of_running: What is asked is what the coordinator that ran at the instant answered; else
            what one has that loads the log up to its end offsets.
    """

    complete_from: Mapping[tuple[str, int], int] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[str, frozenset[int]] = field(default_factory=dict)
    uncompacted_from: Mapping[tuple[str, int], int] = field(default_factory=dict)
    cleaned_until: Mapping[tuple[str, int], int] = field(default_factory=dict)
    data_topics: frozenset[str] | None = None
    losses: Mapping[tuple[str, int], Sequence[Loss]] = field(default_factory=dict)
    undecided: frozenset[int] = frozenset()
    frames: Mapping[tuple[str, int], Frame] = field(default_factory=dict)
    homes: Mapping[str, TopicHomes] = field(default_factory=dict)
    leader_epochs: Mapping[tuple[str, int], Mapping[int, int]] = field(default_factory=dict)
    clocks: Clocks = field(default_factory=dict)
    has_topic_filter: bool = False
    believed_until: datetime | None = None
    is_of_running: bool = False

    def losses_of_topic(self, topic: str) -> dict[int, Sequence[Loss]]:
        """Return by partition where records are missing; partitions not named are whole."""
        return {
            partition: self.losses.get((name, partition)) or [Loss(0, start, _NO_BEGINNING)]
            for (name, partition), start in self.complete_from.items()
            if name == topic and start > 0
        }

    @property
    def of_loading(self) -> Self:
        """What a coordinator lacks that loads these logs: not what is missing within a file."""
        left = {
            key: [each for each in losses if not each.is_within_file]
            for key, losses in self.losses.items()
        }
        starts = {key: each for key, each in self.complete_from.items() if left.get(key, True)}
        return replace(self, losses=left, complete_from=starts)


WHOLE = Coverage()
"""Nothing is known to be missing."""


# Whether a lost record may lie at a place in an internal partition: expressions of polars.
#
# Rows have the partition of the coordinator's log as `coordinator_partition`.

HOME: Final = "coordinator_partition"
_MOST_RANGES: Final = 32
"""So many losses of a partition are looked at one by one; more are taken together."""


def with_missing(rows: pl.DataFrame, missing: pl.Expr) -> pl.DataFrame:
    """Add `missing`, the reason in words, and `complete`; null or empty is complete."""
    # Step by step: a frame evaluates an expression as often as it is named.
    words = pl.col("missing")
    return (
        rows.with_columns(missing=missing)
        .with_columns(missing=pl.when(words != "").then(words))
        .with_columns(complete=words.is_null())
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


# Marks of what a dump lacks, on rows that rest on other rows, or on records of the past.
#
# What is said of a member rests on what is known of its group; a row of history rests on the
# records from its first to its last. Where those are marked, or records there may be lost, the
# row is marked with the same words.

MARKS: Final = ("complete", "missing")
"""The columns that mark a row: whether all is known, and what is lacking, in words."""


def with_marks_of(rows: pl.DataFrame, owners: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Mark rows with what is lacking of the rows of another table that they rest on.

    Args:
        rows: What they lack themselves may be in `missing`.
        owners: Has `key` and `missing`; where they have a key twice, one of them is lacking it.
        key: Columns of both.
    """
    lacking = owners.filter(pl.col("missing").is_not_null())
    own = [] if "missing" not in rows.columns else ["missing"]
    if lacking.is_empty():
        return rows if {*MARKS} <= {*rows.columns} else with_missing(rows, _joined(own))
    handed = lacking.group_by(key).agg(pl.col("missing").first().alias("handed_down"))
    joined = rows.join(handed, on=list(key), how="left", nulls_equal=True, maintain_order="left")
    reason = pl.col("handed_down")
    if own:
        reason = pl.when(reason.ne_missing(pl.col("missing"))).then(reason)
    return with_missing(joined, _joined([reason, *own])).drop("handed_down")


def with_marks_of_records(
    rows: pl.DataFrame,
    coverage: Coverage,
    first: str,
    last: str | None = None,
    *,
    log: str | None = None,
    partition: str = HOME,
) -> pl.DataFrame:
    """Mark rows of history for which a record may be lost from their first record to their last.

    A record of a line that may not have survived lies in a loss itself. Where the times of a log go
    back, rows that begin or end with a record between its two cuts are marked, too.

    Args:
        rows: What they lack already may be in `missing`.
        coverage: What the dump holds.
        first: The column of the offset of the first record.
        last: That of the last one, null where the row has no end; by default the first is the last.
        log: The column that has the internal topic; by default it is that of offsets.
        partition: The column that has its partition.
    """
    end = pl.col(first) if last is None else pl.col(last).fill_null(AFTER_ALL - 1)
    own = [] if "missing" not in rows.columns else ["missing"]

    newest = pl.max_horizontal(first, last or first)

    def lost(topic: str) -> list[pl.Expr]:
        found = []
        if coverage.losses_of_topic(topic):
            found = [lost_between(coverage, pl.col(first) - 1, end + 1, topic, partition)]
        if disputed(coverage.frames, topic):
            found.append(between_cuts(coverage, newest, topic, partition))
        return found

    if log is None:
        elsewhere = [of_disputed_home(coverage)] if "group_id" in rows.columns else []
        return with_missing(rows, _joined([*lost(CONSUMER_OFFSETS), *elsewhere, *own]))
    of_logs = [
        pl.when(pl.col(log) == topic).then(each)
        for topic in sorted({*COORDINATOR_TOPICS, CLUSTER_METADATA})
        for each in lost(topic)
    ]
    return with_missing(rows, _joined([*of_logs, *own]))


def _joined(reasons: Sequence[pl.Expr | str]) -> pl.Expr:
    if not reasons:
        return pl.lit(None, pl.String)
    return pl.concat_str(reasons, separator="; ", ignore_nulls=True)
