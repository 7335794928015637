"""`groupscope assign`, as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Groupscope

CASE: dict[str, Any] = {
    "topics": {"orders": 5, "returns": 1},
    "members": [
        {"id": "a", "subscription": ["orders", "returns"], "current": {"orders": [0, 1, 2, 4]}},
        {"id": "b", "subscription": ["orders", "returns"]},
    ],
}

SUMMARY = (
    "sticky: 2 members; partitions each: min 3, max 3, mean 3.00; kept 3, moved 1 of 4 owned before"
)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return written(tmp_path, CASE)


def written(folder: Path, case: object) -> Path:
    path = folder / "case.json"
    path.write_text(json.dumps(case), encoding="utf-8")
    return path


def test_a_table_and_a_summary(groupscope: Groupscope, case: Path) -> None:
    ran = groupscope("assign", case, "--assignor", "sticky")
    assert ran.stdout.splitlines() == [
        "MEMBER  #PARTITIONS  ASSIGNMENT",
        "a                 3  orders: 0-2",
        "b                 3  orders: 3-4; returns: 0",
        "",
        SUMMARY,
    ]
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_waits_for_its_owner_is_told(groupscope: Groupscope, case: Path) -> None:
    ran = groupscope("assign", case, "--assignor", "cooperative-sticky")
    last = ran.stdout.splitlines()[-1]
    assert last == "being handed over, assigned in the next rebalance: orders: 4"


def test_json_is_the_assignment_alone(groupscope: Groupscope, case: Path) -> None:
    ran = groupscope("assign", case, "--assignor", "range", "--format", "json")
    assert json.loads(ran.stdout) == {
        "assignment": {
            "a": {"orders": [0, 1, 2], "returns": [0]},
            "b": {"orders": [3, 4]},
        }
    }
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_case_may_name_the_assignor_and_the_option_beats_it(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    case = written(tmp_path, {**CASE, "assignor": "roundrobin"})
    named = groupscope("assign", case)
    beaten = groupscope("assign", case, "--assignor", "server-range")
    assert "\nroundrobin: 2 members" in named.stdout
    assert "\nserver-range: 2 members" in beaten.stdout


def test_a_refused_case_says_so_and_ends_with_3(groupscope: Groupscope, tmp_path: Path) -> None:
    case = written(tmp_path, {**CASE, "topics": {"orders": 5}})
    for style in ("text", "json"):
        ran = groupscope("assign", case, "--assignor", "server-uniform", "--format", style)
        assert ran.returncode == 3
        assert json.loads(ran.stdout) == {
            "error": "member 'a' is subscribed to topic 'returns', which the brokers do not know"
        }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("not json", "not JSON"),
        ("{}", "'topics' is missing"),
        (json.dumps(CASE), "names no assignor: give --assignor"),
        (json.dumps({**CASE, "assignor": "best"}), "unknown assignor 'best'; use one of range,"),
    ],
)
def test_a_wrong_file_is_called_wrongly(
    groupscope: Groupscope, tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "case.json"
    path.write_text(content, encoding="utf-8")
    ran = groupscope("assign", path)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert said in ran.stderr
    assert str(path) in ran.stderr


def test_a_file_that_is_not_there_is_called_wrongly(groupscope: Groupscope, tmp_path: Path) -> None:
    ran = groupscope("assign", tmp_path / "none.json", "--assignor", "range")
    assert ran.returncode == 2
    assert "none.json" in ran.stderr


def test_names_cannot_play_with_the_terminal(groupscope: Groupscope, tmp_path: Path) -> None:
    hostile = {"id": "\x1b[31mred\n", "subscription": ["orders"]}
    case = written(tmp_path, {**CASE, "members": [hostile]})
    ran = groupscope("assign", case, "--assignor", "range")
    assert "\x1b" not in ran.stdout
    assert "\\x1b[31mred\\n" in ran.stdout


def test_the_examples_of_the_help_work(groupscope: Groupscope, repository: Path) -> None:
    text = groupscope("assign", "--help").stdout
    examples = [
        line.split() for line in text.splitlines() if line.strip().startswith("groupscope ")
    ]
    assert len(examples) == 2
    for _, *arguments in examples:
        assert groupscope(*arguments, cwd=repository).returncode == 0


def test_nothing_heavy_is_imported() -> None:
    """It answers at once."""
    program = (
        "import sys, jobs.cli.main, jobs.commands.assign\n"
        "print([m for m in ('pandas', 'pyarrow', 'pyspark') if m in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"
