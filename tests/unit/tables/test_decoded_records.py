"""Decoded tables are read with the columns that were asked for, or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.errors import WorkspaceError
from analytics.tables.decoded_records import record_batches
from analytics.workspace import DECODED, Workspace
from schemas import CONSUMER_OFFSETS


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    key = {"group": "g", "topic": "t", "partition": 0}
    rows = pa.table({"offset": [7], "key": [key], "value": [{"offset": 1, "metadata": "m"}]})
    (tmp_path / DECODED / "offset_commit").mkdir(parents=True)
    pq.write_table(rows, tmp_path / DECODED / "offset_commit" / "part.parquet")
    return Workspace(str(tmp_path))


def test_columns_that_are_there_are_read(space: Workspace) -> None:
    wanted = ["offset", "value.offset"]
    (rows,) = record_batches(space, CONSUMER_OFFSETS, "offset_commit", wanted)

    assert rows["offset"].to_pylist() == [7]
    assert rows["value"].to_pylist() == [{"offset": 1}]


@pytest.mark.parametrize("column", ["record_bytes", "value.commit_timestamp"])
def test_a_column_that_a_file_lacks_is_named(space: Workspace, column: str) -> None:
    with pytest.raises(WorkspaceError, match=f"lacks {column}"):
        list(record_batches(space, CONSUMER_OFFSETS, "offset_commit", ["offset", column]))
