"""Rows that an earlier run decoded, in the workspace of this one: whole files, or some rows."""

from __future__ import annotations

import os
import shutil
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from analytics.decode.decoded_pieces import TaskRows
from analytics.decode.tasks import ROWS_PER_GROUP, PartWriter
from analytics.errors import WorkspaceError
from analytics.locations import make_folder, open_location
from analytics.spark_tasks import run_tasks
from analytics.workspace import Part, Workspace, reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from analytics.decode.decoded_pieces import DecodedPiece, DecodedTask, EarlierDecoding, PartFile
    from analytics.decode.resumption import Match
    from analytics.decode.tasks import Settings

_Place = tuple[tuple[str, str, str], int]
"""A piece: its file and where it begins."""


def kept_rows(
    spark: SparkSession | None,
    earlier: EarlierDecoding,
    matches: Sequence[Match],
    settings: Settings,
) -> list[tuple[int, TaskRows]]:
    """Bring what is kept of an earlier run into the staging folder.

    Files of which all pieces are kept are linked where the file system knows links, else copied; of
    others the rows of those pieces are written anew.

    Args:
        spark: The session; None does all in this process.
        earlier: What was decoded.
        matches: Of each slice that is read.
        settings: Where to.

    Returns:
        Of each task of the earlier run of which something is kept the number of the first slice
        that it has rows of, and what it has.

    Raises:
        WorkspaceError: A file of the earlier workspace is damaged or gone, or another run has made
            it again meanwhile: nothing that was brought counts.
    """
    numbers: dict[_Place, int] = {}
    for number, match in enumerate(matches):
        numbers.update({_place(piece): number for piece in match.pieces})
    kept: list[tuple[int, TaskRows]] = []
    parted: list[tuple[tuple[DecodedPiece, ...], DecodedTask]] = []
    for place, task in enumerate(earlier.tasks):
        pieces = tuple(piece for piece in task.pieces if _place(piece) in numbers)
        if pieces and len(pieces) == len(task.pieces) and not task.has_others:
            folder = f"{settings.staging}/kept-{place:05d}"
            kept.append((_first(pieces, numbers), TaskRows(pieces, _linked(earlier, task, folder))))
        elif pieces:
            parted.append((pieces, task))
    write = partial(_written, earlier.space.location, parted, settings)
    written = (
        [write(number) for number in range(len(parted))]
        if spark is None
        else run_tasks(spark, len(parted), write)
    )
    for (pieces, _), parts in zip(parted, written, strict=True):
        kept.append((_first(pieces, numbers), TaskRows(pieces, tuple(parts))))
    if kept:
        # Files of other rows may have had the same names when they were linked or read.
        earlier.check_unchanged()
    return kept


def _place(piece: DecodedPiece) -> _Place:
    return piece.file, piece.from_position


def _first(pieces: Iterable[DecodedPiece], numbers: Mapping[_Place, int]) -> int:
    return min(numbers[_place(each)] for each in pieces)


def _linked(earlier: EarlierDecoding, task: DecodedTask, folder: str) -> tuple[Part, ...]:
    """Return the files of a task as parts of this run."""
    filesystem, root = open_location(folder)
    make_folder(filesystem, root)
    parts = []
    for number, file in enumerate(task.files):
        part = Part(file.table, f"{root}/{number:03d}.parquet", file.rows)
        with reading(earlier.space.path(file.path)):
            _link(earlier.space, file, filesystem, part.path)
        parts.append(part)
    return tuple(parts)


def _link(space: Workspace, file: PartFile, filesystem: fs.FileSystem, target: str) -> None:
    source = space.path(file.path)
    is_local = all(isinstance(each, fs.LocalFileSystem) for each in (space.filesystem, filesystem))
    if not is_local:
        fs.copy_files(
            source,
            target,
            source_filesystem=space.filesystem,
            destination_filesystem=filesystem,
        )
        return
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise WorkspaceError(f"{source} is gone") from None
    except OSError:
        # Another disk, or one that knows no links.
        shutil.copyfile(Path(source), Path(target))


def _written(
    location: str,
    parted: Sequence[tuple[tuple[DecodedPiece, ...], DecodedTask]],
    settings: Settings,
    number: int,
) -> list[Part]:
    """Write the rows of some pieces of a task into files of their own."""
    space = Workspace(location)
    pieces, task = parted[number]
    with PartWriter(settings.attempt("parted", number)) as writer:
        for file in task.files:
            folder = file.table.rpartition("/")[0]
            own = [each for each in pieces if settings.folder(each.line) == folder]
            path = space.path(file.path)
            with reading(path):
                content = pq.ParquetFile(path, filesystem=space.filesystem)
                batches = content.iter_batches(ROWS_PER_GROUP) if own else ()
                for batch in batches:
                    rows = batch.filter(_is_of(batch, own))
                    if rows.num_rows:
                        writer.write(file.table, rows)
        return writer.finish()


def _is_of(batch: pa.RecordBatch, pieces: Sequence[DecodedPiece]) -> pa.Array:
    """Mark the rows that were decoded of pieces."""
    position = batch["batch_position"]
    wanted = pa.array([False] * batch.num_rows, pa.bool_())
    for each in pieces:
        here = pc.and_(pc.equal(batch["copy"], each.copy), pc.equal(batch["segment"], each.segment))
        here = pc.and_(here, pc.greater_equal(position, each.from_position))
        here = pc.and_(here, pc.less(position, each.end_position))
        wanted = pc.or_(wanted, here)
    return wanted


def all_parts(tasks: Iterable[TaskRows]) -> list[Part]:
    """Return the files of tasks, in their order."""
    return list(chain.from_iterable(each.parts for each in tasks))
