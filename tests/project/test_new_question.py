"""A question takes few files: the example is laid over a copy of the repository, and asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path("examples") / "new_question"
PACKAGES = ("groupscope", "analytics", "jobs", "reports", "schemas")
REGISTRY = Path("analytics") / "questions" / "question.py"
LINE = '    "quiet_groups": "QUIET_GROUPS",\n'
MOST_FILES = 8
MOST_LINES = 300


def files_of(repository: Path) -> list[Path]:
    folder = repository / EXAMPLE
    return [each for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc"]


def test_it_takes_at_most_eight_files_and_three_hundred_lines(repository: Path) -> None:
    files = files_of(repository)
    # One more is changed, by a line.
    assert len(files) + 1 <= MOST_FILES
    lines = sum(len(each.read_text("utf-8").splitlines()) for each in files)
    assert lines + 1 <= MOST_LINES


@pytest.fixture
def copy(repository: Path, tmp_path: Path) -> Path:
    """A copy of the packages with the example laid over it, and its line in the registry."""
    for name in PACKAGES:
        # With what Python compiled of them: of a file that is as old it is used.
        shutil.copytree(repository / name, tmp_path / name)
    for each in files_of(repository):
        target = tmp_path / each.relative_to(repository / EXAMPLE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(each, target)
    source = (tmp_path / REGISTRY).read_text("utf-8")
    last = '    "data_quality": "DATA_QUALITY",\n'
    assert source.count(last) == 1
    (tmp_path / REGISTRY).write_text(source.replace(last, LINE + last), "utf-8")
    return tmp_path


def test_it_is_answered_and_an_audit_asks_it(copy: Path, failover_dump: Path) -> None:
    out = copy / "audited"
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    audit = "import sys; from jobs.cli.main import run; sys.exit(run(sys.argv[1:]))"
    for arguments in (
        [str(copy / "test_quiet_groups.py"), str(failover_dump)],
        ["-c", audit, "audit", str(failover_dump), "--out", str(out), "--fail-on", "never"],
    ):
        ran = subprocess.run(
            [sys.executable, *arguments],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
    assert (out / "evaluations" / "quiet_groups").is_dir()
    assert '"group_quiet"' in (out / "findings.jsonl").read_text("utf-8")
