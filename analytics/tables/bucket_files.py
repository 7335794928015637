"""Arrow files of buckets: rows in any order are laid out so that each bucket is read by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import fs, ipc

from analytics.workspace import open_location

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENDS: Final = ".arrow"


class BucketFiles(ExitStack):
    """Files that stay open while rows of a table come, one for each bucket.

    ``{place}/{bucket}/{table}/{name}.arrow``; with several names several write at the same time.
    """

    def __init__(self, place: str, table: str, name: str = "rows") -> None:
        super().__init__()
        self._path = f"{place}/%d/{table}", f"{name}{_ENDS}"
        self._open: dict[int, ipc.RecordBatchFileWriter] = {}

    def add(self, rows: pl.DataFrame, bucket: pl.Expr) -> None:
        """Lay rows out; `bucket` is the number of each one's bucket."""
        numbers = rows.select(bucket).to_series().to_numpy()
        order = np.argsort(numbers, kind="stable")
        # In polars a text is moved by its view, once all are in one piece; here it is copied once.
        ordered = rows.rechunk()[order].to_arrow(compat_level=pl.CompatLevel.oldest())
        self._add_ordered(ordered, numbers[order])

    def add_rows(self, rows: pa.Table, numbers: NDArray[np.integer[Any]]) -> None:
        """Lay rows of Arrow out, each into the bucket of its number."""
        order = np.argsort(numbers, kind="stable")
        self._add_ordered(rows.combine_chunks().take(pa.array(order)), numbers[order])

    def _add_ordered(self, rows: pa.Table, numbers: NDArray[np.integer[Any]]) -> None:
        found, starts, counts = np.unique(numbers, return_index=True, return_counts=True)
        for bucket, start, count in zip(found, starts, counts, strict=True):
            self._write(int(bucket), rows.slice(int(start), int(count)))

    def _write(self, bucket: int, rows: pa.Table) -> None:
        if bucket not in self._open:
            folder, name = self._path
            filesystem, root = open_location(folder % bucket)
            filesystem.create_dir(root, recursive=True)
            sink = self.enter_context(filesystem.open_output_stream(f"{root}/{name}"))
            writer = ipc.new_file(sink, rows.schema, options=ipc.IpcWriteOptions(compression="lz4"))
            self._open[bucket] = self.enter_context(writer)
        self._open[bucket].write_table(rows)


def rows_of_bucket(
    place: str, bucket: int, table: str, attempts: Collection[str] | None = None
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table in a bucket, by the file that they are in.

    Args:
        place: The folder of all buckets.
        bucket: Its number.
        table: The table.
        attempts: What names of files end with that count: those of tasks that came to their end.
            Others were tried twice, or at the same time on two machines. None counts all.
    """
    filesystem, root = open_location(place)
    folder = fs.FileSelector(f"{root}/{bucket}/{table}", allow_not_found=True)
    for path in sorted(each.path for each in filesystem.get_file_info(folder)):
        if attempts is not None and path.removesuffix(_ENDS).rpartition("-")[2] not in attempts:
            continue
        with filesystem.open_input_file(path) as source:
            # Polars takes in many small batches twice as fast as Arrow does.
            yield pl.read_ipc(source.read())
