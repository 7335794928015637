"""Rows of the tables about balance as they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.row_formats import Section

BALANCE_HEADS = {
    "group_id": "GROUP",
    "group_type": "TYPE",
    "epoch": "EPOCH",
    "protocol": "ASSIGNOR",
    "member_count": "#MEMBERS",
    "partition_count": "#PARTITIONS",
    "min_partitions": "MIN",
    "max_partitions": "MAX",
    "mean_partitions": "MEAN",
    "stddev_partitions": "STDDEV",
    "score": "SCORE",
    "idle_members": "IDLE",
    "unassigned_partitions": "UNASSIGNED",
    "shared_partitions": "SHARED",
    "moved_partitions": "MOVED",
    "forced": "FORCED",
    "verdict": "VERDICT",
    "cause": "CAUSE",
}
SPARE = (
    "stddev_partitions",
    "shared_partitions",
    "mean_partitions",
    "group_type",
    "forced",
    "to_timestamp",
    "moved_partitions",
    "partition_count",
    "protocol",
    "idle_members",
    "unassigned_partitions",
)
"""What text leaves out first where there is no room."""
TIMES = {"from_timestamp": "FROM", "to_timestamp": "TO"}
ALTERNATIVE_HEADS = {
    "group_id": "GROUP",
    "epoch": "EPOCH",
    "assignor": "ASSIGNOR",
    "min_partitions": "MIN",
    "max_partitions": "MAX",
    "score": "SCORE",
    "idle_members": "IDLE",
    "moved_partitions": "MOVED",
    "is_current": "IN-USE",
    "remark": "REMARK",
}
PROBLEM = "is_problem"
PROBLEMS = ("doubled", "cannot_tell", "unread", "avoidable")
"""Verdicts on which somebody may want to act."""

_BOUND_COLUMNS = ("partition_count", "unassigned_partitions")
_SEEN = "seen"
_DECIMALS = 2


def balance_section(balance: pa.Table, *, for_people: bool, with_times: bool) -> Section:
    """Return the rows of `assignment_balance`.

    Args:
        balance: The table.
        for_people: Numbers are rounded, and what is a bound has its sign.
        with_times: Show from when to when.
    """
    heads = {**BALANCE_HEADS}
    if with_times:
        first = list(heads.items())
        heads = dict([*first[:3], *TIMES.items(), *first[3:]])
    rows = [_shown(row) if for_people else row for row in readable(balance)]
    also = [name for name in balance.column_names if name not in heads]
    table = table_of(rows, balance.column_names).append_column(
        PROBLEM, pc.is_in(balance["verdict"], pa.array(PROBLEMS))
    )
    return Section(table, heads, also, name="balance", problem=PROBLEM, spare=SPARE)


def alternatives_section(alternatives: pa.Table) -> Section:
    """Return the rows of `assignment_alternatives` for people."""
    rows = [{**row, "score": _rounded(row["score"])} for row in readable(alternatives)]
    table = table_of(rows, alternatives.column_names)
    heads = {**ALTERNATIVE_HEADS}
    if not any(row["remark"] for row in rows):
        del heads["remark"]
    return Section(table, heads, name="alternatives", key="alternatives")


def readable(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows with their times as ISO 8601, UTC, milliseconds."""
    times = [field.name for field in rows.schema if pa.types.is_timestamp(field.type)]
    found: list[dict[str, Any]] = rows.to_pylist()
    for row in found:
        for name in times:
            row[name] = _iso(row[name])
    return found


def table_of(rows: Iterable[Mapping[str, Any]], names: Iterable[str]) -> pa.Table:
    """Return rows as a table; a column of nothing but nulls is one of texts."""
    listed = list(rows)
    columns = {name: pa.array([row[name] for row in listed]) for name in names}
    return pa.table(
        {
            name: column.cast(pa.string()) if pa.types.is_null(column.type) else column
            for name, column in columns.items()
        }
    )


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as people read it: all texts."""
    shown = dict(row)
    if row["verdict"] is not None:
        shown["verdict"] = row["verdict"].replace("_", " ")
    for name in ("mean_partitions", "stddev_partitions", "score"):
        shown[name] = _rounded(row[name])
    if row["member_with_most"] is not None:
        shown["cause"] = "; ".join([_extremes(row), *([row["cause"]] if row["cause"] else [])])
    for name in _BOUND_COLUMNS:
        if row[name] is not None:
            sign = ">= " if row["counted_by"] == _SEEN else ""
            shown[name] = f"{sign}{row[name]}"
    return shown


def _extremes(row: Mapping[str, Any]) -> str:
    most, fewest = row["max_partitions"], row["min_partitions"]
    return f"{row['member_with_most']} has {most}, {row['member_with_fewest']} {fewest}"


def _rounded(number: float | None) -> str | None:
    return None if number is None else f"{number:.{_DECIMALS}f}"


def _iso(when: Any) -> str | None:  # noqa: ANN401 - a datetime
    if when is None:
        return None
    text: str = when.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return text + "Z"
