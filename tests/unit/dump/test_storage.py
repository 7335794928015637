"""Paths, globs and URIs: the same questions of a local disk and of a filesystem of Arrow's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyarrow import fs

from analytics.dump.copies.plan import plan
from analytics.dump.files import storage
from analytics.dump.files.storage import (
    ArrowStorage,
    LocalStorage,
    Storage,
    expand_glob,
    read_small,
)
from analytics.errors import InputUnreadableError


@pytest.fixture(params=["local", "arrow"])
def anywhere(request: pytest.FixtureRequest) -> tuple[Storage, str]:
    """A filesystem and what stands before a local path in its URIs."""
    if request.param == "local":
        return LocalStorage(), ""
    return ArrowStorage(fs.LocalFileSystem(), "test://host"), "test://host"


def test_a_folder_is_listed_by_name(anywhere: tuple[Storage, str], tmp_path: Path) -> None:
    there, prefix = anywhere
    (tmp_path / "b").write_bytes(b"123")
    (tmp_path / "a").mkdir()
    found = there.list(f"{prefix}{tmp_path}")
    assert [(e.name, e.is_folder, e.size) for e in found] == [("a", True, 0), ("b", False, 3)]
    assert found[1].modified > 0


def test_a_file_is_read_anywhere_in_it(anywhere: tuple[Storage, str], tmp_path: Path) -> None:
    there, prefix = anywhere
    (tmp_path / "b").write_bytes(b"0123456789")
    with there.open(f"{prefix}{tmp_path}/b") as file:
        file.seek(7)
        assert file.read(9) == b"789"
        assert file.seek(0, os.SEEK_END) == 10


def test_what_is_not_there(anywhere: tuple[Storage, str], tmp_path: Path) -> None:
    there, prefix = anywhere
    assert there.entry(f"{prefix}{tmp_path}/gone") is None
    with pytest.raises(InputUnreadableError, match="cannot be read"):
        there.open(f"{prefix}{tmp_path}/gone")
    with pytest.raises(InputUnreadableError, match="cannot be read"):
        there.list(f"{prefix}{tmp_path}/gone")


def test_a_link_that_leads_nowhere_is_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert [(e.name, e.size) for e in LocalStorage().list(str(tmp_path))] == [("link", 0)]


def test_a_dump_is_read_by_uri(monkeypatch: pytest.MonkeyPatch, failover_dump: Path) -> None:
    monkeypatch.setattr(
        storage, "_arrow_storage", lambda *_: ArrowStorage(fs.LocalFileSystem(), "test://host")
    )
    local = plan([str(failover_dump)])
    remote = plan([f"test://host{failover_dump}"])
    assert [
        (s.copy, s.segment.name, s.line, s.from_position, s.to_position, s.rules)
        for s in remote.slices
    ] == [
        (s.copy, s.segment.name, s.line, s.from_position, s.to_position, s.rules)
        for s in local.slices
    ]
    assert remote.divergences == local.divergences


def test_globs_by_uri(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        storage, "_arrow_storage", lambda *_: ArrowStorage(fs.LocalFileSystem(), "test://host")
    )
    (tmp_path / "x1").mkdir()
    (tmp_path / "x1" / "f").touch()
    assert expand_glob(f"test://host{tmp_path}/x*/f") == [f"test://host{tmp_path}/x1/f"]


def test_wildcards_match_names_and_no_hidden_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a1", "a2", ".a3", "b1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").touch()
    names = [Path(path).name for path in expand_glob(f"{tmp_path}/a*")]
    assert names == ["a1", "a2"]
    assert expand_glob(f"{tmp_path}/[ab]1/f") == [f"{tmp_path}/a1/f", f"{tmp_path}/b1/f"]
    assert expand_glob(f"{tmp_path}/?2/*") == [f"{tmp_path}/a2/f"]
    assert expand_glob(f"{tmp_path}/.a*") == [f"{tmp_path}/.a3"]
    monkeypatch.chdir(tmp_path)
    assert expand_glob("b*/f") == ["b1/f"]


def test_small_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    assert read_small(str(tmp_path / "f"), 4) == b"0123"
    with pytest.raises(InputUnreadableError):
        read_small(str(tmp_path), 4)
