"""What the distribution is: its packages, its number and that of its workspaces, in one place."""

from __future__ import annotations

VERSION = "0.1.0"
"""The package's metadata and `--version` read it here."""
PACKAGES = ("analytics", "jobs", "reports", "schemas")
"""What it consists of (docs/decisions/0001)."""
SCHEMA_VERSION = 3
"""Of workspaces: another one has tables or columns that this release does not know."""
