"""Where the decoded tables of a workspace are: a replay of one into another leaves them there."""

from __future__ import annotations

from pyarrow import fs

from analytics.errors import CannotTellError, WorkspaceError
from analytics.workspace import DECODED, MANIFEST, Workspace

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
    if _is(workspace, DECODED, fs.FileType.Directory):
        return workspace
    location = workspace.manifest().get("replay", {}).get(DECODED_IN)
    if location is None:
        return workspace
    other = Workspace(location)
    return other if _is(other, MANIFEST, fs.FileType.File) else workspace


def has_records(workspace: Workspace) -> bool:
    """Return whether the decoded tables of a workspace are in it, or where it says they are."""
    return _is(decoded_workspace(workspace), DECODED, fs.FileType.Directory)


def records_folder(source: Workspace, folder: str) -> str | None:
    """Return the path of a decoded table; None where no record was decoded into it.

    Args:
        source: The workspace with the decoded tables.
        folder: Where the table is in it ("decoded/offset_commit").

    Raises:
        WorkspaceError: The workspace has no decoded tables at all: what they hold is not known.
    """
    if _is(source, folder, fs.FileType.Directory):
        return source.path(folder)
    refuse_without_tables(source)
    return None


def refuse_without_tables(source: Workspace) -> None:
    """Refuse to take a workspace without decoded tables for one of a dump without records.

    Raises:
        WorkspaceError: It has none, though nobody left them out with the names.
    """
    if _is(source, DECODED, fs.FileType.Directory) or source.manifest().get(REDACTED):
        return
    where = source.manifest().get("replay", {}).get(DECODED_IN)
    gone = "" if where is None else f": they were in {where}, which is no workspace any more"
    raise WorkspaceError(
        f"{source.location} has no decoded records{gone}; name the dump, not the workspace"
    )


def absolute(workspace: Workspace) -> str:
    """Return where a workspace is, from wherever that is read."""
    return workspace.location if "://" in workspace.location else workspace.root


def _is(workspace: Workspace, name: str, kind: fs.FileType) -> bool:
    return workspace.filesystem.get_file_info(workspace.path(name)).type is kind
