"""Commits and markers as rows of plain columns: what all that follows them takes.

Takes the decoded tables `offset_commit` and `control_markers`, cut at an instant; gives `COMMITS`
and `MARKERS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import polars as pl

from analytics.replay.log.meanings import offset_in_force
from schemas import CONSUMER_OFFSETS

KEY: Final = ("coordinator_partition", "group_id", "topic", "partition")
"""What tells committed offsets apart."""

_TEXT, _INT, _LONG, _TIME = pl.String(), pl.Int32(), pl.Int64(), pl.Datetime("us", "UTC")
_COMMITS: Final[dict[str, tuple[str, pl.DataType]]] = {
    "coordinator_partition": ("partition", _INT),
    "group_id": ("key.group", _TEXT),
    "topic": ("key.topic", _TEXT),
    "partition": ("key.partition", _INT),
    "record_offset": ("offset", _LONG),
    "committed_at": ("timestamp", _TIME),
    "is_tombstone": ("is_tombstone", pl.Boolean()),
    "committed_offset": ("value.offset", _LONG),
    "stored_offset": ("value.offset", _LONG),
    "commit_ms": ("value.commit_timestamp", _LONG),
    "expire_ms": ("value.expire_timestamp", _LONG),
    "value_version": ("value_version", pl.Int16()),
    "topic_id": ("value.topic_id", _TEXT),
    "committed_leader_epoch": ("value.leader_epoch", _INT),
    "producer_id": ("producer_id", _LONG),
    "is_transactional": ("is_transactional", pl.Boolean()),
    "leader_epoch": ("leader_epoch", _INT),
    "copy": ("copy", _TEXT),
    "segment": ("segment", _TEXT),
    "batch_position": ("batch_position", _LONG),
    "batch_offset": ("batch_offset", _LONG),
}
_MARKERS: Final[dict[str, tuple[str, pl.DataType]]] = {
    "coordinator_partition": ("partition", _INT),
    "producer_id": ("producer_id", _LONG),
    "end_offset": ("offset", _LONG),
    "end_at": ("timestamp", _TIME),
    "outcome": ("control_type", _TEXT),
    "leader_epoch": ("leader_epoch", _INT),
    "copy": ("copy", _TEXT),
    "segment": ("segment", _TEXT),
    "batch_position": ("batch_position", _LONG),
}
COMMITS: Final = pl.Schema({name: kind for name, (_, kind) in _COMMITS.items()})
"""A row per commit or tombstone. `commit_ms` and `expire_ms` are Kafka's longs, -1 where absent;
`committed_at` is the record's time; `committed_offset` is null where the `stored_offset` is below
0, which is none."""
MARKERS: Final = pl.Schema({name: kind for name, (_, kind) in _MARKERS.items()})
"""A row per marker; `outcome` is its type (COMMIT, ABORT)."""

COMMIT_FIELDS: Final = {name: field for name, (field, _) in _COMMITS.items()}
MARKER_FIELDS: Final = {name: field for name, (field, _) in _MARKERS.items()}
"""By column the field of the decoded table that it is. Rows read by `COMMIT_FIELDS` go through
`with_offsets_in_force`, as a field says what was stored."""


def commit_rows(decoded: pl.DataFrame, columns: Iterable[str] = COMMITS) -> pl.DataFrame:
    """Return `COMMITS`, or some of these columns, of the decoded table `offset_commit`."""
    return decoded.select(_column(name, *_COMMITS[name]) for name in columns)


def with_offsets_in_force(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows read by `COMMIT_FIELDS`, their `committed_offset` as `COMMITS` has it."""
    return rows.with_columns(offset_in_force(pl.col("committed_offset")))


def marker_rows(decoded: pl.DataFrame) -> pl.DataFrame:
    """Return `MARKERS` of the decoded table `control_markers`: those of the offsets topic."""
    of_topic = decoded.filter(pl.col("topic") == CONSUMER_OFFSETS)
    return of_topic.select(_column(name, *told) for name, told in _MARKERS.items())


def _column(name: str, field: str, kind: pl.DataType) -> pl.Expr:
    column, *inner = field.split(".")
    value = pl.col(column)
    for each in inner:
        value = value.struct.field(each)
    meant = offset_in_force(value) if name == "committed_offset" else value
    return meant.cast(kind).alias(name)
