"""What happened to groups, event by event: in the order of time, of a history of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.compute as pc

from analytics.engine.part_runs import PartAnswer, PartAnswers
from analytics.questions.timeline.group_verdicts import matched
from analytics.replayed.whole_groups import frame_of
from analytics.tables.parted_table import Order
from analytics.tables.stored_tables import EVERY

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.tables.stored_tables import StoredTables

GROUP_EVENTS: Final = "group_events"
AT_ONCE: Final = 600_000
"""So many events are sorted together, about; else those of each file."""
_BY_TIME: Final = ("at", "log", "coordinator_partition", "record_offset", "event", "subject")


def in_time_order(events: pl.DataFrame) -> pl.DataFrame:
    """Sort events; those without a time come last, and those of one record stay as they are."""
    return events.sort(_BY_TIME, nulls_last=True, maintain_order=True)


def group_events(
    state: ReplayedWorkspace,
    since: datetime | None,
    until: datetime | None,
    missing: Sequence[str],
) -> PartAnswers:
    """Return the table `group_events` of the groups asked about, in the order of time.

    Args:
        state: A replayed workspace.
        since: Only events at or after this instant.
        until: Only events at or before this one.
        missing: Names and patterns that match no group that is there.

    Returns:
        The table, and of each part which of `missing` match a group that it has.
    """
    tables = state.tables
    files: list[str | None] = [None]
    if tables.count(GROUP_EVENTS) > AT_ONCE:
        files = [*tables.files(GROUP_EVENTS)]
    reads = [partial(_read, tables, (since, until), each) for each in files]
    orders = {GROUP_EVENTS: Order(_BY_TIME, in_time_order)}
    return state.runner.run(partial(events_of_part, tuple(missing)), reads, orders)


def _read(
    tables: StoredTables, window: tuple[datetime | None, datetime | None], file: str | None
) -> dict[str, pl.DataFrame]:
    since, until = window
    where = EVERY
    if since is not None:
        where &= pc.field("at") >= since
    if until is not None:
        where &= pc.field("at") <= until
    files = None if file is None else [file]
    return {GROUP_EVENTS: frame_of(tables.read(GROUP_EVENTS, None, where, files))}


def events_of_part(missing: Sequence[str], rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    """Return events in the order of time."""
    events = in_time_order(rows[GROUP_EVENTS])
    return PartAnswer({GROUP_EVENTS: events}, matched(missing, events["group_id"]))
