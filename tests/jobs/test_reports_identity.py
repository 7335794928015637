"""Reports of users about groups that lie in two partitions of `__consumer_offsets`.

`offsets-topic-grown` was written by a broker of 4.1.1 whose offsets topic was given 60 partitions
instead of 50, and started again; `real-describe.txt` is what Kafka's own tool said then.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from jobs.cli.main import cli

if TYPE_CHECKING:
    from tests.conftest import Groupscope

RESTARTED = "2026-11-25T12:17:54.701Z"
MOVED = ("billing", "etl", "invoices", "ledger", "mailer", "stock")
STAYED = ("audit", "orders-app", "search", "shipping")


@pytest.fixture(scope="module")
def reports(repository: Path) -> Path:
    return repository / "tests" / "cases" / "reports"


@pytest.fixture(scope="module")
def grown(groupscope: Groupscope, reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _replayed(groupscope, reports / "offsets-topic-grown" / "real", tmp_path_factory)


@pytest.fixture(scope="module")
def eight(groupscope: Groupscope, reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _replayed(groupscope, reports / "offsets-topic-grown-eight", tmp_path_factory)


def _replayed(groupscope: Groupscope, dump: Path, folders: pytest.TempPathFactory) -> Path:
    out = folders.mktemp("identity") / "workspace"
    result = groupscope("replay", dump, "--out", out)
    assert result.returncode == 0, result.stderr
    assert "where no client is sent" in result.stderr
    return out


def answered(*arguments: str | Path, code: int = 0) -> dict[str, Any]:
    words = [str(each) for each in arguments]
    result = CliRunner().invoke(cli, [*words, "--format", "json"], standalone_mode=False)
    assert result.exception is None, result.stderr
    assert result.return_value == code, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_offsets_are_those_that_the_broker_told(grown: Path, reports: Path) -> None:
    expected = reports / "offsets-topic-grown" / "real-describe.txt"
    told = CliRunner().invoke(
        cli,
        ["describe", str(grown), "--group", "billing", "--against", str(expected)],
        standalone_mode=False,
    )
    assert (told.exception, told.return_value) == (None, 0), told.output


def test_each_offset_is_told_as_lost_since_the_restart(grown: Path) -> None:
    rows = answered("timeline", grown, "--group", "billing")["verdicts"]
    lost = [row for row in rows if row["verdict"] == "lost by a new partition count"]
    assert [(row["partition"], row["was"], row["became"], row["at"]) for row in lost] == [
        (number, 140 + number, None, RESTARTED) for number in range(3)
    ]
    assert all("60 partitions" in row["reason"] for row in lost)


def test_a_group_that_moved_has_one_row_a_partition(eight: Path) -> None:
    listed = answered("list", eight)["rows"]
    assert [row["group_id"] for row in listed] == sorted((*MOVED, *STAYED))
    lag = answered("lag", eight, "--by", "group")["rows"]
    assert {row["group_id"]: (row["partitions"], row["lag"]) for row in lag} == {
        **dict.fromkeys(MOVED, (1, 37)),
        **dict.fromkeys(STAYED, (1, 25)),
    }


def test_groups_whose_hash_did_not_move_lost_nothing(eight: Path) -> None:
    rows = answered("timeline", eight, "--group", "*")["verdicts"]
    lost = {row["group_id"]: row["was"] for row in rows if row["verdict"].startswith("lost")}
    assert lost == dict.fromkeys(MOVED, 12)


@pytest.fixture(scope="module")
def recreated(
    groupscope: Groupscope, reports: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("identity") / "recreated"
    result = groupscope("replay", reports / "offsets-topic-recreated", "--out", out)
    assert result.returncode == 0, result.stderr
    return out


def test_a_topic_that_was_made_again_took_its_offsets_and_no_election_did(recreated: Path) -> None:
    rows = answered("timeline", recreated, "--group", "billing")["verdicts"]
    (lost,) = [row for row in rows if row["verdict"].startswith("lost")]
    assert lost["verdict"] == "lost with a deleted offsets topic"
    assert (lost["was"], lost["became"]) == (129, 3)
    assert "deleted and made again" in lost["reason"]


def test_inspect_names_copies_of_different_topics_and_the_folder_that_was_being_deleted(
    reports: Path,
) -> None:
    dump = reports / "offsets-topic-recreated"
    told = CliRunner().invoke(cli, ["inspect", str(dump)], standalone_mode=False).stdout
    assert "Copies of different topics of one name" in told
    assert "id 9XXmj0iTTD2pFxGLePa3dw" in told
    assert "Lines of history that did not survive an election" not in told
    assert "-delete" in told
