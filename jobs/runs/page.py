"""The page of an audited workspace: made of its tables, which Arrow reads, and kept beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from analytics.errors import CannotTellError, WorkspaceError
from analytics.workspace import Workspace
from jobs.stored_tables import StoredTables
from reports.page.build import OF_GROUPS, TABLES, page_of
from reports.page.groups import worst_groups
from reports.page.html import html_of
from reports.page.model import Page
from reports.page.workspace_tables import WorkspaceTables

PAGE: Final = "report/index.html"
SUMMARY: Final = "summary.json"
_NEEDED: Final = ("findings", "audited_groups", "applied_rules")


def write_page(location: str) -> Path:
    """Write the page of an audited workspace into it; return where it is."""
    return write_text(Path(location) / PAGE, html_of(page_of_workspace(location)))


def remove_page(location: str) -> None:
    """Remove the page of an earlier audit."""
    (Path(location) / PAGE).unlink(missing_ok=True)


def write_text(path: Path, text: str) -> Path:
    """Write a file whole or not at all; it ends with a line's end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f"{path.name}.part")
    staged.write_text(text.rstrip("\n") + "\n", encoding="utf-8", errors="backslashreplace")
    return staged.replace(path)


def page_of_workspace(location: str) -> Page:
    """Return the page.

    Raises:
        WorkspaceError: It is no workspace.
        CannotTellError: It was never audited.
    """
    space = Workspace(location)
    manifest = space.manifest()
    stored = StoredTables(space)
    summary = _summary(location)
    if summary is None or not stored.has(*_NEEDED):
        raise CannotTellError(
            f"{location} was not audited: run groupscope audit {location} --out {location} first"
        )
    tables = {name: stored.read(name) for name in TABLES if stored.has(name)}
    read = WorkspaceTables(tables, manifest, summary)
    shown = worst_groups(read)["group_id"]
    wanted = pc.field("group_id").isin(shown.combine_chunks())
    more = {name: stored.read(name, where=wanted) for name in OF_GROUPS if stored.has(name)}
    return page_of(WorkspaceTables({**tables, **more}, manifest, summary))


def _summary(location: str) -> Mapping[str, Any] | None:
    path = Path(location) / SUMMARY
    try:
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{path} cannot be read: {error}") from error
    return found
