"""The answer of `region`: checkpoints, what is wrong with them, and where reading would go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import width_of
from reports.layout.section import as_main, raw_section, table_section, unmarked
from reports.plain_text import paragraphs
from reports.row_formats import Section, Text, rendered, shown_tables

_LAST = ("cannot_tell", "findings")
"""What JSON has after all else, before the rows."""

_FOR_PROGRAMS: Final = ("json", "csv")
_MAIN: Final = "region_checkpoints"
_TITLES: Final = {
    _MAIN: "",
    "region_findings": "Findings",
    "region_seek_plan": "Where reading goes on if the latest complete checkpoint is restored",
    "region_drains": "Drains",
    "region_operators": "Operators",
}
_SOUND_COMMITS: Final = pa.array(["equal", "no_commit"])


def region_text(
    tables: Mapping[str, pa.Table],
    output_format: str,
    metadata: Mapping[str, Any],
    about: Mapping[str, Any],
) -> Text:
    """Return the answer as text.

    Args:
        tables: Of the question, by name.
        output_format: The format.
        metadata: What JSON has beside the tables; `findings` says what each finding means.
        about: What it has besides: which checkpoints they are.
    """
    ordered = {
        **{name: each for name, each in metadata.items() if name not in _LAST},
        **about,
        **{name: metadata[name] for name in _LAST},
    }
    if output_format in {"json", "csv"}:
        return rendered(_sections(tables, output_format), output_format, ordered)
    shown = shown_tables(_sections(tables, output_format), output_format)
    places = ((_MAIN, "findings"), ("region_findings", "finding"))
    found = {line for place in places for line in shown.legend(*place, metadata["findings"])}
    meanings = sorted(found)
    return "\n\n".join(
        [shown.text, *([paragraphs(meanings, width_of(output_format))] if meanings else [])]
    )


def _sections(tables: Mapping[str, pa.Table], output_format: str) -> Sequence[Section]:
    """Return the tables as sections: for people those that say something, for programs all.

    Args:
        tables: By the names of their contracts.
        output_format: As the option has it.
    """
    found = [_section(name, tables[name]) for name in _TITLES]
    if output_format in _FOR_PROGRAMS or getattr(output_format, "table", None):
        offsets = "region_checkpoint_offsets"
        return [*found, raw_section(tables[offsets], offsets)]
    return [each for each in found if each.rows.num_rows or each.name == _MAIN]


def _section(name: str, rows: pa.Table) -> Section:
    shown = rows.append_column("is_problem", _problems(name, rows))
    section = table_section(shown, name, title=_TITLES[name], problem="is_problem")
    return as_main(section) if name == _MAIN else unmarked(section)


def _problems(name: str, rows: pa.Table) -> pa.ChunkedArray:
    """Return which rows need somebody's attention."""
    if name == _MAIN:
        is_sound = pc.and_(rows["complete"], pc.equal(pc.list_value_length(rows["findings"]), 0))
    elif name == "region_seek_plan":
        in_log = pc.fill_null(pc.equal(rows["log_is"], "readable"), fill_value=True)
        is_sound = pc.and_(pc.is_in(rows["commit_is"], _SOUND_COMMITS), in_log)
        is_sound = pc.and_(is_sound, rows["complete"])
    elif name == "region_drains":
        is_sound = pc.equal(rows["verdict"], "clean")
    elif name == "region_operators":
        is_sound = pc.is_valid(rows["operator"])
    else:
        is_sound = pc.equal(rows["finding"], "contribution_repeated")
    return pc.invert(is_sound)
