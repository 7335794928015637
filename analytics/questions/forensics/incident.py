"""An incident: when it was, whom it hit, who owned what before and after, and who else suffered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_schema, polars_rows
from analytics.decode.selection import is_name, names_wanted
from analytics.engine.part_runs import PartAnswer
from analytics.errors import CannotTellError
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.questions.forensics.removals import GROUP_REMOVED, STATE_DELETED
from analytics.questions.timeline.words import CANNOT_TELL, OFFSET_VERDICTS
from analytics.replay.dump.choices import BeforeEnd, iso_time
from analytics.replay.dump.times import first_time, last_time, resolved_time
from analytics.replayed.group_rows import PartedGroups
from analytics.replayed.records import Records
from analytics.replayed.whole_groups import parts_of_both, whole_group_parts
from analytics.tables.parted_table import Order, PartedTable
from schemas import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from schemas.evaluation_rules import harmless_verdicts

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

OWNERS, OTHERS, BROKERS = "incident_owners", "incident_others", "incident_brokers"
AT_ONCE: Final = 600_000
"""So many rows of whole groups are looked at together, about."""
COORDINATED: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
SUFFERED: Final = frozenset({"offset_lost", "offsets_deleted", GROUP_REMOVED, STATE_DELETED})
"""Events by which a group suffers."""

# When an incident was, and what falls into the time around it.


@dataclass(frozen=True)
class Window:
    """The time around an incident; both ends belong to it."""

    begin: datetime
    end: datetime

    def touches(self) -> pl.Expr:
        """Whether a verdict may be of this time; one without a time may be of any."""
        at, not_before = pl.col("at"), pl.col("not_before")
        is_bound = not_before.is_null() | (not_before <= self.end)
        is_in = (at >= self.begin) & (pl.coalesce(not_before, at) <= self.end)
        return pl.when(at.is_null()).then(is_bound).otherwise(is_in)

    def contains(self) -> pl.Expr:
        """Whether an event is of this time; one without a time is not."""
        return pl.col("at").is_between(self.begin, self.end).fill_null(value=False)

    def happened(self) -> pl.Expr:
        """Whether a verdict is on what happened, or may have happened, in the time."""
        return ~pl.col("verdict").is_in(sorted(harmless_verdicts())) & self.touches()


@dataclass(frozen=True)
class Around:
    """When an incident was.

    Attributes:
        at: The instant.
        window: The time around it that the dump holds.
        warnings: What to know of that time, one sentence each.
    """

    at: datetime
    window: Window
    warnings: tuple[str, ...]


def time_around(
    state: ReplayedWorkspace, instant: datetime | str | int | BeforeEnd, window_minutes: float
) -> Around:
    """Return when an incident was, and the time around it that the dump holds.

    Args:
        state: At the end of the dump.
        instant: A datetime, ISO 8601, epoch milliseconds, or a time before the end of the dump.
        window_minutes: So long before and after it.

    Raises:
        CannotTellError: The dump holds nothing of it.
    """
    around = resolved_time(instant, state.manifest)
    first, last = first_time(state.manifest), last_time(state.manifest)
    if around is None or first is None or last is None:
        raise CannotTellError("no record of this dump has a time: nothing is around --around")
    if not first <= around <= last:
        raise CannotTellError(
            f"--around {iso_time(around)} is not in this dump, whose records are from "
            f"{iso_time(first)} to {iso_time(last)}"
        )
    span = timedelta(minutes=window_minutes)
    window = Window(max(around - span, first), min(around + span, last))
    warnings = []
    if around - span < first:
        warnings.append(f"the dump begins at {iso_time(first)}: what was before it is not known")
    if (sentence := _before_all_groups(window.begin, state)) is not None:
        warnings.append(sentence)
    return Around(around, window, tuple(warnings))


def _before_all_groups(begin: datetime, state: ReplayedWorkspace) -> str | None:
    """Return what to know where the time before the incident is before anything of a group."""
    first = first_time(state.manifest, COORDINATED)
    if first is None or begin >= first:
        return None
    return (
        f"before is {iso_time(begin)}, and no record of a group is older than {iso_time(first)}: "
        "nothing of before is there to compare or to restore. With a shorter --window-minutes "
        "before is later"
    )


# Which groups an incident is about.


class Happenings(NamedTuple):
    """What happened to all groups in the time around an incident.

    Attributes:
        verdicts: Rows of `offset_verdicts`, the worst first.
        events: Rows of `group_events`, in the order of time.
    """

    verdicts: PartedTable
    events: PartedTable


def happenings(verdicts: PartedTable, events: PartedTable, window: Window) -> Happenings:
    """Return what of a timeline falls into the time."""
    return Happenings(verdicts.where(window.happened()), events.where(window.contains()))


@dataclass(frozen=True)
class GroupPatterns:
    """Which groups an incident is asked about.

    Attributes:
        groups: Names and patterns; nothing is whoever suffered.
        exclude_groups: Likewise, left out.
    """

    groups: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()


def groups_hit(patterns: GroupPatterns, happened: Happenings, window: Window) -> list[str]:
    """Return the groups that suffered in the time, those with most first.

    Raises:
        CannotTellError: Nothing happened to any.
    """
    chosen = names_wanted(suffering(happened), (), patterns.exclude_groups)
    if not chosen:
        raise CannotTellError(
            f"nothing is known to have happened to a group from {iso_time(window.begin)} to "
            f"{iso_time(window.end)}{_untold(happened.verdicts)}; name one with --group"
        )
    return list(chosen)


def _untold(verdicts: PartedTable) -> str:
    """Return that something may have happened all the same, and why; nothing where it did not."""
    untold = verdicts.where(pl.col("verdict") == CANNOT_TELL)
    groups: set[str] = set()
    reasons: set[str] = set()
    for piece in untold.scan(["group_id", "verdict", "reason"]):
        rows = polars_rows(piece)
        groups.update(rows["group_id"])
        reasons.update(rows["reason"].drop_nulls())
    if not groups:
        return ""
    why = f": {min(reasons)}" if reasons else ""
    more = " (and other reasons)" if len(reasons) > 1 else ""
    of = "1 group" if len(groups) == 1 else f"{len(groups):,} groups"
    return f", and of {of} it cannot be told{why}{more}"


def suffering(happened: Happenings) -> list[str]:
    """Return the groups that something surely happened to in the time, those with most first."""
    counts: Counter[str] = Counter()
    for piece in happened.verdicts.scan(["group_id", "verdict", "at"]):
        rows = polars_rows(piece)
        sure = rows.filter((pl.col("verdict") != CANNOT_TELL) & pl.col("at").is_not_null())
        counts.update(dict(sure.group_by("group_id").len().iter_rows()))
    for piece in happened.events.scan(["group_id", "event"]):
        hit = polars_rows(piece).filter(pl.col("event").is_in(sorted(SUFFERED)))["group_id"]
        counts.update(dict.fromkeys(hit.unique(), 0))
    return sorted(counts, key=lambda group: (-counts[group], group))


def groups_named(
    state: ReplayedWorkspace, patterns: GroupPatterns, verdicts: PartedTable, events: PartedTable
) -> list[str]:
    """Return the groups that names and patterns match, of all that the dump knows of.

    Args:
        state: At the end of the dump.
        patterns: Has some to match.
        verdicts: Of all groups, whenever it was.
        events: Likewise.

    Raises:
        CannotTellError: None is there.
    """
    # A name is asked about whether it is there or not.
    there = {each for each in patterns.groups if is_name(each)}
    known = (
        *state.tables.pieces("groups", ["group_id"]),
        *verdicts.scan(["group_id"]),
        *events.scan(["group_id"]),
    )
    for piece in known:
        names = polars_rows(piece)["group_id"].drop_nulls().unique().to_list()
        there |= set(names_wanted(names, patterns.groups, patterns.exclude_groups))
    chosen = names_wanted(sorted(there), patterns.groups, patterns.exclude_groups)
    if not chosen:
        raise CannotTellError(f"no group that matches {', '.join(patterns.groups)} is in this dump")
    return list(chosen)


# Who owned which partitions before and after.

_MEMBER: Final = ("group_id", "member_id")
_OWNER: Final = ("group_id", "topic", "member_id")
_OF_OWNERS: Final = {
    "members": (*_MEMBER, "client_id"),
    "assignments": (
        *(*_MEMBER, "kind"),
        *("topic", "subtopology_id", "topic_id", "partition"),
    ),
}
"""What is read of each group in both states."""


def owners_of(before: ReplayedWorkspace, after: ReplayedWorkspace) -> PartedTable:
    """Return who had which partitions before and after: `incident_owners`."""
    states, runner = (before.tables, after.tables), after.runner
    with parts_of_both(states, _OF_OWNERS, {}, AT_ONCE, runner.folder) as parts:
        return runner.run(owners_of_part, parts).tables[OWNERS]


def owners_of_part(rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    """Return `incident_owners` of some whole groups.

    Args:
        rows: `_OF_OWNERS` of them in both states, as `parts_of_both` names them.
    """
    before, after = (
        _held(rows[f"{side}_assignments"], word)
        for side, word in (("from", "before"), ("to", "after"))
    )
    # Who is a member in both has the client id of after.
    members = pl.concat([rows["to_members"], rows["from_members"]])
    clients = members.unique(_MEMBER, keep="first", maintain_order=True)
    both = before.join(after, _OWNER, "full", nulls_equal=True, coalesce=True)
    owners = both.join(clients, _MEMBER, "left").sort(_OWNER)
    return PartAnswer({OWNERS: owners.select(arrow_schema(OWNERS).names)})


def _held(assignments: pl.DataFrame, word: str) -> pl.DataFrame:
    """Return the partitions that members have of each topic, as ``0, 3-5, 9``."""
    topic = pl.coalesce("topic", "subtopology_id", "topic_id").alias("topic")
    owned = (
        assignments.filter((pl.col("kind") != "target") & pl.col("partition").is_not_null())
        .select("group_id", topic, "member_id", "partition")
        .unique()
        .sort(*_OWNER, "partition")
    )
    run = pl.col("partition") - pl.int_range(pl.len()).over(_OWNER)
    runs = owned.group_by(*_OWNER, run.alias("run"), maintain_order=True).agg(
        pl.col("partition").first().alias("first"), pl.col("partition").last().alias("last")
    )
    one, several = pl.format("{}", "first"), pl.format("{}-{}", "first", "last")
    text = pl.when(pl.col("first") == pl.col("last")).then(one).otherwise(several)
    return runs.group_by(_OWNER, maintain_order=True).agg(text.str.join(", ").alias(word))


# Who else suffered, and what brokers did meanwhile.


def _others_first(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort(
        OTHERS_FIRST.columns, descending=[True, True, False], nulls_last=True, maintain_order=True
    )


OTHERS_FIRST: Final = Order(("is_same_coordinator", "partitions", "group_id"), _others_first)
"""Those of the same coordinator first, then those with most partitions."""
_OF_OTHERS: Final = ("group_id", "topic", "partition", "verdict", "at")


def others_of(
    state: ReplayedWorkspace, groups: Sequence[str], verdicts: PartedTable
) -> PartedTable:
    """Return the other groups that something happened to in the time: `incident_others`.

    Args:
        state: Tells the partition of a group.
        groups: Those that the incident is about.
        verdicts: Of all groups, in the time.
    """
    completeness = GroupCompleteness(state)
    homes = frozenset(completeness.home(each) for each in groups)
    others = verdicts.where(~pl.col("group_id").is_in(list(groups)))
    sources, runner = {OFFSET_VERDICTS: PartedGroups(others, _OF_OTHERS)}, state.runner
    make = partial(others_of_part, completeness, homes)
    with whole_group_parts(sources, AT_ONCE, runner.folder) as parts:
        return runner.run(make, parts, {OTHERS: OTHERS_FIRST}).tables[OTHERS]


def others_of_part(
    completeness: GroupCompleteness,
    homes: frozenset[int | None],
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    """Return `incident_others` of some whole groups.

    Args:
        completeness: Knows in which partitions groups lie.
        homes: Those of the groups that the incident is about; None is not known.
        rows: Verdicts of others, the worst first.
    """
    known = completeness.replayed.tables.read("groups", ["group_id", "coordinator_partition"])
    others = (
        rows[OFFSET_VERDICTS]
        .group_by("group_id", maintain_order=True)
        .agg(
            pl.col("verdict").unique(maintain_order=True).str.join(", ").alias("verdicts"),
            pl.struct("topic", "partition").n_unique().cast(pl.Int64).alias("partitions"),
            pl.col("at").min().alias("first_at"),
        )
        .join(polars_rows(known).unique("group_id", keep="last"), "group_id", "left")
    )
    home = pl.col("home")
    is_same = pl.when(home.is_not_null()).then(home.is_in([*(homes - {None})]))
    placed = completeness.homes_of(others).with_columns(
        home.cast(pl.Int32).alias("coordinator_partition"), is_same.alias("is_same_coordinator")
    )
    return PartAnswer({OTHERS: _others_first(placed.select(arrow_schema(OTHERS).names))})


def drawn_history(state: ReplayedWorkspace, groups: Sequence[str]) -> dict[str, pa.Table]:
    """Return the history that is drawn of some groups, and of the coordinators, by table."""
    theirs = pc.field("group_id").isin(list(groups))
    found = {
        name: state.tables.read(name, None, theirs)
        for name in ("offset_history", "assignment_history")
    }
    return {**found, "coordinator_epochs": state.tables.read("coordinator_epochs")}


_OF_BROKERS: Final = {
    "register_broker_record": ("broker started", "broker_id"),
    "fence_broker_record": ("broker fenced: it no longer answered", "id"),
    "unfence_broker_record": ("broker unfenced: it takes part", "id"),
    "unregister_broker_record": ("broker removed", "broker_id"),
}


def brokers_of(state: ReplayedWorkspace, window: Window) -> pa.Table:
    """Return what brokers did in the time: `incident_brokers`; nothing without a metadata log."""
    rows = [
        {"at": at, "event": event, "broker": value[field]}
        for name, (event, field) in _OF_BROKERS.items()
        for at, value in _records(state, name)
        if value is not None and at is not None and window.begin <= at <= window.end
    ]
    found = pa.Table.from_pylist(rows, schema=arrow_schema(BROKERS))
    return found.sort_by([("at", "ascending"), ("broker", "ascending")])


def _records(state: ReplayedWorkspace, name: str) -> list[tuple[Any, Any]]:
    rows = Records(state).table(name, ["value"])
    return list(zip(rows["timestamp"].to_pylist(), rows["value"].to_pylist(), strict=True))
