"""What findings advise is run as it stands, and gives back what was lost."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.verdicts.happened import LOST
from tests.verdicts.truth import read_truth

if TYPE_CHECKING:
    from tests.conftest import Groupscope

Key = tuple[str, str, int]
REFUSED = "refused.csv"


@pytest.fixture(scope="module")
def advised(failover_audited: Path) -> list[str]:
    """What the findings about lost offsets advise, each command once."""
    lines = (failover_audited / "findings.jsonl").read_text("utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    mine = [row["suggestion"] for row in rows if row["rule"] == "offsets_lost_by_election"]
    return list(dict.fromkeys(command for each in mine for command in each.split("; ")))


def test_one_command_gives_back_what_an_election_took(
    groupscope: Groupscope, advised: list[str], tmp_path: Path
) -> None:
    (command,) = [each for each in advised if " restore " in each]
    _, *words = shlex.split(command)
    run = groupscope(*words, "--quiet", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    folder = tmp_path / words[words.index("--out") + 1]
    counts = json.loads((folder / "restore.json").read_text("utf-8"))["counts"]
    assert [counts[each] for each in ("restore", "unchanged", "refused")] == [11, 11, 10]
    refused = {
        (row["group_id"], row["topic"], int(row["partition"])): row["reason"]
        for row in csv.DictReader((folder / REFUSED).read_text("utf-8").splitlines())
    }
    restored = {
        (path.stem, topic, int(partition)): {int(offset)}
        for path in folder.glob("*.csv")
        if path.name != REFUSED
        for topic, partition, offset in csv.reader(path.read_text("utf-8").splitlines())
    }
    lost = {
        each.key: each.was
        for each in read_truth("kafka-4.3.1-failover").happenings
        if each.what == LOST and each.is_certain
    }
    assert len(restored) == counts["restore"]
    assert restored.items() <= lost.items()
    # The data of these went with the broker, too, or the group has read on since.
    reasons = {"above_log_end; data_diverged", "moved_on"}
    assert {refused[key] for key in lost.keys() & refused.keys()} == reasons
