"""The tables about usage, made of a workspace: decoded records are read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.usage.key_states import COLUMNS, COMMIT_COLUMNS, KeyStates
from analytics.evaluate.usage.log_cleaning import bounds_of, copies_of_logs, log_cleaning
from analytics.evaluate.usage.missing import untold
from analytics.evaluate.usage.partition_usage import identity, partition_usage, untabled_usage
from analytics.evaluate.usage.topic_usage import topic_usage
from analytics.evaluate.usage.transaction_ends import IN_TRANSACTIONS, MARKERS, TransactionEnds
from jobs.decoded_records import decoded_tables, record_batches, rows_where
from schemas import TOPICS, table

if TYPE_CHECKING:
    from analytics.evaluate.usage.log_settings import LogSettings
    from analytics.evaluate.usage.partition_usage import Identity
    from analytics.workspace import Workspace

_COMMITS: Final = "offset_commit"


@dataclass(frozen=True)
class Usage:
    """What was found.

    Attributes:
        rows: The table `topic_usage`, of all groups.
        partitions: The table `partition_usage`.
        cleaning: The table `log_cleaning`.
        even: Whether bytes come out even.
        untold: What cannot be told, one sentence each.
    """

    rows: pa.Table
    partitions: pa.Table
    cleaning: pa.Table
    even: Identity
    untold: list[str]

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The tables by their names."""
        return {
            "topic_usage": self.rows,
            "partition_usage": self.partitions,
            "log_cleaning": self.cleaning,
        }


def usage_tables(space: Workspace, manifest: Mapping[str, Any], settings: LogSettings) -> Usage:
    """Read every decoded record once.

    Args:
        space: The workspace with the decoded tables.
        manifest: Its own, or that of a replay of it.
        settings: Those in force.

    Raises:
        WorkspaceError: A table is damaged.
    """
    there = {each["topic"] for each in manifest["partitions"]}
    topics = [topic for topic in TOPICS if topic in there]
    ends = _transaction_ends(space, topics)
    logs = copies_of_logs(manifest, ends.first_open)
    states = KeyStates(bounds_of(logs, settings), ends)
    for topic in topics:
        for name in decoded_tables(topic):
            columns = [*COLUMNS, *(COMMIT_COLUMNS if name == _COMMITS else ())]
            for batch in record_batches(space, topic, name, columns):
                states.add(topic, name, batch)
    partitions = partition_usage(manifest)
    rows = topic_usage(states, untabled_usage(manifest))
    rows = rows.select([each.name for each in table("topic_usage").columns])
    even = identity(partitions, rows)
    cleaning = log_cleaning(logs, settings, states, rows)
    return Usage(rows, partitions, cleaning, even, untold(manifest, even))


def _transaction_ends(space: Workspace, topics: Iterable[str]) -> TransactionEnds:
    """Return how transactions ended; where hardly any record is in one, little is read."""
    none = pa.schema([(name, pa.null()) for name in MARKERS]).empty_table()
    markers = [*rows_where(space, "control_markers", MARKERS)]
    ends = TransactionEnds.of(pa.concat_tables([none, *markers], promote_options="default"))
    for topic in topics:
        for name in decoded_tables(topic):
            ends.see(rows_where(space, name, IN_TRANSACTIONS, pc.field("is_transactional")))
    return ends
