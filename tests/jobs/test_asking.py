"""What all questions have in common: workspaces that are used again, groups that are not there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope


@pytest.fixture
def copied_workspace(failover_workspace: Path, tmp_path: Path) -> Path:
    """A workspace to be damaged."""
    return shutil.copytree(failover_workspace, tmp_path / "workspace")


def test_out_that_holds_the_answer_is_used(
    groupscope: Groupscope, failover_dump: Path, failover_workspace: Path
) -> None:
    manifest = failover_workspace / "manifest.json"
    written = manifest.stat().st_mtime_ns
    again = groupscope("list", failover_dump, "--out", failover_workspace, "--format", "json")
    assert again.returncode == 0, again.stderr
    assert "was made of the same files: they are not decoded again" in again.stderr
    rows = json.loads(again.stdout)["rows"]
    asked = groupscope("list", failover_workspace, "--format", "json")
    assert rows == json.loads(asked.stdout)["rows"]
    assert manifest.stat().st_mtime_ns == written, "nothing is written again"


@pytest.mark.parametrize("name", ["manifest.json", "state/groups/part-00000.parquet"])
def test_a_damaged_file_of_a_workspace_is_named(
    groupscope: Groupscope, copied_workspace: Path, name: str
) -> None:
    file = copied_workspace / name
    file.write_bytes(file.read_bytes()[:100])
    result = groupscope("list", copied_workspace)
    assert result.returncode == 3
    assert str(file.parent) in result.stderr
    assert "(make the workspace again)" in result.stderr
    assert "internal error" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["list", "replay", "decode"])
def test_an_output_folder_that_cannot_be_written_is_named(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path, command: str
) -> None:
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "out"
    result = groupscope(command, failover_dump / "broker-2" / "__consumer_offsets-3", "--out", out)
    assert result.returncode == 3
    assert f"{out} cannot be written" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [("describe",), ("list",), ("describe", "--members"), ("describe", "--epoch", "1")]
)
def test_a_pattern_that_matches_no_group_is_said(
    groupscope: Groupscope, failover_workspace: Path, arguments: tuple[str, ...]
) -> None:
    command, *more = arguments
    result = groupscope(command, failover_workspace, *more, "--group", "zzz*")
    assert result.returncode == 1
    assert "no group matches 'zzz*' at the end of the dump" in result.stderr


def test_an_epoch_that_a_group_never_had_is_one_sentence(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    result = groupscope(
        *("describe", failover_workspace, "--group", "parcel-router", "--epoch", "99")
    )
    assert result.returncode == 1
    instant, line = result.stderr.splitlines()
    assert instant == "as of 2026-11-21T09:23:34.172Z, the end of the dump"
    assert line.endswith("parcel-router has no epoch 99 at the end of the dump: its latest is 3")
