"""A release of what lies in the checkout, as if it had been committed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from analytics.version import DOOR, PACKAGES
from release.artifacts import write_release
from tests.support.checkout import files_of

_GIT: Final = ["git", "-c", "user.name=someone", "-c", "user.email=someone@example.org"]
_OF_A_RELEASE: Final = {*PACKAGES, DOOR, "release", "requirements"}
COMMITTED_AT: Final = 1795251600
"""Epoch seconds."""


def committed_checkout(repository: Path, folder: Path) -> Path:
    """Commit what a release is made of, and leave something beside it that is not committed."""
    for path in files_of(repository):
        if path.parts[0] in _OF_A_RELEASE or len(path.parts) == 1:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes((repository / path).read_bytes())
    dated = {**os.environ, "GIT_COMMITTER_DATE": f"@{COMMITTED_AT} +0000"}
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "All"]):
        subprocess.run([*_GIT, *words], cwd=folder, env=dated, check=True)
    (folder / "analytics" / "not_committed.py").write_text("raise SystemExit\n", "utf-8")
    return folder


def released(checkout: Path, folder: Path) -> Path:
    """Write the release of a checkout into a new folder."""
    write_release(checkout, folder)
    return folder
