"""The files of the checkout that are, or are about to be, under version control."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


@cache
def files_of(repository: Path) -> tuple[Path, ...]:
    """Return every file that is tracked or could be added, relative to the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = (Path(name) for name in listed.split("\0") if name)
    return tuple(path for path in paths if (repository / path).is_file())
