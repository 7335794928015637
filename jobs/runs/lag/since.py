"""`lag --since WORKSPACE`: the lag of an earlier dump of the same brokers, and how it grew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from analytics.errors import InputNotRecognizedError
from analytics.gaps.group_selection import select_groups
from analytics.gaps.workspace_filters import left_out_of
from analytics.questions.lag.growth import lag_growth
from analytics.questions.lag.table import HISTORY, evaluate_lag
from analytics.replayed.answered_instant import instant_of
from analytics.workspace import Workspace
from jobs.cli.held_console import HeldConsole
from jobs.runs.lag.question import lag_question
from jobs.workspaces.replayed import replayed

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.cli.console import Console
    from jobs.workspaces.replayed import Replayed

_NAMES = ("groups", "exclude_groups", "data_topics", "broker_configs", "config")


def growth_since(
    since: str,
    console: Console,
    state: Replayed,
    rows: pa.Table,
    *,
    needs: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - of `replayed`, handed through
) -> tuple[pa.Table, list[str]]:
    """Return how lags grew since an earlier workspace was asked about, and what that lacks.

    The first is the table `lag_growth`, the second a sentence for each filter that the earlier
    workspace was made with and that leaves out some of what is asked.

    Args:
        since: The workspace.
        console: Where it is told what is done.
        state: Of this dump.
        rows: The table `lag`.
        needs: Tables that are read.
        **options: Names of groups and topics that are wanted, and how Spark is set up.

    Raises:
        InputNotRecognizedError: It is of another cluster, or not of an earlier instant.
        WorkspaceError: It is no workspace.
    """
    earlier = Workspace(since).manifest()
    clusters = [
        {each["cluster_id"] for each in one["copies"] if each.get("cluster_id")}
        for one in (earlier, state.manifest)
    ]
    if all(clusters) and not clusters[0] & clusters[1]:
        raise InputNotRecognizedError(f"--since {since} is of another cluster")
    kept = {name: each for name, each in options.items() if name in _NAMES}
    held = HeldConsole(console.quiet, console.verbose, console.progress)
    with replayed(held, inputs=[since], needs=needs, has_hint=False, **kept) as before:
        question = lag_question(before, select_groups(before), None)
        found = evaluate_lag(question, before.tables.batches("offset_history", HISTORY)).rows
        # Of what it was made without it has no commit: that is not a lag from the log's start.
        found = found.filter(pc.is_in(found["topic"], before.topics_wanted(found["topic"])))
        left_out = left_out_of(before.manifest, before.tables.selection)
        begun, ended = instant_of(before), instant_of(state)
    # What the filters leave out is returned, and said with all else that cannot be told.
    returned = {f"cannot tell: {each}" for each in left_out}
    held.held = [(how, each) for how, each in held.held if each not in returned]
    held.tell(console, lambda message: f"--since {since}: {message}")
    if begun >= ended:
        raise InputNotRecognizedError(
            f"--since {since} is of {begun:%Y-%m-%dT%H:%M:%SZ}, which is not before this instant"
        )
    return lag_growth(found, rows, begun, ended), [f"--since {since}: {each}" for each in left_out]
