"""Logs that questions about expiry are asked of, and what is in force at their end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import pyarrow as pa

from analytics.contracts import ARROW_TYPES, in_contract_order
from analytics.decode.tables import table_schema
from analytics.questions.expiration.offset_log import GroupRecords, OffsetLog, offset_log
from analytics.questions.expiration.offset_removals import (
    Cluster,
    offset_removals,
    removed_of,
    removed_with,
    removing,
    together,
)
from analytics.replay.groups.group_records import KINDS
from analytics.replay.history.partition_history import STARTS
from analytics.replay.log.losses import WHOLE, Coverage
from analytics.replay.log.rules import replay_rules
from analytics.replay.metadata_log import FIRST_TABLES, Beginning, beginning
from analytics.replay.offsets.commit_rows import COMMITS, KEY, MARKERS, commit_rows, marker_rows
from analytics.replay.offsets.effective_commits import COMMITTED
from schemas import table
from schemas.expiration_rules import audit_rules, expiration_eras

if TYPE_CHECKING:
    from analytics.dump.inspection.found_losses import Loss
    from analytics.questions.expiration.retention_settings import Retention

Rows = Mapping[str, Iterable[Mapping[str, Any]]]
TABLES = (*KINDS, "offset_commit", "control_markers")
NO_LOG = Beginning(has_log=False, is_cut=True, oldest=None, first_at=None)


class Row(dict[str, Any]):
    """A row of a table, its columns as attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def frame_of(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of a decoded table; what a row does not name is null."""
    return pl.DataFrame(pl.from_arrow(pa.Table.from_pylist(list(rows), table_schema(name))))


def state_of(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of a state table; what a row does not name is null."""
    schema = pa.schema([(each.name, ARROW_TYPES[each.type]) for each in table(name).columns])
    return pl.DataFrame(pl.from_arrow(pa.Table.from_pylist(list(rows), schema)))


def log_of(
    decoded: Rows | Mapping[str, pa.Table], release: str, era: str, before: str | None = None
) -> OffsetLog:
    """The log of decoded rows or tables by name; what is not named has no rows."""
    frames = {}
    for name in TABLES:
        given = decoded.get(name, ())
        is_table = isinstance(given, pa.Table)
        frames[name] = pl.DataFrame(pl.from_arrow(given)) if is_table else frame_of(name, given)
    return log_of_frames(frames, release, era, before)


def log_of_frames(
    decoded: Mapping[str, pl.DataFrame], release: str, era: str, before: str | None = None
) -> OffsetLog:
    """The log of decoded tables by name."""
    records = GroupRecords(
        commit_rows(decoded["offset_commit"]).cast(COMMITS),
        marker_rows(decoded["control_markers"]).cast(MARKERS),
        {name: decoded[name] for name in KINDS},
    )
    eras = expiration_eras()
    return offset_log(records, replay_rules(release), eras[era], eras[before] if before else None)


def begins(decoded: Rows) -> Beginning:
    """How a metadata log of decoded rows begins."""
    return beginning({name: frame_of(name, decoded.get(name, ())) for name in FIRST_TABLES})


def committed_in(log: OffsetLog, losses: Mapping[int, Loss] | None = None) -> pl.DataFrame:
    """What is in force at the end of a log, as `committed_offsets` has it.

    Args:
        log: The log.
        losses: By partition what is lost: whatever is committed before may have been changed.
    """
    in_force = log.events.filter(
        (pl.col("event") == COMMITTED) & pl.col("next_position").is_null()
    ).select(*KEY, "record_offset")
    rows = []
    for row in in_force.iter_rows(named=True):
        loss = (losses or {}).get(row["coordinator_partition"])
        missing = None
        if loss is not None and row["record_offset"] < loss.end:
            missing = (
                "a lost record may have changed it: __consumer_offsets-"
                f"{row['coordinator_partition']} lacks all from offset {loss.first} on ({loss.why})"
            )
        rows.append({**row, "complete": missing is None, "missing": missing})
    return state_of("committed_offsets", rows)


class Around(NamedTuple):
    """What is known beside a log."""

    topics: pl.DataFrame = state_of("topics", ())
    metadata: Beginning = NO_LOG
    starts: pl.DataFrame | None = None
    present: Collection[str] | None = None
    coverage: Coverage = WHOLE


def removals_in(
    logs: OffsetLog | Iterable[OffsetLog],
    retention: Retention,
    as_of_ms: int,
    around: Around | None = None,
) -> list[Row]:
    """Rows of `offset_removals`, in order of the key."""
    around = around or Around()
    every = [logs] if isinstance(logs, OffsetLog) else list(logs)
    first = every[0]
    starts = STARTS.to_frame() if around.starts is None else around.starts
    rows = [removed_of(each) for each in every]
    parts = zip(every, rows, strict=True)
    known = together([removing(log.records, gone, starts, around.topics) for log, gone in parts])
    found = offset_removals(
        removed_with(pl.concat(rows), known, starts),
        Cluster(around.topics, around.metadata, around.present, around.coverage),
        retention,
        as_of_ms,
        rules=(first.replay, first.era, first.before),
        audit=audit_rules(),
    )
    return rows_of("offset_removals", found)


def rows_of(name: str, found: pl.DataFrame) -> list[Row]:
    """Rows of a table, in order of its key."""
    return [Row(each) for each in in_contract_order(name, found).iter_rows(named=True)]
