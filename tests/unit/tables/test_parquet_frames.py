"""Parquet files on a disk as frames: the rows that Arrow reads, and its errors."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.tables.parquet_frames import frames_of_file

_ROWS = pa.table(
    {
        "group_id": pa.array(["a", None, "b", "a"]),
        "at": pa.array([1, 2, None, 4], pa.timestamp("us", "UTC")),
        "names": pa.array([["x"], [], None, ["y", "z"]], pa.list_(pa.string())),
    }
)


def _file(folder: Path, rows: pa.Table = _ROWS) -> str:
    path = str(folder / "rows.parquet")
    pq.write_table(rows, path, row_group_size=2)
    return path


def test_the_rows_of_a_file_are_those_that_arrow_reads(tmp_path: Path) -> None:
    found = pl.concat(frames_of_file(_file(tmp_path), ["at", "group_id", "names"]))

    expected = pl.DataFrame(pl.from_arrow(_ROWS.select(["at", "group_id", "names"])))
    assert found.equals(expected)
    assert found.schema == expected.schema


def test_many_rows_come_some_at_a_time_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.tables.parquet_frames._AT_ONCE", 3)

    found = list(frames_of_file(_file(tmp_path), ["group_id"]))

    assert [each["group_id"].to_list() for each in found] == [["a", None, "b"], ["a"]]


def test_a_file_without_rows_gives_nothing(tmp_path: Path) -> None:
    assert list(frames_of_file(_file(tmp_path, _ROWS.slice(0, 0)), ["group_id"])) == []


def test_a_column_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="No match for FieldRef"):
        list(frames_of_file(_file(tmp_path), ["topic"]))


@pytest.mark.parametrize("kept", [0.3, 0.7, 0.99])
def test_a_file_that_ends_early_is_an_error_of_arrow(tmp_path: Path, kept: float) -> None:
    path = Path(_file(tmp_path))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])

    with pytest.raises(pa.ArrowInvalid):
        list(frames_of_file(str(path), ["group_id"]))


def test_pages_that_are_damaged_are_an_error_of_arrow(tmp_path: Path) -> None:
    path = Path(_file(tmp_path))
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * 60 + content[64:])

    with pytest.raises(pa.ArrowInvalid):
        list(frames_of_file(str(path), ["group_id"]))
