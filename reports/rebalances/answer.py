"""The answer of `rebalances`: which tables are shown, and the sentences below them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.nothing import nothing
from reports.layout.output_format import OutputFormat
from reports.layout.section import Section, raw_section
from reports.layout.worst_rows import summed_up, worst_rows
from reports.rebalances.rows import (
    CAUSE_HEADS,
    CHURN_HEADS,
    PEOPLES_HEADS,
    REBALANCE_HEADS,
    STANDING_HEADS,
    STORM_HEADS,
    section,
    with_causes,
)
from reports.row_formats import Text, render, rendered

TABLES: Final = {
    "rebalances": "epochs",
    "group_churn": "churn",
    "rebalance_storms": "storms",
    "stalled_members": "standing",
    "rebalance_causes": "causes",
}
"""What `--table` and JSON call them."""
_WORST: Final = {
    "rebalances": [("at", "descending")],
    "group_churn": [("per_hour", "descending")],
    "rebalance_storms": [("per_hour", "descending")],
    "stalled_members": [("since", "ascending")],
    "rebalance_causes": [("at", "descending")],
}
"""In which order they are where there are too many for people."""


def rebalances_text(
    tables: Mapping[str, pa.Table], output_format: OutputFormat, metadata: Mapping[str, Any]
) -> Text:
    """Return the answer as text.

    Args:
        tables: Those of `TABLES`.
        output_format: The format.
        metadata: What JSON has beside the tables.
    """
    if output_format.is_for_programs:
        return _for_programs(tables, output_format, metadata)
    epochs = tables["rebalances"]
    if not epochs.num_rows:
        return nothing("No generation or group epoch in that time.", metadata)
    shown = {name: worst_rows(tables[name], _WORST[name], output_format) for name in TABLES}
    causes = _causes_of(shown["rebalances"], tables)
    shown["rebalances"] = with_causes(shown["rebalances"], causes)
    sections = _for_people(shown, output_format)
    names = {each.name for each in sections}
    counts = {
        called: (shown[name].num_rows, tables[name].num_rows)
        for name, called in TABLES.items()
        if called in names
    }
    notes = [*summed_up(counts), *_notes(epochs, metadata)]
    return "\n\n".join([render(sections, output_format, metadata), "\n".join(notes)])


def _for_programs(
    tables: Mapping[str, pa.Table], output_format: OutputFormat, metadata: Mapping[str, Any]
) -> Text:
    epochs = tables["rebalances"]
    also = [name for name in epochs.column_names if name not in REBALANCE_HEADS]
    sections = [
        *(raw_section(tables[name], TABLES[name]) for name in TABLES if name != "rebalances"),
        Section(epochs, REBALANCE_HEADS, also, name=TABLES["rebalances"]),
    ]
    return rendered(sections, output_format, metadata)


def _for_people(shown: Mapping[str, pa.Table], output_format: OutputFormat) -> list[Section]:
    """Return the tables with rows; what led to an epoch stands in its line.

    The details of causes are shown where people ask for them.
    """
    heads = {
        "rebalance_storms": STORM_HEADS,
        "group_churn": CHURN_HEADS,
        "rebalances": PEOPLES_HEADS,
        "stalled_members": STANDING_HEADS,
        "rebalance_causes": CAUSE_HEADS,
    }
    return [
        section(shown[name], each, TABLES[name])
        for name, each in heads.items()
        if shown[name].num_rows and (output_format.table or name != "rebalance_causes")
    ]


def _causes_of(epochs: pa.Table, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return what led to some epochs."""
    causes = tables["rebalance_causes"]
    if epochs.num_rows == tables["rebalances"].num_rows:
        return causes
    return causes.filter(pc.is_in(causes["group_id"], pc.unique(epochs["group_id"])))


def _notes(epochs: pa.Table, metadata: Mapping[str, Any]) -> list[str]:
    changes = set(epochs["coordinator_change"].to_pylist())
    storm = metadata["storm"]
    return [
        f"storm: {storm['epochs']} epochs within {storm['minutes']:g} minutes",
        *(
            f"{word}: {text}"
            for word, text in metadata["coordinator_changes"].items()
            if word in changes
        ),
        metadata["not_recorded"],
    ]
