"""What members held in every epoch, which no stored table tells: made of the records of groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.compute as pc

from analytics.contracts import polars_rows
from analytics.replay.groups.coordinator_log import coordinator_log
from analytics.replay.groups.group_records import CLASSIC, KINDS
from analytics.replay.history.group_history import group_records_in_time, group_steps
from analytics.replay.history.held_items import Held, held_items
from analytics.replay.log.rules import replay_rules
from analytics.replay.log.spans import LIFE
from analytics.replay.topics import named_topics, topic_names
from analytics.replayed.records import RecordGroups, Records
from analytics.replayed.whole_groups import parts_for
from analytics.tables.record_reader import without_records
from analytics.tables.stored_tables import StoredTables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.replay.log.rules import ReplayRules
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

AT_ONCE: Final = 30_000
"""So many group records are followed together, or those of one group: each holds many items."""

_MODERN: Final = tuple(name for name, kind in KINDS.items() if kind.family != CLASSIC)
_COMMITS: Final = "offset_commit"
_OF_COMMITS: Final = ("topic", "partition", "offset", "timestamp", "is_tombstone", "key")


@dataclass(frozen=True)
class Following:
    """Follows what members of some groups were given.

    Attributes:
        names: Of `topic_names`.
        rules: How the release replays.
    """

    names: pl.DataFrame
    rules: ReplayRules

    def held_of(self, decoded: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return what `cases_of_history` takes as `held`, of groups with these records.

        Commits count only where a tombstone may take over their group.
        """
        followed = {**{name: decoded[name] for name in KINDS}, _COMMITS: _taken_over(decoded)}
        rows = group_records_in_time(coordinator_log(followed), followed)
        return numbered(held_items(group_steps(rows, self.rules), self.names))


def _taken_over(decoded: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the commits of groups with a tombstone that is not of a classic group."""
    if _COMMITS not in decoded:
        return without_records(_COMMITS)
    taking = pl.concat(
        decoded[name]
        .filter("is_tombstone")
        .select(pl.col("key").struct.field(KINDS[name].group_field).alias("group"))
        for name in _MODERN
    )
    commits = decoded[_COMMITS]
    return commits.filter(pl.col("key").struct.field("group").is_in(taking["group"].implode()))


class HeldInEpochs:
    """What members held, of some whole groups after the others.

    Attributes:
        following: How it is found out.
    """

    def __init__(self, state: ReplayedWorkspace) -> None:
        self._records = Records(state)
        topics = StoredTables(state.tables.workspace).read("topics", ["topic_id", "topic"])
        names = topic_names(named_topics(polars_rows(topics)))
        self.following = Following(names, replay_rules(state.release))

    @cached_property
    def records(self) -> Mapping[str, RecordGroups]:
        """The records that are followed, and the commits of their groups where some may count."""
        reader, key = self._records.of_asked, pl.col("key").struct
        found = {
            name: RecordGroups(
                self._records,
                name,
                {each: each for each in reader.empty(name).columns},
                key.field(kind.group_field),
            )
            for name, kind in KINDS.items()
        }
        if reader.count(_MODERN, pc.field("is_tombstone")):
            fields = {each: each for each in _OF_COMMITS}
            found[_COMMITS] = RecordGroups(self._records, _COMMITS, fields, key.field("group"))
        return found

    @property
    def count(self) -> int:
        """How many records there are."""
        return self._records.of_asked.count(self.records)

    def at_once(self, rows: int, most: int) -> int:
        """Return how many rows a part has for the records that are followed together to be few.

        Args:
            rows: How many there are, these records among them.
            most: So many it has at most.
        """
        parts = parts_for(self._records.of_asked.count(KINDS), AT_ONCE)
        return min(-(-rows // parts), most)


def numbered(held: Held) -> pl.DataFrame:
    """Return what members held in replay, as `cases_of_history` takes it."""
    runs, epoch_no = held.runs, pl.col("epoch_no")
    ended = pl.DataFrame(held.columns_at(runs["ended_in"], "epoch_no"))
    last = ended.select(
        pl.when(runs["is_closing"]).then(epoch_no).otherwise(epoch_no - 1).alias("last_epoch_no")
    )
    told = runs.with_columns(
        *held.columns_at(runs["at"], "coordinator_partition", "group_id", "life", LIFE, "epoch_no"),
        *held.named(runs, "member_id", "role", "subtopology_id", "topic", "topic_id"),
        held.about(runs).struct.field("group_instance_id"),
        *last,
    )
    return told.filter(runs["until"].is_null() | ended["epoch_no"].is_not_null()).select(
        *("coordinator_partition", "group_id", "life", LIFE, "member", "member_id", "kind", "role"),
        *("subtopology_id", "topic", "topic_id", "partition", "group_instance_id"),
        epoch_no.fill_null(0).alias("first_epoch_no"),
        "last_epoch_no",
    )
