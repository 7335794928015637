"""The tables about usage, made of a workspace: decoded records are read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import table_of
from analytics.engine.key_places import homes_in
from analytics.questions.usage.cleaning.log_cleaning import (
    CopyOfLog,
    bounds_of,
    copies_of_logs,
    log_cleaning,
)
from analytics.questions.usage.cleaning.transaction_ends import (
    IN_TRANSACTIONS,
    MARKERS,
    TransactionEnds,
)
from analytics.questions.usage.clock_differences import (
    COMMITTED,
    ENTERED,
    PLACED,
    ClockDifferences,
)
from analytics.questions.usage.coordinator_load import (
    Placed,
    coordinator_load,
    groups_placed,
    placed,
)
from analytics.questions.usage.groups.expired import with_expired
from analytics.questions.usage.groups.offset_deletions import offset_deletions
from analytics.questions.usage.groups.one_shot_groups import one_shot_groups
from analytics.questions.usage.keys.committers import committers
from analytics.questions.usage.keys.key_states import (
    COLUMNS,
    COMMIT_COLUMNS,
    COMMITS,
    KeyStates,
)
from analytics.questions.usage.keys.topic_usage import topic_usage
from analytics.questions.usage.missing import limitations
from analytics.questions.usage.partition_usage import identity, partition_usage, untabled_usage
from analytics.questions.usage.record_growth import RecordGrowth
from analytics.questions.usage.size_limits import size_limits
from analytics.tables.decoded_records import decoded_tables, record_batches, rows_where
from schemas import CONSUMER_OFFSETS, INTERNAL_TOPICS, table

if TYPE_CHECKING:
    from analytics.questions.usage.cleaning.log_settings import LogSettings
    from analytics.questions.usage.partition_usage import Identity
    from analytics.workspace import Workspace

_CLASSIC_GROUPS: Final = "group_metadata"


@dataclass(frozen=True)
class KnownState:
    """State tables that usage is held against, as far as there are any.

    Attributes:
        groups: The table `groups`.
        leaders: The table `partition_leaders`.
        topics: The table `topics`.
        committed: The table `committed_offsets`: `OFFSETS_COLUMNS`.
        expiration: The evaluation `offset_expiration` of the same instant, where there is one.
    """

    groups: pa.Table
    leaders: pa.Table
    topics: pa.Table
    committed: pa.Table
    expiration: pa.Table | None = None

    @classmethod
    def nothing(cls) -> KnownState:
        """Return that no state is known."""
        groups, leaders, topics = (
            pa.schema([(each.name, pa.null()) for each in table(name).columns]).empty_table()
            for name in ("groups", "partition_leaders", "topics")
        )
        return cls(groups, leaders, topics, table_of("committed_offsets", []))

    @property
    def leading(self) -> dict[tuple[str, int], int | None]:
        """Who leads each partition."""
        columns = (self.leaders[name].to_pylist() for name in ("topic", "partition", "leader"))
        return {(topic, number): leader for topic, number, leader in zip(*columns, strict=True)}

    @property
    def offsets_partitions(self) -> int | None:
        """How many partitions `__consumer_offsets` has, None where nothing says."""
        columns = (self.topics[name].to_pylist() for name in ("topic", "partitions", "deleted_at"))
        counts = [
            count
            for topic, count, deleted in zip(*columns, strict=True)
            if topic == CONSUMER_OFFSETS and deleted is None and count
        ]
        return counts[0] if len(counts) == 1 else None


@dataclass(frozen=True)
class Usage:
    """What was found.

    Attributes:
        tables: The tables by their names; `topic_usage` and its like are of all groups.
        even: Whether bytes come out even.
        placed: How groups lie on partitions.
        limitations: What cannot be told, one sentence each.
    """

    tables: Mapping[str, pa.Table]
    even: Identity
    placed: Placed
    limitations: list[str]

    @property
    def rows(self) -> pa.Table:
        """The table `topic_usage`."""
        return self.tables["topic_usage"]

    @property
    def partitions(self) -> pa.Table:
        """The table `partition_usage`."""
        return self.tables["partition_usage"]

    @property
    def cleaning(self) -> pa.Table:
        """The table `log_cleaning`."""
        return self.tables["log_cleaning"]


def usage_tables(
    space: Workspace,
    manifest: Mapping[str, Any],
    settings: LogSettings,
    known: KnownState | None = None,
    interval_ms: int | None = None,
    now_ms: int | None = None,
) -> Usage:
    """Read every decoded record once.

    Args:
        space: The workspace with the decoded tables.
        manifest: Its own, or that of a replay of it.
        settings: Those in force.
        known: State tables.
        interval_ms: What commits are held against; None is the rules' interval.
        now_ms: The instant; None is the end of each broker's copy.

    Raises:
        WorkspaceError: A table is damaged.
    """
    known = known or KnownState.nothing()
    there = {each["topic"] for each in manifest["partitions"]}
    topics = [topic for topic in INTERNAL_TOPICS if topic in there]
    ends = _transaction_ends(space, topics)
    logs = copies_of_logs(manifest, ends.first_open, now_ms)
    clocks = ClockDifferences(round(settings.rules.clock_seconds * 1000))
    states = KeyStates(bounds_of(logs, settings), ends, _complete(logs))
    _read(space, topics, states, clocks)
    partitions = partition_usage(manifest)
    rows = with_expired(topic_usage(states, untabled_usage(manifest)), known.expiration)
    rows = rows.select([each.name for each in table("topic_usage").columns])
    even = identity(partitions, rows)
    instants = {
        each.place: each.now_ms for each in logs if each.is_leading and each.now_ms is not None
    }
    homes = homes_in(manifest).get(CONSUMER_OFFSETS)
    found = placed(groups_placed(rows), homes.partitions if homes else known.offsets_partitions)
    clusters, deletions = one_shot_groups(rows, known.groups, settings.rules)
    growth = _growth(space, RecordGrowth(settings.rules.growing))
    tables = {
        "topic_usage": rows,
        "partition_usage": partitions,
        "log_cleaning": log_cleaning(logs, settings, states, rows),
        "committers": committers(states, instants, settings.rules, interval_ms),
        "size_limits": size_limits(rows, settings),
        "record_growth": growth.rows(settings),
        "clock_differences": clocks.rows(),
        "one_shot_groups": clusters,
        "group_deletions": deletions,
        "offset_deletions": offset_deletions(known.committed, known.groups, known.topics),
        "coordinator_load": coordinator_load(
            rows, partitions, known.leading, found, settings.rules
        ),
    }
    return Usage(tables, even, found, limitations(manifest, even))


def _read(
    space: Workspace, topics: Iterable[str], states: KeyStates, clocks: ClockDifferences
) -> None:
    for topic in topics:
        for name in decoded_tables(topic):
            of_commits = (*COMMIT_COLUMNS, COMMITTED) if name == COMMITS else ()
            for batch in record_batches(space, topic, name, [*COLUMNS, *of_commits]):
                states.add(topic, name, batch)
                if of_commits:
                    clocks.add_commits(batch)
    for batch in record_batches(space, CONSUMER_OFFSETS, _CLASSIC_GROUPS, [*PLACED, ENTERED]):
        clocks.add_states(batch)


def _growth(space: Workspace, growth: RecordGrowth) -> RecordGrowth:
    for name in growth.growing:
        for batch in record_batches(space, CONSUMER_OFFSETS, name, growth.columns(name)):
            growth.add(name, batch)
    return growth


def _complete(logs: Iterable[CopyOfLog]) -> dict[Any, int]:
    return {
        each.place: each.complete_from
        for each in logs
        if each.is_leading and each.complete_from is not None
    }


def _transaction_ends(space: Workspace, topics: Iterable[str]) -> TransactionEnds:
    """Return how transactions ended; where hardly any record is in one, little is read."""
    none = pa.schema([(name, pa.null()) for name in MARKERS]).empty_table()
    markers = [*rows_where(space, "control_markers", MARKERS)]
    ends = TransactionEnds.of(pa.concat_tables([none, *markers], promote_options="default"))
    for topic in topics:
        for name in decoded_tables(topic):
            ends.see(rows_where(space, name, IN_TRANSACTIONS, pc.field("is_transactional")))
    return ends
