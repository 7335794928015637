"""Decoded tables read with Arrow, file by file in the order of the log."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from analytics.errors import WorkspaceError
from analytics.workspace import DECODED, reading
from schemas import record_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.workspace import Workspace

_TEXT: Final = "string"


def decoded_tables(topic: str) -> list[str]:
    """Return the decoded tables of an internal topic."""
    kinds = record_types(topic).values()
    return sorted({each.table for each in kinds if each.read == "decode"})


def record_batches(
    workspace: Workspace, topic: str, table: str, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield a decoded table of any size some rows at a time; texts of keys are dictionaries.

    Args:
        workspace: Where it is.
        topic: The internal topic whose table it is.
        table: Its name.
        columns: Those that are read, and the key; fields of a struct as ``value.offset``.

    Raises:
        WorkspaceError: A file is damaged, or lacks one of the columns.
    """
    kind = next(each for each in record_types(topic).values() if each.table == table)
    texts = [f"key.{each.column}" for each in kind.key.fields if str(each.type) == _TEXT]
    texts += [each for each in columns if each == "value.metadata"]
    wanted = [*columns, *(["key"] if kind.key.fields else [])]
    for path in _files(workspace, table):
        with reading(path):
            yield from _batches_of(_Source(path, workspace.filesystem, wanted, texts), wanted)


def rows_where(
    workspace: Workspace,
    table: str,
    columns: Sequence[str],
    where: Any = None,  # noqa: ANN401
) -> Iterator[pa.Table]:
    """Yield rows of a decoded table that fulfil a condition; statistics of files are heeded.

    Raises:
        WorkspaceError: A file is damaged.
    """
    path = workspace.path(f"{DECODED}/{table}")
    with reading(path):
        found = ds.dataset(path, filesystem=workspace.filesystem, format="parquet")
        for each in found.scanner(columns=list(columns), filter=where).to_batches():
            if each.num_rows:
                yield pa.Table.from_batches([each])


def from_offset(topic: str, partition: int, first: int, end: int | None = None) -> pc.Expression:
    """Return whether a record lies in a partition, from an offset on, below another."""
    here = (
        (pc.field("topic") == topic)
        & (pc.field("partition") == partition)
        & (pc.field("offset") >= first)
    )
    return here if end is None else here & (pc.field("offset") < end)


def _files(workspace: Workspace, table: str) -> list[str]:
    selector = fs.FileSelector(workspace.path(f"{DECODED}/{table}"), allow_not_found=True)
    found = workspace.filesystem.get_file_info(selector)
    return sorted(each.path for each in found if each.path.endswith(".parquet"))


class _Source:
    """A Parquet file, whose texts are read as the dictionaries they are stored as, where they are.

    A column of too many different texts is stored partly without one, which Arrow cannot give as
    a field of a struct.
    """

    def __init__(
        self, path: str, filesystem: fs.FileSystem, columns: Sequence[str], texts: Sequence[str]
    ) -> None:
        self._open = partial(pq.ParquetFile, path, filesystem=filesystem)
        self._file = self._open(read_dictionary=list(texts))
        _check_columns(path, self._file, columns)
        self.row_groups = self._file.num_row_groups

    def rows(self, row_group: int, columns: Sequence[str]) -> pa.Table:
        """Read one row group."""
        try:
            rows = self._file.read_row_group(row_group, columns=columns)
        except pa.ArrowNotImplementedError:
            self._file = self._open()
            rows = self._file.read_row_group(row_group, columns=columns)
        return rows


def _check_columns(path: str, file: pq.ParquetFile, columns: Sequence[str]) -> None:
    """Raise where a column is not there: Arrow leaves it out without a word."""
    there = [file.schema.column(number).path for number in range(len(file.schema))]
    lacking = [
        name
        for name in columns
        if not any(each == name or each.startswith(f"{name}.") for each in there)
    ]
    if lacking:
        raise WorkspaceError(
            f"{path} lacks {', '.join(lacking)}: another version of groupscope wrote it "
            "(make the workspace again)"
        )


def _batches_of(source: _Source, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield a file, reading a row group while the one before is looked at."""
    with ThreadPoolExecutor(max_workers=1) as reader:
        waiting: deque[Future[pa.Table]] = deque()
        for number in range(source.row_groups):
            waiting.append(reader.submit(source.rows, number, columns))
            if len(waiting) > 1:
                yield from _whole(waiting.popleft().result())
        for each in waiting:
            yield from _whole(each.result())


def _whole(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.combine_chunks().to_batches()
