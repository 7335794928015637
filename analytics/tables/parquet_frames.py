"""Parquet files on a disk, read by polars: a text that a file has once is held once, too.

Arrow makes a text of its own of each place of a dictionary's, and a frame is made of those: that
takes several times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

_AT_ONCE: Final = 500_000
"""So many rows are read together."""


@contextmanager
def errors_of_arrow() -> Iterator[None]:
    """Raise what polars cannot read as Arrow does: `reading` says of which file it is.

    Raises:
        ArrowInvalid: The file is damaged.
        KeyError: It has no such column.
    """
    try:
        yield
    except pl.exceptions.ColumnNotFoundError as error:
        raise KeyError(f"No match for FieldRef: {error}") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise pa.ArrowInvalid(str(error)) from error


def frames_of_file(path: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield columns of a file's rows, some at a time, in their order; nothing where it has no rows.

    Raises:
        ArrowInvalid: The file is damaged.
        KeyError: It has no such column.
    """
    with errors_of_arrow():
        rows = pl.scan_parquet(path, glob=False).select(columns)
        for first in range(0, pq.read_metadata(path).num_rows, _AT_ONCE):
            yield rows.slice(first, _AT_ONCE).collect()
