"""Archived rows on Spark: put in log order, told apart from their duplicates, decoded.

All of a dump together, of whichever format and however many files. Tasks take ranges of (topic,
partition, offset), so that a partition of many rows is the work of many; what each reports of its
stretch is put together in the order of the log.
"""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from analytics.decode.chunks import UNDECODED_TABLE, decode_chunk
from analytics.decode.frames import Failures
from analytics.decode.tables import Origin
from analytics.decode.tasks import TASK_BYTES, PartWriter, SliceReport
from analytics.decode.unplaced_rows import UnplacedRows, may_be_of_any_group, placed_rows, runs
from analytics.dump.batches.stretches import (
    ClockStep,
    Stretch,
    clock_steps,
    few_steps,
    in_order,
    stretches_in,
)
from analytics.dump.files.storage import storage_of
from analytics.dump.inspection.survey import NOT_ARCHIVED, NOT_DECODED, Gap
from analytics.dump.records.raw_rows import raw_records, read_archive, read_keys
from analytics.dump.records.raw_rows_columns import encoding_that_fits
from analytics.epoch_times import are_times
from analytics.spark_tasks import on_worker
from analytics.wire.cursor import Reason
from schemas import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame, SparkSession

    from analytics.decode.chunks import Decoded
    from analytics.decode.tasks import Settings
    from analytics.dump.copies.plan import PlanOptions
    from analytics.dump.records.raw_rows_files import RawRows
    from analytics.workspace import Part

PARTITION = ("topic", "partition")
ORDER = (*PARTITION, "offset")
_MOST_GAPS = 1000

_MOST_TASKS = 2000
"""Each reports the gaps of its stretch, some thousands at most, to the driver."""
_PLACE = "place"
_PARTITION_BITS, _OFFSET_BITS = 16, 45
"""Of `_PLACE`, a number by which rows are cut into ranges and sorted first."""
TASK_ROWS = 500_000
"""Rows of a table or a DataFrame, whose size nobody tells, that one task takes."""
_SAMPLE = 100


@dataclass
class RowsReport:
    """Where the archived rows of one partition went; times in milliseconds.

    Attributes:
        gaps: Offsets without a row, and rows that could not be decoded, in order.
        clock_steps: The rows before which a clock was set back; of one offset only a row that none
            contradicts counts.
        first_row: Offset and time of the first row that counts and has a time.
        last_row_ms: Time of the last one.
    """

    topic: str
    partition: int
    first_offset: int
    rows: int = 0
    end_offset: int = 0
    gaps: list[Gap] = field(default_factory=list)
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    stretches: tuple[Stretch, ...] = ()
    clock_steps: tuple[ClockStep, ...] = ()
    first_row: tuple[int, int] | None = None
    last_row_ms: int | None = None
    counts: SliceReport = field(default_factory=lambda: SliceReport(-1))

    def add(self, later: RowsReport) -> None:
        """Add the next stretch of the partition's log, whose offsets are all greater."""
        hole = Gap(self.end_offset, later.first_offset, NOT_ARCHIVED)
        between = [hole] if hole.first_offset < hole.end_offset else []
        self.gaps = _joined([*self.gaps, *between, *later.gaps])
        step: tuple[ClockStep, ...] = ()
        if later.first_row is not None:
            offset, at_ms = (np.array([each]) for each in later.first_row)
            step = clock_steps(offset, at_ms, self.last_row_ms)
        self.clock_steps = few_steps((*self.clock_steps, *step, *later.clock_steps))
        self.stretches = in_order((*self.stretches, *later.stretches))
        self.rows += later.rows
        self.end_offset = later.end_offset
        self.widen_times(later.first_timestamp, later.last_timestamp)
        self.first_row = self.first_row or later.first_row
        self.last_row_ms = self.last_row_ms if later.last_row_ms is None else later.last_row_ms
        self.counts.add(later.counts)

    def widen_times(self, first: int | None, last: int | None) -> None:
        """Widen the span of times by another one's."""
        times = [each for each in (self.first_timestamp, first) if each is not None]
        self.first_timestamp = min(times, default=None)
        times = [each for each in (self.last_timestamp, last) if each is not None]
        self.last_timestamp = max(times, default=None)


@dataclass(frozen=True)
class ArchiveReport:
    """Parts in the order of the log, and one report a partition of the internal topics."""

    parts: list[Part] = field(default_factory=list)
    partitions: list[RowsReport] = field(default_factory=list)
    unplaced: UnplacedRows = field(default_factory=UnplacedRows)


def decode_rows_on_spark(
    frame: DataFrame,
    settings: Settings,
    topics: tuple[str, ...],
    tasks: int | None,
    in_logs: frozenset[tuple[str, int]] = frozenset(),
) -> ArchiveReport:
    """Decode archived rows of some internal topics.

    Args:
        frame: Columns as ``read_raw_rows`` gives them.
        settings: Where parts are written, and what is wanted.
        topics: Whose rows are decoded.
        tasks: How many there are at most, which share all rows by ranges of `ORDER`; None for as
            many as the rows need.
        in_logs: Partitions that the dump has logs of, which tell more: their rows are only counted.
    """

    @on_worker
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = pickle.dumps(_run_partition(batches, settings, in_logs))
        yield pa.RecordBatch.from_pydict({"report": pa.array([report], pa.binary())})

    # A row without a topic may be of one of these.
    wanted = frame.where(frame["topic"].isin(*topics) | frame["topic"].isNull())
    with_places = wanted.withColumn(_PLACE, _place(topics))
    cuts = _cuts(with_places, tasks)
    # Spark's own ranges would read all of the rows for a sample, and it sorts by its first column
    # much faster than by several.
    spread = with_places.repartitionById(len(cuts) + 1, _range_of(F.col(_PLACE), cuts))
    # Rows of one offset lie side by side, the equal ones among them too, in whatever order they
    # were archived.
    ordered = spread.sortWithinPartitions(_PLACE, *ORDER, "unparsed", "key", "value", "timestamp")
    ordered = ordered.drop(_PLACE)
    rows = ordered.mapInArrow(run, "report binary").collect()
    return one_report(
        pickle.loads(row.report)  # noqa: S301 - our own workers wrote it
        for row in rows
    )


def _place(topics: Sequence[str]) -> Column:
    """Return a number that no row has greater than one behind it in `ORDER`; 0 without a place.

    What has more than its bits is taken together: then the columns of `ORDER` alone tell.
    """
    most_partition, most_offset = (1 << _PARTITION_BITS) - 1, (1 << _OFFSET_BITS) - 1
    topic = reduce(
        lambda rest, each: F.when(F.col("topic") == each[1], each[0]).otherwise(rest),
        enumerate(sorted(topics)),
        F.lit(0),
    )
    partition = F.least(F.col("partition"), F.lit(most_partition)).cast("long")
    offset = F.least(F.col("offset"), F.lit(most_offset))
    within = F.when(partition < most_partition, offset).otherwise(0)
    high = topic.cast("long") * (1 << _PARTITION_BITS) + partition
    return F.coalesce(high * (1 << _OFFSET_BITS) + within, F.lit(0))


def _cuts(with_places: DataFrame, tasks: int | None) -> list[int]:
    """Return the places, ascending, at which rows are cut into as many ranges as there are tasks.

    Columns of the place alone are read for that.
    """
    if tasks == 1:
        return []
    most = tasks or _MOST_TASKS
    shares = [each / most for each in range(1, most)]
    known = with_places.agg(
        F.count("*").alias("rows"),
        F.percentile_approx(_PLACE, shares, 10 * most).alias("places"),
    ).first()
    if known is None or not known["rows"]:
        return []
    needed = tasks or min(known["rows"] // TASK_ROWS, most)
    return sorted({known["places"][each * most // needed - 1] for each in range(1, needed)})


def _range_of(place: Column, cuts: Sequence[int], first: int = 0) -> Column:
    """Return the number of the range that a place is in, which begins at its cut."""
    if not cuts:
        return F.lit(first)
    middle = len(cuts) // 2
    return F.when(place < cuts[middle], _range_of(place, cuts[:middle], first)).otherwise(
        _range_of(place, cuts[middle + 1 :], first + middle + 1)
    )


def one_report(tasks: Iterable[ArchiveReport]) -> ArchiveReport:
    """Return what tasks report as one, in the order of the log as they are."""
    whole = ArchiveReport()
    partitions: dict[tuple[str, int], RowsReport] = {}
    for task in tasks:
        whole.parts.extend(task.parts)
        whole.unplaced.extend(task.unplaced)
        for each in task.partitions:
            key = each.topic, each.partition
            if key in partitions:
                partitions[key].add(each)
            else:
                partitions[key] = each
    for each in partitions.values():
        if each.first_offset:
            each.gaps = _joined([Gap(0, each.first_offset, NOT_ARCHIVED), *each.gaps])
    whole.partitions.extend(partitions.values())
    return whole


def _run_partition(
    batches: Iterator[pa.RecordBatch], settings: Settings, in_logs: frozenset[tuple[str, int]]
) -> ArchiveReport:
    reports: dict[tuple[str, int], RowsReport] = {}
    unplaced = UnplacedRows()
    with PartWriter(f"{settings.staging}/rows-{uuid.uuid4().hex[:12]}") as writer:
        for rows in _whole_offsets(placed_rows(batches, unplaced, writer)):
            for part in _of_one_partition(rows):
                report = _report_of(part, reports)
                if (report.topic, report.partition) in in_logs:
                    report.rows += part.num_rows
                    report.counts.left_out["in_a_log"] += part.num_rows
                else:
                    _decode(part, report, settings, writer)
        for report in reports.values():
            report.gaps = _joined(report.gaps)
        return ArchiveReport(writer.finish(), list(reports.values()), unplaced)


def _whole_offsets(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield sorted rows, all of one offset together: the last ones wait for the next batch."""
    held: pa.Table | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = pa.Table.from_batches([batch])
        rows = rows if held is None else pa.concat_tables([held, rows])
        first = int(_run_starts(rows, ORDER)[-1])
        if first:
            yield rows.slice(0, first)
        held = rows.slice(first)
    if held is not None:
        yield held


def _run_starts(rows: pa.Table, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Return where runs of rows begin that are equal in some columns."""
    changes = np.zeros(rows.num_rows - 1, np.bool_)
    for name in names:
        changes |= ~_equal_to_last(rows[name].combine_chunks())
    return np.append(0, np.flatnonzero(changes) + 1)


def _equal_to_last(values: pa.Array) -> NDArray[np.bool_]:
    """Return, for each value but the first, whether it equals the one before; nulls are equal."""
    last, this = values.slice(0, len(values) - 1), values.slice(1)
    same = pc.fill_null(pc.equal(last, this), fill_value=False)
    both_null = pc.and_(pc.is_null(last), pc.is_null(this))
    found: NDArray[np.bool_] = pc.or_(same, both_null).to_numpy(zero_copy_only=False)
    return found


def _of_one_partition(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Cut sorted rows where the topic or the partition changes."""
    bounds = [*_run_starts(rows, PARTITION).tolist(), rows.num_rows]
    for first, end in pairwise(bounds):
        yield rows.slice(first, end - first).combine_chunks().to_batches()[0]


def _report_of(rows: pa.RecordBatch, reports: dict[tuple[str, int], RowsReport]) -> RowsReport:
    topic, partition, first = (rows[name][0].as_py() for name in ORDER)
    if (topic, partition) not in reports:
        reports[topic, partition] = RowsReport(topic, partition, first)
    return reports[topic, partition]


def _decode(
    rows: pa.RecordBatch, report: RowsReport, settings: Settings, writer: PartWriter
) -> None:
    _measure(report, rows)
    repeated, conflicting = _repetitions(rows)
    report.counts.left_out["duplicate_copy"] += int(repeated.sum())
    _measure_clock(report, rows.filter(pa.array(~repeated & ~conflicting)))
    kept = rows.filter(pa.array(~repeated))
    decoded = decode_chunk(
        raw_records(kept),
        [],
        Origin(report.topic, report.partition),
        settings.selection,
        refused=_refused(kept, conflicting[~repeated]),
    )
    report.counts.counted(decoded)
    report.gaps += _undecoded(decoded)
    for table, batch in decoded.batches.items():
        writer.write(f"decoded/{table}", batch)


def _refused(rows: pa.RecordBatch, conflicting: NDArray[np.bool_]) -> Failures:
    """Return the rows that are not decoded: contradictions, and what is not in its encoding."""
    failures = Failures()
    failures.add(np.flatnonzero(conflicting), Reason.CONFLICTING_ROW, "another row has this offset")
    unparsed = rows["unparsed"].dictionary_encode()
    number = unparsed.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for place, detail in enumerate(unparsed.dictionary.to_pylist()):
        found = np.flatnonzero((number == place) & ~conflicting)
        failures.add(found, Reason.INVALID_ENCODING, detail)
    return failures


def _measure(report: RowsReport, rows: pa.RecordBatch) -> None:
    offset = rows["offset"].to_numpy()
    # What lies before its first row, the stretch before it tells.
    before = report.end_offset if report.rows else int(offset[0])
    ends = np.append(before, offset[:-1] + 1)
    holes = np.flatnonzero(offset > ends)
    report.gaps += [
        Gap(first, end, NOT_ARCHIVED)
        for first, end in zip(ends[holes].tolist(), offset[holes].tolist(), strict=True)
    ]
    report.rows += rows.num_rows
    report.end_offset = int(offset[-1]) + 1
    at_ms = rows["timestamp"].fill_null(-1).to_numpy(zero_copy_only=False)
    report.stretches = in_order((*report.stretches, *stretches_in(offset, offset + 1, at_ms)))
    timed = at_ms[are_times(at_ms)]
    if timed.size:
        report.widen_times(int(timed.min()), int(timed.max()))


def _measure_clock(report: RowsReport, rows: pa.RecordBatch) -> None:
    at_ms = rows["timestamp"].fill_null(-1).to_numpy(zero_copy_only=False)
    offset = rows["offset"].to_numpy()
    here = clock_steps(offset, at_ms, report.last_row_ms)
    report.clock_steps = few_steps((*report.clock_steps, *here))
    timed = np.flatnonzero(are_times(at_ms))
    if timed.size:
        first, last = int(timed[0]), int(timed[-1])
        report.first_row = report.first_row or (int(offset[first]), int(at_ms[first]))
        report.last_row_ms = int(at_ms[last])


def _undecoded(decoded: Decoded) -> list[Gap]:
    """Return the offsets of records that could not be decoded and may have been any."""
    found = decoded.batches.get(UNDECODED_TABLE)
    if found is None:
        return []
    lost = found["offset"].filter(may_be_of_any_group(found)).drop_null()
    return [Gap(first, end, NOT_DECODED) for first, end in runs(lost.to_numpy())]


def _joined(gaps: list[Gap]) -> list[Gap]:
    """Return gaps in order, those that touch as one; of too many of a kind the first become one."""
    joined: list[Gap] = []
    for kind in (NOT_ARCHIVED, NOT_DECODED):
        found: list[Gap] = []
        for each in sorted(gap for gap in gaps if gap.kind == kind):
            if found and each.first_offset <= found[-1].end_offset:
                found[-1] = found[-1]._replace(end_offset=each.end_offset)
            else:
                found.append(each)
        over = max(len(found) - _MOST_GAPS, 0)
        joined += [found[0]._replace(end_offset=found[over].end_offset)] if found else []
        joined += found[over + 1 :]
    return sorted(joined)


def _repetitions(rows: pa.RecordBatch) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return rows that repeat another one of their offset, and those that contradict another."""
    table = pa.Table.from_batches([rows])
    starts = _run_starts(table, ("offset",))
    equal = np.append(True, _equal_to_last(rows["key"]) & _equal_to_last(rows["value"]))
    equal[starts] = True
    is_whole = np.logical_and.reduceat(equal, starts)
    sizes = np.diff(np.append(starts, rows.num_rows))
    conflicting = np.repeat(~is_whole, sizes)
    first = np.zeros(rows.num_rows, np.bool_)
    first[starts] = True
    return ~first & ~conflicting, conflicting


def decode_archives(
    spark: SparkSession,
    archives: Sequence[RawRows],
    settings: Settings,
    in_logs: frozenset[tuple[str, int]],
    options: PlanOptions,
) -> ArchiveReport:
    """Decode archived rows; the same row may be in several files.

    Args:
        spark: The session.
        archives: Files, format by format.
        settings: Where parts are written, and what is wanted.
        in_logs: Partitions whose rows are not needed, because there are logs of them.
        options: What a person asked for.
    """
    if not archives:
        return ArchiveReport()
    encoding, topics = options.value_encoding, options.topics
    frames = [read_archive(spark, each, encoding) for each in archives]
    wanted = tuple(topic for topic in INTERNAL_TOPICS if topics is None or topic in topics)
    rows = reduce(lambda one, other: one.unionByName(other), frames)
    if options.partitions is not None:
        rows = rows.where(rows["partition"].isin(*options.partitions) | rows["partition"].isNull())
    return decode_rows_on_spark(rows, settings, wanted, _tasks(archives), in_logs)


def _tasks(archives: Sequence[RawRows]) -> int | None:
    """Return how many tasks the rows need: of files their bytes tell it; None of others."""
    if not all(each.files for each in archives):
        return None
    needed = sum(_size(path) for each in archives for path in each.files) // TASK_BYTES
    return max(1, min(_MOST_TASKS, needed))


def encoding_to_try(
    spark: SparkSession,
    archives: Sequence[RawRows],
    reports: Sequence[RowsReport],
    encoding: str | None,
) -> str | None:
    """Return the encoding that keys look like, where most rows could not be decoded as they are."""
    decoded = sum(each.counts.kinds.total() for each in reports)
    if sum(each.counts.undecoded.total() for each in reports) <= decoded:
        return None
    keys = [key for each in archives for key in read_keys(spark, each, INTERNAL_TOPICS, _SAMPLE)]
    found = encoding_that_fits(keys)
    return None if found == encoding else found


def _size(path: str) -> int:
    entry = storage_of(path).entry(path)
    return entry.size if entry else 0
