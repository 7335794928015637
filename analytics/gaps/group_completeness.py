"""What a dump cannot tell about groups at an instant, in words: never "none" where it is unknown.

A group lives in one partition of `__consumer_offsets`. Where the dump has no copy of it, or lacks
what was in it before the instant, nothing is known of the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import names_wanted
from analytics.dump.inspection.found_losses import Loss, lacks
from analytics.dump.inspection.limitations import ranges
from analytics.engine.key_places import homes_in
from analytics.gaps.groups_between_cuts import (
    disputed_partitions,
    groups_between_cuts,
)
from analytics.gaps.internal_topics import (
    by_which_setting,
    ends_of,
    losses_of,
    partition_count,
    partitions_that_fit,
)
from analytics.gaps.undecided_offsets import undecided_of
from analytics.gaps.workspace_parts import has_topic_filter
from analytics.replay.dump.assumptions import COMPLETE_ARCHIVE, archived, assumed_in
from analytics.replay.log.ends_at import Ends
from analytics.replay.log.internal_partitions import home_of, internal_partition, is_one_of
from analytics.replay.log.losses import why_disputed
from analytics.replay.log.losses_at import cleaned_until, leading, what_took_history
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_ENOUGH_GROUPS = 1000
_MOST_NAMED = 5


@dataclass(frozen=True)
class GroupGaps:
    """Why something of a group cannot be told; null is told whole.

    Attributes:
        offsets: Why its committed or pending offsets may not be all, or not the last ones.
        membership: Why its state, members and assignments may not be the last ones.
        history: Why its history has gaps.
    """

    offsets: str | None = None
    membership: str | None = None
    history: str | None = None

    @property
    def reasons(self) -> list[str]:
        """All of them, each once."""
        found = (self.offsets, self.membership, self.history)
        return list(dict.fromkeys(each for each in found if each is not None))


@dataclass(frozen=True)
class GroupCompleteness:
    """What cannot be told about groups from what was replayed.

    `gaps_of(group)` is what a command asks that judges a group: it says why its offsets, its
    membership or its history cannot be told, also of a group that the state does not have.
    """

    replayed: ReplayedWorkspace

    def gaps_of(self, group: str) -> GroupGaps:
        """Return why the offsets, the membership and the history of a group cannot be told."""
        nothing = self.of_group(group)
        if nothing is not None:
            return GroupGaps(nothing, nothing, nothing)
        membership = self.incomplete(group)
        between = self._between_cuts.get(group)
        home = self.home(group)
        offsets, history = undecided_of(self.replayed, group, home)
        if (disputed := self._of_disputed_home(group)) is not None:
            offsets, history = [disputed, *offsets], [disputed, *history]
        if home is not None and home in self.losses:
            lost = lacks(CONSUMER_OFFSETS, home, self.losses[home])
            offsets = [f"{group}: its offsets may be missing or replaced: {lost}", *offsets]
            history = [f"{group}: its history may have gaps: {lost}", *history]
        if between is not None:
            offsets = [f"{group}: which of its offsets count is not certain: {between}", *offsets]
            history = [f"{group}: where its history ends is not certain: {between}", *history]
        return GroupGaps("; ".join(offsets) or None, membership, "; ".join(history) or None)

    def may_have_gaps(self, groups: pa.Table) -> list[str]:
        """Return the groups that `gaps_of` may say something of: of all others it says nothing.

        Args:
            groups: Rows of the table `groups`.
        """
        names, partitions = groups["group_id"], self._partitions
        if self._filters or partitions is None:
            every: list[str] = names.to_pylist()
            return every
        is_unsure = pc.is_in(names, pa.array(list(self._incomplete), pa.string()))
        partly_told = self._partly_told
        if partly_told:
            unsure = pa.array(sorted(partly_told), pa.int32())
            frame = pl.DataFrame(pl.from_arrow(groups.select(["group_id"])))
            homes = frame.select(internal_partition(pl.col("group_id"), partitions)).to_series()
            for each in (groups["coordinator_partition"], homes.to_arrow()):
                is_unsure = pc.or_(is_unsure, pc.is_in(each, unsure))
        found: list[str] = names.filter(is_unsure).to_pylist()
        return found

    def lost_offsets_of(self, groups: pa.Table) -> dict[str, str]:
        """Return by group why an offset that is not there may have been committed all the same.

        Args:
            groups: Rows of the table `groups`: `group_id`, `coordinator_partition`.
        """
        is_lost = pc.is_in(groups["coordinator_partition"], pa.array(list(self.losses), pa.int32()))
        lost = groups.filter(is_lost)
        reasons = {home: lacks(CONSUMER_OFFSETS, home, each) for home, each in self.losses.items()}
        return {
            name: f"a commit may be among lost records: {reasons[home]}"
            for name, home in zip(
                lost["group_id"].to_pylist(), lost["coordinator_partition"].to_pylist(), strict=True
            )
        }

    def homes_of(self, groups: pl.DataFrame) -> pl.DataFrame:
        """Add `home`: the partition groups lie in, by their names where the state lacks them.

        Args:
            groups: Has `group_id`, and `coordinator_partition` as the state has it, else null.
        """
        here = pl.col("coordinator_partition")
        if self._partitions is None:
            return groups.with_columns(here.alias("home"))
        absent = pl.when(here.is_null()).then("group_id")
        return groups.with_columns(pl.coalesce(here, self._home_by_name(absent)).alias("home"))

    def gaps_in_history(self, groups: pl.DataFrame) -> pl.DataFrame:
        """Return why the history of groups has gaps, of those where it has.

        Args:
            groups: As `homes_of` returns them.

        Returns:
            `group_id` and `gap`.
        """
        perhaps = groups.filter(self._may_lack_history(groups["group_id"]))["group_id"].unique()
        found = {group: self.gaps_of(group).history for group in perhaps.to_list()}
        gaps = [(group, why) for group, why in found.items() if why is not None]
        return pl.DataFrame(gaps, {"group_id": pl.String, "gap": pl.String}, orient="row")

    def _may_lack_history(self, names: pl.Series) -> pl.Expr:
        """Return of which groups, with their homes, `gaps_of` may say that their history has gaps.

        Args:
            names: Of the groups.
        """
        if self._partitions is None:
            return pl.lit(value=True)
        group, is_absent = pl.col("group_id"), pl.col("coordinator_partition").is_null()
        homes, manifest = self._homes_told, self.replayed.manifest
        is_unsure = group.is_in(list(self._between_cuts))
        if self._filters:
            wanted = names.unique().to_list()
            for each in self._filters:
                wanted = names_wanted(wanted, *each)
            is_unsure |= ~group.is_in(wanted)
        if has_topic_filter(manifest) or (homes is not None and homes.perhaps is not None):
            is_unsure |= is_absent
        if homes is not None and homes.disputed:
            is_unsure |= is_one_of(group, homes.disputed)
        partly_told = self._partly_told
        if partly_told:
            homes_of_group = (pl.col("home"), self._home_by_name(group))
            is_unsure |= pl.any_horizontal(each.is_in(partly_told) for each in homes_of_group)
        return is_unsure

    @property
    def _partly_told(self) -> frozenset[int]:
        """The partitions of the offsets topic of which not all is certain."""
        of_archives = archived(self.replayed.manifest, CONSUMER_OFFSETS)
        return of_archives | self._lacking_partitions | {*disputed_partitions(self.replayed)}

    def _home_by_name(self, group: pl.Expr) -> pl.Expr:
        """Return in which partitions groups are read, by their names."""
        homes, partitions = self._homes_told, self._partitions
        if homes is not None:
            return internal_partition(group, homes.partitions, homes.disputed)
        if partitions is None:
            raise ValueError("how many partitions there are is not known")
        return internal_partition(group, partitions)

    def home(self, group: str) -> int | None:
        """Return the partition a group lies in, by its name where the state does not have it."""
        home = self._where.get(group)
        if home is None and self._partitions is not None:
            homes = self._homes_told
            home = homes.home(group) if homes else home_of(group, self._partitions)
        return home

    def of_group(self, group: str) -> str | None:
        """Return why nothing can be told of a group, None where something is.

        What is there need not be all: see `gaps_of`.
        """
        if (left_out := self._left_out(group)) is not None:
            return left_out
        if not self._present:
            return f"{group}: this dump has no copy of any partition of {CONSUMER_OFFSETS}"
        if self._partitions is None:
            return (
                f"{group}: how many partitions {CONSUMER_OFFSETS} has is not known, so neither is "
                f"the one it belongs to"
            )
        if group not in self._where and group in self._between_cuts:
            return f"{group} may have been there: {self._between_cuts[group]}"
        elsewhere = self._of_two_homes(group, self._partitions)
        if group not in self._where and elsewhere is None:
            elsewhere = self._of_disputed_home(group)
        if elsewhere is not None or self._is_all_there:
            return elsewhere
        homes = self._homes_told
        home = homes.home(group) if homes else home_of(group, self._partitions)
        return self._of_home(group, home)

    def _of_two_homes(self, group: str, partitions: int) -> str | None:
        """Return why it is not known in which of two partitions a group would be."""
        perhaps = self._homes_told.perhaps if self._homes_told else None
        if perhaps is None or group in self._where:
            return None
        one, other = (home_of(group, each) for each in (partitions, perhaps))
        if one == other:
            return None
        return (
            f"{group}: nothing shows whether clients were sent to {CONSUMER_OFFSETS}-{one} "
            f"or to {other}"
        )

    def _of_disputed_home(self, group: str) -> str | None:
        """Return why nothing shows in which partition clients looked for a group."""
        homes = self._homes_told
        is_disputed = homes is not None and homes.is_disputed(group)
        return f"{group}: {why_disputed(CONSUMER_OFFSETS)}" if is_disputed else None

    def _of_home(self, group: str, home: int) -> str | None:
        """Return why the partition of a group tells nothing of it."""
        if home not in self._present:
            if self._is_archive_whole:
                return None
            reason = f"{group} belongs to {CONSUMER_OFFSETS}-{home}, of which this dump has no copy"
            return reason + self._if_so_many
        if home in self.lost_before:
            return f"{group} belongs to {CONSUMER_OFFSETS}-{home}: {self._lost(home)}"
        if home in self.losses and group not in self._where:
            lost = lacks(CONSUMER_OFFSETS, home, self.losses[home])
            return f"{group} is not in the records that can be read, and {lost}"
        return None

    @property
    def _if_so_many(self) -> str:
        """What the partition of a group rests on, where it rests on a default."""
        is_guess = self._homes_told is not None and self._homes_told.is_number_guessed
        by_setting = by_which_setting(self.replayed, CONSUMER_OFFSETS)
        if by_setting is not None and self._named_partitions is not None:
            return f" ({by_setting})"
        if not is_guess and (self._named_partitions is not None or self._homes):
            return ""
        return f" (if that topic has {self._partitions} partitions: nothing says)"

    def in_sentences(self, unknown: Mapping[str, str]) -> list[str]:
        """Return the reasons of `of_group` for several groups; the same of many is said once."""
        homes = {} if self._partitions is None else {each: self.home(each) for each in unknown}
        absent = [
            each
            for each, home in homes.items()
            if home is not None and home not in self._present and each not in self._where
        ]
        if len(absent) <= _MOST_NAMED:
            return list(unknown.values())
        names = ", ".join(absent[:_MOST_NAMED])
        numbers = ranges({number for each in absent if (number := homes[each]) is not None})
        once = (
            f"{names} and {len(absent) - _MOST_NAMED} more belong to {CONSUMER_OFFSETS} {numbers}, "
            f"of which this dump has no copy{self._if_so_many}"
        )
        return [once, *(why for each, why in unknown.items() if each not in set(absent))]

    def incomplete(self, group: str) -> str | None:
        """Return what is missing of a group that is there, None where nothing is."""
        missing = self._incomplete.get(group)
        return f"{group}: {missing}" if missing else None

    def of_all(self) -> list[str]:
        """Return what cannot be told of the groups together."""
        if not self._present:
            return [f"this dump has no copy of any partition of {CONSUMER_OFFSETS}"]
        absent = self.absent()
        reasons = [] if absent is None else [absent]
        by_what: dict[str, list[int]] = {}
        for number, what in self._what_took.items():
            by_what.setdefault(what, []).append(number)
        reasons += [
            f"groups of {CONSUMER_OFFSETS} {ranges(numbers)} at {self.replayed.instant}: "
            f"history before complete_from {what}"
            for what, numbers in by_what.items()
        ]
        gone = sorted({*self._between_cuts} - {*self._where})
        reasons += [f"{each} may have been there: {self._between_cuts[each]}" for each in gone][
            :_MOST_NAMED
        ]
        lossy = sorted(set(self.losses) - set(self.lost_before))
        reasons += [
            f"groups may be missing: {lacks(CONSUMER_OFFSETS, number, self.losses[number])}"
            for number in lossy[:_MOST_NAMED]
        ]
        if lossy[_MOST_NAMED:]:
            rest = ranges(lossy[_MOST_NAMED:])
            reasons.append(f"groups may be missing: {CONSUMER_OFFSETS} {rest} lack records, too")
        return reasons

    def absent(self) -> str | None:
        """Return which groups may be missing because a partition has no copy."""
        if self._partitions is None or self._is_archive_whole:
            return None
        missing = set(range(self._partitions)) - self._present
        asked = self._asked_partitions
        missing = missing & asked if asked else missing
        if not missing or not self._present:
            return None
        reason = f"groups of {CONSUMER_OFFSETS} {ranges(missing)}: this dump has no copy of these"
        return reason + self._if_so_many

    @property
    def _is_archive_whole(self) -> bool:
        """Whether a person vouches for partitions without archived rows: they hold nothing."""
        return COMPLETE_ARCHIVE in assumed_in(self.replayed.manifest)

    @cached_property
    def losses(self) -> Mapping[int, Sequence[Loss]]:
        """By partition of the offsets topic, the losses that matter at the instant."""
        return losses_of(self.replayed, CONSUMER_OFFSETS, self._ends)

    @cached_property
    def _between_cuts(self) -> Mapping[str, str]:
        """Groups of which records lie between the two cuts of a log, and why."""
        return groups_between_cuts(self.replayed)

    @cached_property
    def lost_before(self) -> Mapping[int, int]:
        """By partition of the offsets topic, the offset before which the instant lies.

        Compaction, or retention, removed some of the records before that offset that counted then.
        The former left the last value of each key, and removed nothing that counted where all
        records before that offset are of the instant or earlier.
        """
        found = {}
        for row in leading(self.replayed.manifest):
            key, start = (row["topic"], row["partition"]), cleaned_until(row)
            end = self._ends.of(key)
            if row["topic"] == CONSUMER_OFFSETS and end is not None and end < start:
                found[row["partition"]] = start
        return found

    @cached_property
    def _ends(self) -> Ends:
        """Where the records end that count at the instant."""
        return ends_of(self.replayed, CONSUMER_OFFSETS)

    @cached_property
    def _what_took(self) -> Mapping[int, str]:
        """By partition of `lost_before`, what became of the records before that offset."""
        return {
            row["partition"]: what_took_history(row)
            for row in leading(self.replayed.manifest)
            if row["topic"] == CONSUMER_OFFSETS and row["partition"] in self.lost_before
        }

    def _lost(self, number: int) -> str:
        return (
            f"history before offset {self.lost_before[number]} {self._what_took[number]}, and "
            f"{self.replayed.instant} is before it"
        )

    def _left_out(self, group: str) -> str | None:
        if not all(names_wanted([group], *filters) for filters in self._filters):
            return f"{group} was left out by --group or --exclude-group when this was decoded"
        if has_topic_filter(self.replayed.manifest) and group not in self._where:
            # A group that has nothing but offsets is there as long as these are.
            return (
                f"{group} may have been there: this workspace was made with --topic, and has "
                "no offsets of other topics"
            )
        return None

    @cached_property
    def _filters(self) -> list[tuple[Sequence[str], Sequence[str]]]:
        """`--group` and `--exclude-group` of decoding and of the replay, where there were any."""
        manifest = self.replayed.manifest
        given = (manifest.get("options", {}), manifest["replay"].get("filters", {}))
        filters = [(each.get("groups", []), each.get("exclude_groups", [])) for each in given]
        return [each for each in filters if any(each)]

    @cached_property
    def _is_all_there(self) -> bool:
        """Whether every partition has a copy, and none lacks anything."""
        return self._partitions is not None and not self._lacking_partitions

    @property
    def _lacking_partitions(self) -> set[int]:
        """The partitions of the offsets topic that have no copy, or lack records."""
        absent = {*range(self._partitions or 0)} - self._present
        return absent | {*self.lost_before} | {*self.losses}

    @property
    def _asked_partitions(self) -> set[int]:
        """The partitions that `--partition` asked for; empty is all."""
        manifest = self.replayed.manifest
        said = (manifest.get("options", {}), manifest["replay"].get("filters", {}))
        return {int(number) for each in said for number in each.get("partitions", ())}

    @cached_property
    def _present(self) -> frozenset[int]:
        rows = leading(self.replayed.manifest)
        return frozenset(row["partition"] for row in rows if row["topic"] == CONSUMER_OFFSETS)

    @cached_property
    def _partitions(self) -> int | None:
        """How many partitions the offsets topic has; None where nothing fits what is there."""
        if not self._present:
            return None
        if self._named_partitions is not None:
            return self._named_partitions
        return partitions_that_fit(self._homes, max(self._present) + 1)

    @cached_property
    def _homes_told(self) -> TopicHomes | None:
        """Where groups are looked for, if that is not simply where they lie."""
        return homes_in(self.replayed.manifest).get(CONSUMER_OFFSETS)

    @cached_property
    def _named_partitions(self) -> int | None:
        """As the dump shows it, or settings that nothing contradicts say it."""
        return partition_count(self.replayed, CONSUMER_OFFSETS)

    @property
    def _homes(self) -> list[tuple[str, int]]:
        """Some groups, and where they are."""
        return list(_homes_in(self._groups.slice(0, _ENOUGH_GROUPS)).items())

    @cached_property
    def _where(self) -> Mapping[str, int]:
        """All groups, and where they are."""
        return _homes_in(self._groups)

    @cached_property
    def _incomplete(self) -> Mapping[str, str]:
        """Groups of which not all is told, and what is missing."""
        rows = self._groups.filter(pc.invert(self._groups["complete"]))
        names, reasons = rows["group_id"].to_pylist(), rows["missing"].to_pylist()
        return {str(name): str(why) for name, why in zip(names, reasons, strict=True)}

    @cached_property
    def _groups(self) -> pa.Table:
        everything = StoredTables(self.replayed.tables.workspace)
        return everything.read(
            "groups", ["group_id", "coordinator_partition", "complete", "missing"]
        )


def _homes_in(groups: pa.Table) -> dict[str, int]:
    names, homes = (groups[each].to_pylist() for each in ("group_id", "coordinator_partition"))
    return dict(zip(names, homes, strict=True))
