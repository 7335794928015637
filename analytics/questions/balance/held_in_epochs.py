"""What members held in every epoch, which no stored table tells: made of the records of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import polars_rows
from analytics.replay.groups.coordinator_log import coordinator_log
from analytics.replay.groups.group_records import CLASSIC, KINDS
from analytics.replay.history.group_history import group_records_in_time, group_steps
from analytics.replay.history.held_items import Held, held_items
from analytics.replay.log.rules import replay_rules
from analytics.replay.log.spans import LIFE
from analytics.replay.topics import named_topics, topic_names
from analytics.replayed.group_rows import GroupRows
from analytics.replayed.records import Records
from analytics.replayed.whole_groups import parts_for
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analytics.replay.log.rules import ReplayRules
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

AT_ONCE: Final = 30_000
"""So many group records are followed together, or those of one group: each holds many items."""

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
        """Return what `cases_of_history` takes as `held`, of groups with these records."""
        rows = group_records_in_time(coordinator_log(decoded), decoded)
        return numbered(held_items(group_steps(rows, self.rules), self.names))


class HeldInEpochs:
    """What members held, of some whole groups after the others.

    Attributes:
        following: How it is found out.
    """

    def __init__(self, state: ReplayedWorkspace) -> None:
        self._cut = Records(state).cut
        self._reader = self._cut.reader
        topics = StoredTables(state.tables.workspace).read("topics", ["topic_id", "topic"])
        names = topic_names(named_topics(polars_rows(topics)))
        self.following = Following(names, replay_rules(state.release))

    @property
    def parts(self) -> int:
        """How many parts of groups are looked at by themselves."""
        return parts_for(self._reader.count(KINDS), AT_ONCE)

    def rows(self) -> dict[str, GroupRows]:
        """Return the records that are followed: of which groups is told by `whole_groups`.

        Commits count only where a tombstone may take over their group.
        """
        key = pl.col("key").struct
        found = {
            name: GroupRows(self._records(name), key.field(kind.group_field))
            for name, kind in KINDS.items()
        }
        taking = self._taking()
        told = self._commits(taking) if len(taking) else iter([self._reader.empty(_COMMITS)])
        return {**found, _COMMITS: GroupRows(told, key.field("group"))}

    def _records(self, name: str) -> Iterator[pl.DataFrame]:
        yield self._reader.empty(name)
        for file in self._reader.files(name):
            for rows in self._reader.batches(file):
                yield self._cut.cut_rows(name, polars_rows(rows))

    def _taking(self) -> pl.Series:
        """Return the groups with a tombstone that is not of a classic group."""
        fields = {"group": "key.group_id", "is_tombstone": "is_tombstone"}
        modern = [name for name, kind in KINDS.items() if kind.family != CLASSIC]
        rows = pl.concat(self._reader.rows(name, fields, CONSUMER_OFFSETS) for name in modern)
        return rows.filter("is_tombstone")["group"].unique()

    def _commits(self, groups: pl.Series) -> Iterator[pl.DataFrame]:
        fields = {each: each for each in _OF_COMMITS}
        is_theirs = pl.col("key").struct.field("group").is_in(groups.implode())
        for rows in self._reader.pieces(_COMMITS, fields, CONSUMER_OFFSETS):
            yield self._cut.cut_rows(_COMMITS, rows.filter(is_theirs))


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
