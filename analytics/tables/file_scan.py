"""Rows of files in batches, a file after the other.

A scan of all files at once reads a gigabyte ahead of whoever takes the batches, whatever readahead
it is given; so each file has a scan of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.workspace import reading

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
            scanned = each.scanner(
                schema=files.schema, columns=columns, filter=where, **A_FEW_AHEAD
            )
            yield from scanned.to_batches()
