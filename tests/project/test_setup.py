"""`make setup` on a machine that lacks something: one clear line, and nothing half-made."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """As much of a checkout as `make setup` looks at before it installs."""
    copy = tmp_path / "checkout"
    shutil.copytree(repository / "jobs", copy / "jobs")
    shutil.copytree(repository / "requirements", copy / "requirements")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copyfile(repository / name, copy / name)
    return copy


def make(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=checkout,
        env={**os.environ, "MAKEFLAGS": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def lines_of(ran: subprocess.CompletedProcess[str]) -> list[str]:
    """What was said, without make's own closing line."""
    return [line for line in ran.stderr.splitlines() if not line.startswith("make")]


def test_an_old_python_is_named(checkout: Path) -> None:
    ran = make(checkout, "setup", "PYTHON=false")
    assert ran.returncode != 0
    (line,) = lines_of(ran)
    assert "needs Python 3.11 or newer" in line
    assert not (checkout / ".venv").exists()


def test_a_missing_java_is_said(checkout: Path) -> None:
    ran = make(checkout, "setup", JAVA_HOME=str(checkout / "nowhere"))
    assert ran.returncode != 0
    (line,) = lines_of(ran)
    assert "Spark needs Java 17 or newer" in line
    assert not (checkout / ".venv").exists()


def test_make_alone_lists_what_there_is(checkout: Path) -> None:
    ran = make(checkout)
    assert ran.returncode == 0
    for target in ("setup", "demo", "test", "bench", "zip"):
        assert f"make {target} " in ran.stdout


def test_setup_is_done_once(checkout: Path) -> None:
    ready = checkout / ".venv" / ".ready"
    ready.parent.mkdir()
    ready.touch()
    ran = make(checkout, "setup", "PYTHON=false")
    assert (ran.returncode, lines_of(ran)) == (0, [])
