"""The command `share` on the bundled failover: Kafka's numbers, and the partition that blocks."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope

SAVED = "tests/data/dumps/kafka-4.3.1-failover/tools/describe/share-groups-offsets-verbose.txt"


def answer_of(groupscope: Groupscope, *arguments: str | Path) -> dict[str, Any]:
    result = groupscope("share", *arguments, "--format", "json", "--quiet")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_lag_is_what_kafkas_own_tool_printed(
    groupscope: Groupscope, failover_workspace: Path, repository: Path
) -> None:
    result = groupscope("share", failover_workspace, "--against", repository / SAVED)
    assert (result.returncode, result.stdout.strip()) == (0, "6 of 6 rows equal")


def test_an_output_that_says_something_else_is_found(
    groupscope: Groupscope, failover_workspace: Path, repository: Path, tmp_path: Path
) -> None:
    saved = (repository / SAVED).read_text("utf-8")
    other = tmp_path / "saved.txt"
    other.write_text(saved.replace(" 30", " 31"), encoding="utf-8")
    result = groupscope("share", failover_workspace, "--against", other)
    assert result.returncode == 1
    assert "5 of 6 rows equal" in result.stdout


def test_the_partition_that_blocks_is_found_and_nothing_else_is_called_so(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    rows = answer_of(groupscope, failover_workspace)["rows"]
    found = {(row["topic"], row["partition"]): row["status"] for row in rows}
    assert found == {
        ("pickup-jobs", 3): "blocked",
        ("pickup-jobs", 2): "behind",
        ("pickup-jobs", 1): "not_started",
        ("pickup-jobs", 0): "caught_up",
        ("label-prints", 0): "caught_up",
        ("label-prints", 1): "caught_up",
    }
    blocking = ("blocking_first_offset", "blocking_last_offset", "blocking_delivery_count")
    assert [rows[0][name] for name in blocking] == [1, 1, 1]


def test_limits_are_those_given_and_what_is_assumed_is_said(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    given = tmp_path / "settings.yaml"
    given.write_text(
        "group.share.delivery.count.limit: 3\n"
        "rules:\n  share:\n    stalled_minutes: 2\n"
        "groups:\n  pickup-dispatch:\n    share.partition.max.record.locks: 1000\n",
        encoding="utf-8",
    )
    found = answer_of(groupscope, failover_workspace, "--config", given)
    rows = {(row["topic"], row["partition"]): row for row in found["rows"]}
    told = rows["pickup-jobs", 2]

    assert (told["delivery_count_limit"], told["delivery_count_limit_source"]) == (
        3,
        "broker_config",
    )
    assert (told["max_record_locks"], told["max_record_locks_source"]) == (1000, "broker_config")
    assert rows["label-prints", 0]["max_record_locks_source"] == "default_assumed"
    # Two deliveries of three are behind it, for more than two minutes now.
    assert (told["near_limit_count"], told["status"]) == (told["available_count"], "blocked")
    assert (
        "group.share.partition.max.record.locks = 2000 (Kafka's default, assumed)"
        in (found["settings"])
    )


@pytest.mark.parametrize("by", ["group", "topic"])
def test_csv_has_one_table(groupscope: Groupscope, failover_workspace: Path, by: str) -> None:
    result = groupscope("share", failover_workspace, "--by", by, "--format", "csv", "--quiet")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["status"] for row in rows] == ["blocked", "caught_up"]


def test_deliveries_are_counted(groupscope: Groupscope, failover_workspace: Path) -> None:
    found = answer_of(groupscope, failover_workspace, "--topic", "pickup-jobs")
    held = {(row["partition"], row["delivery_count"]) for row in found["delivery_counts"]}
    assert (2, 2) in held
    for row in found["rows"]:
        counted = [
            each["records"]
            for each in found["delivery_counts"]
            if each["partition"] == row["partition"]
        ]
        stored = ("available_count", "archiving_count", "acknowledged_count", "archived_count")
        assert sum(counted) == sum(row[name] for name in stored)


def test_a_group_of_another_kind_has_no_backlog(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    result = groupscope("share", failover_workspace, "--group", "emergency-router")
    assert "No share group asked for has partitions." in result.stdout


def test_text_fits_120_columns(groupscope: Groupscope, failover_workspace: Path) -> None:
    result = groupscope("share", failover_workspace)
    assert result.returncode == 0
    table = result.stdout.partition("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 120
    assert table.splitlines()[1].startswith("! pickup")
