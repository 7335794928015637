"""Checkpoints of a region over real commits, through the command.

The group `billing` and its commits are real (`tests/data/regions`): that a drain was clean is held
against what the coordinator answered its clients.
"""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope

REGION = Path(__file__).resolve().parents[1] / "data" / "regions" / "billing"
CHECKPOINTS = REGION / "checkpoints.jsonl"
ENDS = REGION / "end-offsets.csv"
TABLES = (
    *("rows", "region_checkpoint_offsets", "region_drains", "region_seek_plan"),
    *("region_operators", "region_findings"),
)


@pytest.fixture(scope="module")
def workspace(groupscope: Groupscope, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dump, replayed by the first question; checkpoints are evaluated beside it."""
    out = tmp_path_factory.mktemp("region") / "workspace"
    asked = ("--dump", REGION / "broker-1", "--out", out, "--end-offsets", ENDS)
    result = groupscope("region", CHECKPOINTS, *asked, "--format", "json")
    assert result.returncode == 3, result.stderr
    assert set(TABLES[1:]) < {each.name for each in (out / "evaluations").iterdir()}
    return out


@pytest.fixture(scope="module")
def answer(groupscope: Groupscope, workspace: Path) -> dict[str, Any]:
    result = asked(groupscope, workspace, "--format", "json")
    assert result.returncode == 3, result.stderr
    assert "3 drains of billing: compaction may have removed commits" in result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def asked(
    groupscope: Groupscope, workspace: Path, *more: str | Path
) -> subprocess.CompletedProcess[str]:
    options = ("--dump", workspace, "--end-offsets", ENDS)
    return groupscope("region", CHECKPOINTS, *options, *more)


def test_a_question_to_a_workspace_needs_no_java(installed: Groupscope, workspace: Path) -> None:
    options = ("--dump", workspace, "--end-offsets", ENDS)
    no_java = {"PATH": "/nowhere", "JAVA_HOME": "/nowhere"}
    assert installed("region", CHECKPOINTS, *options, env=no_java).returncode == 3


def timeline() -> list[dict[str, Any]]:
    text = (REGION / "timeline.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_what_each_checkpoint_is(answer: dict[str, Any]) -> None:
    found = {
        row["checkpoint_sequence_id"]: (row["complete"], row["drain"], row["findings"])
        for row in answer["rows"]
    }
    assert found == {
        1: (True, "cannot_tell", []),
        2: (True, "clean", []),
        3: (True, "partial", ["drain_partial", "committed_behind"]),
        4: (False, "clean", ["contribution_missing"]),
    }


def test_clean_drains_are_commits_that_the_coordinator_acknowledged(
    answer: dict[str, Any],
) -> None:
    acknowledged = [
        (each["actor"], each["sent_at"], each["at"], each["offsets"])
        for each in timeline()
        if each["event"] == "commit"
    ]
    wanted = [json.loads(line) for line in CHECKPOINTS.read_text().splitlines()]
    clean = [row for row in answer["region_drains"] if row["verdict"] == "clean"]
    assert len(clean) == 7
    for row in clean:
        made = next(
            each
            for each in wanted
            if (each["checkpoint_sequence_id"], each["operator"])
            == (row["checkpoint_sequence_id"], row["operator"])
        )
        offsets = {
            f"{each['topic']}-{each['partition']}": each["offset"] for each in made["offsets"]
        }
        drained = made["drain_started_at"] + row["drain_ms"]
        assert any(
            actor == row["operator"] and sent <= drained <= at and offsets == committed
            for actor, sent, at, committed in acknowledged
        )


def test_the_partial_drain_names_its_partition(answer: dict[str, Any]) -> None:
    (found,) = [row for row in answer["region_drains"] if row["verdict"] == "partial"]
    assert (found["checkpoint_sequence_id"], found["operator"]) == (3, "billing-1")
    assert (found["committed_partitions"], found["partitions"]) == (5, 6)
    assert found["left_out"] == ["payments-3: committed 70 instead of 75"]


def test_the_plan_is_for_the_assignment_after_the_reset(answer: dict[str, Any]) -> None:
    owned = {
        partition: each["actor"]
        for each in timeline()
        if each["event"] == "assigned" and each["epoch"] == 5
        for partition in each["partitions"]
    }
    plan = {f"{row['topic']}-{row['partition']}": row for row in answer["region_seek_plan"]}
    assert {name: row["operator"] for name, row in plan.items()} == owned
    assert {name for name, row in plan.items() if row["seek_offset"] != 70} == {"payments-3"}
    assert plan["payments-3"]["seek_offset"] == 75
    moved = {name for name, row in plan.items() if row["moved"]}
    assert moved == {
        *(f"orders-{number}" for number in (4, 5, 8, 9, 10, 11)),
        *("payments-2", "payments-4", "payments-5"),
    }
    assert {row["commit_is"] for name, row in plan.items() if name != "payments-3"} == {"equal"}
    assert (plan["payments-3"]["commit_is"], plan["payments-3"]["ahead_by"]) == ("behind", -5)
    assert {row["log_is"] for row in plan.values()} == {"readable"}


def test_metrics_of_the_operators(answer: dict[str, Any]) -> None:
    found = {
        row["operator"]: (
            *(row["partitions_assigned"], row["consumed_topics"], row["drains"]),
            *(row["last_drain_ms"], row["max_drain_ms"], row["client_id"]),
        )
        for row in answer["region_operators"]
    }
    assert found == {
        "billing-0": (6, 2, 3, 0, 1, "billing-0"),
        "billing-1": (6, 2, 1, 1, 1, "billing-1"),
        "billing-2": (6, 2, 3, 4, 55, None),
    }


def test_an_operator_that_is_no_member_is_told(answer: dict[str, Any]) -> None:
    found = [row["finding"] for row in answer["region_findings"]]
    assert found == [
        *("contribution_missing", "drain_partial", "operator_without_member"),
        "committed_behind",
    ]


def test_text_fits_the_page(groupscope: Groupscope, workspace: Path) -> None:
    result = asked(groupscope, workspace)
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 120
    assert lines[0].split()[:3] == ["GROUP", "FORM", "CHECKPOINT"]
    assert lines[2].split()[:4] == ["!", "billing", "region", "3"], "what went wrong comes first"
    assert "drain_partial: One commit holds some of the contribution's offsets" in result.stdout


@pytest.mark.parametrize("table", ["region_checkpoints", *TABLES[1:]])
def test_every_table_is_there_as_csv(table: str, groupscope: Groupscope, workspace: Path) -> None:
    result = asked(groupscope, workspace, "--format", "csv", "--table", table)
    assert list(csv.DictReader(result.stdout.splitlines()))


def test_a_later_start_than_the_dump_shows_is_cannot_tell(
    groupscope: Groupscope, workspace: Path, tmp_path: Path
) -> None:
    """Nothing is complete, and payments alone have an initial offset."""
    rows = [json.loads(line) for line in CHECKPOINTS.read_text().splitlines()]
    alone = tmp_path / "alone.jsonl"
    alone.write_text(json.dumps(next(row for row in rows if row["checkpoint_sequence_id"] == 4)))
    initial = tmp_path / "initial.csv"
    head = "topic,partition,offset\n"
    initial.write_text(head + "".join(f"payments,{each},3\n" for each in range(6)))
    result = groupscope(
        *("region", alone, "--dump", workspace, "--initial-offsets", initial),
        *("--format", "json"),
    )
    assert result.returncode == 3
    assert "billing: its only checkpoint is not complete" in result.stderr
    plan = json.loads(result.stdout)["region_seek_plan"]
    told = {row["topic"]: (row["seek_offset"], row["basis"]) for row in plan}
    assert told == {"payments": (3, "initial"), "orders": (None, "unknown")}
    assert len(plan) == 18


def test_a_topic_alone(groupscope: Groupscope, workspace: Path) -> None:
    result = asked(groupscope, workspace, "--topic", "orders", "--format", "json")
    found = json.loads(result.stdout)
    assert {row["topic"] for row in found["region_checkpoint_offsets"]} == {"orders"}
    assert {row["topic"] for row in found["region_seek_plan"]} == {"orders"}
    drains = {row["verdict"] for row in found["region_drains"]}
    assert drains == {"clean", "cannot_tell"}, "the partition that was left out is of payments"


def test_the_owner_of_the_time_decides_between_operators(
    groupscope: Groupscope, workspace: Path, tmp_path: Path
) -> None:
    """Then billing-1 had payments-3; who has it at the end does not matter."""
    rows = [json.loads(line) for line in CHECKPOINTS.read_text().splitlines()]
    rows = [row for row in rows if row["checkpoint_sequence_id"] == 2]
    for row in rows:
        if row["operator"] == "billing-0":
            row["offsets"].append({"topic": "payments", "partition": 3, "offset": 60})
    path = tmp_path / "torn.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = groupscope("region", path, "--dump", workspace, "--format", "json")
    found = json.loads(result.stdout)
    (torn,) = [row for row in found["region_checkpoint_offsets"] if row["named"]]
    assert (torn["topic"], torn["partition"], torn["checkpoint_offset"]) == ("payments", 3, 70)
    assert (torn["decided_by"], torn["named"]) == ("billing-1", ["billing-0: 60", "billing-1: 70"])
    assert found["rows"][0]["findings"] == ["offsets_decided", "drain_partial"]
    alone = json.loads(groupscope("region", path, "--format", "json").stdout)
    assert alone["rows"][0]["conflicts"] == 1


def test_a_checkpoint_without_a_group_is_asked_for_one(
    groupscope: Groupscope, workspace: Path, tmp_path: Path
) -> None:
    merge = {
        "consolidatedOffsetMap": [[{"topic": "orders", "partition": 0}, 70]],
        "contributedOperatorNames": ["billing-0"],
        "nExpectedContributions": 1,
        "key": {"sequenceId": 2, "resetAttempt": 0},
    }
    path = tmp_path / "merge.json"
    path.write_text(json.dumps(merge))
    nameless = groupscope("region", path, "--dump", workspace)
    assert nameless.returncode == 2
    assert "merge: names no group: give --checkpoint-group GROUP" in nameless.stderr
    named = groupscope(
        *("region", path, "--dump", workspace, "--checkpoint-group", "billing"),
        *("--format", "json"),
    )
    (drain,) = json.loads(named.stdout)["region_drains"]
    assert (drain["verdict"], drain["requests"]) == ("clean", 1)


def test_a_group_that_the_dump_does_not_have_is_told(
    groupscope: Groupscope, workspace: Path, tmp_path: Path
) -> None:
    row = json.loads(CHECKPOINTS.read_text().splitlines()[0])
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps(row | {"group_id": "nobody", "operators": [row["operator"]]}))
    result = groupscope("region", path, "--dump", workspace)
    assert result.returncode == 3
    assert "nobody belongs to __consumer_offsets" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.jsonl"], "gone.jsonl: no such file or folder"),
        ([str(ENDS)], "end-offsets.csv: this is not JSON"),
        ([str(CHECKPOINTS), "--out", "somewhere"], "--out needs --dump"),
        ([str(CHECKPOINTS), "--group", "other"], "no checkpoint of the groups asked for"),
    ],
)
def test_bad_input_ends_with_2(arguments: list[str], said: str, groupscope: Groupscope) -> None:
    result = groupscope("region", *arguments)
    assert result.returncode == 2, result.stderr
    assert said in result.stderr
