"""What a dump cannot tell about groups at an instant: never "none" where it is unknown.

A group lives in one partition of `__consumer_offsets`. Where the dump has no copy of it, or lacks
what was in it before the instant, nothing is known of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.selection import names_wanted
from analytics.dump.inspection.found_losses import Loss, lacks
from analytics.engine.key_places import homes_in
from analytics.gaps.gap import Gap, GroupGaps, gap, joined
from analytics.gaps.internal_topics import (
    by_which_setting,
    ends_of,
    has_topic_filter,
    losses_of,
    lost_records,
    partition_count,
    partitions_that_fit,
    undecided_of,
)
from analytics.replay.dump.choices import COMPLETE_ARCHIVE, archived, assumed_in
from analytics.replay.log.ends_at import Ends, cleaned_until, leading, what_took_history
from analytics.replay.log.topic_homes import home_of, internal_partition, is_one_of
from analytics.replayed.records import disputed_partitions, groups_between_cuts
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Frame
    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


_ENOUGH_GROUPS = 1000
_MOST_NAMED = 5


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
            return GroupGaps((nothing,), (nothing,), (nothing,))
        membership = self.incomplete(group)
        home = self.home(group)
        offsets, history = undecided_of(self.replayed, group, home)
        if (disputed := self._of_disputed_home(group)) is not None:
            offsets, history = [disputed, *offsets], [disputed, *history]
        if home is not None and home in self.losses:
            lost = {"group_id": group, **self._lost_records(home)}
            offsets = [gap("offsets_lack_records", **lost), *offsets]
            history = [gap("history_lacks_records", **lost), *history]
        if (between := self._between_cuts.get(group)) is not None:
            offsets = [self._between("offsets_between_cuts", group, between), *offsets]
            history = [self._between("history_between_cuts", group, between), *history]
        return GroupGaps(
            tuple(offsets), () if membership is None else (membership,), tuple(history)
        )

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
        return self._gaps_by_group(groups, lambda gaps: gaps.history)

    def gaps_in_offsets(self, groups: pl.DataFrame) -> pl.DataFrame:
        """Return why the offsets of groups cannot be told, as `gaps_in_history` does."""
        return self._gaps_by_group(groups, lambda gaps: gaps.offsets)

    def _gaps_by_group(
        self, groups: pl.DataFrame, chosen: Callable[[GroupGaps], Sequence[Gap]]
    ) -> pl.DataFrame:
        perhaps = groups.filter(self._may_have_gaps(groups["group_id"]))["group_id"].unique()
        found = {group: joined(chosen(self.gaps_of(group))) for group in perhaps.to_list()}
        rows = [(group, why) for group, why in found.items() if why is not None]
        return pl.DataFrame(rows, {"group_id": pl.String, "gap": pl.String}, orient="row")

    def _may_have_gaps(self, names: pl.Series) -> pl.Expr:
        """Return of which groups, with their homes, `gaps_of` may say that it lacks something.

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
        return of_archives | self._lacking_partitions | {*self._disputed}

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

    def of_group(self, group: str) -> Gap | None:
        """Return why nothing can be told of a group, None where something is.

        What is there need not be all: see `gaps_of`.
        """
        if (left_out := self._left_out(group)) is not None:
            return left_out
        if not self._present:
            return gap("topic_without_copy", group_id=group, topic=CONSUMER_OFFSETS)
        if self._partitions is None:
            return gap("partition_count_unknown", group_id=group, topic=CONSUMER_OFFSETS)
        is_there = group in self._where
        if not is_there and (between := self._between_cuts.get(group)) is not None:
            return self._between("group_between_cuts", group, between)
        elsewhere = self._of_two_homes(group, self._partitions)
        if not is_there and elsewhere is None:
            elsewhere = self._of_disputed_home(group)
        if elsewhere is not None or self._is_all_there:
            return elsewhere
        homes = self._homes_told
        home = homes.home(group) if homes else home_of(group, self._partitions)
        return self._of_home(group, home)

    def _of_two_homes(self, group: str, partitions: int) -> Gap | None:
        """Return why it is not known in which of two partitions a group would be."""
        perhaps = self._homes_told.perhaps if self._homes_told else None
        if perhaps is None or group in self._where:
            return None
        one, other = (home_of(group, each) for each in (partitions, perhaps))
        if one == other:
            return None
        return gap(
            "group_of_two_partitions", group_id=group, topic=CONSUMER_OFFSETS, one=one, other=other
        )

    def _of_disputed_home(self, group: str) -> Gap | None:
        """Return why nothing shows in which partition clients looked for a group."""
        homes = self._homes_told
        is_disputed = homes is not None and homes.is_disputed(group)
        return gap("home_disputed", group_id=group, topic=CONSUMER_OFFSETS) if is_disputed else None

    def _of_home(self, group: str, home: int) -> Gap | None:
        """Return why the partition of a group tells nothing of it."""
        place = {"group_id": group, "topic": CONSUMER_OFFSETS, "partition": home}
        if home not in self._present:
            if self._is_archive_whole:
                return None
            return gap("home_without_copy", **place, **self._if_so_many)
        if home in self.lost_before:
            return gap(
                "home_lacks_history",
                **place,
                to_offset=self.lost_before[home],
                what_took=self._what_took[home],
                instant=self.replayed.instant,
            )
        if home in self.losses and group not in self._where:
            return gap("home_lacks_records", group_id=group, **self._lost_records(home))
        return None

    @property
    def _if_so_many(self) -> dict[str, Any]:
        """What the partition of a group rests on, where it rests on a default or a setting."""
        is_guess = self._homes_told is not None and self._homes_told.is_number_guessed
        by_setting = by_which_setting(self.replayed, CONSUMER_OFFSETS)
        if by_setting is not None and self._named_partitions is not None:
            return {"by_setting": by_setting}
        if not is_guess and (self._named_partitions is not None or self._homes):
            return {}
        return {"guessed_partitions": self._partitions}

    def _lost_records(self, number: int) -> dict[str, Any]:
        """Return the place of the losses of a partition, and what they are in words."""
        return lost_records(CONSUMER_OFFSETS, number, self.losses[number])

    def _between(self, code: str, group: str, number: int) -> Gap:
        """Return a gap of a group with records between the two cuts of a partition."""
        frame, place = self._disputed[number], {"topic": CONSUMER_OFFSETS, "partition": number}
        ends = {"from_offset": frame.certain_end, "to_offset": frame.possible_end}
        why = frame.why(CONSUMER_OFFSETS, number)
        return gap(code, group_id=group, **place, **ends, why=why)

    def together(self, unknown: Mapping[str, Gap]) -> list[Gap]:
        """Return the gaps of `of_group` for several groups; the same of many is one."""
        homes = {} if self._partitions is None else {each: self.home(each) for each in unknown}
        absent = [
            each
            for each, home in homes.items()
            if home is not None and home not in self._present and each not in self._where
        ]
        if len(absent) <= _MOST_NAMED:
            return list(unknown.values())
        once = gap(
            "groups_without_copy",
            topic=CONSUMER_OFFSETS,
            groups=tuple(absent[:_MOST_NAMED]),
            more=len(absent) - _MOST_NAMED,
            partitions=tuple(
                sorted({number for each in absent if (number := homes[each]) is not None})
            ),
            **self._if_so_many,
        )
        return [once, *(why for each, why in unknown.items() if each not in set(absent))]

    def incomplete(self, group: str) -> Gap | None:
        """Return what is missing of a group that is there, None where nothing is."""
        missing = self._incomplete.get(group)
        return gap("group_incomplete", group_id=group, missing=missing) if missing else None

    def of_all(self) -> list[Gap]:
        """Return what cannot be told of the groups together."""
        if not self._present:
            return [gap("topic_without_copy", topic=CONSUMER_OFFSETS)]
        absent = self.absent()
        found = [] if absent is None else [absent]
        by_what: dict[str, list[int]] = {}
        for number, what in self._what_took.items():
            by_what.setdefault(what, []).append(number)
        found += [
            gap(
                "history_before_start",
                topic=CONSUMER_OFFSETS,
                partitions=tuple(numbers),
                instant=self.replayed.instant,
                what_took=what,
            )
            for what, numbers in by_what.items()
        ]
        gone = sorted({*self._between_cuts} - {*self._where})[:_MOST_NAMED]
        found += [
            self._between("group_between_cuts", each, self._between_cuts[each]) for each in gone
        ]
        lossy = sorted(set(self.losses) - set(self.lost_before))
        found += [
            gap("partition_lacks_records", **self._lost_records(number))
            for number in lossy[:_MOST_NAMED]
        ]
        if rest := lossy[_MOST_NAMED:]:
            found.append(
                gap("more_partitions_lack_records", topic=CONSUMER_OFFSETS, partitions=tuple(rest))
            )
        return found

    def absent(self) -> Gap | None:
        """Return which groups may be missing because a partition has no copy."""
        if self._partitions is None or self._is_archive_whole:
            return None
        missing = set(range(self._partitions)) - self._present
        asked = self._asked_partitions
        missing = missing & asked if asked else missing
        if not missing or not self._present:
            return None
        return gap(
            "partitions_without_copy",
            topic=CONSUMER_OFFSETS,
            partitions=tuple(sorted(missing)),
            **self._if_so_many,
        )

    @property
    def _is_archive_whole(self) -> bool:
        """Whether a person vouches for partitions without archived rows: they hold nothing."""
        return COMPLETE_ARCHIVE in assumed_in(self.replayed.manifest)

    @cached_property
    def losses(self) -> Mapping[int, Sequence[Loss]]:
        """By partition of the offsets topic, the losses that matter at the instant."""
        return losses_of(self.replayed, CONSUMER_OFFSETS, self._ends)

    @cached_property
    def _disputed(self) -> Mapping[int, Frame]:
        """By partition of the offsets topic the two cuts that differ."""
        return disputed_partitions(self.replayed)

    @cached_property
    def _between_cuts(self) -> Mapping[str, int]:
        """Groups of which records lie between the two cuts of a log, and in which partition."""
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

    def _left_out(self, group: str) -> Gap | None:
        if not all(names_wanted([group], *filters) for filters in self._filters):
            return gap("group_left_out", group_id=group)
        if has_topic_filter(self.replayed.manifest) and group not in self._where:
            # A group that has nothing but offsets is there as long as these are.
            return gap("group_of_other_topics", group_id=group)
        return None

    @cached_property
    def _filters(self) -> list[tuple[Sequence[str], Sequence[str]]]:
        """`--group` and `--exclude-group` of decoding and of the replay, where there were any."""
        manifest = self.replayed.manifest
        given = (manifest["options"], manifest["replay"].get("filters", {}))
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
        said = (manifest["options"], manifest["replay"].get("filters", {}))
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
