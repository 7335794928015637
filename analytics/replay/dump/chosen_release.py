"""By the rules of which release a replay goes, where no person names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.replay.log.rules import NEWEST

RELEASE_IS_NAMED = "kafka_version_is_named"
"""Of `replay` in a manifest: whether a person named the release, be it the one the dump shows."""


def shown_release(manifest: Mapping[str, Any]) -> str | None:
    """Return the newest release that something in a dump shows, None where nothing does."""
    found: str | None = (manifest.get("kafka_version") or {}).get("at_least")
    return found


def named_release(manifest: Mapping[str, Any]) -> str | None:
    """Return the release that a person named for the replay of a workspace, None where nobody did.

    Questions to the workspace go by it, at whatever instant.
    """
    replay = manifest.get("replay") or {}
    replayed: str | None = replay.get("kafka_version")
    # Older workspaces do not say who chose it.
    is_named = replay.get(RELEASE_IS_NAMED, replayed != (shown_release(manifest) or NEWEST))
    return replayed if is_named else None
