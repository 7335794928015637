"""The numbers of the release and of its workspaces, each in one place."""

from __future__ import annotations

VERSION = "0.1.0"
"""The package's metadata and `--version` read it here."""
SCHEMA_VERSION = 3
"""Of workspaces: another one has tables or columns that this release does not know."""
