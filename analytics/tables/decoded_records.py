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

from analytics.errors import CannotTellError, WorkspaceError
from analytics.locations import is_uri
from analytics.workspace import DECODED, MANIFEST, Workspace, reading
from schemas import record_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# Where the decoded tables of a workspace are: a replay of one into another leaves them there.


def refuse_without_records(workspace: Workspace) -> None:
    """Refuse to ask a workspace that has no decoded records.

    Raises:
        CannotTellError: It was redacted: they were left out with the names; or it is of a dialect.
    """
    if workspace.manifest().get("redacted"):
        raise CannotTellError(
            f"{workspace.location} has no decoded records: it was redacted; its page and tables "
            "can be read (groupscope report), questions are for the dump"
        )


def decoded_workspace(workspace: Workspace) -> Workspace:
    """Return the workspace that holds the decoded tables of one.

    It is the same one where these are in it, or where the other is no longer there.
    """
    if _is(workspace, DECODED, fs.FileType.Directory):
        return workspace
    location = _decoded_in(workspace)
    if location is None:
        return workspace
    other = Workspace(location)
    return other if _is(other, MANIFEST, fs.FileType.File) else workspace


def _decoded_in(workspace: Workspace) -> str | None:
    replay = workspace.manifest().get("replay")
    return None if replay is None else replay.get("decoded_in")


def has_records(workspace: Workspace) -> bool:
    """Return whether the decoded tables of a workspace are in it, or where it says they are."""
    return _is(decoded_workspace(workspace), DECODED, fs.FileType.Directory)


def records_folder(source: Workspace, folder: str) -> str | None:
    """Return the path of a decoded table; None where no record was decoded into it.

    Args:
        source: The workspace with the decoded tables.
        folder: Where the table is in it ("decoded/offset_commit").

    Raises:
        WorkspaceError: The workspace has no decoded tables at all: what they hold is not known.
    """
    if _is(source, folder, fs.FileType.Directory):
        return source.path(folder)
    refuse_without_tables(source)
    return None


def refuse_without_tables(source: Workspace) -> None:
    """Refuse to take a workspace without decoded tables for one of a dump without records.

    Raises:
        WorkspaceError: It has none, though nobody left them out with the names.
    """
    if _is(source, DECODED, fs.FileType.Directory) or source.manifest().get("redacted"):
        return
    where = _decoded_in(source)
    gone = "" if where is None else f": they were in {where}, which is no workspace any more"
    raise WorkspaceError(
        f"{source.location} has no decoded records{gone}; name the dump, not the workspace"
    )


def absolute(workspace: Workspace) -> str:
    """Return where a workspace is, from wherever that is read."""
    return workspace.location if is_uri(workspace.location) else workspace.root


def _is(workspace: Workspace, name: str, kind: fs.FileType) -> bool:
    return workspace.filesystem.get_file_info(workspace.path(name)).type is kind


_TEXT: Final = "string"


def decoded_tables(topic: str) -> list[str]:
    """Return the decoded tables of an internal topic."""
    kinds = record_types(topic).values()
    return sorted({each.table for each in kinds if each.read == "decode"})


def record_batches(
    workspace: Workspace,
    topic: str,
    table: str,
    columns: Sequence[str],
    paths: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield a decoded table of any size some rows at a time; texts of keys are dictionaries.

    Args:
        workspace: Where it is.
        topic: The internal topic whose table it is.
        table: Its name.
        columns: Those that are read, and the key; fields of a struct as ``value.offset``.
        paths: Its files that are read, of `record_files`; None is all.

    Raises:
        WorkspaceError: A file is damaged, or lacks one of the columns.
    """
    kind = next(each for each in record_types(topic).values() if each.table == table)
    texts = [f"key.{each.column}" for each in kind.key.fields if str(each.type) == _TEXT]
    texts += [each for each in columns if each == "value.metadata"]
    wanted = [*columns, *(["key"] if kind.key.fields else [])]
    for path in record_files(workspace, table) if paths is None else paths:
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


def record_files(workspace: Workspace, table: str) -> dict[str, int]:
    """Return the files of a decoded table in their order, with their bytes."""
    selector = fs.FileSelector(workspace.path(f"{DECODED}/{table}"), allow_not_found=True)
    found = workspace.filesystem.get_file_info(selector)
    sizes = {each.path: each.size for each in found if each.path.endswith(".parquet")}
    return dict(sorted(sizes.items()))


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
