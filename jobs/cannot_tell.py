"""What a dump cannot tell about groups at an instant, in words: never "none" where it is unknown.

A group lives in one partition of `__consumer_offsets`. Where the dump has no copy of it, or lacks
what was in it before the instant, nothing is known of the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from analytics.assignors.java_order import string_hash
from analytics.decode.selection import names_wanted
from jobs.stored_tables import StoredTables
from reports.quantities import ranges

if TYPE_CHECKING:
    from jobs.replayed import Replayed

OFFSETS_TOPIC = "__consumer_offsets"
DEFAULT_PARTITIONS = 50
"""`offsets.topic.num.partitions` as Kafka has it by default."""

_MOST_PARTITIONS = 1000
_ENOUGH_GROUPS = 1000
_LEAST = -(1 << 31)
_SIGN = 1 << 31


def home_of(group: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` a group belongs to (``Utils.abs(hashCode)``)."""
    unsigned = string_hash(group)
    signed = unsigned - (1 << 32) if unsigned & _SIGN else unsigned
    return 0 if signed == _LEAST else abs(signed) % partitions


@dataclass(frozen=True)
class Untold:
    """What cannot be told about groups from what was replayed."""

    replayed: Replayed

    def of_group(self, group: str) -> str | None:
        """Return why nothing can be told of a group, None where what is there is all."""
        left_out = self._left_out(group)
        if left_out is not None:
            return left_out
        if not self._present:
            return f"{group}: this dump has no copy of any partition of {OFFSETS_TOPIC}"
        if self._partitions is None:
            return (
                f"{group}: how many partitions {OFFSETS_TOPIC} has is not known, so neither is "
                f"the one it belongs to"
            )
        home = home_of(group, self._partitions)
        if home not in self._present:
            reason = f"{group} belongs to {OFFSETS_TOPIC}-{home}, of which this dump has no copy"
            if self._named_partitions is None and not self._homes:
                reason += f" (if that topic has {self._partitions} partitions: nothing says)"
            return reason
        if home in self.lost_before:
            return f"{group} belongs to {OFFSETS_TOPIC}-{home}: {self._lost(home)}"
        return None

    def of_all(self) -> list[str]:
        """Return what cannot be told of the groups together."""
        reasons = []
        if not self._present:
            return [f"this dump has no copy of any partition of {OFFSETS_TOPIC}"]
        if self.lost_before:
            reasons.append(
                f"groups of {OFFSETS_TOPIC} {ranges(self.lost_before)} at "
                f"{self.replayed.instant}: what was there before complete_from is only partly in "
                f"the dump"
            )
        return reasons

    def absent(self) -> str | None:
        """Return which groups may be missing because a partition has no copy."""
        if self._partitions is None:
            return None
        missing = set(range(self._partitions)) - self._present
        if not missing or not self._present:
            return None
        return f"groups of {OFFSETS_TOPIC} {ranges(missing)}: this dump has no copy of these"

    @cached_property
    def lost_before(self) -> Mapping[int, int]:
        """By partition of the offsets topic, the offset before which the instant lies.

        From that offset on every record is there; of those before, some are gone that counted.
        """
        starts = {
            each["partition"]: each["complete_from"]
            for each in self._of_offsets_topic()
            if each.get("complete_from")
        }
        as_of = self.replayed.as_of
        ends = {number: as_of["offsets"].get(f"{OFFSETS_TOPIC}-{number}") for number in starts}
        first_later = self._first_later(starts, as_of["time"])
        return {
            number: start
            for number, start in starts.items()
            if min(_or(ends[number], start), first_later.get(number, start)) < start
        }

    def _first_later(self, starts: Mapping[int, int], time: str | None) -> dict[int, int]:
        """Return, by partition, the first offset of a record that is later than a time.

        What the cleaner took had a later value, which it left: it took nothing that counted then
        where all records before complete_from are of that time or earlier.
        """
        if time is None or not starts:
            return {}
        source = self.replayed.source
        first: dict[int, int] = {}
        for name in self._tables_of_offsets_topic():
            path = source.path(f"decoded/{name}")
            if source.filesystem.get_file_info(path).type is not fs.FileType.Directory:
                continue
            records = ds.dataset(path, filesystem=source.filesystem, format="parquet")
            stamp = pa.scalar(datetime.fromisoformat(time), records.schema.field("timestamp").type)
            later = records.to_table(
                columns=["partition", "offset"],
                filter=(pc.field("topic") == OFFSETS_TOPIC)
                & pc.field("partition").isin(list(starts))
                & (pc.field("timestamp") > stamp),
            )
            for each in later.group_by("partition").aggregate([("offset", "min")]).to_pylist():
                number, offset = each["partition"], each["offset_min"]
                first[number] = min(offset, first.get(number, offset))
        return first

    def _tables_of_offsets_topic(self) -> list[str]:
        return sorted(
            {
                each["table"]
                for each in self.replayed.manifest["record_types"]
                if each["topic"] == OFFSETS_TOPIC and each["table"] and each["records"]
            }
        )

    def _lost(self, number: int) -> str:
        return (
            f"what was there before offset {self.lost_before[number]} is only partly in the dump, "
            f"and {self.replayed.instant} is before it"
        )

    def _left_out(self, group: str) -> str | None:
        manifest = self.replayed.manifest
        for said in (manifest.get("options", {}), manifest["replay"].get("filters", {})):
            include, exclude = said.get("groups", []), said.get("exclude_groups", [])
            if not names_wanted([group], include, exclude):
                return f"{group} was left out by --group or --exclude-group when this was decoded"
        return None

    def _of_offsets_topic(self) -> list[Mapping[str, Any]]:
        return [
            each
            for each in self.replayed.manifest["partitions"]
            if each["topic"] == OFFSETS_TOPIC and each.get("is_leading", True)
        ]

    @cached_property
    def _present(self) -> frozenset[int]:
        return frozenset(each["partition"] for each in self._of_offsets_topic())

    @cached_property
    def _partitions(self) -> int | None:
        """How many partitions the offsets topic has; None where nothing fits what is there."""
        if not self._present:
            return None
        if self._named_partitions is not None:
            return self._named_partitions
        return partitions_that_fit(self._homes, max(self._present) + 1)

    @cached_property
    def _named_partitions(self) -> int | None:
        """As the metadata log has it."""
        everything = StoredTables(self.replayed.tables.workspace)
        named = everything.read("topics", ["partitions"], pc.field("topic") == OFFSETS_TOPIC)
        said: list[int] = [each for each in named["partitions"].to_pylist() if each]
        return max(said, default=None)

    @cached_property
    def _homes(self) -> list[tuple[str, int]]:
        """Some groups, and where they are."""
        everything = StoredTables(self.replayed.tables.workspace)
        groups = everything.read("groups", ["group_id", "coordinator_partition"])
        return [
            (str(each["group_id"]), int(each["coordinator_partition"]))
            for each in groups.slice(0, _ENOUGH_GROUPS).to_pylist()
        ]


def _or(number: int | None, other: int) -> int:
    return other if number is None else number


def partitions_that_fit(homes: Sequence[tuple[str, int]], least: int) -> int | None:
    """Return a number of partitions by which every group is where it is.

    Kafka's default goes before all others: a topic of 10 partitions and the first 10 of 50 look
    alike, and only the larger one says that there may be more.

    Args:
        homes: Groups and the partitions their records are in.
        least: The fewest partitions there can be.
    """
    candidates: list[int] = [DEFAULT_PARTITIONS, *range(least, _MOST_PARTITIONS + 1)]
    for each in candidates:
        if each >= least and all(home_of(group, each) == home for group, home in homes):
            return each
    return None
