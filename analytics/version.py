"""What the distribution is: its packages, its number and that of its workspaces, in one place."""

from __future__ import annotations

VERSION = "0.1.0"
"""The package's metadata and `--version` read it here."""
_PARENT = __name__.removesuffix(".version").removesuffix("analytics")
"""Empty in a checkout, `groupscope.` where a wheel was installed (docs/decisions/0020)."""
PACKAGES = tuple(_PARENT + each for each in ("analytics", "jobs", "reports", "schemas"))
"""What it consists of, as it is imported here."""
DOOR = "groupscope"
"""The package that others import from; in a wheel all lie in it."""
SCHEMA_VERSION = 3
"""Of workspaces: another one has tables or columns that this release does not know."""
