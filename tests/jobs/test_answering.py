"""Where a question is answered: here where there is little to do, or where Spark cannot start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analytics.errors import EnvironmentUnfitError
from analytics.workspace import Workspace
from jobs.cli.console import Console
from jobs.spark import session
from jobs.workspaces import replayed
from jobs.workspaces.replayed import part_runner


def doubled(number: int) -> int:
    return 2 * number


@pytest.fixture
def large(tmp_path: Path) -> tuple[Workspace, dict[str, Any]]:
    """A workspace that is too large to be asked in one go, as its manifest has it."""
    kinds = [{"records": 10_000_000}]
    return Workspace(str(tmp_path)), {"record_types": kinds, "partitions": []}


def test_a_small_workspace_is_answered_in_one_go(tmp_path: Path) -> None:
    manifest = {"record_types": [{"records": 10}], "partitions": []}
    with part_runner(Console(), Workspace(str(tmp_path)), manifest, {}) as runner:
        assert runner.run_tasks is None
        assert runner.folder is None


def test_what_needs_no_spark_is_answered_without_java(
    large: tuple[Workspace, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (replayed, session):
        monkeypatch.setattr(module, "java_problem", lambda: "no java on PATH")
    with part_runner(Console(), *large, {"master": None, "conf": {}}) as runner:
        assert runner.run_tasks is not None
        assert runner.run_tasks(3, doubled) == [0, 2, 4]
        assert runner.folder is not None
        folder = Path(runner.folder)
        assert folder.is_dir()
    assert not folder.exists()


def test_who_asks_for_a_master_is_told_why_it_cannot_be_had(
    large: tuple[Workspace, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (replayed, session):
        monkeypatch.setattr(module, "java_problem", lambda: "no java on PATH")
    with part_runner(Console(), *large, {"master": "local[2]", "conf": {}}) as runner:
        assert runner.run_tasks is not None
        with pytest.raises(EnvironmentUnfitError, match="no java on PATH"):
            runner.run_tasks(3, doubled)


def test_a_cluster_keeps_parts_where_all_machines_see_them(
    large: tuple[Workspace, dict[str, Any]], tmp_path: Path
) -> None:
    with part_runner(Console(), *large, {"master": "spark://somewhere:7077"}) as runner:
        assert runner.folder is not None
        folder = Path(runner.folder)
        assert folder.parent == tmp_path
        folder.mkdir()
    assert not folder.exists()
