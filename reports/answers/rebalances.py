"""The answer of `rebalances`: which tables are shown, their rows, and the sentences below them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import with_times_as_text
from reports.layout.output_format import OutputFormat
from reports.layout.section import (
    LongSection,
    Rows,
    Section,
    as_main,
    heads_of,
    of_groups,
    raw_section,
    summed_up,
    table_section,
    worst_rows,
)
from reports.plain_text import nothing, paragraphs
from reports.row_formats import ShownTables, Text, rendered, shown_tables
from schemas.shown import MAIN

TABLES: Final = {
    "rebalances": "epochs",
    "group_churn": "churn",
    "rebalance_storms": "storms",
    "stalled_members": "standing",
    "rebalance_causes": "causes",
}
"""What `--table` and JSON call them."""
_IN_ORDER: Final = (
    *("rebalance_storms", "group_churn", "rebalances", "stalled_members", "rebalance_causes"),
)
"""In which order people are shown them."""
_WORST: Final = {
    "rebalances": [("at", "descending")],
    "group_churn": [("per_hour", "descending")],
    "rebalance_storms": [("per_hour", "descending")],
    "stalled_members": [("since", "ascending")],
    "rebalance_causes": [("at", "descending")],
}
"""In which order they are where there are too many for people."""

_WHO = {
    "joined": "joined",
    "left": "left or timed out",
    "restarted": "restarted",
    "fenced": "fenced",
    "subscription_changed": "changed the subscription",
}
"""Lists of members, and what these did."""
_TITLES = {
    "storms": "Storms: many generations or group epochs in a short time",
    "churn": "Groups",
    "epochs": "Generations and group epochs",
    "standing": "Behind, or owning without progress",
    "causes": "What led to them",
}
"""What stands above each table, by its name."""
_COUNTS = ("epochs", "joined", "left", "restarted", "fenced", "subscription_changed")
_MOST_NAMED = 2
_IN_CHANGES = ("members_changed", "subscription_changed", "none_recorded", "coordinator_changed")
_COMPACTED = "compacted"
_SECOND = 1000


def rebalances_text(
    tables: Mapping[str, Rows], output_format: OutputFormat, metadata: Mapping[str, Any]
) -> Text:
    """Return the answer as text.

    Args:
        tables: Those of `TABLES`.
        output_format: The format.
        metadata: What JSON has beside the tables.
    """
    if output_format.is_for_programs:
        return _for_programs(tables, output_format, metadata)
    counts = {name: tables[name].num_rows for name in TABLES}
    if not counts["rebalances"]:
        return nothing("No generation or group epoch in that time.", metadata, output_format.width)
    shown = {name: worst_rows(tables[name], _WORST[name], output_format) for name in TABLES}
    causes = _causes_of(shown["rebalances"], tables)
    shown["rebalances"] = with_causes(shown["rebalances"], causes)
    sections = _for_people(shown, counts, output_format)
    names = {each.name for each in sections}
    left_out = {
        called: (shown[name].num_rows, counts[name])
        for name, called in TABLES.items()
        if called in names and output_format.top is None
    }
    found = shown_tables(sections, output_format)
    notes = [*summed_up(left_out), *_notes(found, metadata)]
    return "\n\n".join([found.text, paragraphs(notes, output_format.width)])


def _for_programs(
    tables: Mapping[str, Rows], output_format: OutputFormat, metadata: Mapping[str, Any]
) -> Text:
    sections = [
        *(
            LongSection(tables[name], partial(raw_section, name=TABLES[name]))
            for name in TABLES
            if name != "rebalances"
        ),
        LongSection(tables["rebalances"], _epochs_section),
    ]
    return rendered(sections, output_format, metadata)


def _epochs_section(epochs: pa.Table) -> Section:
    """Return generations and group epochs as programs get them."""
    return as_main(table_section(epochs, "rebalances", TABLES["rebalances"]))


def _for_people(
    shown: Mapping[str, pa.Table], counts: Mapping[str, int], output_format: OutputFormat
) -> list[Section]:
    """Return the tables with rows, and the one that is asked for.

    What led to an epoch stands in its line; the details are shown where people ask for them.

    Args:
        shown: The rows.
        counts: How many rows the tables have.
        output_format: Who asks for a number of rows is told how many there are.
    """
    is_counted = output_format.top is not None
    return [
        replace(
            section(shown[name], name),
            more=counts[name] - shown[name].num_rows if is_counted else 0,
        )
        for name in _IN_ORDER
        if output_format.table or (shown[name].num_rows and name != "rebalance_causes")
    ]


def _causes_of(epochs: pa.Table, tables: Mapping[str, Rows]) -> pa.Table:
    """Return what led to some epochs, and maybe to others of their groups."""
    return of_groups(tables["rebalance_causes"], pc.unique(epochs["group_id"]))


def _notes(tables: ShownTables, metadata: Mapping[str, Any]) -> list[str]:
    storm, changes = metadata["storm"], metadata["coordinator_changes"]
    return [
        f"storm: {storm['epochs']} epochs within {storm['minutes']:g} minutes",
        *tables.legend(TABLES["rebalances"], "coordinator_change", changes),
        metadata["not_recorded"],
    ]


def with_causes(rows: pa.Table, causes: pa.Table) -> pa.Table:
    """Return the table `rebalances` with the causes of each epoch, as words.

    Who came and went stands in another column: that members changed is left out.
    """
    found: dict[tuple[Any, ...], list[str]] = {}
    names = ("coordinator_partition", "group_id", "from_offset", "epoch")
    for each in causes.to_pylist():
        if each["cause"] not in _IN_CHANGES:
            place = tuple(each[name] for name in names)
            doubt = "" if each["is_told"] else "?"
            found.setdefault(place, []).append(each["cause"] + doubt)
    places = zip(*(rows[name].to_pylist() for name in names), strict=True)
    words = [", ".join(found.get(place, [])) or None for place in places]
    return rows.append_column("causes", pa.array(words, pa.string()))


def section(rows: pa.Table, of: str) -> Section:
    """Return the rows of one table as people read them.

    Lists are cut short, numbers rounded, and what compaction took is said.

    Args:
        rows: The table.
        of: The name of its contract.
    """
    view = "people" if of == "rebalances" else MAIN
    made = [each for each in ("changes", "causes") if each in heads_of(of, view)]
    texts = pa.schema([(name, pa.string()) for name in dict.fromkeys([*rows.column_names, *made])])
    shown = [_shown(row) for row in with_times_as_text(rows).to_pylist()]
    table = pa.Table.from_pylist(shown, texts)
    name = TABLES[of]
    return as_main(table_section(table, of, name, view=view, title=_TITLES[name], also=()))


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: _text(each) for name, each in row.items()}
    changes = [f"{did}: {_text(row[name])}" for name, did in _WHO.items() if row.get(name)]
    if row.get("complete") is False and "missing_before" in row:
        changes.append(f"there may have been more: {row['missing']}")
    if row.get("incomplete_because"):
        shown |= {name: f">= {row[name] or 0}" for name in _COUNTS}
    shown["changes"] = "; ".join(changes) or None
    shown.setdefault("causes", None)
    if row.get("missing_is_compacted"):
        shown["missing_before"] = _COMPACTED
    if row.get("compacted"):
        shown["missing"] = f">= {row['missing']}"
    if row.get("since_previous_ms") is not None:
        shown["since_previous_ms"] = f"{row['since_previous_ms'] / _SECOND:.3f} s"
    if row.get("median_seconds_between") is not None:
        shown["median_seconds_between"] = f"{row['median_seconds_between']:.1f} s"
    return shown


def _text(value: object) -> str | None:
    match value:
        case None:
            return None
        case list():
            more = len(value) - _MOST_NAMED
            named = ", ".join(map(str, value[:_MOST_NAMED]))
            return f"{named} and {more} more" if more > 0 else named
        case bool():
            return "yes" if value else "cannot tell"
        case float():
            return f"{value:.1f}"
        case _:
            return str(value)
