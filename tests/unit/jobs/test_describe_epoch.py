"""Members and assignments of a generation: who had come and not gone, and what was theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli
from tests.support.written_workspace import group, write_workspace

GROUP = "billing"
HOME = 9


def epoch(number: int, start: int, **more: Any) -> dict[str, Any]:
    return {
        "group_id": GROUP,
        "group_type": "classic",
        "epoch": number,
        "state": "Stable",
        "from_offset": start,
        "member_count": 1,
        "missing_before": 0,
        "missing_is_compacted": False,
        "partitions_assigned": 0,
        "life": 1,
        "coordinator_partition": HOME,
        **more,
    }


def owned(member: str, number: int, start: int, end: int | None, **more: Any) -> dict[str, Any]:
    return {
        "group_id": GROUP,
        "group_type": "classic",
        "member_id": member,
        "client_id": member[:1],
        "kind": "current",
        "topic": "orders",
        "partition": number,
        "from_epoch": start,
        "to_epoch": end,
        "life": 1,
        "member_epoch": start,
        **more,
    }


def change(member: str, number: int, what: str, offset: int) -> dict[str, Any]:
    return {
        "group_id": GROUP,
        "epoch": number,
        "change": what,
        "member_id": member,
        "life": 1,
        "coordinator_partition": HOME,
        "record_offset": offset,
    }


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Epochs 3, 4, 6 and 7: one before 3 is compacted, 5 never began."""
    return write_workspace(
        tmp_path_factory.mktemp("epochs") / "space",
        {
            "groups": [group(GROUP, home=HOME, epoch=7)],
            "group_epochs": [
                epoch(3, 10, missing_before=None, missing_is_compacted=True),
                epoch(4, 20),
                epoch(6, 30, missing_before=1),
                epoch(7, 40, state="Empty"),
                epoch(3, 1, life=0, state="PreparingRebalance"),
            ],
            "assignment_history": [
                owned("a", 0, 3, 6),
                owned("a", 1, 3, 4),
                owned("b", 1, 4, 7),
                owned("a", 9, 1, None, life=0),
            ],
            "membership_changes": [
                change("a", 3, "joined", 10),
                change("b", 4, "joined", 20),
                change("idle", 4, "joined", 21),
                change("a", 6, "left", 30),
                change("b", 7, "left", 40),
                change("idle", 7, "left", 41),
            ],
        },
        partitions=[{"partition": number, "complete_from": 0} for number in range(50)],
    )


def described(workspace: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        cli, ["describe", str(workspace), *arguments], standalone_mode=False, obj=None
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (3, {"a": "orders:0,1"}),
        (4, {"a": "orders:0", "b": "orders:1", "idle": "-"}),
        (6, {"b": "orders:1", "idle": "-"}),
        (7, {}),
    ],
)
def test_an_epoch_has_the_members_and_partitions_it_had(
    workspace: Path, number: int, expected: dict[str, str]
) -> None:
    result = described(workspace, "--group", GROUP, "--epoch", str(number))
    assert result.return_value == 0, result.output
    head, *lines = result.stdout.rstrip("\n").split("\n")
    place = head.index("CURRENT-ASSIGNMENT")
    found = {line.split()[1]: line[place:].split()[0] for line in lines}
    assert found == expected


def test_the_group_itself_is_as_it_was(workspace: Path) -> None:
    result = described(workspace, "--group", GROUP, "--epoch", "7", "--state")
    assert result.stdout.split("\n")[1].split()[:4] == [GROUP, "-", "-", "Empty"]


@pytest.mark.parametrize(
    ("number", "code", "why"),
    [
        (1, 3, "epoch 1 is compacted"),
        (5, 1, "epoch 5 left no record"),
        (8, 1, "has no epoch 8 at"),
    ],
)
def test_an_epoch_that_is_not_there_is_compacted_or_never_was(
    workspace: Path, number: int, code: int, why: str
) -> None:
    result = described(workspace, "--group", GROUP, "--epoch", str(number))
    assert result.return_value == code
    assert why in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--epoch", "1"), ("--epoch", "1", "--group", GROUP, "--offsets"), ("--members", "--state")],
)
def test_what_does_not_go_together_is_refused(workspace: Path, arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, ["describe", str(workspace), *arguments])
    assert result.exit_code == 2
