"""The command `lag` on the bundled failover: Kafka's numbers, and who stands still."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope


def rows_of(groupscope: Groupscope, *arguments: str | Path) -> list[dict[str, Any]]:
    result = groupscope(*arguments, "--format", "json", "--quiet")
    assert result.returncode == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return found


def test_lag_is_what_describe_says(groupscope: Groupscope, failover_workspace: Path) -> None:
    """`describe` is held against the broker's own tool; both must say the same."""
    expected = {
        (row["group_id"], row["topic"], row["partition"]): row["lag"]
        for row in rows_of(groupscope, "describe", failover_workspace)
        if row.get("lag") is not None and row["group_type"] != "share"
    }
    found = {
        (row["group_id"], row["topic"], row["partition"]): row["lag"]
        for row in rows_of(groupscope, "lag", failover_workspace)
    }
    assert len(found) > 60
    assert found == expected


def test_who_commits_without_moving_is_found_and_nobody_else(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    rows = rows_of(groupscope, "lag", failover_workspace, "--status", "commits_without_progress")

    assert {row["group_id"] for row in rows} == {"emergency-router"}
    assert len(rows) == 4
    silent = rows_of(groupscope, "lag", failover_workspace, "--status", "silent")
    assert [(row["group_id"], row["partition"]) for row in silent] == [("tracking-indexer", 3)]
    assert all(row["unchanged_commits"] == row["commits"] - 1 for row in rows)


def test_sums_put_the_worst_first(groupscope: Groupscope, failover_workspace: Path) -> None:
    rows = rows_of(groupscope, "lag", failover_workspace, "--by", "group")

    assert rows[0]["verdict"] == "beyond_end"
    assert rows[-1]["verdict"] == "caught_up"


def test_samples_with_times_make_burrows_rules_evaluable(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    samples = tmp_path / "ends.csv"
    lines = ["topic,partition,log_start_offset,log_end_offset,timestamp"]
    lines += [f"parcels,{each},0,200,2026-11-21T09:15:00Z" for each in range(6)]
    samples.write_text("\n".join(lines), encoding="utf-8")
    options = ("--group", "emergency-router", "--end-offsets", samples)
    rows = rows_of(groupscope, "lag", failover_workspace, *options)

    assert {row["status"] for row in rows if row["lag"]} <= {"STOP", "STALL", "OK", "WARN"}
    assert all(row["time_lag_bound"] == "at_least" for row in rows if row["lag"])


def test_what_kafka_get_offsets_prints_is_taken(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    printed = tmp_path / "offsets.txt"
    printed.write_text("parcels:0:1000\nparcels:1:\n", encoding="utf-8")
    options = ("--group", "emergency-router", "--end-offsets", printed)
    ends = {
        row["partition"]: row["log_end_offset"]
        for row in rows_of(groupscope, "lag", failover_workspace, *options)
    }
    assert ends[0] == 1000


@pytest.mark.parametrize("by", ["group", "topic", "member"])
def test_csv_has_one_table(groupscope: Groupscope, failover_workspace: Path, by: str) -> None:
    result = groupscope("lag", failover_workspace, "--by", by, "--format", "csv", "--quiet")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))

    assert rows
    assert {"lag", "verdict", "stale_lag"} <= rows[0].keys()


def test_share_groups_read_their_topics_too(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    result = groupscope("lag", failover_workspace, "--by", "topic", "--format", "json", "--quiet")
    answer = json.loads(result.stdout)

    readers = {row["topic"]: row["readers"] for row in answer["rows"]}
    assert readers["pickup-jobs"] == ["pickup-dispatch"]
    assert answer["unread_topics"] == []
    index = {(row["topic"], row["group_id"]): row["how"] for row in answer["topic_readers"]}
    assert index["pickup-jobs", "pickup-dispatch"] == "owns"
    assert index["vehicle-pings", "hub-monitor"] == "committed"


@pytest.mark.parametrize(
    ("table", "options", "row"),
    [
        ("topic_readers", ("--by", "topic"), "pickup-jobs pickup-dispatch share owns -"),
        ("group_capacity", ("--by", "group"), "old-reports"),
        ("offset_moves", ("--history", "--group", "parcel-*"), "GROUP TOPIC PARTITION KIND"),
    ],
)
def test_people_are_shown_the_table_that_they_ask_for(
    groupscope: Groupscope,
    failover_workspace: Path,
    table: str,
    options: tuple[str, ...],
    row: str,
) -> None:
    result = groupscope("lag", failover_workspace, *options, "--table", table, "--quiet")

    assert row in " ".join(result.stdout.split())
    # What verdicts mean is of no use where none is shown.
    assert "unread:" not in result.stdout


def test_an_earlier_dump_is_of_the_same_brokers_and_earlier(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    result = groupscope("lag", failover_workspace, "--since", failover_workspace)

    assert result.returncode == 2
    assert "is not before this instant" in result.stderr


def test_of_one_topic_nothing_is_said_of_others(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    whole = rows_of(groupscope, "lag", failover_workspace)
    found = rows_of(groupscope, "lag", failover_workspace, "--topic", "parcels")

    assert found == [row for row in whole if row["topic"] == "parcels"]


@pytest.mark.long
def test_before_the_end_time_indexes_say_where_logs_ended(
    groupscope: Groupscope, repository: Path
) -> None:
    """Held against the time of every record in `tests/unit/jobs/test_real_time_indexes.py`."""
    dump = repository / "tests" / "data" / "time-indexes" / "broker-1"
    result = groupscope("lag", dump, "--as-of", "-20s", "--format", "json")
    rows = {
        (row["group_id"], row["topic"], row["partition"]): row
        for row in json.loads(result.stdout)["rows"]
    }

    row = rows["reader-0", "stamped", 0]
    assert (row["log_end_bound"], row["trend"], row["time_lag_bound"]) == (
        *("interpolated", "growing"),
        "exact",
    )
    assert row["lag"] == row["log_end_offset"] - row["committed_offset"]
    # Producers' clocks do not say where a log ended.
    assert rows["reader-0", "created", 0]["log_end_offset"] is None
