"""Are the four packages ours: their names are generic, and another distribution may own one."""

from __future__ import annotations

import importlib.util
from pathlib import PurePath

from analytics.errors import InstallationError

PACKAGES = ("analytics", "jobs", "reports", "schemas")


def check_one_root() -> None:
    """Check that the four top-level packages were found in one folder or archive.

    Nothing is imported.

    Raises:
        InstallationError: A package is missing, or two come from different places; names both.
    """
    roots = {package: _root(package) for package in PACKAGES}
    ours = roots["jobs"]
    for package, root in roots.items():
        if root is None:
            raise InstallationError(
                f"the package `{package}` is missing beside `jobs` in {ours}: install again"
            )
        if root != ours:
            raise InstallationError(
                f"`{package}` comes from {root} and `jobs` from {ours}: another distribution"
                f" owns that name; give groupscope a virtual environment of its own"
            )


def _root(package: str) -> PurePath | None:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return PurePath(next(iter(spec.submodule_search_locations))).parent
