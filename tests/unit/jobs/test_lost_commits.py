"""Which commits a lost line has: the last of each offset, with transactions as they ended."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.console import Console
from jobs.lost_commits import lost_commits
from jobs.replayed import replayed
from tests.support.written_workspace import write_workspace

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLACE: list[tuple[str, Any]] = [
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", "UTC")),
    ("producer_id", pa.int64()),
]
KEY = pa.struct([("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32())])
COMMITS = pa.schema([*PLACE, ("key", KEY), ("value", pa.struct([("offset", pa.int64())]))])
MARKERS = pa.schema([*PLACE, ("control_type", pa.string())])
LINE = {
    "topic": "__consumer_offsets",
    "partition": 4,
    "copy": "broker-1",
    "diverges_at": 100,
    "lost_records": 9,
    "surviving_copy": "broker-2",
    "elected_at": NOON,
    "groups_only_there": [],
}


def record(at: int, producer: int = -1, home: int = 4, **said: Any) -> dict[str, Any]:
    place = {"topic": "__consumer_offsets", "partition": home, "offset": at, "timestamp": NOON}
    return {**place, "producer_id": producer, **said}


def commit(at: int, topic: str, offset: int | None, **more: Any) -> dict[str, Any]:
    value = None if offset is None else {"offset": offset}
    key = {"group": more.pop("group", "billing"), "topic": topic, "partition": 0}
    return record(at, **more, key=key, value=value)


def lost(folder: Path, commits: list[dict[str, Any]], markers: list[dict[str, Any]]) -> Any:
    workspace = write_workspace(folder, {"divergences": [LINE]})
    for name, schema, rows in (
        ("offset_commit", COMMITS, commits),
        ("control_markers", MARKERS, markers),
    ):
        path = workspace / "diverged" / "broker-1" / "decoded" / name
        path.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), path / "part-00000.parquet")
    with replayed(Console(quiet=True), inputs=[str(workspace)], groups=("bill*",)) as state:
        return {row["topic"]: row["committed_offset"] for row in lost_commits(state)}


def test_the_last_commit_of_each_offset_counts_unless_the_line_removed_it(tmp_path: Path) -> None:
    commits = [
        commit(99, "before", 1),
        commit(100, "orders", 7),
        commit(101, "orders", 8),
        commit(102, "gone", 3),
        commit(103, "gone", None),
        commit(104, "others", 5, group="shipping"),
        commit(105, "elsewhere", 5, home=5),
    ]
    assert lost(tmp_path / "space", commits, []) == {"orders": 8}


def test_what_was_pending_counts_only_with_its_commit_marker(tmp_path: Path) -> None:
    commits = [
        commit(100, "orders", 1),
        commit(101, "orders", 2, producer=7),
        commit(103, "orders", 3, producer=7),
        commit(105, "orders", 4, producer=7),
    ]
    markers = [
        record(102, 7, control_type="COMMIT"),
        record(104, 7, control_type="ABORT"),
    ]
    assert lost(tmp_path / "space", commits, markers) == {"orders": 2}
    assert lost(tmp_path / "none", commits, []) == {"orders": 1}


def test_a_workspace_without_lost_lines_has_none(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "space", {"divergences": [LINE]})
    with replayed(Console(quiet=True), inputs=[str(workspace)]) as state:
        assert lost_commits(state) == []
