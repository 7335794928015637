"""The release's number, in one place: the package's metadata and `--version` read it here."""

from __future__ import annotations

VERSION = "0.1.0"
