"""Decoded records of one table that count at the instant asked about, read with Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

if TYPE_CHECKING:
    from jobs.replayed import Replayed


def records_at(replayed: Replayed, name: str, columns: Sequence[str]) -> pa.Table:
    """Return the records of a decoded table in order of offset.

    Args:
        replayed: Says the instant, and where decoded tables are.
        name: Of the decoded table.
        columns: What is needed; `partition` and `offset` are there too.

    Returns:
        No rows where the workspace holds no decoded tables.
    """
    source = replayed.source
    path = source.path(f"decoded/{name}")
    needed = list(dict.fromkeys(["topic", "partition", "offset", "timestamp", *columns]))
    if source.filesystem.get_file_info(path).type is not fs.FileType.Directory:
        return pa.table({column: pa.array([], pa.null()) for column in needed})
    records = ds.dataset(path, filesystem=source.filesystem, format="parquet")
    time = replayed.as_of["time"]
    where = None
    if time is not None:
        stamp = pa.scalar(datetime.fromisoformat(time), records.schema.field("timestamp").type)
        where = pc.field("timestamp").is_null() | (pc.field("timestamp") <= stamp)
    found = records.to_table(columns=needed, filter=where)
    ends = replayed.as_of["offsets"]
    if ends and found.num_rows:
        below = [
            offset < ends.get(f"{topic}-{partition}", offset + 1)
            for topic, partition, offset in zip(
                *(found[each].to_pylist() for each in ("topic", "partition", "offset")), strict=True
            )
        ]
        found = found.filter(pa.array(below))
    return found.sort_by([("partition", "ascending"), ("offset", "ascending")])
