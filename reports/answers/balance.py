"""The answer of `balance`: the worst groups first, and what the verdicts mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import with_times_as_text, with_values
from reports.layout.output_format import OutputFormat
from reports.layout.section import (
    LongSection,
    Rows,
    as_main,
    is_summed_up,
    of_groups,
    raw_section,
    scanned,
    summed_up,
    table_section,
    without,
    worst_of_all,
)
from reports.plain_text import nothing, paragraphs
from reports.row_formats import Section, Text, rendered, shown_tables

_SCORE: Final = (
    "score: 100 where no partition has to move for an even spread and none lacks an owner; 0 "
    "where one member has all, or nobody any"
)

_TIMES: Final = ("from_timestamp", "to_timestamp")
_PROBLEM = "is_problem"
_PROBLEMS = ("doubled", "cannot_tell", "unread", "avoidable")
"""Verdicts on which somebody may want to act."""
_BOUND_COLUMNS = ("partition_count", "unassigned_partitions")
_ROUNDED = ("mean_partitions", "stddev_partitions", "score")
_AS_TEXTS = (*_BOUND_COLUMNS, *_ROUNDED, "verdict", "cause")
"""What people see as other words, or with a sign."""
_SEEN = "seen"
_DECIMALS = 2


def balance_text(
    tables: Mapping[str, Rows],
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
    *,
    with_times: bool,
) -> Text:
    """Return the answer as text.

    Args:
        tables: `assignment_balance` and `assignment_alternatives`.
        output_format: The format.
        metadata: What JSON has beside the tables.
        with_times: Rows are of epochs: show when they began and ended.
    """
    balance, alternatives = tables["assignment_balance"], tables["assignment_alternatives"]
    if output_format.is_for_programs:
        make = partial(balance_section, for_people=False, with_times=with_times)
        sections = [
            LongSection(balance, make),
            LongSection(alternatives, partial(raw_section, name="alternatives")),
        ]
        return rendered(sections, output_format, metadata)
    if not balance.num_rows:
        return nothing("No group has members.", metadata, output_format.width)
    meanings: Mapping[str, str] = metadata["verdicts"]
    of_people: list[Section | LongSection]
    if is_summed_up(balance, output_format):
        worst = _worst(balance, list(meanings))
        tried = of_groups(alternatives, pc.unique(worst["group_id"]))
        of_people = [balance_section(worst, for_people=True, with_times=with_times)]
        left_out = _left_out(worst, balance, _verdicts(balance))
    else:
        make = partial(balance_section, for_people=True, with_times=with_times)
        of_people = [LongSection(balance, make)]
        tried, left_out = alternatives.whole(), []
    if tried.num_rows:
        of_people.append(_alternatives_section(tried))
    shown = shown_tables(of_people, output_format)
    legend = {word.replace("_", " "): text for word, text in meanings.items()}
    notes = [*left_out, *shown.legend("balance", "verdict", legend), _SCORE]
    return "\n\n".join([shown.text, paragraphs(notes, output_format.width)])


def _verdicts(balance: Rows) -> dict[str | None, int]:
    """Return how many rows have which verdict, in the order in which verdicts come."""
    counts: dict[str | None, int] = {}
    for rows in scanned(balance, ["verdict"]):
        for each in pc.value_counts(rows["verdict"]).to_pylist():
            counts[each["values"]] = counts.get(each["values"], 0) + each["counts"]
    return counts


def _worst(balance: Rows, verdicts: list[str]) -> pa.Table:
    """Return the worst of too many rows."""
    order = [("rank", "ascending"), ("score", "ascending"), ("group_id", "ascending")]

    def ranked(rows: pa.Table) -> pa.Table:
        return rows.append_column("rank", pc.index_in(rows["verdict"], pa.array(verdicts)))

    return worst_of_all(balance, order, ranked).drop_columns("rank")


def _left_out(worst: pa.Table, balance: Rows, verdicts: Mapping[str | None, int]) -> list[str]:
    """Return how many rows there are and of which verdicts, where not all are shown."""
    lines = summed_up({"rows": (worst.num_rows, balance.num_rows)})
    counts = (f"{count:,} {str(word).replace('_', ' ')}" for word, count in verdicts.items())
    return [*lines, f"verdicts: {', '.join(counts)}"]


def balance_section(balance: pa.Table, *, for_people: bool, with_times: bool) -> Section:
    """Return the rows of `assignment_balance`.

    Args:
        balance: The table.
        for_people: Numbers are rounded, and what is a bound has its sign.
        with_times: Show from when to when.
    """
    table = with_times_as_text(balance)
    if for_people:
        shown = [_shown(row) for row in table.to_pylist()]
        for name in _AS_TEXTS:
            table = with_values(table, name, pa.array([row[name] for row in shown], pa.string()))
    table = table.append_column(_PROBLEM, pc.is_in(balance["verdict"], pa.array(_PROBLEMS)))
    section = as_main(table_section(table, "assignment_balance", "balance", problem=_PROBLEM))
    if with_times:
        return section
    also = [name for name in balance.column_names if name in {*section.also, *_TIMES}]
    return replace(without(section, _TIMES), also=also)


def _alternatives_section(alternatives: pa.Table) -> Section:
    """Return the rows of `assignment_alternatives` for people."""
    scores = pa.array(map(_rounded, alternatives["score"].to_pylist()), pa.string())
    table = with_values(with_times_as_text(alternatives), "score", scores)
    section = table_section(table, "assignment_alternatives", "alternatives", also=())
    has_remarks = any(table["remark"].to_pylist())
    return section if has_remarks else without(section, ["remark"])


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as people read it: all texts."""
    shown = dict(row)
    if row["verdict"] is not None:
        shown["verdict"] = row["verdict"].replace("_", " ")
    for name in _ROUNDED:
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
