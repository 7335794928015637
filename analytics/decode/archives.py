"""All archived rows of a dump, of whichever format and however many files, decoded together."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from analytics.decode.archived_rows import decode_rows_on_spark
from analytics.decode.tasks import TASK_BYTES
from analytics.dump.files.storage import storage_of
from analytics.dump.records.raw_rows import read_keys, read_raw_rows
from analytics.dump.records.raw_rows_encoding import encoding_that_fits
from schemas import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from analytics.decode.archived_rows import ArchiveReport, RowsReport
    from analytics.decode.tasks import Settings
    from analytics.dump.copies.plan import PlanOptions
    from analytics.dump.records.raw_rows_files import RawRows

_MOST_TASKS = 200
_SAMPLE = 100


def decode_archives(
    spark: SparkSession,
    archives: Sequence[RawRows],
    settings: Settings,
    in_logs: frozenset[tuple[str, int]],
    options: PlanOptions,
) -> list[ArchiveReport]:
    """Decode archived rows; the same row may be in several files.

    Args:
        spark: The session.
        archives: Files, format by format.
        settings: Where parts are written, and what is wanted.
        in_logs: Partitions whose rows are not needed, because there are logs of them.
        options: What a person asked for.
    """
    if not archives:
        return []
    encoding, topics = options.value_encoding, options.topics
    frames = [
        read_raw_rows(spark, each.files, each.format, encoding, each.place) for each in archives
    ]
    wanted = tuple(topic for topic in INTERNAL_TOPICS if topics is None or topic in topics)
    size = sum(_size(path) for archive in archives for path in archive.files)
    tasks = max(1, min(_MOST_TASKS, size // TASK_BYTES))
    rows = reduce(lambda one, other: one.unionByName(other), frames)
    if options.partitions is not None:
        rows = rows.where(rows["partition"].isin(*options.partitions) | rows["partition"].isNull())
    return decode_rows_on_spark(rows, settings, wanted, tasks, in_logs)


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
