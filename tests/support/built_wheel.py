"""The wheel of a checkout: what `make wheel` and `make zip` ship."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from analytics.version import DOOR, PACKAGES
from tests.support.checkout import files_of


def built_wheel(repository: Path, copy: Path) -> Path:
    """Build the wheel from a copy of the checkout, so that nothing is left in it."""
    for path in files_of(repository):
        if path.parts[0] in {*PACKAGES, DOOR, "release", "pyproject.toml", "README.md"}:
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(repository / path, copy / path)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    build += ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", "dist", "."]
    subprocess.run(build, cwd=copy, check=True)
    (built,) = (copy / "dist").glob("*.whl")
    return built
