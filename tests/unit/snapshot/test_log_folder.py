"""A snapshot's folder is none until it is whole; its segments are those of a broker."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from analytics.dump.files.inputs import recognize
from analytics.errors import (
    InputNotRecognizedError,
    InputUnreadableError,
    OutputRefusedError,
    WorkspaceError,
)
from analytics.snapshot import log_folder
from analytics.snapshot.log_folder import LogWriter, staged_folder, write_root_files


def files_in(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir())}


def test_what_ends_well_has_its_name(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "dump"
    with staged_folder(out) as folder:
        (folder / "file").write_text("1")
        assert not out.exists()
    assert files_in(out) == {"file": b"1"}
    assert [*out.parent.iterdir()] == [out]
    assert out.stat().st_mode & 0o077 == 0


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    with staged_folder(tmp_path / "dump") as folder:
        (folder / "file").write_text("1")
    assert files_in(tmp_path / "dump") == {"file": b"1"}


def test_a_folder_that_cannot_give_way_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = _made(tmp_path / "dump")

    def mounted(_: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(Path, "rmdir", mounted)
    was_read = []
    with (
        pytest.raises(OutputRefusedError, match=r"Device or resource busy\); choose an --out that"),
        staged_folder(out),
    ):
        was_read.append(True)
    assert not was_read
    assert [*tmp_path.iterdir()] == [out]


@pytest.mark.parametrize("name", [".", "{folder}", "../{name}"])
def test_the_working_directory_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = _made(tmp_path / "dump")
    monkeypatch.chdir(folder)
    out = Path(name.format(folder=folder, name=folder.name))
    with pytest.raises(OutputRefusedError, match="is the working directory"):
        log_folder.check_out(out)
    assert [*tmp_path.iterdir()] == [folder]


def test_a_disk_that_is_full_is_named_by_the_folder(tmp_path: Path) -> None:
    def fill() -> None:
        with staged_folder(tmp_path / "dump"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(WorkspaceError, match="dump cannot be written: No space left on device"):
        fill()
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_ends_otherwise_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    def fail() -> None:
        with staged_folder(tmp_path / "dump") as folder:
            (folder / "file").write_text("1")
            raise error

    with pytest.raises(error):
        fail()
    assert [*tmp_path.iterdir()] == []


def test_what_a_killed_run_left_is_no_dump_and_goes_with_the_next(tmp_path: Path) -> None:
    out = tmp_path / "dump"
    left = tmp_path / ".dump.unfinished"
    with LogWriter(_made(left), "__consumer_offsets", 0) as writer:
        writer.append(memoryview(b"1"), 0, 0)
    (left / "meta.properties").touch()
    (left / log_folder.UNFINISHED_SNAPSHOT).touch()
    with pytest.raises(InputUnreadableError, match="never came to its end"):
        recognize([str(left)])
    with pytest.raises(InputNotRecognizedError):
        recognize([str(tmp_path)])
    with staged_folder(out) as folder:
        assert [each.name for each in folder.iterdir()] == [log_folder.UNFINISHED_SNAPSHOT]
    assert [*tmp_path.iterdir()] == [out]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with (
        staged_folder(tmp_path / "dump") as folder,
        pytest.raises(WorkspaceError, match="in use by another groupscope run"),
        staged_folder(tmp_path / "dump"),
    ):
        pass
    assert folder.name == ".dump.unfinished"


@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_what_is_there_already_is_left_alone(tmp_path: Path, what: str) -> None:
    out = tmp_path / "dump"
    if what == "file":
        out.write_text("mine")
    elif what == "link":
        out.symlink_to(tmp_path / "elsewhere")
    else:
        _made(out).joinpath("mine").write_text("mine")
    with pytest.raises(OutputRefusedError), staged_folder(out):
        pass
    assert [*tmp_path.iterdir()] == [out]


def test_segments_are_named_by_where_they_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_folder, "_SEGMENT_BYTES", 4)
    with LogWriter(tmp_path, "t", 3) as writer:
        writer.append(memoryview(b"abc"), 5, 6)
        writer.append(memoryview(b"d"), 7, 7)
        writer.append(memoryview(b"e"), 8, 9)
        # As many offsets as an index cannot tell apart.
        writer.append(memoryview(b"f"), 2**40, 2**40)
        writer.end(5, 2**40 + 1, 2**40 + 1)
        assert writer.size == 6
    assert files_in(tmp_path / "t-3") == {
        f"{5:020d}.log": b"abcd",
        f"{8:020d}.log": b"e",
        f"{2**40:020d}.log": b"f",
    }


def test_an_empty_segment_says_where_a_log_ends_that_has_no_batch_there(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "empty", 0) as writer:
        writer.end(7, 7, 7)
    with LogWriter(tmp_path, "cleaned", 0) as writer:
        writer.append(memoryview(b"a"), 3, 4)
        writer.end(3, 9, 5)
    assert files_in(tmp_path / "empty-0") == {f"{7:020d}.log": b""}
    assert files_in(tmp_path / "cleaned-0") == {f"{3:020d}.log": b"a", f"{9:020d}.log": b""}


def test_a_log_that_is_read_again_begins_anew(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "t", 0) as writer:
        writer.append(memoryview(b"abc"), 0, 6)
        writer.clear()
        writer.append(memoryview(b"d"), 2, 2)
        writer.end(2, 3, 3)
        assert writer.size == 1
    assert files_in(tmp_path / "t-0") == {f"{2:020d}.log": b"d"}


def test_checkpoints_are_those_of_a_broker(tmp_path: Path) -> None:
    write_root_files(tmp_path, "abc", {("t", 0): 1}, {("t", 0): 9, ("t", 1): 8})
    assert files_in(tmp_path) == {
        "log-start-offset-checkpoint": b"0\n1\nt 0 1\n",
        "meta.properties": b"cluster.id=abc\n",
        "replication-offset-checkpoint": b"0\n2\nt 0 9\nt 1 8\n",
    }
