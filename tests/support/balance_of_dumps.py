"""The balance of the groups of a dump of the tests, at its end and all the way there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from analytics.contracts import contract_frame
from analytics.questions.balance.at_instant import (
    counts_in_records,
    highest_seen,
    partition_counts,
    topic_sizes,
)
from analytics.questions.balance.balance_tables import (
    Topics,
    cases_ever,
    cases_now,
    resolved_expressions,
    subtopologies,
)
from analytics.questions.balance.evaluated import judged, tables_of
from analytics.questions.balance.through_history import held_by_epoch_no
from analytics.replay.history.held_items import held_items
from schemas.evaluation_rules import balance_rules
from tests.support.contract_rows import rows_of
from tests.support.replayed_dumps import replayed_dump

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_STATE = ("groups", "members", "assignments", "topics", "share_partitions", "group_epochs")
_COMMITTED = ("committed_offsets", "pending_offsets")
_MADE = (*_STATE, *_COMMITTED, "topic_names")
_COUNTED = ("consumer_group_partition_metadata", "share_group_partition_metadata")
_KEYED = ("consumer_group_regular_expression", "streams_group_topology")

ByGroup = Mapping[str, list[Mapping[str, Any]]]
"""Rows of a table by group, in order of time."""


@dataclass(frozen=True)
class ReplayedDump:
    """Tables of a dump that was replayed to its end, its records, and what is known of topics."""

    tables: Mapping[str, pl.DataFrame]
    records: Mapping[str, pl.DataFrame]
    topics: Topics

    def now(self) -> tuple[ByGroup, ByGroup]:
        """Return the tables `assignment_balance` and `assignment_alternatives`."""
        return _judged(cases_now(self.tables, self.topics))

    def ever(self) -> ByGroup:
        """Return the table `assignment_balance` of all epochs."""
        sizes = topic_sizes(self.records, self.topics.counts)
        return _judged(cases_ever(self.tables, self.topics, sizes))[0]


def replayed(log_dirs: Sequence[Path], release: str) -> ReplayedDump:
    """Replay log directories of one broker."""
    made = replayed_dump(log_dirs, release, _MADE)
    tables = {name: contract_frame(made[name], name) for name in (*_STATE, *_COMMITTED)}
    tables["held"] = held_by_epoch_no(held_items(made["group_steps"], made["topic_names"]))
    tables["commits"] = rows_of("offset_history")
    records = made["cut"]
    named = pl.coalesce("topic", "topic_id").alias("topic")
    held = tables["assignments"].filter(pl.col("subtopology_id").is_null()).with_columns(named)
    counts = partition_counts(
        tables["topics"],
        counts_in_records(
            records[name].select(pl.col("value").struct.field("topics")) for name in _COUNTED
        ),
        highest_seen([held, *(tables[name] for name in _COMMITTED)]),
    )
    expressions, topologies = (records[name] for name in _KEYED)
    known = Topics(counts, resolved_expressions(expressions), subtopologies(topologies))
    return ReplayedDump(tables, records, known)


def _judged(cases: pl.DataFrame) -> tuple[ByGroup, ByGroup]:
    balance, alternatives = tables_of([judged(cases, balance_rules(), {})]).values()
    return _by_group(balance), _by_group(alternatives)


def _by_group(rows: pa.Table) -> ByGroup:
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in sorted(rows.to_pylist(), key=lambda row: (row["group_id"], row["from_timestamp"])):
        found[row["group_id"]].append(row)
    return found
