"""The answer of `balance`: the worst groups first, and what the verdicts mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.balance.rows import alternatives_section, balance_section
from reports.layout.nothing import nothing
from reports.layout.output_format import OutputFormat
from reports.layout.section import raw_section
from reports.layout.worst_rows import summed_up, worst_rows
from reports.row_formats import Text, render, rendered

_SCORE: Final = (
    "score: 100 where no partition has to move for an even spread and none lacks an owner; 0 "
    "where one member has all, or nobody any"
)


def balance_text(
    tables: Mapping[str, pa.Table],
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
        section = balance_section(balance, for_people=False, with_times=with_times)
        return rendered(
            [section, raw_section(alternatives, "alternatives")], output_format, metadata
        )
    if not balance.num_rows:
        return nothing("No group has members.", metadata)
    meanings: Mapping[str, str] = metadata["verdicts"]
    worst, tried = _worst(balance, alternatives, list(meanings), output_format)
    sections = [balance_section(worst, for_people=True, with_times=with_times)]
    if tried.num_rows:
        sections.append(alternatives_section(tried))
    verdicts = set(balance["verdict"].to_pylist())
    notes = [
        *_left_out(worst, balance),
        *(
            f"{word.replace('_', ' ')}: {text}"
            for word, text in meanings.items()
            if word in verdicts
        ),
        _SCORE,
    ]
    return "\n\n".join([render(sections, output_format, metadata), "\n".join(notes)])


def _worst(
    balance: pa.Table, alternatives: pa.Table, verdicts: list[str], output_format: OutputFormat
) -> tuple[pa.Table, pa.Table]:
    """Return the worst of too many rows, and what other assignors would make of these groups."""
    rank = pc.index_in(balance["verdict"], pa.array(verdicts))
    order = [("rank", "ascending"), ("score", "ascending"), ("group_id", "ascending")]
    worst = worst_rows(balance.append_column("rank", rank), order, output_format)
    if worst.num_rows == balance.num_rows:
        return balance, alternatives
    of_them = pc.is_in(alternatives["group_id"], pc.unique(worst["group_id"]))
    return worst.drop_columns("rank"), alternatives.filter(of_them)


def _left_out(worst: pa.Table, balance: pa.Table) -> list[str]:
    """Return how many rows there are and of which verdicts, where not all are shown."""
    lines = summed_up({"rows": (worst.num_rows, balance.num_rows)})
    if lines:
        counts = pc.value_counts(balance["verdict"]).to_pylist()
        parts = (f"{each['counts']:,} {each['values'].replace('_', ' ')}" for each in counts)
        lines.append(f"verdicts: {', '.join(parts)}")
    return lines
