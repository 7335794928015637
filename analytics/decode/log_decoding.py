"""Logs decoded: what an earlier run has of them is kept, and the rest is decoded in tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from analytics.decode.decoded_pieces import TaskRows, piece_of
from analytics.decode.resumption import (
    DAMAGED,
    NOTHING_KEPT,
    Match,
    kept_rows,
    matches_of,
    rest_of,
    resumed_entry,
)
from analytics.decode.tasks import (
    SliceReport,
    TaskReport,
    decode_here,
    decode_on_spark,
    of_absolute_paths,
)
from analytics.errors import WorkspaceError
from analytics.spark_tasks import run_tasks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from analytics.decode.decoded_pieces import DecodedPiece, EarlierDecoding
    from analytics.decode.tasks import Settings
    from analytics.dump.files.model import Slice
    from schemas.manifest import ResumedEntry


@dataclass(frozen=True)
class Resumed:
    """An earlier run, and what of each slice of today's plan it decoded.

    Attributes:
        earlier: The run.
        matches: One a slice; None where they are still to be looked for.
    """

    earlier: EarlierDecoding
    matches: Sequence[Match] | None = None

    def of(self, slices: Sequence[Slice], spark: SparkSession | None = None) -> list[Match]:
        """Return one match a slice, looked for in tasks where there is a session."""
        if self.matches is not None:
            return list(self.matches)
        if spark is None:
            return matches_of(slices, self.earlier)
        return matches_of(of_absolute_paths(slices), self.earlier, partial(run_tasks, spark))

    def bytes_to_decode(self, slices: Sequence[Slice]) -> int:
        """Return how many bytes of slices an earlier run has not decoded."""
        rest = (rest_of(*pair) for pair in zip(slices, self.of(slices), strict=True))
        return sum(each.to_position - each.from_position for each in rest if each is not None)


@dataclass(frozen=True)
class DecodedLogs:
    """What came of slices.

    Attributes:
        tasks: Their files and what these were decoded of, in the order of slices.
        slices: What became of each, in their order.
        resumed: What of them an earlier run had; None where none was named.
    """

    tasks: list[TaskRows]
    slices: list[SliceReport]
    resumed: ResumedEntry | None


def decode_logs(
    spark: SparkSession | None,
    slices: Sequence[Slice],
    settings: Settings,
    resumed: Resumed | None = None,
) -> DecodedLogs:
    """Decode slices, but for what an earlier run decoded of them.

    Where that run's workspace turns out to be damaged, or is removed or made again meanwhile, all
    of them are decoded.

    Args:
        spark: The session; None decodes in this process.
        slices: What is read.
        settings: Where to, and what is wanted.
        resumed: The earlier run.

    Raises:
        ReadFailedError: A file could not be read where tasks were tried, and can be opened here.
    """
    nothing = [NOTHING_KEPT] * len(slices)
    matches = nothing if resumed is None else resumed.of(slices, spark)
    while True:
        rests = {
            number: rest
            for number, (each, match) in enumerate(zip(slices, matches, strict=True))
            if (rest := rest_of(each, match)) is not None
        }
        tasks = _numbered(_decoded(spark, [*rests.values()], settings), [*rests])
        reports = {each.number: each for task in tasks for each in task.slices}
        unsound = [n for n, each in reports.items() if matches[n].pieces and not each.is_sound]
        if not unsound:
            break
        # What lies before damage is judged with it: the whole slice is decoded.
        for number in unsound:
            matches[number] = Match(why=DAMAGED)
    rows = [(task.slices[0].number, _task_rows(task, rests, slices, matches)) for task in tasks]
    if resumed is not None:
        try:
            rows = [*kept_rows(spark, resumed.earlier, matches, settings), *rows]
        except WorkspaceError as error:
            refused = resumed.earlier.refused(str(error))
            return decode_logs(spark, slices, settings, Resumed(refused, nothing))
    whole = [
        match.report(number, reports.get(number)) if match.pieces else reports[number]
        for number, match in enumerate(matches)
    ]
    entry = None if resumed is None else resumed_entry(resumed.earlier, slices, matches)
    return DecodedLogs([each for _, each in sorted(rows, key=lambda row: row[0])], whole, entry)


def _decoded(
    spark: SparkSession | None, slices: Sequence[Slice], settings: Settings
) -> list[TaskReport]:
    if spark is None:
        return decode_here(slices, settings)
    return decode_on_spark(spark, slices, settings)


def _numbered(tasks: Sequence[TaskReport], numbers: Sequence[int]) -> list[TaskReport]:
    """Return reports with the numbers of slices as they were planned."""
    return [
        replace(task, slices=[replace(each, number=numbers[each.number]) for each in task.slices])
        for task in tasks
    ]


def _task_rows(
    task: TaskReport,
    rests: Mapping[int, Slice],
    slices: Sequence[Slice],
    matches: Sequence[Match],
) -> TaskRows:
    """Return what a task decoded, as a later run may keep it."""
    pieces: list[DecodedPiece] = []
    has_others = False
    for report in task.slices:
        match = matches[report.number]
        digest = match.sha256 if match.pieces else report.sha256
        if report.is_sound and digest:
            start = slices[report.number].from_position
            pieces.append(piece_of(rests[report.number], report, start, digest))
        elif not report.is_empty:
            has_others = True
    return TaskRows(tuple(pieces), tuple(task.parts), has_others)
