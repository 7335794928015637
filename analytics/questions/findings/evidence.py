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
_LOG: Final = "log"
_OFFSET: Final = "record_offset"

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

    def types(self, name: str, columns: Sequence[str], groups: pl.Series) -> pl.DataFrame:
        """Return columns of the rows of a table that are of some groups."""
        is_asked = pc.field(groups.name).isin(_arrow_values(groups))
        return _frame(self.read(name, columns, is_asked))

    def places(self, source: str, among: pl.Series) -> pl.DataFrame:
        """Return `_places` of a source, of some values of the first column of its key."""
        key = next(iter(record_sources()[source].on))

        def read(name: str, columns: Sequence[str], offsets: pl.Series | None) -> pl.DataFrame:
            column, values = (key, among) if offsets is None else (_OFFSET, offsets)
            asked = _arrow_values(values.drop_nulls().unique())
            return _frame(self.read(name, columns, pc.field(column).isin(asked)))

        return _places(record_sources()[source], self.names, read)


class HeldRecords:
    """Tables that are here, of which rules share what is looked for.

    Attributes:
        names: The tables that are there.
    """

    def __init__(self, tables: Mapping[str, pl.DataFrame]) -> None:
        self.names = frozenset(tables)
        self._tables = tables
        self._places: dict[str, pl.DataFrame] = {}

    def types(self, name: str, columns: Sequence[str], groups: pl.Series) -> pl.DataFrame:
        """Return columns of the rows of a table that are of some groups."""
        return self._tables[name].select(columns).join(groups.to_frame(), groups.name, "semi")

    def places(self, source: str, _: pl.Series) -> pl.DataFrame:
        """Return `_places` of a source, of all groups: it is sorted and joined once."""
        if source not in self._places:
            self._places[source] = _places(record_sources()[source], self.names, self._read)
        return self._places[source]

    def _read(self, name: str, columns: Sequence[str], _: pl.Series | None) -> pl.DataFrame:
        return self._tables[name].select(columns)


Records = KnownRecords | HeldRecords


def with_records(rule: FindingRule, rows: pa.Table, known_records: Records | None) -> pl.DataFrame:
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
        found += [
            _joined(each, rows, known_records)
            for each in rule.record_of
            if record_sources()[each].table in known_records.names
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


def _joined(name: str, rows: pa.Table, known_records: Records) -> pl.DataFrame:
    """Return the record of a source for each row, null where there is none."""
    source = record_sources()[name]
    keys = {each: mine for each, mine in source.on.items() if mine in rows.column_names}
    if len(keys) < len(source.on):
        return pl.DataFrame(
            {
                name: pl.repeat(None, rows.num_rows, dtype=kind, eager=True)
                for name, kind in _RECORD_COLUMNS.items()
            }
        )
    asked = pl.DataFrame({_of_key(each): _column(rows, mine) for each, mine in keys.items()})
    places = known_records.places(name, asked.to_series(0)).cast(asked.schema)
    found = asked.join(places, on=asked.columns, how="left", maintain_order="left")
    return found.select(_RECORD_COLUMNS.names())


def _of_key(name: str) -> str:
    return f"{name} of key"


_ReadAmong = Callable[[str, Sequence[str], pl.Series | None], pl.DataFrame]
"""Reads columns of a table: where offsets are given, of records that may be at one of these."""


def _places(source: RecordSource, names: frozenset[str], read: _ReadAmong) -> pl.DataFrame:
    """Return where the records of a source are: its key, and the place of the one that counts.

    Args:
        source: The source.
        names: The tables that are there.
        read: Reads one.
    """
    table = read(source.table, _with_log(source.table, columns_read(source)), None)
    position = {"partition": source.partition, "offset": source.offset}
    position |= {} if source.at is None else {"at": source.at}
    position |= {} if source.located_by else {each: each for each in LOCATION}
    theirs = [_of_key(each) for each in source.on]
    places = (
        table.filter(_of_log(source.table, source))
        .drop_nulls(source.offset)
        .sort(source.offset)
        .select(
            *(pl.col(each).alias(key) for each, key in zip(source.on, theirs, strict=True)),
            *(pl.col(mine).alias(name) for name, mine in position.items()),
        )
        .unique(theirs, keep="first" if source.take == FIRST else "last")
    )
    if source.located_by in names:
        places = _located(source.located_by, source, places, read)
    return places.select(
        *theirs,
        *(
            (pl.col(name) if name in places.columns else pl.lit(None)).cast(kind).alias(name)
            for name, kind in _RECORD_COLUMNS.items()
            if name != "topic"
        ),
        pl.lit(source.log).alias("topic"),
    )


def _located(
    table: str, source: RecordSource, records: pl.DataFrame, read: _ReadAmong
) -> pl.DataFrame:
    """Add copy, segment and batch of records, and when they were written."""
    rows = read(table, _with_log(table, _columns_located(table)), records["offset"])
    places = rows.filter(_of_log(table, source)).select(
        pl.col("coordinator_partition").cast(records.schema["partition"]).alias("partition"),
        pl.col(_OFFSET).cast(records.schema["offset"]).alias("offset"),
        *LOCATION,
        pl.col(_written_at(table)).alias("located_at"),
    )
    places = places.join(records, on=list(_PLACE), how="semi").unique(list(_PLACE), keep="first")
    joined = records.join(places, on=list(_PLACE), how="left")
    times = [each for each in ("at", "located_at") if each in joined.columns]
    return joined.with_columns(pl.coalesce(times).alias("at")).drop("located_at")


def _columns_located(table: str) -> list[str]:
    return ["coordinator_partition", _OFFSET, *LOCATION, _written_at(table)]


def _written_at(table: str) -> str:
    return "effective_timestamp" if table == "offset_history" else "at"


def _has_logs(name: str) -> bool:
    return any(each.name == _LOG for each in contract(name).columns)


def _with_log(name: str, columns: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*columns, *([_LOG] if _has_logs(name) else [])]))


def _of_log(name: str, source: RecordSource) -> pl.Expr:
    """Return which rows are of the log of a source: some tables have records of several."""
    return pl.col(_LOG) == source.log if _has_logs(name) else pl.lit(True)  # noqa: FBT003


def _arrow_values(values: pl.Series) -> pa.Array:
    """Return values as Arrow has them in tables."""
    return values.to_arrow(compat_level=pl.CompatLevel.oldest())


def _column(rows: pa.Table, name: str) -> pl.Series:
    found = pl.from_arrow(rows[name])
    return found if isinstance(found, pl.Series) else found.to_series()


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows))
