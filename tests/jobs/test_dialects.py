"""The option `--dialect`: share state as designs had it, and nothing of it without the option."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.chain_histories import as_control_batch, shifted, written
from tests.support.reference_chains import recover
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.support.segments import Record, batch
from tests.support.text_share_state import text_record, write_log

if TYPE_CHECKING:
    from tests.conftest import Groupscope

CHAINS = "examples/share-chains"
KEY = ("G1", "topic-0", 0)
DIALECT = ("--dialect", "checkpoint-delta")


@pytest.fixture(scope="module")
def workspace(
    groupscope: Groupscope, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("chains") / "workspace"
    result = groupscope("replay", repository / CHAINS, *DIALECT, "--out", out)
    assert (result.returncode, result.stderr) == (0, "")
    assert "range_below_start" in result.stdout
    return out


def test_the_example_reads_from_top_to_bottom(groupscope: Groupscope, workspace: Path) -> None:
    result = groupscope("share", workspace, "--table", "chain")
    assert result.returncode == 0
    _, head, *lines = result.stdout.splitlines()[:10]
    assert head.split()[3:] == [
        *("OFFSET", "KIND", "EPOCH", "BACK-OFFSET", "START-OFFSET", "END-OFFSET", "OK", "REASON")
    ]
    found = [[line.split()[each] for each in (3, 7, 8)] for line in lines]
    assert [found[0], found[-1]] == [["130", "110", "110"], ["137", "120", "120"]]
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_a_workspace_answers_as_the_input_does(
    groupscope: Groupscope, workspace: Path, repository: Path
) -> None:
    answers = [
        json.loads(groupscope("share", *given, "--format", "json").stdout)
        for given in ((workspace,), (repository / CHAINS, *DIALECT))
    ]
    for each in answers:
        each.pop("input")
    assert answers[0] == answers[1]
    assert [row["start_offset"] for row in answers[0]["rows"]] == [120]


def test_without_the_option_nothing_is_read_so(groupscope: Groupscope, repository: Path) -> None:
    result = groupscope("share", repository / CHAINS)
    assert result.returncode == 2
    result = groupscope("share", repository / "examples/kafka-4.3.1-failover", "--table", "chain")
    assert result.returncode == 2
    assert "only with --dialect" in result.stderr


def test_questions_about_groups_say_that_there_are_none(
    groupscope: Groupscope, workspace: Path
) -> None:
    result = groupscope("describe", workspace)
    assert result.returncode == 3
    assert "groupscope share" in result.stderr


def test_options_that_mean_nothing_are_refused(groupscope: Groupscope, repository: Path) -> None:
    result = groupscope("share", repository / CHAINS, *DIALECT, "--by", "group")
    assert result.returncode == 2
    assert "--by means nothing" in result.stderr


def test_what_cannot_be_told_is_said_with_exit_code_3(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    value = {"GroupId": "G1", "CheckpointEpoch": 1, "BackOffset": 4, "States": []}
    line = json.dumps({"offset": 5, "type": 6, "value": value})
    (folder / "chain.jsonl").write_text(line + "\n", "utf-8")
    result = groupscope("share", folder, *DIALECT)
    assert result.returncode == 3
    assert "cannot tell: G1: orders-0: no checkpoint of the group is in the log" in result.stderr
    assert "no_checkpoint: " in result.stdout


def test_the_late_text_is_kept_and_shown(groupscope: Groupscope, tmp_path: Path) -> None:
    records = [
        ShareRecord(0, 0, KEY, Snapshot(7, 1, -1, 5, -1, 0, 0, ())),
        ShareRecord(0, 1, KEY, Update(6, -1, 9, -1, ())),
        ShareRecord(0, 2, KEY, Update(7, -1, 6, -1, ())),
    ]
    folder = tmp_path / "disk" / "__share_group_state-0"
    write_log(folder, [text_record(each, state_epoch=1) for each in records])
    out = tmp_path / "workspace"
    text = ("--dialect", "kip-932-text")
    made = groupscope("replay", tmp_path / "disk", *text, "--out", out, "--format", "json")
    assert made.returncode == 0, made.stderr
    assert [row["start_offset"] for row in json.loads(made.stdout)["rows"]] == [6]
    shown = groupscope("share", out)
    assert shown.returncode == 0
    assert "other_snapshot: The update names another snapshot" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 120
    assert groupscope("share", out, "--table", "chain").returncode == 2
    assert groupscope("share", out, *DIALECT).returncode == 2


def test_releases_do_not_write_the_text(groupscope: Groupscope, failover_dump: Path) -> None:
    result = groupscope("share", failover_dump, "--dialect", "kip-932-text", "--format", "json")
    assert result.returncode == 3
    found = json.loads(result.stdout)
    shown = groupscope("share", failover_dump, "--dialect", "kip-932-text", "--top", "1")
    assert "leave out --dialect" in shown.stderr
    assert {row["start_offset"] for row in found["rows"]} == {None}
    assert {row["fits"] for row in found["share_readings"]} == {"release", "both"}


def test_large_logs_are_read_by_spark(groupscope: Groupscope, tmp_path: Path) -> None:
    """Two partitions with more data than is read without it, and control batches behind it."""
    histories = [shifted(written(random.Random(seed), records=60), 10) for seed in (3, 8)]
    for number, records in enumerate(histories):
        folder = tmp_path / "disk" / f"orders-{number}"
        folder.mkdir(parents=True)
        large = [Record(at, 1_700_000_000_000, b"", bytes(1 << 20)) for at in range(10)]
        data = batch(large).data + b"".join(as_control_batch(each).data for each in records)
        (folder / f"{0:020}.log").write_bytes(data)
    result = groupscope("share", tmp_path / "disk", *DIALECT, "--format", "json")
    rows = json.loads(result.stdout)["rows"]
    for number, records in enumerate(histories):
        expected = {group: state.start for group, state in recover(records).items()}
        found = {row["group_id"]: row["start_offset"] for row in rows if row["partition"] == number}
        assert found == expected
