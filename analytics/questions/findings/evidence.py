"""The records that findings rest on: of a rule's own table, or joined from others.

Which table has the position of which record is data (`schemas/rules/finding_records.json`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from schemas import table as contract
from schemas.finding_rules import (
    FIRST,
    LOCATION,
    RECORD_AT,
    FindingRule,
    RecordSource,
    record_sources,
)

EVIDENCE: Final = ("copy", "topic", "partition", "offset", "segment", "batch_position")
RECORD_PREFIX: Final = "record_of_finding_"
"""What the columns of a row's record begin with."""

_PLACE: Final = ("partition", "offset")
_RECORD_COLUMNS: Final = pl.Schema(
    {
        "copy": pl.String(),
        "topic": pl.String(),
        "partition": pl.Int32(),
        "offset": pl.Int64(),
        "segment": pl.String(),
        "batch_position": pl.Int64(),
        "at": pl.Datetime("us", "UTC"),
    }
)
_ROW: Final = "row"
_LOG: Final = "log"

ReadTable = Callable[[str, Sequence[str], pc.Expression], pa.Table]
"""Reads columns of rows of a table by its name."""


@dataclass(frozen=True)
class KnownRecords:
    """Tables that know where records are.

    Attributes:
        names: The tables that are there.
        read: Reads one.
    """

    names: frozenset[str]
    read: ReadTable


def with_records(
    rule: FindingRule, rows: pa.Table, known_records: KnownRecords | None
) -> pl.DataFrame:
    """Add to the rows of a rule the record that each rests on.

    Args:
        rule: The rule.
        rows: Those it is about, with at least the columns that it reads.
        known_records: Where records are looked for; None looks at the rows alone.

    Returns:
        The rows, with a column per name of `EVIDENCE` after `RECORD_PREFIX`, and `RECORD_AT`: when
        the record was written. Null is not known.
    """
    found = [_own(rule.record, rows)]
    if known_records is not None and rows.num_rows:
        sources = [record_sources()[each] for each in rule.record_of]
        found += [
            _joined(each, rows, known_records)
            for each in sources
            if each.table in known_records.names
        ]
    together = found[0]
    for each in found[1:]:
        together = _completed(together, each)
    return _frame(rows).with_columns(
        *(together[name].alias(RECORD_PREFIX + name) for name in EVIDENCE),
        together["at"].alias(RECORD_AT),
    )


def tables_of_records(rule: FindingRule) -> set[str]:
    """Return the tables in which the records of a rule's findings are looked for."""
    sources = [record_sources()[each] for each in rule.record_of]
    return {name for each in sources for name in (each.table, each.located_by) if name is not None}


def columns_of_records() -> dict[str, list[str]]:
    """Return by table the columns that are read of it when records are looked for."""
    columns: dict[str, list[str]] = {}
    for source in record_sources().values():
        columns.setdefault(source.table, []).extend(columns_read(source))
        if source.located_by is not None:
            columns.setdefault(source.located_by, []).extend(_columns_located(source.located_by))
    for name, read in columns.items():
        log = [_LOG] if _has_logs(name) else []
        columns[name] = list(dict.fromkeys(["group_id", *read, *log]))
    return columns


def held_records(tables: Mapping[str, pa.Table]) -> KnownRecords:
    """Return tables that are here as what knows where records are."""
    known = {name: ds.dataset(rows) for name, rows in tables.items()}

    def read(name: str, columns: Sequence[str], where: pc.Expression) -> pa.Table:
        return known[name].to_table(list(columns), filter=where)

    return KnownRecords(frozenset(known), read)


def columns_read(source: RecordSource) -> list[str]:
    """Return the columns of its table that a source reads."""
    at = [] if source.at is None else [source.at]
    location = [] if source.located_by else LOCATION
    return list(dict.fromkeys([*source.on, source.partition, source.offset, *at, *location]))


def _own(record: Mapping[str, str], rows: pa.Table) -> pl.DataFrame:
    """Return what the rows say themselves."""
    count = rows.num_rows
    if "said" in record:
        return _parsed_places(_column(rows, record["said"]))
    columns = {
        name: _column(rows, record[name])
        if record.get(name) in rows.column_names
        else pl.repeat(record.get(name), count, dtype=pl.String, eager=True)
        if name in record
        else pl.repeat(None, count, dtype=dtype, eager=True)
        for name, dtype in _RECORD_COLUMNS.items()
    }
    return pl.DataFrame(columns).cast(_RECORD_COLUMNS)


def _parsed_places(places: pl.Series) -> pl.DataFrame:
    """Return topic, partition and offset of places like `__consumer_offsets-3@17`."""
    parts = places.str.extract_groups(r"^(?<topic>.*)-(?<partition>\d+)@(?<offset>\d+)$")
    told = parts.struct.unnest()
    return told.with_columns(
        pl.lit(None, dtype).alias(name)
        for name, dtype in _RECORD_COLUMNS.items()
        if name not in told
    ).select(pl.col(name).cast(dtype) for name, dtype in _RECORD_COLUMNS.items())


def _completed(records: pl.DataFrame, more: pl.DataFrame) -> pl.DataFrame:
    """Take the record of another source where there is none, and more of one that both name."""
    offset, partition = pl.col("offset"), pl.col("partition")
    both = pl.concat([records, more.rename(lambda name: f"{name} more")], how="horizontal")
    is_new = offset.is_null() & pl.col("offset more").is_not_null()
    is_same = (offset == pl.col("offset more")) & (partition == pl.col("partition more"))
    return both.select(
        pl.when(is_new)
        .then(f"{name} more")
        .when(is_same)
        .then(pl.coalesce(name, f"{name} more"))
        .otherwise(name)
        .alias(name)
        for name in _RECORD_COLUMNS
    )


def _joined(source: RecordSource, rows: pa.Table, known_records: KnownRecords) -> pl.DataFrame:
    """Return the record of a source for each row, null where there is none."""
    keys = {each: rows[mine] for each, mine in source.on.items() if mine in rows.column_names}
    if len(keys) < len(source.on):
        return pl.DataFrame(
            {
                name: pl.repeat(None, rows.num_rows, dtype=kind, eager=True)
                for name, kind in _RECORD_COLUMNS.items()
            }
        )
    first = next(iter(source.on))
    values = pc.unique(pc.drop_null(keys[first].combine_chunks()))
    table = _frame(
        known_records.read(
            source.table,
            columns_read(source),
            pc.field(first).isin(values) & _of_log(source.table, source),
        )
    )
    asked = pl.DataFrame({name: pl.from_arrow(column) for name, column in keys.items()})
    table = table.drop_nulls(source.offset).sort(source.offset)
    table = table.cast(asked.schema)
    position = {"partition": source.partition, "offset": source.offset}
    position |= {} if source.at is None else {"at": source.at}
    position |= {} if source.located_by else {each: each for each in LOCATION}
    theirs = {each: f"{each} of key" for each in source.on}
    picked = table.select(
        *(pl.col(each).alias(key) for each, key in theirs.items()),
        *(pl.col(mine).alias(name) for name, mine in position.items()),
    ).unique(list(theirs.values()), keep="first" if source.take == FIRST else "last")
    found = asked.rename(theirs).with_row_index(_ROW)
    found = found.join(picked, on=list(theirs.values()), how="left")
    if source.located_by in known_records.names:
        found = _located(source.located_by, source, found, known_records)
    log = pl.when(pl.col("offset").is_not_null()).then(pl.lit(source.log))
    return (
        found.sort(_ROW)
        .with_columns(log.alias("topic"))
        .with_columns(
            pl.lit(None, dtype).alias(name)
            for name, dtype in _RECORD_COLUMNS.items()
            if name not in found.columns and name != "topic"
        )
        .select(pl.col(name).cast(dtype) for name, dtype in _RECORD_COLUMNS.items())
    )


def _located(
    table: str, source: RecordSource, records: pl.DataFrame, known_records: KnownRecords
) -> pl.DataFrame:
    """Add copy, segment and batch of records, and when they were written."""
    at = _written_at(table)
    offsets = records["offset"].drop_nulls().unique().to_arrow().cast(pa.int64())
    rows = _frame(
        known_records.read(
            table,
            _columns_located(table),
            pc.field("record_offset").isin(offsets) & _of_log(table, source),
        )
    )
    places = rows.rename({"coordinator_partition": "partition", "record_offset": "offset"})
    places = places.rename({at: "located_at"}).unique(list(_PLACE), keep="first")
    joined = records.join(
        places.cast({"partition": records.schema["partition"], "offset": records.schema["offset"]}),
        on=list(_PLACE),
        how="left",
    )
    times = [each for each in ("at", "located_at") if each in joined.columns]
    return joined.with_columns(pl.coalesce(times).alias("at")).drop("located_at")


def _columns_located(table: str) -> list[str]:
    return ["coordinator_partition", "record_offset", *LOCATION, _written_at(table)]


def _written_at(table: str) -> str:
    return "effective_timestamp" if table == "offset_history" else "at"


def _has_logs(name: str) -> bool:
    return any(each.name == _LOG for each in contract(name).columns)


def _of_log(name: str, source: RecordSource) -> pc.Expression:
    """Return which rows are of the log of a source: some tables have records of several."""
    return pc.field(_LOG) == source.log if _has_logs(name) else pc.scalar(True)  # noqa: FBT003


def _column(rows: pa.Table, name: str) -> pl.Series:
    found = pl.from_arrow(rows[name])
    return found if isinstance(found, pl.Series) else found.to_series()


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows))
