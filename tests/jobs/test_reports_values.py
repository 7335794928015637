"""Reports of values outside what Kafka means: commits below 0, and keys that were not unique."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope

CASES = Path(__file__).parents[1] / "cases" / "reports"
NEGATIVE = CASES / "negative-commit"
BELOW_ZERO = "offset_below_zero"


@pytest.fixture(scope="module")
def workspace(groupscope: Groupscope, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("negative") / "workspace"
    groupscope("replay", NEGATIVE, "--out", folder, "--quiet")
    return folder


def asked(groupscope: Groupscope, *arguments: object) -> dict[str, Any]:
    result = groupscope(*arguments, "--group", "poller", "--format", "json", "--quiet")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_real_broker_prints_a_dash_for_an_offset_below_0(
    groupscope: Groupscope, workspace: Path
) -> None:
    saved = NEGATIVE / "real-describe.txt"
    result = groupscope("describe", workspace, "--group", "poller", "--against", saved, "--quiet")

    assert "4 of 4 rows equal" in result.stdout


def test_the_lag_of_an_offset_below_0_is_that_of_no_offset(
    groupscope: Groupscope, workspace: Path
) -> None:
    ends = NEGATIVE / "ends.csv"
    rows = asked(groupscope, "lag", workspace, "--end-offsets", ends)["rows"]

    numbers = ("committed_offset", "lag", "lost_offsets", "verdict")
    found = {row["partition"]: tuple(row[name] for name in numbers) for row in rows}
    none = (None, 2000, 0, "never_committed")
    assert found == {0: none, 1: none, 2: none, 3: (70, 1930, 0, "unread")}


def test_a_commit_below_0_loses_the_offset_and_costs_no_records(
    groupscope: Groupscope, workspace: Path
) -> None:
    rows = asked(groupscope, "timeline", workspace)["verdicts"]

    told = {row["partition"]: row for row in rows}
    assert [told[each]["verdict"] for each in range(3)] == [BELOW_ZERO] * 3
    assert [told[each]["was"] for each in range(3)] == [1500, None, None]
    assert {told[each]["cost"] for each in range(3)} == {None}
    history = pq.read_table(workspace / "history" / "offset_history").to_pylist()
    stored = [(row["stored_offset"], row["committed_offset"]) for row in history]
    assert sorted(stored) == [(-1001, None), (-2, None), (-1, None), (70, 70), (1500, 1500)]


@pytest.mark.parametrize("case", ["negative-commits", "last-commit-is-last-record"])
def test_a_sound_dump_fails_no_check_of_quality(
    groupscope: Groupscope, tmp_path: Path, case: str
) -> None:
    groupscope("audit", CASES / case, "--out", tmp_path / "out", "--quiet")

    rows = pq.read_table(tmp_path / "out" / "evaluations" / "data_quality").to_pylist()
    assert rows
    assert [row for row in rows if row["outcome"] != "passed"] == []


def test_an_offset_that_a_commit_below_0_took_is_given_back(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    before = ("--as-of-offset", "__consumer_offsets:42:1", "--group", "poller")
    ends = ("--end-offsets", NEGATIVE / "ends.csv")
    groupscope("restore", NEGATIVE, *before, *ends, "--out", tmp_path / "out", "--quiet")

    assert (tmp_path / "out" / "poller.csv").read_text() == "orders,0,1500\n"


def test_what_a_commit_below_0_left_is_no_offset_to_give_back(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    # Three offsets below 0 are stored then, and no other.
    after = ("--as-of-offset", "__consumer_offsets:42:4", "--group", "poller")
    ends = ("--end-offsets", NEGATIVE / "ends.csv")
    groupscope("restore", NEGATIVE, *after, *ends, "--out", tmp_path / "out", "--quiet")

    found = json.loads((tmp_path / "out" / "restore.json").read_text())
    assert not (tmp_path / "out" / "poller.csv").exists(), found


def changed(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("change", "from_committed_offset", "to_committed_offset"))


def test_a_commit_below_0_makes_an_offset_vanish(groupscope: Groupscope) -> None:
    times = ("--from", "2026-09-21T14:13:20Z", "--to", "2026-09-21T14:14:20Z")
    asking = ("--group", "poller", "--table", "offsets", "--format", "json", "--quiet")
    rows = json.loads(groupscope("diff", NEGATIVE, *times, *asking).stdout)["rows"]

    found = {row["partition"]: changed(row) for row in rows}
    assert found == {0: ("vanished", 1500, None), 3: ("appeared", None, 70)}
