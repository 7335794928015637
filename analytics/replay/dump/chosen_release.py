"""By the rules of which release a replay goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from analytics.replay.log.rules import NEWEST

RELEASE_IS_NAMED = "kafka_version_is_named"
"""Of `replay` in a manifest: whether a person named the release, be it the one the dump shows."""

NAMED: Final = "named"
"""A person names it now."""
NAMED_BEFORE: Final = "named before"
"""A person named it for the replay of the workspace that is asked."""
FROM_RECORDS: Final = "shown"
"""Something in the dump shows that this release or a newer one wrote it."""
NOTHING: Final = "nothing"
"""Nothing says or shows one: it is the newest that is known."""


@dataclass(frozen=True)
class ChosenRelease:
    """The release whose rules apply.

    Attributes:
        release: As X.Y or X.Y.Z.
        chosen_by: NAMED, NAMED_BEFORE, SHOWN or NOTHING.
    """

    release: str
    chosen_by: str

    @property
    def named(self) -> str | None:
        """The release, where a person named it."""
        return self.release if self.chosen_by in {NAMED, NAMED_BEFORE} else None

    def is_of(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether a workspace was replayed by this release, chosen in the same manner."""
        if self.named is None:
            return named_release(manifest) is None
        return bool(manifest["replay"]["kafka_version"] == self.release)


def chosen_release(
    named: str | None, workspace: Mapping[str, Any] | None, dump: Mapping[str, Any]
) -> ChosenRelease:
    """Return by which release a replay goes.

    Args:
        named: The release that a person names now.
        workspace: The manifest of a workspace that was given and is asked as such; what was named
            for its replay goes on to count. None for a dump.
        dump: The manifest of what was decoded.
    """
    before = None if workspace is None else named_release(workspace)
    if named is not None:
        return ChosenRelease(named, NAMED)
    if before is not None:
        return ChosenRelease(before, NAMED_BEFORE)
    shown = shown_release(dump)
    return ChosenRelease(NEWEST, NOTHING) if shown is None else ChosenRelease(shown, FROM_RECORDS)


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
