"""Decoded records of a workspace as frames of polars, as far as they are wanted.

They are those of the lines that are followed at the instant, of the groups and topics that are
asked for; `analytics.replay.log.log_times` cuts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final, Self

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from analytics.decode.chunks import UNDECODED_TABLE
from analytics.decode.selection import Selection, is_name, names_wanted
from analytics.decode.tables import table_schema
from analytics.replay.dump.followed_lines import is_before_swaps, is_elsewhere
from analytics.tables.decoded_records import from_offset, records_folder
from analytics.tables.record_keys import GROUPS, TOPICS, AtHome, key_columns, key_hash
from analytics.tables.stored_tables import A_FEW_AHEAD, EVERYTHING, batches_by_file
from analytics.workspace import BEFORE_SWAPS, DECODED, DIVERGED, Workspace, reading, table_in

if TYPE_CHECKING:
    from analytics.replay.dump.followed_lines import FollowedLine
    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.tables.buckets import Bucket

_OF_RECORDS: Final = ("unknown_tags", "record_bytes")
"""What only `decode` makes something of."""
_TIMES: Final = ["topic", "partition", "offset", "timestamp", "leader_epoch", "segment"]


@dataclass(frozen=True)
class RecordFile:
    """A Parquet file of a decoded table, its size in bytes, and what is wanted of it."""

    table: str
    path: str
    size: int
    condition: pc.Expression | None


@dataclass(frozen=True)
class RecordReader:
    """Reads the decoded records of a workspace.

    Attributes:
        source: The workspace with the decoded tables.
        lines: Followed instead of those that survived.
        selection: Of groups, and of topics that offsets are committed for.
        topics: Internal topics that are read; empty is all.
        partitions: Their partitions; empty is all.
        homes: By internal topic where its keys are looked for: what lies elsewhere is not read.
        before_swaps: Partitions of which the log is read that was before swap files.
    """

    source: Workspace
    lines: Sequence[FollowedLine] = ()
    selection: Selection = EVERYTHING
    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()
    homes: Mapping[str, TopicHomes] = field(default_factory=dict)
    before_swaps: Sequence[tuple[str, int]] = ()

    def table(self, name: str, bucket: Bucket | None = None) -> pl.DataFrame:
        """Read a decoded table with all columns that are about what it says.

        Args:
            name: The table ("offset_commit").
            bucket: Of which records; None is all.

        Raises:
            WorkspaceError: A file is damaged.
        """
        names = _read_of(table_schema(name))
        wanted = [*self._conditions(name), *_in_bucket(bucket)]
        found = [self.empty(name)]
        for where, conditions in self._on_lines(name):
            with reading(self.source.location):
                every = _all([*wanted, *conditions])
                scanned = where.scanner(columns=names, filter=every, **A_FEW_AHEAD)
                found += self._of_part(name, bucket, scanned)
        at_home = AtHome.of(name, self.homes)
        return pl.concat(found if at_home is None else map(at_home.only_records, found))

    @staticmethod
    def _of_part(name: str, bucket: Bucket | None, scanned: ds.Scanner) -> Iterator[pl.DataFrame]:
        """Yield the rows that are in the bucket's part of the keys; all where they have no key."""
        if bucket is None or bucket.parts == 1 or name not in key_columns(GROUPS):
            yield _frame(scanned.to_table())
            return
        is_in_it = key_hash(name, bucket.topic) % bucket.parts == bucket.part
        for each in scanned.to_batches():
            if each.num_rows:
                yield _frame(pa.Table.from_batches([each])).filter(is_in_it)

    def files(self, name: str) -> Iterator[RecordFile]:
        """Yield the files of a decoded table, with what is wanted of them."""
        for where, conditions in self._on_lines(name):
            every = _all([*self._conditions(name), *conditions])
            for path in where.files if isinstance(where, ds.FileSystemDataset) else ():
                yield RecordFile(name, path, self.source.filesystem.get_file_info(path).size, every)

    def batches(self, file: RecordFile) -> Iterator[pa.Table]:
        """Yield what is wanted of a file, some rows at a time.

        Raises:
            WorkspaceError: It is damaged.
        """
        schema, at_home = table_schema(file.table), AtHome.of(file.table, self.homes)
        with reading(file.path):
            whole = ds.dataset(
                file.path, schema=schema, filesystem=self.source.filesystem, format="parquet"
            )
            found = whole.scanner(columns=_read_of(schema), filter=file.condition, **A_FEW_AHEAD)
            for each in found.to_batches():
                if each.num_rows:
                    rows = pa.Table.from_batches([each])
                    yield rows if at_home is None else at_home.only_of_arrow(rows)

    def prepared(self) -> Self:
        """Match patterns to the names there are now: once, and not wherever this is sent."""
        _ = self._groups, self._topics
        return self

    def unfiltered(self) -> Self:
        """Return what reads the same logs, whichever groups and topics are asked for."""
        return replace(self, selection=EVERYTHING)

    def empty(self, name: str) -> pl.DataFrame:
        """Return a decoded table without rows."""
        return without_records(name)

    def rows(self, name: str, fields: Mapping[str, str], topic: str) -> pl.DataFrame:
        """Read fields of a decoded table.

        Args:
            name: The table ("offset_commit").
            fields: What is read, by column: ``value.offset``; with `PLACE` it can be cut.
            topic: The internal topic that is read: of markers there are several.

        Returns:
            The columns.

        Raises:
            WorkspaceError: A file is damaged.
        """
        at_home = AtHome.of(name, self.homes)
        with reading(self.source.location):
            found = self._scans(name, _with(fields, at_home), topic)
            rows = (_frame(at.to_table(columns, every)) for at, columns, every in found)
            return pl.concat(rows if at_home is None else map(at_home.only, rows))

    def pieces(self, name: str, fields: Mapping[str, str], topic: str) -> Iterator[pl.DataFrame]:
        """Yield the same, some rows at a time; at least one frame."""
        at_home = AtHome.of(name, self.homes)
        rows = self._all_pieces(name, _with(fields, at_home), topic)
        yield from rows if at_home is None else map(at_home.only, rows)

    def key_places(self, name: str, topic: str) -> Iterator[pl.DataFrame]:
        """Yield `key` (the group) and `partition` of the records, each pair once or more.

        A group is written once a row group and numbered: what is read are the numbers.

        Args:
            name: The table.
            topic: The internal topic that is read.
        """
        field = f"key.{key_columns(GROUPS)[name]}"
        for where, columns, every in self._scans(
            name, {"key": field, "partition": "partition"}, topic
        ):
            files = where.files if isinstance(where, ds.FileSystemDataset) else []
            is_filtered = bool(
                self.lines or self.before_swaps or any(True for _ in self._conditions(name))
            )
            for path in [] if is_filtered else files:
                with reading(path):
                    yield from _numbered_keys(path, self.source.filesystem, field, topic)
            if is_filtered:
                yield _frame(where.to_table(columns, every))

    def _all_pieces(
        self, name: str, fields: Mapping[str, str], topic: str
    ) -> Iterator[pl.DataFrame]:
        with reading(self.source.location):
            for where, columns, every in self._scans(name, fields, topic):
                yield _frame(where.scanner(columns=columns).projected_schema.empty_table())
                for batch in batches_by_file(where, columns, every):
                    if batch.num_rows:
                        yield _frame(pa.Table.from_batches([batch]))

    def _scans(
        self, name: str, fields: Mapping[str, str], topic: str
    ) -> Iterator[tuple[ds.Dataset, dict[str, pc.Expression], pc.Expression]]:
        """Yield where records are, the columns that are read, and of which rows."""
        columns = {column: pc.field(*field.split(".")) for column, field in fields.items()}
        for where, conditions in self._on_lines(name):
            every = reduce(and_, [pc.field("topic") == topic, *self._conditions(name), *conditions])
            yield where, columns, every

    def table_where(
        self, name: str, columns: Sequence[str], where: pc.Expression | None
    ) -> pl.DataFrame:
        """Read columns of the records that fulfil a condition; statistics of files are heeded."""
        found = [self.empty(name).select(columns)]
        for each, conditions in self._on_lines(name):
            with reading(self.source.location):
                every = _all([*([] if where is None else [where]), *conditions])
                found.append(_frame(each.to_table(columns=list(columns), filter=every)))
        return pl.concat(found)

    def times(self, name: str) -> Iterator[pl.DataFrame]:
        """Yield where and when the records of a decoded table were written, wanted or not."""
        for where, conditions in self._on_lines(name):
            with reading(self.source.location):
                for batch in batches_by_file(where, _TIMES, _all(conditions)):
                    if batch.num_rows:
                        yield _frame(pa.Table.from_batches([batch]))

    def counts(self, names: Iterable[str]) -> dict[int, int]:
        """Return how many records of decoded tables each partition has, wanted or not."""
        found: Counter[int] = Counter()
        for name in names:
            for where, _ in self._on_lines(name):
                for batch in batches_by_file(where, ["partition"]):
                    for row in pc.value_counts(batch["partition"]).to_pylist():
                        found[row["values"]] += row["counts"]
        return dict(found)

    def count(self, names: Iterable[str], where: pc.Expression | None = None) -> int:
        """Return how many records the files of decoded tables hold, those that fulfil a condition.

        Without one none is read; with one statistics are heeded.
        """
        with reading(self.source.path(DECODED)):
            return sum(
                each.count_rows(filter=where) for name in names for each, _ in self._on_lines(name)
            )

    def _on_lines(self, name: str) -> Iterator[tuple[ds.Dataset, Sequence[pc.Expression]]]:
        """Yield where records are: what survived, and of a line that is followed what that has."""
        lines = self.lines
        left = [~from_offset(each.topic, each.partition, each.diverges_at) for each in lines]
        if name == UNDECODED_TABLE:
            # Damaged bytes between batches have no offset; they stay with the line that survived.
            left = [pc.field("offset").is_null() | each for each in left]
        if self.before_swaps:
            before = self._dataset(f"{BEFORE_SWAPS}/{DECODED}/{name}", name)
            if before is not None:
                yield before, [*left, is_before_swaps(self.before_swaps)]
            left = [*left, is_elsewhere(self.before_swaps)]
        surviving = self._dataset(f"{DECODED}/{name}", name)
        yield surviving or ds.dataset(table_schema(name).empty_table()), left
        for line in lines:
            for piece in line.pieces:
                other = self._dataset(f"{DIVERGED}/{piece.copy}/{DECODED}/{name}", name)
                if other is not None:
                    yield other, [from_offset(line.topic, line.partition, piece.first, piece.end)]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was opened: it would be read to be sent, and tasks open what they read."""
        return {key: value for key, value in self.__dict__.items() if key != "_opened"}

    @cached_property
    def _opened(self) -> dict[str, ds.Dataset | None]:
        return {}

    def _dataset(self, folder: str, name: str) -> ds.Dataset | None:
        """Return the files of a table, None where it has none; they keep what footers say."""
        if folder not in self._opened:
            self._opened[folder] = self._open_dataset(folder, name)
        return self._opened[folder]

    def _open_dataset(self, folder: str, name: str) -> ds.Dataset | None:
        source = self.source
        path = records_folder(source, folder)
        if path is None:
            return None
        with reading(path):
            return table_in(source.filesystem, path, table_schema(name))

    def _conditions(self, name: str) -> Iterator[pc.Expression]:
        """Yield which records of a table are of the groups and topics that are asked for."""
        if self.topics:
            yield pc.field("topic").isin(pa.array(self.topics, pa.string()))
        if self.partitions:
            yield pc.field("partition").isin(pa.array(self.partitions, pa.int32()))
        if self._groups is not None and name in key_columns(GROUPS):
            yield pc.field("key", key_columns(GROUPS)[name]).isin(self._groups)
        if self._topics is not None and name in key_columns(TOPICS):
            yield pc.field("key", key_columns(TOPICS)[name]).isin(self._topics)

    @cached_property
    def _groups(self) -> pa.Array | None:
        selection = self.selection
        return self._names(GROUPS, selection.groups, selection.exclude_groups)

    @cached_property
    def _topics(self) -> pa.Array | None:
        return self._names(TOPICS, self.selection.topics, ())

    def _names(
        self, fields: Sequence[str], include: Sequence[str], exclude: Sequence[str]
    ) -> pa.Array | None:
        """Return the names that are wanted; None where all are."""
        if not (include or exclude):
            return None
        if include and all(is_name(each) for each in (*include, *exclude)):
            return pa.array([each for each in include if each not in exclude], pa.string())
        # Patterns are Python's: each distinct name is matched once.
        every: set[str] = set()
        for name, column in key_columns(fields).items():
            for where, _ in self._on_lines(name):
                names = {"name": pc.field("key", column)}
                for batch in batches_by_file(where, names):
                    every.update(pc.unique(batch["name"]).to_pylist())
        return pa.array(sorted(names_wanted(every, include, exclude, every)), pa.string())


def _numbered_keys(
    path: str, filesystem: fs.FileSystem, field: str, topic: str
) -> Iterator[pl.DataFrame]:
    with (
        reading(path),
        pq.ParquetFile(path, filesystem=filesystem, read_dictionary=[field]) as file,
    ):
        for number in range(file.num_row_groups):
            group = file.read_row_group(number, columns=["topic", "partition", field])
            for batch in group.filter(pc.equal(group["topic"], topic)).to_batches():
                if not batch.num_rows:
                    continue
                keys, here = batch["key"].field(0), pl.Series(batch["partition"])
                names = pl.DataFrame({"key": pl.Series(keys.dictionary)})
                if here.min() == here.max():
                    # A file is of a segment, and so of one partition.
                    yield names.with_columns(partition=pl.lit(here.min(), pl.Int32()))
                    continue
                numbers = pl.Series(keys.indices).cast(pl.UInt32)
                pairs = pl.DataFrame({"number": numbers, "partition": here}).unique()
                yield names[pairs["number"]].with_columns(pairs["partition"])


def _with(fields: Mapping[str, str], at_home: AtHome | None) -> Mapping[str, str]:
    return fields if at_home is None else {**fields, **at_home.fields}


def _read_of(schema: pa.Schema) -> list[str]:
    return [each for each in schema.names if each not in _OF_RECORDS]


@cache
def without_records(name: str) -> pl.DataFrame:
    """Return a decoded table without rows, with all columns that are about what it says."""
    schema = table_schema(name)
    return _frame(schema.empty_table().select(_read_of(schema)))


def _in_bucket(bucket: Bucket | None) -> Iterator[pc.Expression]:
    """Yield which records may be in a bucket: those of its partitions."""
    if bucket is not None:
        named = pc.field("partition").isin(pa.array(bucket.partitions, pa.int32()))
        yield (pc.field("topic") == bucket.topic) & (~named if bucket.is_rest else named)


def _all(conditions: Sequence[pc.Expression]) -> pc.Expression | None:
    return reduce(and_, conditions) if conditions else None


def _frame(rows: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame
