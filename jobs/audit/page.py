"""The page of an audited workspace, in each form: made of its tables, and kept beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analytics.errors import OutputRefusedError
from analytics.library.audited_runs import audit_summary, not_audited
from analytics.locations import join
from analytics.questions.table_orders import order_of
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import PAGE, Workspace
from jobs.cli.written_text import write_text
from reports.page.build import OF_GROUPS, OF_STORIES, TABLES, page_of
from reports.page.forms import html_of, json_of, markdown_of, text_of
from reports.page.groups import worst_groups
from reports.page.model import Page
from reports.page.workspace_tables import HeldTables, WorkspaceTables, is_of

if TYPE_CHECKING:
    from analytics.tables.parted_table import PartedTable
    from jobs.cli.console import Console
    from reports.layout.section import Fold
    from reports.page.workspace_tables import Condition

_AT_ONCE: Final = 128_000
"""So many rows of a few columns: what is done once for each piece takes longer than its rows."""
_FEW_ROWS: Final = 10_000
"""So few rows are held until the page is there: a store would be asked for them again."""
_NEEDED: Final = (
    *("findings", "audited_groups", "applied_rules"),
    *("audit_incidents", "audit_incident_parts"),
)


def page_of_audit(location: str) -> Page:
    """Return the page of a workspace in which an audit came to its end.

    Raises:
        WorkspaceError: It is no workspace.
        CannotTellError: It was never audited, or no audit of it came to its end.
    """
    return page_of_workspace(location, audit_summary(location))


def page_of_workspace(location: str, summary: Mapping[str, Any]) -> Page:
    """Return the page.

    Args:
        location: The workspace.
        summary: What `summary.json` says, or is to say once the page is there.

    Raises:
        WorkspaceError: It is no workspace.
        CannotTellError: It was never audited.
    """
    space = Workspace(location)
    manifest = space.manifest()
    stored = StoredTables(space)
    if not stored.has(*_NEEDED):
        raise not_audited(location)
    tables = _Stored(stored)
    read = WorkspaceTables(tables, manifest, summary)
    shown = is_of(worst_groups(read)["group_id"].to_pylist())
    there = [name for name in OF_STORIES if stored.has(name)]
    of_shown = {name: stored.parted(name, order_of(name)).where(shown).few() for name in there}
    # What was read to choose the groups is not read again.
    return page_of(replace(read, tables=replace(tables, of_shown=HeldTables(of_shown))))


@dataclass(frozen=True)
class _Stored:
    """The tables of a page, read where they are asked for.

    Attributes:
        stored: Where they are.
        of_shown: `OF_STORIES`, as far as they are of the groups that the page shows.
    """

    stored: StoredTables
    of_shown: HeldTables = field(default_factory=HeldTables)
    _looked_at: dict[str, PartedTable | None] = field(default_factory=dict)
    _few: dict[tuple[str, tuple[str, ...], int | None], pa.Table] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        if name in self.of_shown:
            return True
        return name in TABLES and self._parted_or_none(str(name)) is not None

    def read(self, name: str, columns: Sequence[str], where: Condition | None = None) -> pa.Table:
        """Return columns of a table, all where none is named; of the rows that are asked for."""
        if name in OF_GROUPS:
            return self.of_shown.read(name, columns, where)
        rows = self._parted(name)
        if where is not None:
            return rows.where(where).few(columns or None)
        return self._once((name, tuple(columns), None), lambda: rows.whole(columns or None))

    def first(self, name: str, columns: Sequence[str], most: int) -> pa.Table:
        """Return the first rows of a table, in its order."""
        rows = self._once((name, (), most), lambda: self._parted(name).first(most))
        return rows.select(list(columns)) if columns else rows

    def _once(
        self, what: tuple[str, tuple[str, ...], int | None], read: Callable[[], pa.Table]
    ) -> pa.Table:
        """Return rows that are read, or were read before where they are few."""
        if what in self._few:
            return self._few[what]
        rows = read()
        if rows.num_rows <= _FEW_ROWS:
            self._few[what] = rows
        return rows

    def pieces(
        self, name: str, columns: Sequence[str], where: Condition | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows of a table, some at a time."""
        rows = self._parted(name)
        return rows.scan(columns) if where is None else rows.where(where).few_by_part(columns)

    def in_order(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a table in its order, some at a time."""
        return self._parted(name).pieces(columns)

    def folded(
        self, name: str, fold: Fold, columns: Sequence[str], later: Sequence[str] = ()
    ) -> pa.Table:
        """Return what a fold keeps of a table."""
        return self._parted(name).folded(fold, columns, later)

    def count(self, name: str) -> int:
        """Return how many rows a table has."""
        return self._parted(name).num_rows

    def _parted(self, name: str) -> PartedTable:
        rows = self._parted_or_none(name)
        # A table that is not there is an error where it is read.
        return self.stored.parted(name, order_of(name)) if rows is None else rows

    def _parted_or_none(self, name: str) -> PartedTable | None:
        """Return a table, whose folder is listed once for all that the page reads of it."""
        if name not in self._looked_at:
            is_there = self.stored.has(name)
            rows = self.stored.parted(name, order_of(name)) if is_there else None
            self._looked_at[name] = None if rows is None else replace(rows, at_once=_AT_ONCE)
        return self._looked_at[name]

    def of_group(self, name: str, group: str) -> pa.Table:
        """Return the rows of a group that the page shows."""
        return self.of_shown.of_group(name, group)


# What `report` does: the page of an audited workspace in one of its forms.

FORMS: Final = {"html": html_of, "markdown": markdown_of, "json": json_of}


def report_of(
    console: Console, workspace: str, output: str | None, output_format: str, width: int
) -> str:
    """Return what goes to stdout; a file is written where one is asked for.

    Raises:
        GroupscopeError: The workspace was not audited, or the file cannot be written.
    """
    page = page_of_audit(workspace)
    text = text_of(page, width) if output_format == "text" else FORMS[output_format](page)
    if output_format == "html" and output is None:
        output = join(workspace, PAGE)
    if output is None:
        return text
    try:
        path = write_text(output, text)
    except OSError as error:
        raise OutputRefusedError(f"{output} cannot be written: {error.strerror}") from error
    console.detail(f"report: {path}")
    return path
