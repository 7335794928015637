"""Files of a workspace that were cut off, or are gone: each question names them, and ends.

A table is a folder of files, and a folder with fewer files is a table with fewer rows: only the
manifest tells the difference.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Groupscope

AROUND = "2025-11-13T03:00:00Z"
COMMANDS = {
    "list": (),
    "describe": ("--group", "*"),
    "lag": (),
    "balance": (),
    "rebalances": (),
    "expiration": (),
    "usage": (),
    "share": (),
    "timeline": ("--group", "*"),
    "audit": ("--out", "../audited"),
    "forensics": ("--around", AROUND, "--group", "*", "--out", "../incident"),
    "diff": ("../whole",),
    "restore": ("--as-of", AROUND, "--group", "*", "--out", "../restored"),
    "replay": ("--as-of", AROUND, "--out", "../replayed"),
}
WRITES = {"forensics": "../incident", "restore": "../restored", "replay": "../replayed"}
"""Commands whose answer is a folder: it is not made where a file is refused."""


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def halved(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def shortened(file: Path) -> None:
    # A manifest ends with a line feed, which nothing needs.
    end = 2 if file.suffix == ".json" else 1
    file.write_bytes(file.read_bytes()[:-end])


FAULTS = (emptied, halved, shortened, Path.unlink)
SAMPLE = (
    ("state/groups", halved, "list"),
    ("state/committed_offsets", Path.unlink, "lag"),
    ("history/offset_history", Path.unlink, "timeline"),
    ("decoded/offset_commit", Path.unlink, "expiration"),
    ("evaluations/findings", shortened, "audit"),
    ("history/group_events", halved, "forensics"),
    ("state/groups", shortened, "diff"),
    ("state/committed_offsets", halved, "restore"),
    ("decoded/offset_commit", Path.unlink, "replay"),
)


@pytest.fixture(scope="module")
def workspace(
    groupscope: Groupscope, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("truncated") / "workspace"
    dump = repository / "tests" / "cases" / "reports" / "offsets-topic-grown-eight"
    assert groupscope("replay", dump, "--out", out).returncode == 0
    assert groupscope("audit", out, "--out", out).returncode in {0, 1, 3}
    shutil.copytree(out, out.with_name("whole"))
    return out


def broken(workspace: Path, file: Path, fault: Callable[[Path], None]) -> Iterator[str]:
    """Break a file while something is done, and yield its name in the workspace."""
    kept = file.read_bytes()
    fault(file)
    try:
        yield file.relative_to(workspace).as_posix()
    finally:
        file.write_bytes(kept)


def refused(groupscope: Groupscope, workspace: Path, command: str, name: str) -> None:
    told = groupscope(command, workspace, *COMMANDS[command], cwd=workspace)
    assert told.returncode in {2, 3}, (command, name, told.returncode, told.stderr)
    assert name.rpartition("/")[2] in told.stderr
    assert not told.stdout.strip(), (command, name)
    assert "Traceback" not in told.stderr
    if command in WRITES:
        assert not (workspace / WRITES[command]).exists(), (command, name)


@pytest.mark.parametrize(("table", "fault", "command"), SAMPLE)
def test_a_file_of_a_table_that_is_cut_off_or_gone_is_named(
    groupscope: Groupscope,
    workspace: Path,
    table: str,
    fault: Callable[[Path], None],
    command: str,
) -> None:
    file = next((workspace / table).glob("*.parquet"))
    for name in broken(workspace, file, fault):
        refused(groupscope, workspace, command, name)
        told = groupscope(command, workspace, *COMMANDS[command], cwd=workspace)
        assert name in told.stderr
        assert told.returncode == 3


@pytest.mark.parametrize("fault", [emptied, halved, shortened])
def test_a_manifest_that_is_cut_off_is_named(
    groupscope: Groupscope, workspace: Path, fault: Callable[[Path], None]
) -> None:
    for name in broken(workspace, workspace / "manifest.json", fault):
        refused(groupscope, workspace, "list", name)


def test_a_file_of_the_second_workspace_is_named_as_one_of_the_first(
    groupscope: Groupscope, workspace: Path
) -> None:
    file = next((workspace / "state" / "groups").glob("*.parquet"))
    for name in broken(workspace, file, halved):
        told = groupscope("diff", "../whole", workspace, cwd=workspace)
        assert told.returncode == 3
        assert name in told.stderr
        assert not told.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_no_command_answers_from_any_file_that_is_cut_off_or_gone(
    groupscope: Groupscope, workspace: Path, command: str
) -> None:
    scratch = workspace.with_name(f"of-{command}")
    shutil.copytree(workspace, scratch)
    tables = sorted(scratch.rglob("*.parquet"))
    assert len(tables) > 30
    for file in (scratch / "manifest.json", *tables):
        for fault in FAULTS:
            for name in broken(scratch, file, fault):
                refused(groupscope, scratch, command, name)
