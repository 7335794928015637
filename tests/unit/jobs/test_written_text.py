"""Files that commands write: whole or not at all, never through a link, a device as it is."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from analytics import failed_reads
from analytics.errors import OutputRefusedError, ReadFailedError
from analytics.workspace import Workspace
from jobs.cli import written_text
from jobs.cli.written_text import StagedFile, remove_file, write_pieces, write_text


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "report" / "index.html"
    assert write_text(str(path), "one") == str(path)
    write_text(str(path), "two\n\n")
    assert path.read_text("utf-8") == "two\n"
    assert [each.name for each in path.parent.iterdir()] == ["index.html"]


def test_a_link_is_replaced_and_what_it_leads_to_is_left_alone(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "page.html"
    victim.write_text("precious", "utf-8")
    path.symlink_to(victim)
    # What was written beside the file had this name.
    (tmp_path / "page.html.part").symlink_to(victim)
    write_text(str(path), "page")
    assert victim.read_text("utf-8") == "precious"
    assert (path.read_text("utf-8"), path.is_symlink()) == ("page\n", False)


def test_a_device_stays_a_device() -> None:
    write_text(os.devnull, "nothing")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_pipe_gets_the_text(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")))
    reader.start()
    write_text(str(pipe), "page")
    reader.join(timeout=30)
    assert read == ["page\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(write_text(str(tmp_path / "page.html"), "one"))

    def fail(_self: Path, _target: Path) -> Path:
        raise OSError("no space")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_text(str(path), "two")
    assert path.read_text("utf-8") == "one\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_workspace_is_its_owners_alone_and_one_that_is_there_stays_as_it_is(
    tmp_path: Path,
) -> None:
    Workspace(str(tmp_path / "made" / "new")).prepare()
    assert stat.S_IMODE((tmp_path / "made" / "new").stat().st_mode) == 0o700
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    Workspace(str(shared)).prepare()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


@pytest.fixture(params=[True, False], ids=["sent at once", "sent in pieces"])
def shared(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Path]:
    """A location on a filesystem of Arrow's, and the file that it is."""
    if request.param:
        monkeypatch.setattr(written_text, "_PUTS_WHOLE", ("local",))
    file = tmp_path / "a" / "page.html"
    file.parent.mkdir()
    monkeypatch.setattr(written_text, "open_location", lambda _: (fs.LocalFileSystem(), str(file)))
    return "hdfs://host/page.html", file


def test_a_file_of_another_filesystem_is_replaced_whole(shared: tuple[str, Path]) -> None:
    location, file = shared
    for text in ("one", "two"):
        assert write_text(location, text) == location
        assert file.read_text("utf-8") == f"{text}\n"
        assert list(file.parent.iterdir()) == [file]


def test_what_breaks_off_is_not_sent(shared: tuple[str, Path]) -> None:
    location, file = shared
    write_text(location, "one")

    def pieces() -> Iterator[str]:
        yield "two"
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        write_pieces(location, pieces())
    assert file.read_text("utf-8") == "one\n"
    assert list(file.parent.iterdir()) == [file]


def test_what_another_filesystem_refuses_is_said(
    shared: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    location, file = shared
    file.parent.rmdir()
    file.parent.write_text("no folder", "utf-8")
    with pytest.raises(OutputRefusedError, match=r"hdfs://host/page\.html cannot be written: "):
        write_text(location, "one")
    refused = OSError("AWS Error SLOW_DOWN during PutObject operation")
    monkeypatch.setattr(failed_reads, "PAUSES", ())
    monkeypatch.setattr(StagedFile, "_send", lambda *_: (_ for _ in ()).throw(refused))
    with pytest.raises(ReadFailedError, match=r"cannot be written: AWS Error SLOW_DOWN.*try again"):
        write_text(location, "one")


def test_a_file_is_removed_wherever_it_is(shared: tuple[str, Path], tmp_path: Path) -> None:
    location, file = shared
    write_text(location, "one")
    for _ in range(2):
        remove_file(location)
        assert not file.exists()
    here = write_text(str(tmp_path / "here"), "one")
    for _ in range(2):
        remove_file(here)
        assert not Path(here).exists()
