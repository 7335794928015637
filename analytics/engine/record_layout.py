"""Records of a large dump laid out by bucket: a file is read once, whatever the number of buckets.

What is written lies in the staging folder, as Arrow files that are quick to write and to read, and
goes with it. A task writes a file for each bucket: with very many buckets that would be as many as
both multiplied. So records are laid into lots of buckets first, and then lot by lot.

A marker ends what a producer has committed, to whatever groups: it goes into each bucket in which
its producer committed something to that partition, and into no other.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import polars as pl
from pyarrow import fs

from analytics.contracts import polars_rows
from analytics.decode.chunks import CONTROL_TABLE
from analytics.engine.cut_tables import IN_BUCKETS, Cut, tables_of
from analytics.engine.part_runs import get_value, put_value
from analytics.locations import make_folder, open_location
from analytics.replay.history.partition_history import epochs_seen, merged_epochs
from analytics.tables.buckets import Bucket, BucketFiles, rows_of_bucket
from analytics.tables.record_keys import key_hash
from analytics.tables.record_reader import RecordFile
from analytics.workspace import reading
from schemas import CONSUMER_OFFSETS, record_types

_LEAST_TASK_BYTES: Final = 8 << 20
_MOST_TASK_BYTES: Final = 64 << 20
_MOST_TASKS: Final = 256
"""So many tasks lay records out before they are given more of them, as far as memory allows."""
_LOT_BYTES: Final = 64 << 20
"""Of decoded tables: what one task lays out of a lot, on average."""
MOST_PARTS: Final = 256
"""Into so many files a task divides the rows of a table."""
_ROW: Final = "row"
_BUCKET: Final = "bucket"
_PLACE: Final = ("topic", "partition", "offset", "timestamp", "key")
"""What tells whether a record counts, and its bucket."""
_COMMITS: Final = "offset_commit"
_PRODUCER: Final = ("partition", "producer_id")
_OF_PRODUCER: Final = ("producer_id", "is_transactional")
_PRODUCERS: Final = pl.Schema(
    {"partition": pl.Int32(), "producer_id": pl.Int64(), _BUCKET: pl.Int64()}
)
_NO_PRODUCER: Final = -1

Run = Callable[[str, int], Sequence[Any]]
"""Runs `run_task` of a place for so many numbers, in any order, anywhere."""


@dataclass(frozen=True)
class LaidRecords:
    """Records that were laid out.

    Attributes:
        place: The folder of all buckets.
        attempts: What names of the files there end with that count.
        marker_epochs: Of `epochs_seen`: what all markers tell.
    """

    place: str
    attempts: frozenset[str]
    marker_epochs: pl.DataFrame


@dataclass(frozen=True)
class RecordLayout:
    """Lays records out by what their keys name.

    Attributes:
        cut: What is read.
        tasks: Files that are read, task by task.
        buckets: Into which they are laid.
        place: The folder for them.
        producers: The folder for what producers committed into which buckets.
        width: Of so many buckets a lot is; one is the bucket itself.
    """

    cut: Cut
    tasks: Sequence[Sequence[RecordFile]]
    buckets: Sequence[Bucket]
    place: str
    producers: str
    width: int = 1

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.size for files in self.tasks for each in files)

    def run(self, number: int) -> str:
        """Lay out the files of one task; return what the names of this attempt's files end with."""
        attempt = uuid.uuid4().hex
        producers: list[pl.DataFrame] = []
        for index, each in enumerate(self.tasks[number]):
            topic = _topic_of(each.table)
            bucket = _bucket_of(each.table, topic, self.buckets).alias(_BUCKET)
            place = _PLACE if each.table != _COMMITS else (*_PLACE, *_OF_PRODUCER)
            with BucketFiles(self.place, each.table, f"{number}-{index}-{attempt}") as files:
                for rows in self.cut.reader.batches(each):
                    placed = polars_rows(rows.select(place)).with_row_index(_ROW)
                    kept = self.cut.cut_rows(each.table, placed.filter(pl.col("topic") == topic))
                    kept = kept.with_columns(bucket)
                    is_whole = kept.height == rows.num_rows
                    counting = rows if is_whole else rows.take(kept[_ROW].to_arrow())
                    files.add_rows(counting, (kept[_BUCKET] // self.width).to_numpy())
                    if each.table == _COMMITS:
                        producers.append(_producers_of(kept))
        _put_producers(self.producers, attempt, producers)
        return attempt


@dataclass(frozen=True)
class MarkersLaid:
    """What a task tells that laid markers out: `RecordLayout.run`, `LaidRecords`."""

    attempt: str
    epochs: pl.DataFrame


@dataclass(frozen=True)
class MarkerLayout:
    """Lays markers out by the producers whose transactions they end, and looks at their epochs.

    Attributes:
        cut: What is read.
        tasks: Files that are read, task by task.
        place: The folder of buckets, or of lots.
        producers: The folder in which it lies who committed into which buckets.
        attempts: Those whose files there count.
        width: Of so many buckets a lot is.
    """

    cut: Cut
    tasks: Sequence[Sequence[RecordFile]]
    place: str
    producers: str
    attempts: frozenset[str]
    width: int

    def run(self, number: int) -> MarkersLaid:
        """Lay out the files of one task."""
        attempt = uuid.uuid4().hex
        producers = _producers(self.producers, self.attempts)
        epochs = [epochs_seen({CONTROL_TABLE: self.cut.reader.empty(CONTROL_TABLE)})]
        with BucketFiles(self.place, CONTROL_TABLE, f"{number}-{attempt}") as files:
            for each in self.tasks[number]:
                for rows in self.cut.reader.batches(each):
                    markers = polars_rows(rows).filter(pl.col("topic").is_in(IN_BUCKETS))
                    markers = self.cut.cut_rows(CONTROL_TABLE, markers)
                    epochs.append(epochs_seen({CONTROL_TABLE: markers}))
                    of_groups = markers.filter(pl.col("topic") == CONSUMER_OFFSETS)
                    _add_markers(files, of_groups, producers, self.width)
        return MarkersLaid(attempt, merged_epochs(epochs))


@dataclass(frozen=True)
class LotLayout:
    """Lays the records of lots out, each into its buckets, or into lots of fewer.

    Attributes:
        source: The folder in which lots are laid out.
        attempts: What names of files there end with that count.
        producers: The folder in which it lies who committed into which buckets.
        shares: Tasks that divide the files of a lot among them.
        of: Of how many buckets the lots are.
        buckets: All buckets.
        place: The folder for what is written.
        width: Of so many buckets each of the new lots is.
    """

    source: str
    attempts: frozenset[str]
    producers: str
    shares: int
    of: int
    buckets: Sequence[Bucket]
    place: str
    width: int

    @property
    def count(self) -> int:
        """How many tasks there are."""
        return -(-len(self.buckets) // self.of) * self.shares

    def run(self, number: int) -> str:
        """Lay out a share of a lot; return what the names of this attempt's files end with."""
        attempt = uuid.uuid4().hex
        lot, share = divmod(number, self.shares)
        rows_of = partial(
            rows_of_bucket, self.source, lot, attempts=self.attempts, share=(share, self.shares)
        )
        for name in sorted(tables_of(IN_BUCKETS)):
            into = _bucket_of(name, _topic_of(name), self.buckets) // self.width
            with BucketFiles(self.place, name, f"{number}-{attempt}") as files:
                for rows in rows_of(table=name):
                    files.add(rows, into)
        producers = _producers(self.producers, self.attempts)
        of_lot = producers.filter(pl.col(_BUCKET) // self.of == lot)
        with BucketFiles(self.place, CONTROL_TABLE, f"{number}-{attempt}") as files:
            for rows in rows_of(table=CONTROL_TABLE):
                _add_markers(files, rows, of_lot, self.width)
        return attempt


def _producers_of(commits: pl.DataFrame) -> pl.DataFrame:
    """Return who committed into which buckets, each once."""
    is_producer = pl.col("producer_id").fill_null(_NO_PRODUCER) != _NO_PRODUCER
    is_transactional = pl.col("is_transactional").fill_null(value=False)
    return commits.filter(is_producer | is_transactional).select(*_PRODUCER, _BUCKET).unique()


def _put_producers(place: str, attempt: str, producers: Sequence[pl.DataFrame]) -> None:
    """Write what an attempt saw of producers, where it saw one."""
    there = [each for each in producers if each.height]
    if not there:
        return
    filesystem, root = open_location(place)
    make_folder(filesystem, root)
    with filesystem.open_output_stream(f"{root}/{attempt}.arrow") as sink:
        pl.concat(there).unique().write_ipc(sink)


def _producers(place: str, attempts: Collection[str]) -> pl.DataFrame:
    """Return what attempts saw of producers."""
    seen = [pl.DataFrame(schema=_PRODUCERS)]
    filesystem, root = open_location(place)
    with reading(place):
        for each in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
            if each.base_name.removesuffix(".arrow") in attempts:
                with filesystem.open_input_file(each.path) as source:
                    seen.append(pl.read_ipc(source.read()))
    return pl.concat(seen).unique()


def _add_markers(
    files: BucketFiles, markers: pl.DataFrame, producers: pl.DataFrame, width: int
) -> None:
    """Lay markers into each lot in which their producers committed something."""
    lots = producers.select(*_PRODUCER, pl.col(_BUCKET) // width).unique()
    placed = markers.join(lots, on=_PRODUCER, maintain_order="left")
    if placed.height:
        files.add(placed.drop(_BUCKET), pl.lit(placed[_BUCKET]))


def _topic_of(table: str) -> str:
    return next(
        topic
        for topic in IN_BUCKETS
        if any(kind.table == table for kind in record_types(topic).values())
    )


def _bucket_of(table: str, topic: str, buckets: Sequence[Bucket]) -> pl.Expr:
    """Return the number of the bucket that a record is in."""
    return bucket_number(key_hash(table, topic), topic, buckets)


def bucket_number(hashed: pl.Expr, topic: str, buckets: Sequence[Bucket]) -> pl.Expr:
    """Return the number of the bucket that something is in.

    Args:
        hashed: The hash of its group, or of its share partition: `key_hash`, `spread`.
        topic: The internal topic.
        buckets: All of them; where partitions of the topic have buckets of their own, rows have
            `partition`.
    """
    first: dict[int, int] = {}
    parts: dict[int, int] = {}
    rest, rest_parts = 0, 1
    for number, each in enumerate(buckets):
        if each.topic != topic:
            continue
        if each.is_rest:
            rest, rest_parts = number - each.part, each.parts
            continue
        for partition in each.partitions:
            first.setdefault(partition, number)
            parts[partition] = each.parts
    return _of(first, rest) + hashed % _of(parts, rest_parts)


def _of(numbers: Mapping[int, int], otherwise: int) -> pl.Expr:
    if not numbers:
        return pl.lit(otherwise, pl.Int64)
    return pl.col("partition").replace_strict(
        list(numbers), list(numbers.values()), default=otherwise, return_dtype=pl.Int64
    )


def widths(buckets: int, most: int) -> list[int]:
    """Return of how many buckets the lots are that each pass makes; the last ones are the buckets.

    Args:
        buckets: How many there are.
        most: Into so many files a task shall divide its rows at most.
    """
    passes = 1
    while most**passes < buckets:
        passes += 1
    fan_out = 1
    while fan_out**passes < buckets:
        fan_out += 1
    return [fan_out**left for left in reversed(range(passes))]


def lay_out(
    run: Run,
    cut: Cut,
    buckets: Sequence[Bucket],
    staging: str,
    tables: Collection[str] | None = None,
) -> LaidRecords:
    """Lay all records out by bucket, in as many passes as keep the number of files in bounds.

    Args:
        run: Runs the tasks.
        cut: What is read.
        buckets: All records, in parts that fit into memory.
        staging: The folder in which tasks write.
        tables: The decoded tables that are laid out beside markers; None is all of groups and share
            partitions.
    """
    names = tables_of(IN_BUCKETS) if tables is None else tables
    of, *further = widths(len(buckets), MOST_PARTS)
    place, producers = f"{staging}/records", f"{staging}/producers"
    records = RecordLayout(cut, _tasks(cut, names), buckets, place, producers, of)
    attempts = frozenset[str](_run(run, staging, records, len(records.tasks)))
    markers = MarkerLayout(cut, _tasks(cut, [CONTROL_TABLE]), place, producers, attempts, of)
    laid: Sequence[MarkersLaid] = _run(run, staging, markers, len(markers.tasks))
    attempts |= {each.attempt for each in laid}
    for width in further:
        lots = -(-len(buckets) // of)
        shares = max(-(-records.size // lots // _LOT_BYTES), 1)
        source, place = place, f"{staging}/records-{width}"
        lot = LotLayout(source, attempts, producers, shares, of, buckets, place, width)
        # Who committed where is told by the first attempts, also in the next pass.
        attempts |= frozenset[str](_run(run, staging, lot, lot.count))
        filesystem, path = open_location(source)
        if filesystem.get_file_info(path).type is fs.FileType.Directory:
            # No record may count at the instant: then nothing was laid out.
            filesystem.delete_dir(path)
        of = width
    return LaidRecords(place, attempts, merged_epochs(each.epochs for each in laid))


def _run(run: Run, staging: str, work: object, count: int) -> Sequence[Any]:
    return run(put_value(staging, work), count)


def _tasks(cut: Cut, tables: Iterable[str]) -> list[list[RecordFile]]:
    """Return the files of some tables, task by task; one task at least."""
    files = [each for name in sorted(tables) for each in cut.reader.files(name)]
    whole = sum(each.size for each in files)
    at_once = min(max(whole // _MOST_TASKS, _LEAST_TASK_BYTES), _MOST_TASK_BYTES)
    tasks: list[list[RecordFile]] = [[]]
    size = 0
    for each in files:
        if tasks[-1] and size + each.size > at_once:
            tasks.append([])
            size = 0
        tasks[-1].append(each)
        size += each.size
    return tasks


def run_task(place: str, number: int) -> Any:  # noqa: ANN401 - what the work of that place tells
    """Do one number of what was put into a place: a layout, or a pass over buckets."""
    return get_value(place).run(number)
