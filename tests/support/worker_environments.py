"""Pythons with exactly the packages of a lock, as those that a cluster's machines have.

Nothing is installed: what is there already is linked to.
"""

from __future__ import annotations

import re
import venv
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

from packaging.markers import Marker

_PINNED: Final = re.compile(r"^([\w.-]+)==([^ ;\\]+)(?: ; ([^\\]+))?", re.MULTILINE)


def pins_of(lock: Path) -> dict[str, str]:
    """Return the versions that a lock pins on this machine, by package."""
    pinned = _PINNED.findall(lock.read_text("utf-8"))
    return {
        name: version
        for name, version, marker in pinned
        if not marker or Marker(marker.strip()).evaluate()
    }


def python_with(folder: Path, packages: set[str]) -> Path:
    """Make an environment with some of the packages of this one, and nothing else.

    Args:
        folder: Does not exist yet.
        packages: Names of distributions.

    Returns:
        Its Python.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    link_packages(folder, packages)
    return folder / "bin" / "python"


def link_packages(folder: Path, packages: set[str]) -> None:
    """Give an environment some of the packages of this one."""
    (libraries,) = folder.glob("lib/python*/site-packages")
    for package in packages:
        for entry in _entries_of(package):
            link = libraries / entry.name
            if not link.exists():
                link.symlink_to(entry)


def _entries_of(package: str) -> set[Path]:
    """Return the files and folders that a distribution has beside those of others."""
    found = distribution(package)
    names = {each.parts[0] for each in found.files or () if each.parts[0] != ".."}
    folder = Path(str(found.locate_file("")))
    return {folder / name for name in names - {"__pycache__"}}
