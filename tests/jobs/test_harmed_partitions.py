"""A dump of which little is left: what is gone is "cannot tell", and what is there is told.

Of 50 partitions of the offsets topic one is whole, one is garbage, and 48 are absent.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope

STORY = Path(__file__).parents[1] / "data" / "dumps" / "kafka-4.3.1-story" / "broker-1"
WHOLE, GARBAGE = "__consumer_offsets-2", "__consumer_offsets-25"
HERE, GARBLED, ABSENT = "inventory-sync", "payments-eos", "fraud-detector"
QUESTIONS = ("describe", "timeline", "lag", "balance", "rebalances")


@pytest.fixture(scope="module")
def replayed(groupscope: Groupscope, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Replay what is left; return the workspace and what was said."""
    folder = tmp_path_factory.mktemp("harmed")
    dump = folder / "broker-1"
    dump.mkdir()
    for each in STORY.iterdir():
        if not each.is_dir():
            shutil.copy(each, dump)
        elif each.name in {WHOLE, GARBAGE} or not each.name.startswith("__consumer_offsets"):
            shutil.copytree(each, dump / each.name)
    for segment in (dump / GARBAGE).glob("*.log"):
        segment.write_bytes(random.Random(39).randbytes(segment.stat().st_size))
    run = groupscope("replay", dump, "--out", folder / "workspace")
    assert run.returncode == 3, run.stderr
    return folder / "workspace", run.stdout + run.stderr


def test_the_summary_says_what_is_missing(replayed: tuple[Path, str]) -> None:
    _, said = replayed
    assert f"{GARBAGE} lacks all from offset 0 on" in said
    assert "no copy of __consumer_offsets 0-1, 3-24, 26-49" in said
    assert "damaged bytes could not be read" in said


def test_a_list_that_cannot_be_whole_says_so(
    groupscope: Groupscope, replayed: tuple[Path, str]
) -> None:
    run = groupscope("list", replayed[0])
    assert run.returncode == 3
    assert HERE in run.stdout
    assert "0-1, 3-24, 26-49: this dump has no copy of these" in run.stderr
    assert f"groups may be missing: {GARBAGE} lacks" in run.stderr


def test_a_group_whose_partition_is_whole_is_told(
    groupscope: Groupscope, replayed: tuple[Path, str]
) -> None:
    run = groupscope("describe", replayed[0], "--group", HERE, "--format", "json")
    assert run.returncode == 0, run.stderr
    rows: list[dict[str, Any]] = json.loads(run.stdout)["rows"]
    assert rows
    assert all(row["committed_offset"] is not None for row in rows)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("group", [GARBLED, ABSENT])
def test_a_group_whose_partition_is_gone_cannot_be_told(
    question: str, group: str, groupscope: Groupscope, replayed: tuple[Path, str]
) -> None:
    run = groupscope(question, replayed[0], "--group", group)
    assert run.returncode == 3
    assert "cannot tell" in run.stderr
    assert "not exist" not in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("question", "denial"),
    [
        ("timeline", "Nothing happened"),
        ("lag", "No partition"),
        ("balance", "No group"),
        ("rebalances", "No generation"),
        ("share", "No share group"),
    ],
)
def test_where_something_may_be_missing_it_is_not_said_that_there_is_nothing(
    question: str, denial: str, groupscope: Groupscope, replayed: tuple[Path, str]
) -> None:
    run = groupscope(question, replayed[0], "--group", "payments-*")
    assert run.returncode == 3
    assert denial not in run.stdout
    assert "Cannot tell: whether a group matches 'payments-*'" in run.stdout
