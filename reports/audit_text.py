"""An audit as people read it: what is wrong first, by incident; then findings, one sentence each.

Programs have its findings alone, and those who ask for rows have all of them: `--table findings`,
`--sort`, `--only-problems`. Else findings that an incident has are told there, by rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.findings import AuditFindings, Findings
from reports.layout.cells import times
from reports.layout.output_format import OutputFormat, width_of
from reports.layout.section import LongSection, Rows, as_main, table_section, without
from reports.plain_text import paragraphs, printable, wrapped
from reports.quantities import count
from reports.row_formats import MARKUP, Section, Text, render, rendered
from reports.verdict import (
    INCIDENTS,
    AuditIncident,
    IncidentPart,
    as_text,
    parts_shown,
    sentence_of,
    serves,
)
from schemas.finding_rules import INFO

MOST: Final = 8
"""So many incidents are shown; the table of them has all."""
_ALSO: Final = ("finding_id", "object_type", "suggestion", "evidence")
_FINDINGS: Final = "findings"
_NONE: Final = "Nothing was found."
_SOUND: Final = "Nothing was found that needs anyone."
_AS_FAR: Final = "The dump does not tell all: the page says, under Cannot tell, what it lacks."
_WORD: Final = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+")
"""A word of a command as a shell takes it: what is in quotes belongs together."""
_INDENT: Final = " " * 6
_GOES_ON: Final = " \\"
_MARK: Final = "!"
_EACH: Final = (
    "--table findings lists each of these findings; findings.jsonl has their records, too."
)
_REST: Final = "Worth knowing"


def answer_of(
    audit: AuditFindings, output_format: OutputFormat | str, metadata: Mapping[str, Any]
) -> Text:
    """Return an audit in one of the formats.

    Args:
        audit: What it found; with `changes` where two audits are compared.
        output_format: text, json, csv or markdown.
        metadata: What JSON says besides, and `summary`.
    """
    rows = audit.findings if audit.changes is None else audit.changes
    is_for_programs = output_format in {"json", "csv"}
    entries = table_section(
        _with_times(audit.accepted, "until"), "suppressions", title="Suppressed", also=()
    )
    if is_for_programs:
        return rendered([LongSection(rows, _listed), entries], output_format, metadata)
    is_asked = _asks_for_rows(output_format)
    title = ""
    if not is_asked and audit.changes is None and 0 < len(audit.incidents) <= MOST:
        rows, title = _not_in_an_incident(audit.findings), _REST
    listed = LongSection(rows, partial(_listed_in_words, title=title))
    shown: list[Section | LongSection] = [listed, entries]
    sections = [each for each in shown if each.rows.num_rows]
    width = width_of(output_format)
    told = render(sections, output_format, metadata) if sections else ""
    if is_asked:
        return told or _NONE
    verdict = _verdict(audit, metadata["summary"], width, is_markup=output_format == "markdown")
    return "\n\n".join(filter(None, [*verdict, told]))


def _asks_for_rows(output_format: str) -> bool:
    """Return whether somebody wants rows of tables, and not what they come to."""
    if not isinstance(output_format, OutputFormat):
        return False
    asked = (output_format.table, output_format.sort)
    return output_format.only_problems or any(each is not None for each in asked)


def _not_in_an_incident(findings: Findings) -> Rows:
    """Return what is only worth knowing: all that is worse is part of an incident."""
    return findings.where(pl.col("severity") == INFO)


def _listed_in_words(findings: pa.Table, title: str) -> Section:
    section = replace(_listed(findings), title=title)
    if "change" not in section.rows.column_names:
        return section
    place = section.rows.column_names.index("change")
    words = pc.replace_substring(section.rows["change"], "_", " ")
    return replace(section, rows=section.rows.set_column(place, "change", words))


def _listed(findings: pa.Table) -> Section:
    has_changes = "change" in findings.column_names
    rows = _with_times(findings, "since").append_column(
        "is_severe", pc.not_equal(findings["severity"], INFO)
    )
    section = as_main(table_section(rows, _FINDINGS, problem="is_severe", also=_ALSO))
    return section if has_changes else without(section, ["change"])


def _with_times(rows: pa.Table, name: str) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, times(rows[name]))


# What is wrong: a paragraph for each incident.


def _verdict(
    audit: AuditFindings, summary: Mapping[str, Any], width: int, *, is_markup: bool
) -> Iterator[str]:
    """Yield what is wrong and since when, how much was found, and each incident."""
    number = audit.findings.num_rows
    wrong = sentence_of(audit.incidents) or (_SOUND if number else _NONE)
    yield paragraphs([" ".join([wrong, *([_AS_FAR] if audit.is_open else [])])], width)
    yield _counts_of(summary, width)
    for each in audit.incidents[:MOST]:
        yield "\n".join((_as_markdown if is_markup else _as_lines)(each, width))
    more = len(audit.incidents) - MOST
    if more > 0:
        yield paragraphs([f"{count(more, 'more thing')} in evaluations/{INCIDENTS}"], width)
    if audit.incidents:
        yield paragraphs([_EACH], width)


def _as_lines(incident: AuditIncident, width: int) -> Iterator[str]:
    began = _began(incident)
    text = printable(f"{_MARK} {incident.severity}: {incident.message}{began}")
    first, *rest = wrapped(text, width - len(_INDENT))
    yield first
    yield from (f"{_INDENT}{each}" for each in rest)
    for each in _parts_in_words(incident):
        head, *others = wrapped(printable(each), width - len(_INDENT)) or [""]
        yield f"{_INDENT[:-2]}- {head}"
        yield from (f"{_INDENT}{line}" for line in others)
    if incident.command:
        yield wrapped_command(incident.command, width)
    if note := serves(incident):
        yield f"{_INDENT[:2]}({note})"


def _as_markdown(incident: AuditIncident, _width: int) -> Iterator[str]:
    began = _began(incident)
    yield f"- **{incident.severity}**: {_literal(f'{incident.message}{began}')}"
    yield from (f"  - {_literal(each)}" for each in _parts_in_words(incident))
    if incident.command:
        command = printable(incident.command)
        # A fence longer than any run of backticks within.
        fence = "`" * max(3, *(len(each) + 1 for each in re.findall("`+", command) or [""]))
        yield from ("", f"  {fence}", f"  {command}", f"  {fence}")
    if note := serves(incident):
        yield from ("", f"  ({note})")


def _began(incident: AuditIncident) -> str:
    """Return since when it is so, where that is not said already."""
    since = as_text(incident.since)
    return "" if since is None or since in incident.message else f" (since {since})"


def _literal(text: str) -> str:
    """Return text that Markdown takes as it is."""
    return re.sub(f"({MARKUP})", r"\\\1", printable(text))


def _parts_in_words(incident: AuditIncident) -> Iterator[str]:
    """Yield what was found by rule, with the first groups that it is about."""
    parts = parts_shown(incident)
    for each in parts:
        names = _names(each)
        yield f"{each.headline}: {names}" if names else each.headline
    if not parts and incident.findings > 1 and (names := _names(incident.parts[0])):
        yield names


def _names(part: IncidentPart) -> str:
    more = part.groups - len(part.names)
    if more <= 0:
        *first, last = part.names or ("",)
        return f"{', '.join(first)} and {last}" if first else last
    return f"{', '.join(part.names)} and {more:,} more"


def wrapped_command(command: str, width: int) -> str:
    """Return a command in lines that fit the page, as a shell takes them in one piece."""
    lines = [""]
    for word in _WORD.findall(printable(command)):
        if lines[-1] and len(_INDENT) + len(lines[-1]) + 1 + len(word) + len(_GOES_ON) > width:
            lines[-1] += _GOES_ON
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(
        f"{_INDENT if number else _INDENT[:2]}{each}" for number, each in enumerate(lines)
    )


def _counts_of(summary: Mapping[str, Any], width: int) -> str:
    """Return the counts in one sentence, and what could not be asked."""
    counts = summary["findings"]
    parts = [
        f"{counts['critical']:,} critical",
        count(counts["warning"], "warning"),
        f"{counts['info']:,} worth knowing",
    ]
    suppressed = summary["suppressed"]
    accepted = f"; {count(suppressed, 'finding')} suppressed" if suppressed else ""
    failed = [
        f"{name} could not be asked: {why}" for name, why in summary["could_not_be_asked"].items()
    ]
    return paragraphs([f"{', '.join(parts)}{accepted}", *failed], width)
