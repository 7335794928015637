"""The groups a question is about: those that are there, and what is to be said of the others.

Of groups that are not there for clients, though records of them lie where none is sent; and of
members of whom nobody can tell what they own: of another protocol, or with unreadable bytes.

Which offsets are answered of: the records of all groups are read, as evidence on these.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import Selection, as_regex, is_name, names_wanted
from analytics.dump.inspection.limitations import ranges
from analytics.engine.cut_tables import tables_of
from analytics.engine.key_places import homes_in
from analytics.gaps.gap import Gap, check_gaps, gap, words_of
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.internal_topics import (
    by_which_setting,
    loading_unread,
    refused_partitions,
)
from analytics.replay.dump.choices import iso_time
from analytics.replay.log.ends_at import leading, what_took_history
from analytics.replay.log.topic_homes import NOT_SEEN
from analytics.replayed.records import Records
from analytics.tables.record_keys import GROUPS, key_columns
from analytics.tables.stored_tables import EVERYTHING, StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import PartitionEntry


CLASSIC_TYPES = ("classic", "simple")

COLUMNS = ("group_id", "unread")
HOMES = ("group_id", "group_type", "coordinator_partition")
"""What tells whether a group is asked about, and whether it is told whole."""


@dataclass(frozen=True)
class GroupSelection:
    """What was found.

    Attributes:
        rows: Rows of the table `groups`.
        gaps: What the dump does not hold the answer to.
        missing: What was asked for, by name or pattern, and is known not to have been there.
        instant: The instant asked about, in words.
        refused: Which partitions of theirs a broker refuses to load.
        why_missing: By group, a sentence that says more than that it is not there.
        names_like_patterns: What was asked for looks like a pattern, and a group is called so.
        by_setting: What the number of partitions rests on, where that is a setting.
    """

    rows: pa.Table
    gaps: tuple[Gap, ...]
    missing: tuple[str, ...]
    instant: str = ""
    refused: tuple[str, ...] = ()
    why_missing: Mapping[str, str] = field(default_factory=dict)
    names_like_patterns: tuple[str, ...] = ()
    by_setting: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no gap.

        Raises:
            TypeError: What cannot be told is a sentence.
        """
        check_gaps(self.gaps)

    @property
    def cannot_tell(self) -> tuple[str, ...]:
        """The gaps in words, each once."""
        return words_of(self.gaps)

    def without_missing(self, names: Iterable[str]) -> GroupSelection:
        """Return the same, with groups of these names not missing: something is known of them."""
        known = list(dict.fromkeys(names))
        missing = tuple(each for each in self.missing if not names_wanted(known, (each,)))
        return replace(self, missing=missing)

    @property
    def errors(self) -> list[str]:
        """Why the answer is not whole, and what is not there, one sentence each."""
        absent = [self.why_missing.get(each) or self._not_there(each) for each in self.missing]
        return [*(f"cannot tell: {each}" for each in self.cannot_tell), *absent]

    @property
    def remarks(self) -> list[str]:
        """What else to know of the groups that were chosen, one sentence each."""
        return [
            *self.refused,
            *([] if self.by_setting is None else [self.by_setting]),
            *(
                f"--group {each!r} was taken for the group of that very name, which is there; as a "
                f"pattern it is --group {shlex.quote(as_regex(each))}"
                for each in self.names_like_patterns
            ),
        ]

    def _not_there(self, name: str) -> str:
        if is_name(name):
            return f"group {name} does not exist at {self.instant}"
        return f"no group matches {name!r} at {self.instant}"


def select_groups(
    replayed: ReplayedWorkspace,
    group_type: str | None = None,
    *,
    with_offsets: bool = True,
    columns: Sequence[str] | None = None,
) -> GroupSelection:
    """Return the groups that `--group` and `--type` ask for, as far as the dump tells.

    Args:
        replayed: Its selection says which groups are wanted.
        group_type: Only groups of this type; classic has the simple ones with it, as in Kafka.
        with_offsets: The question is about their offsets, too.
        columns: Of the table `groups`, `HOMES` among them; None is all.
    """
    found = replayed.tables.read("groups", columns)
    asked = replayed.tables.selection.groups
    there = set(found["group_id"].to_pylist()) if asked else set()
    if group_type is not None:
        wanted = CLASSIC_TYPES if group_type == "classic" else (group_type,)
        found = found.filter(pc.is_in(found["group_type"], pa.array(wanted)))
    completeness = GroupCompleteness(replayed)
    names = [each for each in asked if is_name(each)]
    unknown = {name: why for name in names if (why := completeness.of_group(name)) is not None}
    gaps = completeness.together(unknown)
    if not asked:
        gaps += completeness.of_all()
    gaps += [
        each
        for name in completeness.may_have_gaps(found)
        if name not in unknown
        for each in _gaps(completeness, name, with_offsets=with_offsets)
    ]
    unmatched = [each for each in asked if not is_name(each) and not names_wanted(there, (each,))]
    unsure = pattern_gaps(completeness, unmatched)
    missing = [name for name in names if name not in there and name not in unknown]
    return GroupSelection(
        found,
        (*gaps, *unsure),
        (*missing, *(each for each in unmatched if not unsure)),
        replayed.instant,
        _refused(replayed, found),
        _why_not_there(replayed, missing),
        names_like_patterns=tuple(each for each in asked if not is_name(each) and each in there),
        by_setting=by_which_setting(replayed, CONSUMER_OFFSETS),
    )


def pattern_gaps(completeness: GroupCompleteness, unmatched: Container[str] = ()) -> list[Gap]:
    """Return why groups that match a pattern of `--group` may be missing.

    Args:
        completeness: Of the replay that is asked.
        unmatched: Patterns that match no group that is there.
    """
    asked = completeness.replayed.tables.selection.groups
    patterns = [each for each in asked if not is_name(each)]
    reasons = completeness.of_all() if patterns else []
    return [
        gap(
            "group_may_match" if each in unmatched else "more_groups_may_match",
            pattern=each,
            why=why,
        )
        for each in patterns
        for why in reasons
    ]


def _gaps(completeness: GroupCompleteness, group: str, *, with_offsets: bool) -> tuple[Gap, ...]:
    """Return what cannot be told of a group that is there.

    Of all groups together it is said once which records their partitions lack.
    """
    if not completeness.replayed.tables.selection.groups:
        missing = completeness.incomplete(group)
        return () if missing is None else (missing,)
    found = completeness.gaps_of(group)
    return found.membership or (found.offsets if with_offsets else ())


def _refused(replayed: ReplayedWorkspace, groups: pa.Table) -> tuple[str, ...]:
    homes = pc.unique(groups["coordinator_partition"]).to_pylist()
    every = StoredTables(replayed.tables.workspace)
    refused = refused_partitions(every, replayed.release, homes)
    unread = loading_unread(replayed.manifest)
    return (*refused, *([] if unread is None else [unread]))


def _why_not_there(state: ReplayedWorkspace, groups: Sequence[str]) -> dict[str, str]:
    """Return by group a sentence on where its records lie, of groups with records elsewhere.

    Args:
        state: A replayed workspace.
        groups: Names of groups that its state does not have.
    """
    homes = homes_in(state.manifest).get(CONSUMER_OFFSETS)
    if homes is None or not homes.misplaced or homes.perhaps is not None or not groups:
        return {}
    return {
        group: (
            f"group {group} does not exist at {state.instant}: records of it lie in "
            f"{CONSUMER_OFFSETS} {ranges(elsewhere)}, where no client is sent{_since(homes)}"
        )
        for group, places in _places(state, groups).items()
        if (elsewhere := {*places} - {homes.home(group)})
    }


def _places(state: ReplayedWorkspace, groups: Sequence[str]) -> Mapping[str, list[int]]:
    """Return in which partitions groups have records."""
    pieces = [
        rows.filter(pl.col("key").is_in(list(groups))).select("key", "partition").unique()
        for name in sorted(tables_of((CONSUMER_OFFSETS,)) & key_columns(GROUPS).keys())
        for rows in Records(state).of_all.key_places(name, CONSUMER_OFFSETS)
    ]
    every = pl.concat(pieces) if pieces else pl.DataFrame(schema={"key": str, "partition": int})
    found = every.group_by("key").agg(pl.col("partition").unique().sort())
    return dict(found.iter_rows())


def _since(homes: TopicHomes) -> str:
    if homes.since is None or homes.since == NOT_SEEN:
        return ""
    return f" since {iso_time(homes.since)}"


def with_unread(groups: GroupSelection, members: pa.Table) -> GroupSelection:
    """Say of which groups it cannot be told what their members own.

    Args:
        groups: The groups asked for.
        members: `COLUMNS` of the table `members`, of these groups and maybe others.
    """
    is_asked = pc.is_in(members["group_id"], groups.rows["group_id"].combine_chunks())
    unread = members.filter(pc.and_(is_asked, pc.is_valid(members["unread"])))
    gaps = dict.fromkeys(
        gap("members_unread", group_id=each["group_id"], unread=each["unread"])
        for each in unread.to_pylist()
    )
    return replace(groups, gaps=(*groups.gaps, *gaps))


# Where compaction or deletion has been: of what was there before, nothing may be left.

Row = Mapping[str, Any]


def compacted_history(state: ReplayedWorkspace) -> list[Row]:
    """Return the partitions of the offsets topic that were compacted, where groups asked for lie.

    A pattern may match groups of which nothing is left, in any partition.

    Returns:
        `partition`; `before_offset`, before which records may have been removed; `before_time`, a
        time from which on none was, null where the manifest has none; `what`, what became of
        them, in words.
    """
    asked = state.tables.selection.groups
    completeness = GroupCompleteness(state)
    homes = {completeness.home(each) for each in asked}
    is_known = bool(asked) and None not in homes and all(map(is_name, asked))
    return [
        {
            "partition": each["partition"],
            "before_offset": each["complete_from"],
            "before_time": _time_of(each),
            "what": what_took_history(each),
        }
        for each in sorted(leading(state.manifest_of_history), key=lambda each: each["partition"])
        if each["topic"] == CONSUMER_OFFSETS
        and each.get("complete_from")
        and (not is_known or each["partition"] in homes)
    ]


def groups_lacking_history(state: ReplayedWorkspace, groups: pa.Table) -> pa.Table:
    """Return `group_id` and `why` of the groups whose earlier commits may be missing.

    Args:
        state: At the instant asked about.
        groups: `group_id`, `coordinator_partition`.
    """
    lacking = {
        each["partition"]: f"history before offset {each['complete_from']} of "
        f"{CONSUMER_OFFSETS}-{each['partition']} {what_took_history(each)}"
        for each in leading(state.manifest_of_history)
        if each["topic"] == CONSUMER_OFFSETS and each.get("complete_from")
    }
    place = pc.index_in(groups["coordinator_partition"], pa.array(list(lacking), pa.int32()))
    why = pa.array(list(lacking.values()), pa.string()).take(place.combine_chunks())
    rows = pa.table({"group_id": groups["group_id"], "why": why})
    return rows.filter(pc.is_valid(rows["why"]))


def compacted_sentence(rows: list[Row]) -> str | None:
    """Return what cannot be told because history is not whole; None where all of it is."""
    if not rows:
        return None
    by_what: dict[str, list[Row]] = {}
    for row in rows:
        by_what.setdefault(row["what"], []).append(row)
    taken = "; ".join(f"history before {_where(of)} {what}" for what, of in by_what.items())
    return (
        f"Cannot tell: {taken}. There may have been other partitions of these groups, and other "
        f"groups, of which nothing is left."
    )


def _where(rows: list[Row]) -> str:
    """Return before which offset of which partitions history is not whole."""
    (first, *more) = rows
    if more:
        numbers = ranges(row["partition"] for row in rows)
        return f"offset complete_from of each of {CONSUMER_OFFSETS} {numbers}"
    time = f" ({first['before_time']})" if first["before_time"] else ""
    return f"offset {first['before_offset']} of {CONSUMER_OFFSETS}-{first['partition']}{time}"


def _time_of(partition: PartitionEntry) -> str | None:
    """Return the first time of a file that lies wholly behind what was compacted."""
    start = partition["complete_from"]
    times = [
        first
        for file in partition.get("files", ())
        if file.get("kind") == "log"
        and (first := file.get("first_timestamp"))
        and start is not None
        and _base_offset(file["name"]) >= start
    ]
    return min(times, default=None)


def _base_offset(name: str) -> int:
    stem = name.rpartition("/")[2].partition(".")[0]
    return int(stem) if stem.isdigit() else -1


@dataclass(frozen=True)
class Chosen:
    """The groups and topics that are asked about.

    Attributes:
        selection: Names and patterns.
        there: The groups there are that are called what looks like a pattern.
    """

    selection: Selection = EVERYTHING
    there: Collection[str] = ()

    @classmethod
    def of(cls, state: ReplayedWorkspace) -> Self:
        """Return what a workspace is asked about."""
        asked = state.tables.selection
        named = pa.array([*asked.groups, *asked.exclude_groups], pa.string())
        if not len(named):
            return cls(asked)
        is_named = pc.field("group_id").isin(named)
        there = state.of_everything.tables.read("groups", ["group_id"], is_named)
        return cls(asked, frozenset(there["group_id"].to_pylist()))

    def groups(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of groups that are asked about, by `group_id`."""
        asked = self.selection
        if not (asked.groups or asked.exclude_groups):
            return rows
        names = rows["group_id"].cast(pl.String)
        every = names.unique().to_list()
        wanted = names_wanted(every, asked.groups, asked.exclude_groups, self.there)
        return rows.filter(names.is_in(wanted))

    def offsets(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of offsets that are asked about, by `group_id` and `topic`."""
        rows = self.groups(rows)
        if not self.selection.topics:
            return rows
        names = rows["topic"].cast(pl.String)
        return rows.filter(
            names.is_in(names_wanted(names.unique().to_list(), self.selection.topics))
        )
