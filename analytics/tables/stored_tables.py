"""Tables of a workspace, read with Arrow: a question to finished tables starts no Spark.

Tables on their way into a workspace: equal bytes for equal rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from analytics.decode.selection import Selection, is_name, names_wanted
from analytics.errors import WorkspaceError
from analytics.locations import make_folder, open_location
from analytics.tables.parted_table import Order, PartedTable
from analytics.workspace import (
    DATA_LOGS,
    EVALUATIONS,
    HISTORY,
    STATE,
    Part,
    Workspace,
    reading,
    table_in,
)
from schemas import table

if TYPE_CHECKING:
    from analytics.workspace import Staging


# Rows of files in batches, a file after the other.
#
# A scan of all files at once reads a gigabyte ahead of whoever takes the batches, whatever
# readahead it is given; so each file has a scan of its own. And a dataset keeps the footers of all
# files that were looked at, a gigabyte of many small row groups: so each file is opened anew.

A_FEW_AHEAD: Final = {"batch_readahead": 4, "fragment_readahead": 1}


def batches_by_file(
    files: ds.Dataset,
    columns: Sequence[str] | Mapping[str, pc.Expression],
    where: pc.Expression | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files that fulfil a condition.

    Args:
        files: What is read.
        columns: Names, or expressions by name.
        where: The condition; None is all rows.

    Raises:
        WorkspaceError: A file is damaged.
    """
    for each in files.get_fragments():
        with reading(getattr(each, "path", "")):
            scanned = _opened_anew(each).scanner(
                schema=files.schema, columns=columns, filter=where, **A_FEW_AHEAD
            )
            yield from scanned.to_batches()


def count_by_file(files: ds.Dataset, where: pc.Expression | None = None) -> int:
    """Count the rows of files that fulfil a condition; None is all rows.

    Raises:
        WorkspaceError: A file is damaged.
    """
    rows = 0
    for each in files.get_fragments():
        with reading(getattr(each, "path", "")):
            scanned = _opened_anew(each).scanner(schema=files.schema, columns=[], filter=where)
            rows += scanned.count_rows()
    return rows


def _opened_anew(file: ds.Fragment) -> ds.Fragment:
    if not isinstance(file, ds.FileFragment):
        return file
    return file.format.make_fragment(file.path, file.filesystem, file.partition_expression)


EVERYTHING = Selection()
EVERY: Final = pc.scalar(value=True)
KINDS: Final = {
    "data_log": DATA_LOGS,
    "state": STATE,
    "history": HISTORY,
    "evaluation": EVALUATIONS,
}
"""Where tables of a kind are."""


@dataclass(frozen=True)
class StoredTables:
    """The tables of a workspace, as far as their groups and topics are wanted.

    Attributes:
        workspace: Where they are.
        selection: Of `group_id`, and of the `topic` of committed offsets.
    """

    workspace: Workspace
    selection: Selection = field(default=EVERYTHING)

    def has(self, *names: str) -> bool:
        """Return whether the workspace holds all of these tables."""
        return all(self._is_there(name) for name in names)

    def read(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        where: pc.Expression | None = None,
    ) -> pa.Table:
        """Read a table; columns and conditions are pushed down to its files.

        Args:
            name: Of a state, history or evaluation table ("committed_offsets").
            columns: The columns that are needed; None is all of the contract.
            where: Which rows are needed, beside the selection.

        Raises:
            WorkspaceError: The workspace has no such table.
        """
        with reading(self.workspace.path(folder_of(name))):
            return self._scanner(name, columns, where).to_table()

    def files(self, name: str) -> list[str]:
        """Return the files of a table."""
        return _files_of(self._dataset(name))

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield a table of any size, some rows at a time, in the order of its key.

        Texts are dictionaries: in a history few of them differ.

        Raises:
            WorkspaceError: The workspace has no such table.
        """
        with reading(self.workspace.path(folder_of(name))):
            texts = [each.name for each in table(name).columns if each.type == "string"]
            kind = ds.ParquetFileFormat(dictionary_columns=texts)
            found, wanted = self._there(name, kind), self.condition(name, None)
            for each in batches_by_file(found, _names(name, columns), wanted):
                yield pa.Table.from_batches([each])

    def names(self, name: str, column: str, beginning: str) -> set[str]:
        """Return the texts in a column of a table of any size that begin with another one.

        Raises:
            WorkspaceError: The workspace has no such table.
        """
        where = pc.starts_with(pc.field(column), beginning)
        pieces = self.pieces(name, [column], where)
        return {each for rows in pieces for each in pc.unique(rows[column]).to_pylist()}

    def pieces(
        self,
        name: str,
        columns: Sequence[str],
        where: pc.Expression = EVERY,
        files: Sequence[str] | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the rows of a table of any size that fulfil a condition, some at a time.

        The first piece has no rows: who puts pieces together has their columns in any case.

        Args:
            name: Of the table.
            columns: Those that are needed.
            where: The condition.
            files: Which of its files are read; None is all.

        Raises:
            WorkspaceError: The workspace has no such table.
        """
        with reading(self.workspace.path(folder_of(name))):
            every = self._there(name)
            yield pa.schema([every.schema.field(each) for each in columns]).empty_table()
            if files is not None and not files:
                return
            found = every if files is None else self._of_files(files, every.schema)
            wanted = self.condition(name, where)
            for each in batches_by_file(found, _names(name, columns), wanted):
                yield pa.Table.from_batches([each])

    def parted(self, name: str, order: Order) -> PartedTable:
        """Return a table whose files are in order each, whichever groups are wanted.

        Raises:
            WorkspaceError: The workspace has no such table.
        """
        place = self.workspace.table(folder_of(name))
        dataset = self._dataset(name)
        files = [f"{place}/{path.rpartition('/')[2]}" for path in _files_of(dataset)]
        return PartedTable(self._in_contract_order(name, dataset.schema), files, order)

    def count(self, *names: str, where: pc.Expression | None = None) -> int:
        """Return how many rows tables have together, those that fulfil a condition."""
        rows = 0
        for name in names:
            with reading(self.workspace.path(folder_of(name))):
                rows += count_by_file(self._there(name), self.condition(name, where))
        return rows

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table as its files have them, in the order of the contract."""
        return self._in_contract_order(name, self._dataset(name).schema)

    def _in_contract_order(self, name: str, schema: pa.Schema) -> pa.Schema:
        with reading(self.workspace.path(folder_of(name))):
            return pa.schema([schema.field(column.name) for column in table(name).columns])

    def _scanner(
        self,
        name: str,
        columns: Sequence[str] | None,
        where: pc.Expression | None,
    ) -> ds.Scanner:
        found = self._there(name)
        return found.scanner(columns=_names(name, columns), filter=self.condition(name, where))

    def condition(self, name: str, where: pc.Expression | None) -> pc.Expression | None:
        """Return which rows of a table are read: those that are wanted, and fulfil a condition."""
        wanted = where
        with reading(self.workspace.path(folder_of(name))):
            for each in self._selected(name):
                wanted = each if wanted is None else wanted & each
        return wanted

    def _selected(self, name: str) -> list[pc.Expression]:
        columns = {column.name for column in table(name).columns}
        chosen: list[pc.Expression] = []
        if "group_id" in columns and (self.selection.groups or self.selection.exclude_groups):
            chosen.append(self._of_groups(name))
        if {"topic", "committed_offset"} <= columns and self.selection.topics:
            topics = pc.unique(self._dataset(name).to_table(columns=["topic"])["topic"])
            wanted = names_wanted(topics.to_pylist(), self.selection.topics)
            chosen.append(pc.field("topic").isin(pa.array(wanted, pa.string())))
        return chosen

    def _of_groups(self, name: str) -> pc.Expression:
        include, exclude = self.selection.groups, self.selection.exclude_groups
        group = pc.field("group_id")
        if include and all(is_name(each) for each in (*include, *exclude)):
            wanted = [each for each in include if each not in exclude]
        else:
            distinct = pc.unique(self._dataset(name).to_table(columns=["group_id"])["group_id"])
            wanted = names_wanted(distinct.to_pylist(), include, exclude, self._groups)
        return group.isin(pa.array(wanted, pa.string()))

    @cached_property
    def _groups(self) -> frozenset[str]:
        """All groups there are: one may be called what looks like a pattern."""
        if not self._is_there("groups"):
            return frozenset()
        rows = self._dataset("groups").to_table(columns=["group_id"])
        return frozenset(rows["group_id"].to_pylist())

    def _is_there(self, name: str) -> bool:
        path = self.workspace.path(folder_of(name))
        return self.workspace.filesystem.get_file_info(path).type is fs.FileType.Directory

    def _there(
        self,
        name: str,
        kind: ds.FileFormat | None = None,
    ) -> ds.Dataset:
        found = self._dataset_or_none(name, kind)
        if found is None:
            raise WorkspaceError(f"{self.workspace.location} has no table {name}: replay it again")
        return found

    def _dataset(self, name: str) -> ds.Dataset:
        found = self._dataset_or_none(name)
        if found is None:
            path = self.workspace.path(folder_of(name))
            raise WorkspaceError(f"{path} cannot be read: it is gone (make the workspace again)")
        return found

    def _dataset_or_none(self, name: str, kind: ds.FileFormat | None = None) -> ds.Dataset | None:
        path = self.workspace.path(folder_of(name))
        with reading(path):
            return table_in(self.workspace.filesystem, path, kind=kind)

    def _of_files(self, files: Sequence[str], schema: pa.Schema) -> ds.Dataset:
        filesystem = self.workspace.filesystem
        return ds.dataset(list(files), schema=schema, filesystem=filesystem, format="parquet")


def _files_of(dataset: ds.Dataset) -> list[str]:
    return dataset.files if isinstance(dataset, ds.FileSystemDataset) else []


def _names(name: str, columns: Sequence[str] | None) -> list[str]:
    return list(columns or [column.name for column in table(name).columns])


def folder_of(name: str) -> str:
    """Return where in a workspace a state, history or evaluation table is."""
    return f"{KINDS[table(name).kind]}/{name}"


def write_rows(staging: Staging, name: str, rows: pa.Table) -> Part:
    """Write a table that is here."""
    return _written(staging, name, name, rows)


def _written(staging: Staging, file: str, name: str, rows: pa.Table) -> Part:
    filesystem, path = _place_for(staging, file)
    pq.write_table(without_labels(rows), path, filesystem=filesystem)
    return part_of(name, path, rows.num_rows)


def without_labels(rows: pa.Table) -> pa.Table:
    """Return rows without what the metadata of files says that they were read of.

    Arrow hands on the metadata of the first file of a table, and writes it into others: they would
    say that their rows are of the groups of that file (`GroupBucket`).
    """
    return rows.replace_schema_metadata(None)


def write_parts(staging: Staging, name: str, rows: PartedTable) -> list[Part]:
    """Write a table that may be too large to be held, a file for each of its parts; at least one.

    Each file is in order; who needs the order of all of them sorts, or merges.
    """
    if rows.condition is not None or not rows.parts:
        return [_write_pieces(staging, name, rows)]
    several = [name] if len(rows.parts) == 1 else [f"{name}-{n}" for n in range(len(rows.parts))]
    return [
        _copied(staging, file, name, part)
        if isinstance(part, str)
        else _written(staging, file, name, part)
        for file, part in zip(several, rows.parts, strict=True)
    ]


def _write_pieces(staging: Staging, name: str, rows: PartedTable) -> Part:
    filesystem, path = _place_for(staging, name)
    return part_of(name, path, _write_in_order(rows, filesystem, path))


def write_parquet(rows: PartedTable, location: str) -> None:
    """Write a table into one file, in its order, as its pieces come.

    Raises:
        OSError: It cannot be written.
        WorkspaceError: A part cannot be read.
    """
    filesystem, path = open_location(location)
    make_folder(filesystem, path.rpartition("/")[0])
    _write_in_order(rows, filesystem, path)


def _write_in_order(rows: PartedTable, filesystem: fs.FileSystem, path: str) -> int:
    """Return how many rows were written."""
    count, schema = 0, rows.schema.remove_metadata()
    with pq.ParquetWriter(path, schema, filesystem=filesystem) as writer:
        for each in rows.pieces():
            writer.write_table(each.cast(schema))
            count += each.num_rows
    return count


def _copied(staging: Staging, file: str, name: str, location: str) -> Part:
    filesystem, path = _place_for(staging, file)
    source, place = open_location(location)
    fs.copy_files(place, path, source_filesystem=source, destination_filesystem=filesystem)
    with filesystem.open_input_file(path) as written:
        return part_of(name, path, pq.read_metadata(written).num_rows)


def _place_for(staging: Staging, name: str) -> tuple[fs.FileSystem, str]:
    """Return where a file goes, in a folder that is there."""
    filesystem, path = staging.workspace.filesystem, staged_path(staging, name)
    make_folder(filesystem, path.rpartition("/")[0])
    return filesystem, path


def staged_file(staging: Staging, name: str) -> str:
    """Return where in the workspace a table is until it is published."""
    return f"{staging.name}/{name}.parquet"


def staged_path(staging: Staging, name: str) -> str:
    """Return the same, as the workspace's filesystem has it."""
    return staging.workspace.path(staged_file(staging, name))


def part_of(name: str, path: str, rows: int) -> Part:
    """Return the file of a table as what is published."""
    return Part(folder_of(name), path, rows)
