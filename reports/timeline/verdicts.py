"""Verdicts on offsets as rows for people: partitions of which all is equal are one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from reports.layout.section import Section, raw_section
from reports.printed_times import instants
from reports.quantities import ranges

NAME = "verdicts"
HEADS = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partitions": "PARTITIONS",
    "verdict": "VERDICT",
    "at": "AT",
    "was": "WAS",
    "became": "BECAME",
    "cost": "COST",
    "confidence": "CONFIDENCE",
    "record": "RECORD",
    "reason": "REASON",
}
"""The columns of verdicts; COST is records read again, or skipped where it is negative."""

_COLUMNS = (
    *(("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())),
    ("verdict", pa.string()),
    *((name, pa.timestamp("us", "UTC")) for name in ("at", "not_before")),
    *((name, pa.int64()) for name in ("was", "became", "cost")),
    *((name, pa.string()) for name in ("confidence", "record", "reason")),
)
_RAW = pa.schema(_COLUMNS)
_MERGED = pa.schema(
    [
        *(
            ("partitions", pa.string()) if name == "partition" else (name, kind)
            for name, kind in _COLUMNS
        ),
        ("went_wrong", pa.bool_()),
    ]
)
_NO_LOSS = "no loss found"
_HARMLESS = (_NO_LOSS, "never committed", "pending")

Row = Mapping[str, Any]


def verdict_section(rows: Iterable[Row], *, is_wide: bool) -> Section:
    """Return verdicts as rows for people, in the order given.

    Args:
        rows: As the table `offset_verdicts` has them.
        is_wide: Whether there is room for the record of each partition.
    """
    heads = {name: head for name, head in HEADS.items() if is_wide or name != "record"}
    told = merged(rows, heads)
    marked = [each | {"went_wrong": not each["verdict"].startswith(_HARMLESS)} for each in told]
    table = pa.Table.from_pylist(marked, schema=_MERGED)
    place = table.column_names.index("at")
    return Section(
        table.set_column(place, "at", instants(table["at"], table["not_before"])),
        heads,
        name=NAME,
        key=NAME,
        problem="went_wrong",
        spare=["confidence"],
    )


def raw_verdicts(rows: pa.Table) -> Section:
    """Return verdicts for programs: a row for each partition.

    Args:
        rows: The table `offset_verdicts`.
    """
    return raw_section(rows.select(_RAW.names).cast(_RAW), NAME)


def merged(rows: Iterable[Row], columns: Iterable[str] = HEADS) -> list[dict[str, Any]]:
    """Put partitions of a topic together whose verdicts are equal in every column shown.

    Since when no loss is found is said of a whole topic: it holds since the latest of the times of
    its partitions.

    Args:
        rows: Verdicts.
        columns: Those that are shown.
    """
    equal = [*(name for name in columns if name != "partitions"), "not_before"]
    together: dict[tuple[Any, ...], list[Row]] = {}
    for row in _with_common_times(_said_once(list(rows))):
        together.setdefault(tuple(row[name] for name in equal), []).append(row)
    return [_one(each, equal) for each in together.values()]


def _said_once(rows: Sequence[Row]) -> list[Row]:
    """Leave out what is said of a partition and of its whole group alike."""
    names = ("group_id", "verdict", "at", "reason")
    whole = {tuple(row[name] for name in names) for row in rows if row["topic"] is None}
    return [
        row
        for row in rows
        if row["topic"] is None or tuple(row[name] for name in names) not in whole
    ]


def _with_common_times(rows: Sequence[Row]) -> list[Row]:
    latest: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        topic = row["group_id"], row["topic"]
        if _is_since(row) and (topic not in latest or latest[topic]["at"] < row["at"]):
            latest[topic] = row
    return [
        {**row, "verdict": latest[row["group_id"], row["topic"]]["verdict"], "at": None}
        if _is_since(row)
        else row
        for row in rows
    ]


def _is_since(row: Row) -> bool:
    return bool(row["verdict"].startswith(_NO_LOSS) and row["at"] is not None)


def _one(rows: Sequence[Row], columns: Iterable[str]) -> dict[str, Any]:
    numbers = [row["partition"] for row in rows if row["partition"] is not None]
    return {name: rows[0][name] for name in columns} | {"partitions": ranges(numbers)}
