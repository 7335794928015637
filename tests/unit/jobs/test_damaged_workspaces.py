"""A file of a workspace that was cut short, or changed, is named; nothing is answered from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.cli.exit_codes import CANNOT_TELL
from jobs.cli.main import run
from tests.support.written_workspace import write_workspace


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def without_its_end(content: bytes) -> bytes:
    return content[:-1]


def empty(_content: bytes) -> bytes:
    return b""


def with_another_footer(content: bytes) -> bytes:
    """Return the file with the length of its footer changed."""
    return content[:-8] + bytes([content[-8] ^ 0xFF]) + content[-7:]


@pytest.mark.parametrize("harmed", [half, without_its_end, empty, with_another_footer])
@pytest.mark.parametrize("table", ["state/groups", "state/committed_offsets", "state/members"])
def test_a_table_that_was_harmed_is_named(
    table: str,
    harmed: Callable[[bytes], bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    space = write_workspace(tmp_path / "space", {})
    path = space / table / "part-00000.parquet"
    path.write_bytes(harmed(path.read_bytes()))
    assert run(["describe", str(space), "--group", "billing"]) == CANNOT_TELL
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"{space}/{table}" in last
    assert "make the workspace again" in last


def a_list(_content: bytes) -> bytes:
    return b"[]"


def of_another_shape(content: bytes) -> bytes:
    return content.replace(b'"partitions": [', b'"partitions": [7, ', 1)


@pytest.mark.parametrize("harmed", [half, empty, a_list, of_another_shape])
@pytest.mark.parametrize("command", ["describe", "list", "lag", "inspect"])
def test_a_manifest_that_was_harmed_is_no_workspace(
    command: str,
    harmed: Callable[[bytes], bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_workspace(tmp_path / "space", {}) / "manifest.json"
    (path.parent / ".groupscope").touch()
    path.write_bytes(harmed(path.read_bytes()))
    assert run([command, str(path.parent)]) == CANNOT_TELL
    assert "manifest.json" in capsys.readouterr().err
