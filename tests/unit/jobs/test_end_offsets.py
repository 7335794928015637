"""Ends of logs: of a side file in any form, else of the data directories beside a dump."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.errors import InputNotRecognizedError
from analytics.replayed.end_offsets import end_offsets_at, read_end_offsets
from jobs.cli.console import Console
from jobs.workspaces.replayed import replayed
from tests.support.written_workspace import write_workspace

ROWS: list[dict[str, Any]] = [
    {"topic": "orders", "partition": 0, "log_start_offset": 5, "log_end_offset": 100},
    {"topic": "orders", "partition": 1, "log_start_offset": 0, "log_end_offset": 7},
]
CSV = "topic,partition,log_start_offset,log_end_offset\norders,0,5,100\norders,1,0,7\n"


def ends(
    workspace: Path, file: Path | None = None, **options: Any
) -> dict[tuple[str, int], tuple[int | None, int]]:
    with replayed(Console(quiet=True), inputs=[str(workspace)], **options) as found:
        table = end_offsets_at(found, str(file) if file else None)
    return {
        (row["topic"], row["partition"]): (row["log_start_offset"], row["log_end_offset"])
        for row in table.to_pylist()
    }


@pytest.mark.parametrize("form", ["csv", "json", "lines", "object", "parquet"])
def test_a_side_file_may_have_any_form(tmp_path: Path, form: str) -> None:
    file = tmp_path / "ends"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    else:
        texts = {
            "csv": CSV,
            "json": json.dumps(ROWS),
            "lines": "\n".join(map(json.dumps, ROWS)),
            "object": json.dumps({"rows": ROWS}),
        }
        file.write_text(texts[form], "utf-8")
    workspace = write_workspace(tmp_path / "space", {})
    assert ends(workspace, file) == {("orders", 0): (5, 100), ("orders", 1): (0, 7)}


@pytest.mark.parametrize("text", ["", "topic,partition\norders,0\n", "[1]", "{"])
def test_a_file_of_another_form_is_refused_with_what_was_looked_for(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "ends"
    file.write_text(text, "utf-8")
    with pytest.raises(InputNotRecognizedError, match=r"log_end_offset|not JSON"):
        read_end_offsets(str(file))


def test_of_several_samples_the_last_one_before_the_instant_counts(tmp_path: Path) -> None:
    file = tmp_path / "ends.csv"
    file.write_text(
        "topic,partition,log_start_offset,log_end_offset,timestamp\n"
        "orders,0,0,10,2026-11-21T09:00:00Z\n"
        "orders,0,0,30,1795255200000\n"  # 10:00
        "orders,0,0,20,2026-11-21T09:30:00\n",
        "utf-8",
    )
    for time, end in ((None, 30), ("2026-11-21T09:45:00.000Z", 20), ("2026-11-21T08:00:00Z", None)):
        as_of: dict[str, Any] = {"time": time, "offsets": {}}
        name = str(end)
        workspace = write_workspace(tmp_path / name, {}, replay={"as_of": as_of})
        assert ends(workspace, file).get(("orders", 0), (0, None))[1] == end


def held(copy: str, end: int, *, is_exact: bool = True) -> dict[str, Any]:
    return {
        "topic": "orders",
        "partition": 0,
        "copy": copy,
        "log_start_offset": 2,
        "log_end_offset": end,
        "is_exact": is_exact,
    }


COPIES = [{"name": f"broker-{number}", "node_id": number} for number in (1, 2, 3)]


def led(leader: int | None, isr: list[int], elr: list[int] | None = None) -> dict[str, Any]:
    return {"topic": "orders", "partition": 0, "leader": leader, "isr": isr, "elr": elr}


@pytest.mark.parametrize(
    ("leaders", "data", "end"),
    [
        # The high watermark is what every replica in sync has; broker 1 is out.
        ([led(2, [2, 3])], [held("broker-1", 900), held("broker-2", 50), held("broker-3", 48)], 48),
        ([led(None, [], [3])], [held("broker-2", 50), held("broker-3", 48)], 48),
        ([led(1, [1])], [held("broker-2", 50)], None),
        ([led(2, [2])], [held("broker-2", 50, is_exact=False)], None),
        # No metadata log says who leads.
        ([], [held("broker-1", 50)], 50),
        ([], [held("broker-1", 50), held("broker-2", 50)], 50),
        ([], [held("broker-1", 50), held("broker-2", 49)], None),
    ],
)
def test_at_the_end_the_replicas_in_sync_say_where_logs_end(
    tmp_path: Path,
    leaders: list[dict[str, Any]],
    data: list[dict[str, Any]],
    end: int | None,
) -> None:
    workspace = write_workspace(
        tmp_path, {"partition_leaders": leaders}, copies=COPIES, data_partitions=data
    )
    assert ends(workspace).get(("orders", 0), (None, None))[1] == end


@pytest.mark.parametrize(("leader", "start"), [(2, 30), (3, 20), (None, 20)])
def test_the_leader_says_where_the_log_starts(
    tmp_path: Path, leader: int | None, start: int
) -> None:
    # A follower is some records behind, and deletes segments by its own clock.
    data = [
        {**held("broker-2", 50), "log_start_offset": 30},
        {**held("broker-3", 48), "log_start_offset": 20},
    ]
    workspace = write_workspace(
        tmp_path,
        {"partition_leaders": [led(leader, [2, 3])]},
        copies=COPIES,
        data_partitions=data,
    )
    assert ends(workspace) == {("orders", 0): (start, 48)}


def test_a_copy_that_was_preferred_says_where_its_logs_end(tmp_path: Path) -> None:
    workspace = write_workspace(
        tmp_path,
        {"partition_leaders": [led(2, [2])]},
        copies=COPIES,
        data_partitions=[held("broker-1", 900), held("broker-2", 50)],
        options={"prefer_copy": "broker-1"},
    )
    assert ends(workspace, prefer_copy="broker-1") == {("orders", 0): (2, 900)}


def test_a_side_file_goes_before_the_directories_and_leaves_the_rest_to_them(
    tmp_path: Path,
) -> None:
    file = tmp_path / "ends.csv"
    file.write_text("topic,partition,log_end_offset\norders,0,70\n", "utf-8")
    data = [held("broker-1", 50), {**held("broker-1", 8), "partition": 1}]
    workspace = write_workspace(tmp_path / "space", {}, data_partitions=data)
    # The file names no log start.
    assert ends(workspace, file) == {("orders", 0): (2, 70), ("orders", 1): (2, 8)}


def test_before_the_end_the_directories_say_nothing(tmp_path: Path) -> None:
    workspace = write_workspace(
        tmp_path,
        {},
        replay={"as_of": {"time": None, "offsets": {"__consumer_offsets-0": 3}}},
        data_partitions=[held("broker-1", 50)],
    )
    assert ends(workspace) == {}
