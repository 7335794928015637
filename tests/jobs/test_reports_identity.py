"""Reports of users about groups that lie in two partitions of `__consumer_offsets`.

`offsets-topic-grown` was written by a broker of 4.1.1 whose offsets topic was given 60 partitions
instead of 50, and started again; `real-describe.txt` is what Kafka's own tool said then.
"""

from __future__ import annotations

import json
import shutil
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
    lost = [row for row in rows if row["verdict"] == "lost_by_partition_count"]
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


def test_a_group_that_lies_elsewhere_alone_is_named_as_out_of_reach(
    groupscope: Groupscope, reports: Path
) -> None:
    dump, between = reports / "offsets-topic-grown" / "real", "2026-11-25T12:17:54.800Z"
    told = groupscope("describe", dump, "--group", "billing", "--as-of", between)
    assert told.returncode == 1
    elsewhere = "records of it lie in __consumer_offsets 9, where no client is sent since"
    assert f"{elsewhere} {RESTARTED}" in told.stderr


def test_offsets_of_a_group_that_moved_are_given_back_from_where_they_were(
    groupscope: Groupscope, grown: Path, tmp_path: Path
) -> None:
    out, before = tmp_path / "back", "2026-11-25T12:17:39.200Z"
    told = groupscope("restore", grown, "--as-of", before, "--group", "billing", "--out", out)
    assert told.returncode == 0, told.stderr
    (file,) = (each for each in out.rglob("*.csv") if each.name != "refused.csv")
    assert file.read_text().split() == [f"invoices,{number},{140 + number}" for number in range(3)]
    # Between the alteration and the restart nothing tells which partition counted.
    between = "2026-11-25T12:17:45Z"
    told = groupscope("restore", grown, "--as-of", between, "--group", "billing", "--out", out)
    assert told.returncode == 3
    assert "sent to partition 9 or to 49" in (out / "refused.csv").read_text()


@pytest.fixture(scope="module")
def unexplained(
    groupscope: Groupscope, reports: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Replay logs that lie one partition further than they were written for."""
    dump = tmp_path_factory.mktemp("identity") / "unexplained"
    written = reports / "offsets-topic-grown-eight"
    shutil.copytree(written, dump)
    for number in range(8):
        folder, target = (f"__consumer_offsets-{each % 8}" for each in (number, number + 1))
        shutil.rmtree(dump / "broker-1" / target)
        shutil.copytree(written / "broker-1" / folder, dump / "broker-1" / target)
    out = dump.with_name("workspace")
    told = groupscope("replay", dump, "--out", out)
    assert told.returncode == 0, told.stderr
    assert "no number of partitions of __consumer_offsets explains" in told.stderr
    return out


def test_where_no_number_explains_all_places_groups_in_several_are_not_told(
    unexplained: Path,
) -> None:
    listed = answered("list", unexplained, code=3)
    assert sorted(row["group_id"] for row in listed["rows"]) == sorted(
        {row["group_id"] for row in listed["rows"]}
    )
    unsure = {row["group_id"] for row in listed["rows"] if row["missing"]}
    assert {*MOVED} <= unsure
    described = answered("describe", unexplained, "--group", "billing", code=3)
    assert [row["committed_offset"] for row in described["rows"]] == [None]
    verdicts = answered("timeline", unexplained, "--group", "billing", code=3)["verdicts"]
    assert {row["verdict"] for row in verdicts} == {"cannot_tell"}
    assert all("explains where its records lie" in row["reason"] for row in verdicts)


def test_nothing_is_given_back_of_a_group_of_which_nothing_tells_the_place(
    groupscope: Groupscope, unexplained: Path, tmp_path: Path
) -> None:
    asked = ("--group", "billing", "--as-of", "2025-11-13T03:13:25Z")
    told = groupscope("restore", unexplained, *asked, "--out", tmp_path)
    assert told.returncode == 3
    assert "explains where its records lie" in (tmp_path / "refused.csv").read_text()


def test_a_filter_makes_no_number_of_partitions_certain(
    groupscope: Groupscope, unexplained: Path
) -> None:
    dump = unexplained.with_name("unexplained")
    told = groupscope("describe", dump, "--group", "billing")
    assert told.returncode == 3
    assert "explains where its records lie" in told.stderr


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
    assert lost["verdict"] == "lost_with_offsets_topic"
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
