"""What a shell completes the names of groups and topics with: those of the workspace that is asked.

An INPUT that is not a replayed workspace completes nothing: its names would have to be decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import click
from click.shell_completion import CompletionItem

from analytics.errors import GroupscopeError
from analytics.locations import is_uri
from jobs.cli.console import arguments_of

_TABLES: Final = {"group_id": "groups", "topic": "committed_offsets"}
"""The columns that names are read of, and the state tables that have them."""
_MOST: Final = 200
"""So many names a person still looks through."""
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def names_of(column: str) -> Complete:
    """Return what completes an option with the names in a column of a state table.

    Raises:
        KeyError: Nothing completes names of this column.
    """
    name = _TABLES[column]

    def complete(
        ctx: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        # Click has no arguments yet where the last option lacks its value.
        words = [each for each in arguments_of(ctx) if not each.startswith("-")]
        # A store that does not answer would hold the shell up for a minute.
        places = [each for each in words if not is_uri(each)]
        return [CompletionItem(each) for each in _names(places, name, column, incomplete)]

    return complete


def _names(places: Sequence[str], table: str, column: str, incomplete: str) -> list[str]:
    # Arrow is heavy: only who asks for names waits for it.
    from analytics.tables.stored_tables import StoredTables  # noqa: PLC0415
    from analytics.workspace import Workspace  # noqa: PLC0415

    found: set[str] = set()
    for location in places:
        try:
            space = Workspace(location)
            space.manifest()
            stored = StoredTables(space)
            if not stored.has(table):
                continue
            found |= stored.names(table, column, incomplete)
        except (GroupscopeError, OSError):
            # A shell waits for names: that there are none is all it can be told.
            continue
    return sorted(found)[:_MOST]
