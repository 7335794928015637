"""What `timeline` says from tables that are ready, and which of them it needs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jobs.console import Console
from jobs.timeline_run import NEEDS, timeline_of_inputs
from tests.support.written_workspace import STATE, group, write_workspace

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
Row = Mapping[str, Any]


def minutes(after_noon: int) -> datetime:
    return NOON + timedelta(minutes=after_noon)


def space(folder: Path, tables: Mapping[str, Iterable[Row]], **manifest: Any) -> Path:
    history = {name: () for name in NEEDS if name not in STATE}
    groups = {"groups": [group("billing")]}
    return write_workspace(
        folder, history | groups | dict(tables), partitions=[{"partition": 0}], **manifest
    )


def told(workspace: Path, end_offsets: Path | None = None) -> list[dict[str, Any]]:
    """Return the verdicts on `billing`."""
    text, _ = timeline_of_inputs(
        Console(quiet=True),
        "json",
        time_from=None,
        time_to=None,
        end_offsets=None if end_offsets is None else str(end_offsets),
        inputs=[str(workspace)],
        groups=("billing",),
    )
    rows: list[dict[str, Any]] = json.loads(text)["verdicts"]
    return rows


def committed(topic: str = "orders", topic_id: str | None = None, at: int = 0) -> dict[str, Any]:
    return {
        "group_id": "billing",
        "topic": topic,
        "topic_id": topic_id,
        "partition": 0,
        "committed_offset": 100,
        "commit_timestamp": minutes(at),
        "coordinator_partition": 0,
        "record_offset": 4711,
    }


def test_it_needs_no_table_but_those_it_names(tmp_path: Path) -> None:
    workspace = space(tmp_path / "space", {"committed_offsets": [committed()]})
    for name in set(STATE) - set(NEEDS):
        shutil.rmtree(workspace / "state" / name)
    assert [row["verdict"] for row in told(workspace)] == ["in force, never went back"]
