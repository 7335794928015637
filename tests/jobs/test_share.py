"""The command `share` on the bundled failover: Kafka's numbers, and the partition that blocks."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import schemas
from analytics.replay.log.topic_homes import home_of

if TYPE_CHECKING:
    from tests.conftest import Groupscope

PARTITIONS = 10  # of __consumer_offsets
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


def test_limits_are_held_against_what_is_recorded(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    def limits(*arguments: str | Path) -> dict[tuple[str, str | None], str]:
        rows = answer_of(groupscope, failover_workspace, *arguments)["limits"]
        return {(row["setting"], row["group_id"]): row["verdict"] for row in rows}

    assert not set(limits().values()) & {"exceeded", "out_of_bounds", "differs"}
    given = tmp_path / "settings.yaml"
    given.write_text(
        "group.share.max.size: 1\ngroup.share.record.lock.duration.ms: 10\n"
        "groups:\n  pickup-dispatch:\n    group.type: consumer\n",
        encoding="utf-8",
    )
    found = limits("--config", given)
    assert found["group.share.max.size", None] in {"exceeded", "reached"}
    assert found["group.share.record.lock.duration.ms", None] == "out_of_bounds"
    assert found["group.type", "pickup-dispatch"] == "differs"
    told = groupscope("share", failover_workspace, "--config", given).stdout
    assert "Limits" in told
    assert "exceeded:" in told or "out_of_bounds:" in told


def test_the_steps_of_a_real_coordinator_are_in_order(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    rows = answer_of(groupscope, failover_workspace)["steps"]
    acts = [(row["act"], row["verdict"]) for row in rows]
    assert sorted(acts) == [
        *[("create_group", "in_order")] * 2,
        *[("initialize", "in_order")] * 6,
    ]
    for row in rows:
        if row["act"] == "initialize":
            assert row["began_at"] <= row["state_at"] <= row["ended_at"]


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


def test_programs_get_the_table_as_its_contract_has_it(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    names = [column.name for column in schemas.table("share_backlog").columns]
    assert list(answer_of(groupscope, failover_workspace)["rows"][0]) == names
    printed = groupscope("share", failover_workspace, "--format", "csv", "--quiet").stdout
    assert printed.splitlines()[0].split(",") == names


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


# --- what the dump lacks -------------------------------------------------------------------------

GARBLED = "label-printers"
"""A group of whose records nothing is left."""


@pytest.fixture(scope="module")
def lacking(
    groupscope: Groupscope, failover_dump: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The dump without a partition of share state, a topic's logs, and the records of a group."""
    folder = tmp_path_factory.mktemp("lacking")
    home = home_of(GARBLED, PARTITIONS)
    assert home != home_of("pickup-dispatch", PARTITIONS)
    left_out = shutil.ignore_patterns("__share_group_state-0", "pickup-jobs-*")
    dump = shutil.copytree(failover_dump, folder / "dump", ignore=left_out)
    for segment in dump.glob(f"broker-*/__consumer_offsets-{home}/*.log"):
        segment.write_bytes(random.Random(1).randbytes(segment.stat().st_size))
    result = groupscope("replay", dump, "--out", folder / "workspace")
    assert result.returncode == 3, result.stderr
    return folder / "workspace"


def rows_of_what_is_left(
    groupscope: Groupscope, lacking: Path, *options: str | Path
) -> dict[int, dict[str, Any]]:
    """The rows by partition; what cannot be told ends with 3."""
    result = groupscope("share", lacking, *options, "--format", "json")
    assert result.returncode == 3
    assert "cannot tell" in result.stderr
    return {row["partition"]: row for row in json.loads(result.stdout)["rows"]}


def test_what_the_state_cannot_show_cannot_be_told(groupscope: Groupscope, lacking: Path) -> None:
    rows = rows_of_what_is_left(groupscope, lacking, "--group", "pickup-dispatch")
    missing = rows[3]

    assert (missing["status"], missing["complete"]) == ("cannot_tell", False)
    assert "no copy of __share_group_state-0" in missing["missing"]
    unknown = ("start_offset", "lag", "records_left", "in_flight", "blocking_first_offset")
    assert [missing[name] for name in unknown] == [None] * len(unknown)
    # What other partitions of the topic hold is told as before.
    assert (rows[2]["status"], rows[2]["in_flight"]) == ("behind", 20)


def test_without_the_logs_of_a_topic_its_lag_is_not_known(
    groupscope: Groupscope, lacking: Path
) -> None:
    row = rows_of_what_is_left(groupscope, lacking, "--group", "pickup-dispatch")[0]

    assert (row["lag"], row["records_left"], row["status"]) == (None, None, "moving")
    assert row["reason"] == "where the log ends at that instant is not known"
    # What is stored is known all the same.
    assert row["acknowledged_count"] + row["archived_count"] == 60


def test_ends_that_are_given_make_up_for_logs(
    groupscope: Groupscope, lacking: Path, tmp_path: Path
) -> None:
    ends = tmp_path / "ends.txt"
    ends.write_text("pickup-jobs:0:61\npickup-jobs:2:60\n", encoding="utf-8")
    rows = rows_of_what_is_left(
        groupscope, lacking, "--group", "pickup-dispatch", "--end-offsets", ends
    )
    assert (rows[0]["lag"], rows[0]["records_left"]) == (1, 1)
    assert rows[2]["lag"] == 20


def test_state_whose_group_may_be_lost_is_no_orphan(groupscope: Groupscope, lacking: Path) -> None:
    rows = rows_of_what_is_left(groupscope, lacking, "--group", GARBLED)
    assert rows
    for row in rows.values():
        assert (row["status"], row["members"]) == ("cannot_tell", None)
        assert (
            "who claims it: a lost record may have changed it: __consumer_offsets-"
            in row["missing"]
        )


# --- the tables beside the backlog ---------------------------------------------------------------


def test_what_was_given_up_is_listed_with_the_record_that_did_it(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    found = answer_of(groupscope, failover_workspace)
    archived = found["archived"]
    offsets = sum(row["last_offset"] - row["first_offset"] + 1 for row in archived)
    assert offsets == sum(row["archived_count"] for row in found["rows"]) == 40
    assert {row["cause"] for row in archived} == {"rejected_or_gap"}
    assert all(row["archived_at"] and row["record_offset"] for row in archived)
    assert found["faults"] == []


def test_what_keeps_the_log_of_share_state_is_named(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    rows = answer_of(groupscope, failover_workspace, "--table", "prunable")["rows"]
    assert [row["coordinator_partition"] for row in rows] == [0, 1, 2, 3]
    for row in rows:
        assert row["prunable_records"] <= row["records"] <= row["log_end_offset"]
        assert row["held_by_offset"] == (row["prunable_to"] or 0)


def test_the_tables_are_kept(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(failover_workspace, tmp_path / "copy")
    result = groupscope("share", copy, "--out", copy)
    assert result.returncode == 0, result.stderr
    kept = {path.name for path in (copy / "evaluations").iterdir()}
    assert kept == {
        "share_archived_ranges",
        "share_backlog",
        "share_stalls",
        "share_delivery_counts",
        "share_faults",
        "share_limits",
        "share_steps",
        "share_prunable",
    }


def test_history_shows_what_stood_still(groupscope: Groupscope, failover_workspace: Path) -> None:
    found = answer_of(groupscope, failover_workspace, "--history")
    (stall,) = found["stalls"]
    (blocked,) = (row for row in found["rows"] if row["status"] == "blocked")
    assert (stall["group_id"], stall["topic"], stall["partition"]) == (
        *("pickup-dispatch", "pickup-jobs", 3),
    )
    assert (stall["kind"], stall["until"], stall["next_offset"]) == ("blocked", None, 1)
    assert stall["since"] == blocked["stalled_since"]
    assert stall["blocking_state"] == blocked["blocking_state"] == "AVAILABLE"
    assert stall["complete"]
    text = groupscope("share", failover_workspace, "--history").stdout
    assert "STOOD" in text
    rows = [line for line in text.splitlines() if line.startswith(("! ", "  "))]
    assert max(map(len, rows)) <= 120
    assert "STOOD" not in groupscope("share", failover_workspace).stdout
