"""Verdicts on the offsets of whole groups, some groups at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from analytics.decode.selection import is_name
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.timeline.history import NEEDED, OffsetHistory
from analytics.questions.timeline.out_of_reach import looked_for_elsewhere
from analytics.questions.timeline.verdicts import (
    COMMITTED,
    GROUPS,
    WAITING,
    GroupRows,
    VerdictEvidence,
    verdicts,
)
from analytics.questions.timeline.words import PLACE
from analytics.replayed.pending_at import pending_at
from analytics.replayed.whole_groups import group_reads
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.replay.log.frames import Frames
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_NEEDED: Final = {
    "groups": ("group_id", "coordinator_partition"),
    "offset_history": NEEDED,
    "assignments": (*PLACE, "group_type"),
}
"""What is read of each group, at any time."""
_OF_REPLAY: Final = {"committed_offsets": COMMITTED, "pending_offsets": WAITING}
"""What is read of each group at the instant of the replay."""
_AT_ONCE: Final = 600_000
"""So many rows of whole groups are looked at together, about."""
_COMMITTING: Final = ("classic", "consumer")
"""Share groups commit nothing, and what streams groups read is not in their tasks."""
_NAMES: Final = pl.Schema({"group_id": pl.String()})


def verdicts_of_groups(
    state: ReplayedWorkspace, evidence: VerdictEvidence, frames: Frames
) -> Iterator[pl.DataFrame]:
    """Yield the verdicts on the offsets of the groups asked about, `VERDICTS`.

    Args:
        state: A replayed workspace.
        evidence: What verdicts are made of that is the same for all groups.
        frames: Where the logs whose times go back are cut at the instant asked about.
    """
    completeness = GroupCompleteness(state)
    until = evidence.until
    needed = _NEEDED | (_OF_REPLAY if until is None else {})
    pending = None if until is None else pending_at(state, until).select(WAITING)
    named = [each for each in state.tables.selection.groups if is_name(each)]
    # Of these nothing need be in a table.
    elsewhere = _groups_in(
        *(each.last for each in evidence.lines),
        evidence.out_of_reach,
        *([] if pending is None else [pending]),
        pl.DataFrame({"group_id": named}, _NAMES),
    )
    reads = group_reads(state.tables, needed, _AT_ONCE)
    for number, read in enumerate(reads, 1):
        rows = read()
        there = _groups_in(*rows.values())
        # Groups that no table has come with the last ones.
        is_last = number == len(reads)
        others = elsewhere if is_last else elsewhere.join(there, "group_id", "semi")
        names = pl.concat([there, others]).unique()
        elsewhere = elsewhere.join(there, "group_id", "anti")
        yield _verdicts(state, completeness, evidence, _Part(names, rows, pending, named, frames))


@dataclass(frozen=True)
class _Part:
    """What is read of some whole groups.

    Attributes:
        names: `group_id` of the groups.
        rows: Theirs, of the tables that are needed.
        pending: `WAITING` of all groups at an earlier instant than the replay's; else None.
        named: Groups that are asked for by name, in this part or not.
        frames: Where the logs whose times go back are cut at the instant asked about.
    """

    names: pl.DataFrame
    rows: Mapping[str, pl.DataFrame]
    pending: pl.DataFrame | None
    named: Sequence[str]
    frames: Frames


def _groups_in(*tables: pl.DataFrame) -> pl.DataFrame:
    """Return the `group_id` of tables, each once."""
    return pl.concat(each.select("group_id") for each in tables).unique()


def _verdicts(
    state: ReplayedWorkspace,
    completeness: GroupCompleteness,
    evidence: VerdictEvidence,
    part: _Part,
) -> pl.DataFrame:
    """Return the verdicts on the offsets of some groups."""
    lines = [replace(each, last=_of(part, each.last)) for each in evidence.lines]
    own = replace(evidence, lines=lines, out_of_reach=_of(part, evidence.out_of_reach))
    until = evidence.until
    changes = part.rows["offset_history"]
    if until is not None:
        changes = changes.filter(_until(until, part.frames))
    history = OffsetHistory(changes)
    committed, pending = history.in_force.select(COMMITTED), part.pending
    if pending is None:
        committed, pending = (part.rows[name] for name in _OF_REPLAY)
    rows = GroupRows(
        history=history,
        committed=committed,
        pending=_of(part, pending),
        given=_given(state, part.rows["assignments"]),
        groups=_groups(completeness, part, history, until),
    )
    return verdicts(own, rows)


def _of(part: _Part, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are of groups of a part."""
    return rows.join(part.names, "group_id", "semi", maintain_order="left")


def _until(until: datetime, frames: Frames) -> pl.Expr:
    """Return which changes count up to an instant; logs whose times go back are cut at offsets."""
    at = pl.col("effective_timestamp")
    is_in_time = at.is_null() | (at <= until)
    for (topic, number), each in frames.items():
        if topic == CONSUMER_OFFSETS:
            is_there = pl.col("coordinator_partition") == number
            is_before = pl.col("effective_offset") < each.possible_end
            is_in_time = pl.when(is_there).then(is_before).otherwise(is_in_time)
    return is_in_time


def _given(state: ReplayedWorkspace, assignments: pl.DataFrame) -> pl.DataFrame:
    """Return the partitions that members of groups that commit own or shall own."""
    of_kind = pl.col("group_type").is_in(_COMMITTING) & pl.col("topic").is_not_null()
    given = assignments.filter(of_kind).select(PLACE)
    topics = given["topic"].unique().to_arrow().cast(pa.string())
    wanted = state.topics_wanted(pa.chunked_array([topics])).to_pylist()
    return given.filter(pl.col("topic").is_in(wanted))


def _groups(
    completeness: GroupCompleteness,
    part: _Part,
    history: OffsetHistory,
    until: datetime | None,
) -> pl.DataFrame:
    """Return `GROUPS`: those that are there, were, or are named, if it is known where they lie."""
    here, named = part.rows["groups"], pl.DataFrame({"group_id": part.named}, _NAMES)
    groups = _groups_in(here, history.places, _of(part, named))
    groups = groups.join(here, "group_id", "left", maintain_order="left")
    homes = completeness.homes_of(groups).filter(pl.col("home").is_not_null())
    gaps = completeness.gaps_in_history(homes)
    if until is not None:
        others = looked_for_elsewhere(completeness.replayed, homes, until)
        gaps = pl.concat([gaps, others.rename({"why": "gap"})])
        gaps = gaps.unique("group_id", keep="first", maintain_order=True)
    return homes.join(gaps, "group_id", "left").select(GROUPS.names())
