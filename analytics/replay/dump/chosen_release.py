"""By the rules of which release a replay goes, where no person names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.replay.log.rules import NEWEST


def shown_release(manifest: Mapping[str, Any]) -> str | None:
    """Return the newest release that something in a dump shows, None where nothing does."""
    found: str | None = (manifest.get("kafka_version") or {}).get("at_least")
    return found


def named_release(manifest: Mapping[str, Any]) -> str | None:
    """Return the release that a person named for the replay of a workspace, None where nobody did.

    Questions to the workspace go by it, at whatever instant.
    """
    replayed: str | None = (manifest.get("replay") or {}).get("kafka_version")
    return None if replayed == (shown_release(manifest) or NEWEST) else replayed
