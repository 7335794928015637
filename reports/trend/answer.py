"""The answer of `trend` as text, JSON, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import signed, with_times_as_text, with_values
from reports.layout.output_format import OutputFormat
from reports.layout.section import LongSection, Rows, as_main, raw_section, table_section
from reports.plain_text import printable, wrapped
from reports.row_formats import Section, Text, rendered
from reports.trend.lines import ClusterLines, Line, lines_of
from schemas import table

TABLES: Final = {
    "runs": "trend_runs",
    "rules": "trend_rules",
    "findings": "trend_findings",
    "changed_groups": "trend_changed_groups",
    "lag": "trend_lag",
    "retention": "trend_retention",
    "disks": "trend_disks",
    "bytes": "trend_bytes",
    "groups": "trend_groups",
}
"""What `--table` and JSON call them."""
MAIN: Final = "runs"
TITLES: Final = {
    "runs": "Runs",
    "rules": "Findings by rule",
    "findings": "Findings that are new or gone",
    "changed_groups": "Groups that came or went",
    "lag": "Groups that are furthest behind, or fell behind the most",
    "retention": "Retention reaches these, if it goes on so",
    "disks": "Disks",
    "bytes": "Internal topics",
    "groups": "Groups by type and state",
}
_LISTED: Final = ("runs", "findings", "changed_groups", "lag", "retention", "disks", "bytes")
"""What people are shown without asking for it."""
_KINDS: Final = {
    "new": "New",
    "worse": "Worse",
    "improved": "Gone or better",
    "limits": "Limits",
    "cannot_tell": "Cannot tell",
}
"""What is said of a cluster, by attribute of `ClusterLines`."""
_INDENT: Final = "  "


def trend_text(
    tables: Mapping[str, Rows],
    figures: Mapping[str, Mapping[str, Any]],
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
) -> Text:
    """Return the answer as text.

    Args:
        tables: By the names of their contracts.
        figures: Of the answer, by cluster.
        output_format: The format.
        metadata: What JSON has beside the tables.
    """
    if output_format.is_for_programs:
        return rendered(sections_for_programs(tables), output_format, metadata)
    is_asked = output_format.table is not None or output_format.sort is not None
    sections = list(_for_people(tables, output_format.table))
    shown = rendered(sections, output_format, metadata)
    if is_asked or output_format.only_problems:
        return shown
    head = _head(lines_of(tables, figures), output_format)
    return "\n\n".join([head, *shown])


def sections_for_programs(tables: Mapping[str, Rows]) -> list[Section | LongSection]:
    """Return all tables with all their columns."""
    return [LongSection(tables[of], partial(_raw, name=name)) for name, of in TABLES.items()]


def _raw(rows: pa.Table, name: str) -> Section:
    section = raw_section(rows, name)
    return as_main(section) if name == MAIN else section


def _for_people(
    tables: Mapping[str, Rows], table_name: str | None
) -> Iterator[Section | LongSection]:
    for name, of in TABLES.items():
        rows = tables[of]
        if name == table_name:
            yield LongSection(rows, partial(_section, name=name))
        elif table_name is None and name in _LISTED and rows.num_rows:
            yield _first_of(rows, name, tables) if name in _MANY else _section(rows.whole(), name)


_MANY: Final = ("findings", "changed_groups", "lag")
"""Tables of which people are shown the first rows, of each cluster's last run."""
_MOST: Final = 20


def _first_of(rows: Rows, name: str, tables: Mapping[str, Rows]) -> Section:
    if name != "lag":
        return replace(_section(rows.first(_MOST), name), more=max(rows.num_rows - _MOST, 0))
    lags, runs = rows.whole(), tables[TABLES[MAIN]].whole()
    last = runs.group_by("cluster").aggregate([("as_of", "max")])
    is_last = pc.is_in(lags["as_of"], last["as_of_max"].combine_chunks())
    return _section(lags.filter(is_last), name)


def _section(rows: pa.Table, name: str) -> Section:
    of = TABLES[name]
    marked = rows
    problem = None
    if "change" in rows.column_names:
        is_wrong = pc.is_in(rows["change"], pa.array(["new", "worse", "cannot_tell"]))
        marked = marked.append_column("is_worse", is_wrong)
        problem = "is_worse"
        marked = with_values(marked, "change", pc.replace_substring(marked["change"], "_", " "))
    return table_section(
        with_times_as_text(with_signs(marked, of)),
        of,
        name,
        title=TITLES[name],
        problem=problem,
        also=(),
    )


def with_signs(rows: pa.Table, of: str) -> pa.Table:
    """Return rows in which values that are bounds have their signs; those columns are texts then.

    Args:
        rows: Of a table.
        of: The table, by the name of its contract.
    """
    bounds = {
        each.name: each.bound
        for each in table(of).columns
        if each.bound is not None and each.name in rows.column_names
    }
    return signed(rows, bounds)


def _head(clusters: Sequence[ClusterLines], output_format: OutputFormat) -> str:
    is_markup = output_format == "markdown"
    width = output_format.width
    return "\n\n".join("\n".join(_of_cluster(each, width, is_markup)) for each in clusters)


def _of_cluster(lines: ClusterLines, width: int, is_markup: bool) -> Iterator[str]:  # noqa: FBT001
    title = f"Cluster {lines.cluster}: {lines.instants}"
    if is_markup:
        yield f"## {printable(title)}\n"
    else:
        yield from wrapped(printable(title), width)
    for name, head in _KINDS.items():
        found: Sequence[Line] = getattr(lines, name)
        if not found and name in ("new", "worse"):
            found = [Line("nothing that is known")] if "one run" not in lines.instants else []
        if not found:
            continue
        yield f"**{head}**\n" if is_markup else f"{_INDENT}{head}"
        for each in found:
            word = f"{each.severity}: " if each.severity in ("critical", "warning") else ""
            text = printable(f"{word}{each.text}")
            if is_markup:
                yield f"- {_literal(text)}"
                continue
            first, *rest = wrapped(text, width - 2 * len(_INDENT) - 2) or [""]
            yield f"{_INDENT * 2}- {first}"
            yield from (f"{_INDENT * 2}  {line}" for line in rest)
        if is_markup:
            yield ""


def _literal(text: str) -> str:
    return "".join(f"\\{each}" if each in "\\`*_{}[]<>#|~!&@" else each for each in text)
