"""One run at a time writes into a workspace."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from analytics import workspace_lock
from analytics.errors import WorkspaceError
from analytics.workspace import Workspace
from analytics.workspace_lock import locks_of_command


@contextmanager
def another_run(folder: Path) -> Iterator[None]:
    """Hold the lock as another process does: locks are of open files, not of processes."""
    descriptor = os.open(folder / ".groupscope", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def left_by_a_run(folder: Path) -> Path:
    """Return what a run that was killed, or lives, has written so far."""
    staging = Path(Workspace(str(folder)).prepare().location)
    staging.mkdir()
    (staging / "part").write_text("half")
    return staging


def test_a_workspace_in_use_is_refused_and_its_staging_folder_stays(tmp_path: Path) -> None:
    staging = left_by_a_run(tmp_path / "out")
    with another_run(tmp_path / "out"), pytest.raises(WorkspaceError) as refused:
        Workspace(str(tmp_path / "out")).prepare()
    assert str(refused.value) == (
        f"{tmp_path}/out is in use by another groupscope run: wait until that ends, or choose "
        "another --out"
    )
    assert (staging / "part").exists()


def test_a_command_keeps_others_out_until_it_ends(tmp_path: Path) -> None:
    place = str(tmp_path / "out")
    with locks_of_command():
        Workspace(place).prepare()
        # The command itself goes on writing.
        Workspace(place).prepare()
        with pytest.raises(BlockingIOError):
            lock_as_another(tmp_path / "out")
    lock_as_another(tmp_path / "out")


def lock_as_another(folder: Path) -> None:
    with (folder / ".groupscope").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_command_that_prepares_again_leaves_its_own_staging_folder(tmp_path: Path) -> None:
    with locks_of_command():
        staging = left_by_a_run(tmp_path / "out")
        Workspace(str(tmp_path / "out")).prepare()
        assert staging.exists()


def test_where_no_command_holds_it_a_lock_ends_at_once(tmp_path: Path) -> None:
    Workspace(str(tmp_path / "out")).prepare()
    lock_as_another(tmp_path / "out")


@pytest.mark.parametrize(("hours", "is_left"), [(1, True), (25, False)])
def test_without_locks_only_what_is_old_is_swept_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int, *, is_left: bool
) -> None:
    staging = left_by_a_run(tmp_path / "out")
    written = (staging / "part").stat().st_mtime - hours * 3600
    for path in (staging / "part", staging):
        os.utime(path, (written, written))

    def unknown(_descriptor: int, _operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(workspace_lock.fcntl, "flock", unknown)
    Workspace(str(tmp_path / "out")).prepare()
    assert staging.exists() == is_left
