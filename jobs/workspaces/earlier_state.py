"""`--since WORKSPACE`: the state of an earlier dump of the same brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from jobs.cli.console import HeldConsole
from jobs.workspaces.replayed import replayed

if TYPE_CHECKING:
    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed

_NAMES: Final = ("groups", "exclude_groups", "data_topics", "broker_configs", "config")
"""Options that hold for the earlier dump, too."""


@contextmanager
def earlier_state(
    console: Console, since: str | None, needs: tuple[str, ...], options: Mapping[str, Any]
) -> Iterator[Replayed | None]:
    """Hand over the state of an earlier workspace; None where none is asked for.

    Args:
        console: Where it is said what is to be known of it.
        since: The workspace.
        needs: Tables that are read.
        options: Of `replayed`, for the dump that is asked about.

    Raises:
        WorkspaceError: It is no workspace.
    """
    if since is None:
        yield None
        return
    kept = {name: each for name, each in options.items() if name in _NAMES}
    held = HeldConsole(console.quiet, console.verbose, console.progress)
    with replayed(held, inputs=[since], needs=needs, has_hint=False, **kept) as state:
        # What the filters leave out is part of the answer, with all else that cannot be told.
        stated = {f"cannot tell: {each.words}" for each in state.left_out}
        held.held = [(how, each) for how, each in held.held if each not in stated]
        held.release(console, lambda message: f"--since {since}: {message}")
        yield state
