"""What is read of a lost line: its records, and what was pending where the lines part."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.questions.timeline.lost_commits import lost_lines
from jobs.cli.console import Console
from jobs.workspaces.replayed import replayed
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
COMMITS = pa.schema(
    [
        *PLACE,
        ("key", KEY),
        ("value", pa.struct([("offset", pa.int64())])),
        ("is_tombstone", pa.bool_()),
        ("is_transactional", pa.bool_()),
    ]
)
MARKERS = pa.schema([*PLACE, ("control_type", pa.string())])
LINE = {
    "topic": "__consumer_offsets",
    "partition": 4,
    "copy": "broker-1",
    "diverges_at": 100,
    "lost_records": 9,
    "surviving_copy": "broker-2",
    "lost_to_timestamp": NOON - timedelta(minutes=1),
    "elected_at": NOON,
    "groups_only_there": [],
}


def record(at: int, producer: int = -1, home: int = 4, **said: Any) -> dict[str, Any]:
    place = {"topic": "__consumer_offsets", "partition": home, "offset": at, "timestamp": NOON}
    return {**place, "producer_id": producer, **said}


def commit(at: int, topic: str, offset: int | None, **more: Any) -> dict[str, Any]:
    value = None if offset is None else {"offset": offset}
    key = {"group": more.pop("group", "billing"), "topic": topic, "partition": 0}
    told = {"is_tombstone": value is None, "is_transactional": "producer" in more}
    return record(at, **more, **told, key=key, value=value)


def write(folder: Path, commits: list[dict[str, Any]], markers: list[dict[str, Any]]) -> None:
    for name, schema, rows in (
        ("offset_commit", COMMITS, commits),
        ("control_markers", MARKERS, markers),
    ):
        path = folder / "decoded" / name
        path.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), path / "part-00000.parquet")


def last(workspace: Path) -> dict[str, int | None]:
    """Return what the one lost line had last, by topic."""
    with replayed(Console(quiet=True), inputs=[str(workspace)], groups=("bill*",)) as state:
        (line,) = lost_lines(state, {})
    assert (line.copy, line.elected_at) == ("broker-1", NOON)
    return {row["topic"]: row["committed_offset"] for row in line.last.to_dicts()}


def test_the_last_change_of_each_offset_counts(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "space", {"divergences": [LINE]})
    commits = [
        commit(99, "before", 1),
        commit(100, "orders", 7),
        commit(101, "orders", 8),
        commit(102, "gone", 3),
        commit(103, "gone", None),
        commit(104, "others", 5, group="shipping"),
        commit(105, "elsewhere", 5, home=5),
    ]
    write(workspace / "diverged" / "broker-1", commits, [])
    assert last(workspace) == {"orders": 8, "gone": None}


def test_what_was_pending_where_lines_part_may_be_committed_on_the_lost_one(tmp_path: Path) -> None:
    shared = [
        commit(90, "orders", 1, producer=7),
        commit(91, "invoices", 1, producer=8),
        commit(93, "parcels", 1, producer=8),
        commit(94, "refunds", 1, producer=9),
        commit(120, "later", 1, producer=7),
    ]
    workspace = write_workspace(tmp_path / "space", {"divergences": [LINE]})
    write(workspace, shared, [record(92, 8, control_type="COMMIT")])
    ends = [
        record(102, 7, control_type="COMMIT"),
        record(103, 8, control_type="COMMIT"),
        record(104, 9, control_type="ABORT"),
    ]
    write(workspace / "diverged" / "broker-1", [], ends)
    assert last(workspace) == {"orders": 1, "parcels": 1}


def test_without_the_metadata_log_the_time_is_bounded_and_the_high_watermark_says_what_counts(
    tmp_path: Path,
) -> None:
    known = {name: LINE[name] for name in ("topic", "partition", "copy")}
    workspace = write_workspace(
        tmp_path / "space",
        {"divergences": [LINE]},
        divergences=[known | {"high_watermark": 101, "end_offset": 103}],
    )
    write(workspace / "diverged" / "broker-1", [commit(100, "orders", 7)], [])
    with replayed(Console(quiet=True), inputs=[str(workspace)]) as state:
        (line,) = lost_lines(state, {})
    assert (line.elected_after, line.committed_below) == (LINE["lost_to_timestamp"], 101)


def test_an_unclean_election_of_the_metadata_log_is_exact_and_cost_everything(
    tmp_path: Path,
) -> None:
    told = LINE | {"election_shown_by": "metadata_log", "unclean": True}
    workspace = write_workspace(tmp_path / "space", {"divergences": [told]})
    write(workspace / "diverged" / "broker-1", [commit(100, "orders", 7)], [])
    with replayed(Console(quiet=True), inputs=[str(workspace)]) as state:
        (line,) = lost_lines(state, {})
    assert (line.elected_after, line.committed_below) == (None, None)


def test_a_workspace_without_records_of_lost_lines_has_lost_none(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path / "space", {"divergences": [LINE]})
    assert last(workspace) == {}
