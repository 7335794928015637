"""Where the decoded tables of a workspace are: a replay of one into another leaves them there."""

from __future__ import annotations

from pyarrow import fs

from analytics.errors import CannotTellError
from analytics.workspace import MANIFEST, Workspace

DECODED_IN = "decoded_in"
"""In the section `replay` of a manifest: the workspace that was replayed, where it is another."""
REDACTED = "redacted"
"""In a manifest: the workspace has no names, and no decoded records."""


DIALECT = "dialect"
"""In a manifest: the workspace holds tables of a dialect, and no decoded records."""


def refuse_without_records(workspace: Workspace) -> None:
    """Refuse to ask a workspace that has no decoded records.

    Raises:
        CannotTellError: It was redacted: they were left out with the names; or it is of a dialect.
    """
    manifest = workspace.manifest()
    if DIALECT in manifest:
        raise CannotTellError(
            f"{workspace.location} holds share state of the dialect {manifest[DIALECT]['name']} "
            "and nothing else of groups: groupscope share shows it"
        )
    if manifest.get(REDACTED):
        raise CannotTellError(
            f"{workspace.location} has no decoded records: it was redacted; its page and tables "
            "can be read (groupscope report), questions are for the dump"
        )


def decoded_workspace(workspace: Workspace) -> Workspace:
    """Return the workspace that holds the decoded tables of one.

    It is the same one where these are in it, or where the other is no longer there.
    """
    if _is(workspace, "decoded", fs.FileType.Directory):
        return workspace
    location = workspace.manifest().get("replay", {}).get(DECODED_IN)
    if location is None:
        return workspace
    other = Workspace(location)
    return other if _is(other, MANIFEST, fs.FileType.File) else workspace


def absolute(workspace: Workspace) -> str:
    """Return where a workspace is, from wherever that is read."""
    return workspace.location if "://" in workspace.location else workspace.root


def _is(workspace: Workspace, name: str, kind: fs.FileType) -> bool:
    return workspace.filesystem.get_file_info(workspace.path(name)).type is kind
