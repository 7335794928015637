"""Verdicts on the offsets of whole groups, some groups at a time.

What was pending at an instant before that of a replay: made as a replay at that instant does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa

from analytics.decode.selection import is_name, names_wanted
from analytics.engine.cut_tables import cut_of, framed
from analytics.engine.part_runs import GroupPart, PartAnswer, PartAnswers
from analytics.engine.replay_tasks import replay_here
from analytics.engine.replay_work import ReplayWork
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.timeline.history import NEEDED, OffsetHistory
from analytics.questions.timeline.offset_losses import looked_for_elsewhere
from analytics.questions.timeline.verdicts import (
    COMMITTED,
    GROUPS,
    WAITING,
    WORST_FIRST,
    GroupRows,
    VerdictEvidence,
    in_order,
    verdicts,
)
from analytics.questions.timeline.words import CANNOT_TELL, OFFSET_VERDICTS, PLACE
from analytics.replay.dump.choices import assumed_in
from analytics.replay.dump.coverage import coverage_of
from analytics.replay.dump.followed_lines import followed_lines, of_history, read_before_swaps
from analytics.replay.dump.times import milliseconds
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import replay_given
from analytics.replayed.replayed_workspace import replayed_instant
from analytics.replayed.whole_groups import stored_parts
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.replay.dump.followed_lines import FollowedLine
    from analytics.replay.log.log_times import AsOf, Frames
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


_NEEDED: Final = {
    "groups": ("group_id", "coordinator_partition"),
    "offset_history": NEEDED,
    "assignments": (*PLACE, "group_type"),
}
"""What is read of each group, at any time."""
_OF_REPLAY: Final = {"committed_offsets": COMMITTED, "pending_offsets": WAITING}
"""What is read of each group at the instant of the replay."""
AT_ONCE: Final = 600_000
"""So many rows of whole groups are looked at together, about."""
_COMMITTING: Final = ("classic", "consumer")
"""Share groups commit nothing, and what streams groups read is not in their tasks."""
_NAMES: Final = pl.Schema({"group_id": pl.String()})
_OTHERS: Final = "others"


def verdicts_of_groups(
    state: ReplayedWorkspace,
    evidence: VerdictEvidence,
    frames: Frames,
    others: OtherLosses,
    missing: Sequence[str],
) -> PartAnswers:
    """Return the verdicts on the groups asked about: the table `offset_verdicts`, worst first.

    Args:
        state: A replayed workspace.
        evidence: What verdicts are made of that is the same for all groups.
        frames: Where the logs whose times go back are cut at the instant asked about.
        others: Verdicts that are made of other tables.
        missing: Names and patterns that match no group that is there.

    Returns:
        The table, and the `VerdictSums` of each part.
    """
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
        *others,
    )
    shared = _Shared(evidence, GroupCompleteness(state), pending, named, frames, others, missing)
    runner, orders = state.runner, {OFFSET_VERDICTS: WORST_FIRST}
    with stored_parts(state.tables, needed, AT_ONCE, runner.folder) as reads:
        parts = [each.then(_with_others, _among(each, elsewhere)) for each in reads]
        return runner.run(partial(verdicts_of_part, shared), parts, orders)


def _among(part: GroupPart, names: pl.DataFrame) -> pl.DataFrame:
    """Return those among groups that are looked at with a part."""
    return names if part.groups is None else names.filter(part.groups.has(pl.col("group_id")))


class OtherLosses(NamedTuple):
    """Verdicts that are made of other tables than those of each group: `VERDICTS`.

    Attributes:
        groups: On groups that only a lost line has; of no count where an offset of theirs has one.
        shares: On share partitions.
    """

    groups: pl.DataFrame
    shares: pl.DataFrame


class VerdictSums(NamedTuple):
    """What parts are asked for together.

    Attributes:
        cannot_tell: Whether a verdict says so.
        matched_names: Which of the names and patterns that match no group that is there match one
            of which there is a verdict.
    """

    cannot_tell: bool
    matched_names: Sequence[str]


@dataclass(frozen=True)
class _Shared:
    """What is the same for all parts.

    Attributes:
        evidence: What verdicts are made of.
        completeness: What is not known of groups.
        pending: `WAITING` of all groups at an earlier instant than the replay's; else None.
        named: Groups that are asked for by name.
        frames: Where the logs whose times go back are cut at the instant asked about.
        others: Verdicts that are made of other tables.
        missing: Names and patterns that match no group that is there.
    """

    evidence: VerdictEvidence
    completeness: GroupCompleteness
    pending: pl.DataFrame | None
    named: Sequence[str]
    frames: Frames
    others: OtherLosses
    missing: Sequence[str]


def _with_others(
    rows: Mapping[str, pl.DataFrame], names: pl.DataFrame
) -> Mapping[str, pl.DataFrame]:
    """Return the rows of some groups, and the names of groups of which there need be none."""
    return {**rows, _OTHERS: names}


def verdicts_of_part(shared: _Shared, rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    """Return the table `offset_verdicts` of some whole groups.

    Args:
        shared: What is the same for all parts.
        rows: What is read of these groups; `_OTHERS` are groups that are looked at with them.
    """
    part = _Part(_groups_in(*rows.values()), rows)
    found = _verdicts(shared, part)
    placed = found.filter(pl.col("topic").is_not_null())
    lost = _of(part, shared.others.groups).join(placed, "group_id", "anti", maintain_order="left")
    sorted_rows = in_order(pl.concat([found, lost, _of(part, shared.others.shares)]))
    return PartAnswer(
        {OFFSET_VERDICTS: sorted_rows},
        VerdictSums(
            bool((sorted_rows["verdict"] == CANNOT_TELL).any()),
            matched(shared.missing, sorted_rows["group_id"]),
        ),
    )


def matched(names: Sequence[str], groups: pl.Series) -> list[str]:
    """Return the names and patterns that match one of some groups."""
    if not names:
        return []
    there = groups.unique().to_list()
    return [each for each in names if names_wanted(there, (each,))]


class _Part(NamedTuple):
    """What is read of some whole groups.

    Attributes:
        names: `group_id` of the groups.
        rows: Theirs, of the tables that are needed.
    """

    names: pl.DataFrame
    rows: Mapping[str, pl.DataFrame]


def _groups_in(*tables: pl.DataFrame) -> pl.DataFrame:
    """Return the `group_id` of tables, each once."""
    return pl.concat(each.select("group_id") for each in tables).unique()


def _verdicts(shared: _Shared, part: _Part) -> pl.DataFrame:
    """Return the verdicts on the offsets of some groups."""
    evidence, completeness = shared.evidence, shared.completeness
    lines = [replace(each, last=_of(part, each.last)) for each in evidence.lines]
    own = replace(evidence, lines=lines, out_of_reach=_of(part, evidence.out_of_reach))
    until = evidence.until
    changes = part.rows["offset_history"]
    if until is not None:
        changes = changes.filter(_until(until, shared.frames))
    history = OffsetHistory(changes)
    committed, pending = history.in_force.select(COMMITTED), shared.pending
    if pending is None:
        committed, pending = (part.rows[name] for name in _OF_REPLAY)
    rows = GroupRows(
        history=history,
        committed=committed,
        pending=_of(part, pending),
        given=_given(completeness.replayed, part.rows["assignments"]),
        groups=_groups(shared, part, history),
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


def _groups(shared: _Shared, part: _Part, history: OffsetHistory) -> pl.DataFrame:
    """Return `GROUPS`: those that are there, were, or are named, if it is known where they lie."""
    completeness, until = shared.completeness, shared.evidence.until
    here, named = part.rows["groups"], pl.DataFrame({"group_id": shared.named}, _NAMES)
    groups = _groups_in(here, history.places, _of(part, named))
    groups = groups.join(here, "group_id", "left", maintain_order="left")
    homes = completeness.homes_of(groups).filter(pl.col("home").is_not_null())
    gaps = completeness.gaps_in_history(homes)
    if until is not None:
        others = looked_for_elsewhere(completeness.replayed, homes, until)
        gaps = pl.concat([gaps, others.rename({"why": "gap"})])
        gaps = gaps.unique("group_id", keep="first", maintain_order=True)
    return homes.join(gaps, "group_id", "left").select(GROUPS.names())


_TABLE: Final = "pending_offsets"


def pending_at(state: ReplayedWorkspace, until: datetime) -> pl.DataFrame:
    """Return the rows of `pending_offsets` of the groups asked about, as they were at a time.

    Args:
        state: A replayed workspace.
        until: The time.
    """
    wanted = state.tables.selection
    of_replay = state.manifest["replay"].get("filters", {})
    filters = {
        "topics": tuple(of_replay.get("topics", ())),
        "partitions": tuple(of_replay.get("partitions", ())),
        "groups": wanted.groups,
        "exclude_groups": wanted.exclude_groups,
        "data_topics": wanted.topics,
    }
    instant, lines = _instant_at(state, until)
    work = ReplayWork(
        instant=instant,
        release=state.release,
        side_file=(),
        filters=filters,
        needs=(_TABLE,),
        lines=lines,
        assumed=assumed_in(state.manifest),
    )
    manifest = of_history(state.manifest)
    coverage = coverage_of(manifest, instant, state.source, work.lines, work.assumed)
    given = replay_given(replay_rules(work.release), coverage)
    kept: list[pl.DataFrame] = []

    def keep(name: str, rows: pl.DataFrame) -> None:
        if name == _TABLE:
            kept.append(rows)

    reader = work.reader(state.source, read_before_swaps(manifest))
    replay_here(work.steps, given, cut_of(reader, instant, {}), keep)
    return pl.concat(kept)


def frames_until(state: ReplayedWorkspace, until: datetime) -> Frames:
    """Return where the logs whose times go back are cut at a time, as a replay at it does."""
    return _instant_at(state, until)[0].frames


def _instant_at(state: ReplayedWorkspace, until: datetime) -> tuple[AsOf, tuple[FollowedLine, ...]]:
    own = replayed_instant(state.as_of, state.frames)
    asked = milliseconds(until)
    time_ms = asked if own.timestamp_ms is None else min(asked, own.timestamp_ms)
    lines = followed_lines(state.manifest, until)
    # An earlier instant than the end: swap files took no place yet.
    swapped = read_before_swaps(state.manifest_of_history)
    return framed(replace(own, timestamp_ms=time_ms), state.source, lines, swapped), lines
