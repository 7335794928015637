"""Initial offsets that a group keeps of its partitions, from a side file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from analytics.errors import InputNotRecognizedError
from analytics.seeds.checkpoint_files.fields import partition_of, whole
from analytics.seeds.region.contributions import Partition
from analytics.side_files import bad, read_bytes, read_json


def read_initial_offsets(path: str | None) -> dict[Partition, int]:
    """Return the offsets of a file: CSV, JSON, JSON Lines or Parquet; none without a file.

    Raises:
        InputNotRecognizedError: A row has no topic, partition or offset.
        InputUnreadableError: It cannot be read.
    """
    if path is None:
        return {}
    found: dict[Partition, int] = {}
    for place, row in enumerate(_rows(read_bytes(Path(path)), path), 1):
        where = f"{path}, row {place}"
        if not isinstance(row, dict):
            raise bad(where, "the row", row, "topic, partition and offset")
        found[partition_of(row, where)] = whole(row, "offset", where)
    return found


def _rows(data: bytes, path: str) -> list[Any]:
    try:
        if data.startswith(b"PAR1"):
            rows: list[Any] = pq.read_table(io.BytesIO(data)).to_pylist()
            return rows
        if data.lstrip()[:1] not in (b"[", b"{"):
            return list(pyarrow.csv.read_csv(io.BytesIO(data)).to_pylist())
    except (pa.ArrowException, OSError) as error:
        raise InputNotRecognizedError(f"{path}: {error!s:.200}") from error
    if data.lstrip().startswith(b"["):
        return list(read_json(data, path))
    return [read_json(each, path) for each in data.splitlines() if each.strip()]
