"""Findings as lines of JSON; and in short: how many there are, and how bad.

An audit as people read it: what is wrong first, by incident; then findings, one sentence each.

Programs have its findings alone, and those who ask for rows have all of them: `--table findings`,
`--sort`, `--only-problems`. Else findings that an incident has are told there, by rule.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import times, with_times_as_text
from reports.layout.output_format import OutputFormat, width_of
from reports.layout.section import (
    LongSection,
    Rows,
    as_main,
    first_of_each,
    folded,
    scanned,
    table_section,
    without,
)
from reports.plain_text import count, paragraphs, printable, wrapped
from reports.row_formats import MARKUP, Section, Text, render, rendered
from reports.verdict import (
    INCIDENTS,
    AuditIncident,
    IncidentPart,
    as_text,
    as_values,
    parts_shown,
    sentence_of,
    serves,
)
from schemas.finding_rules import INFO, SEVERITIES

# Findings for programs, one a line, written as `json.dumps` writes them, but by columns.

_AT_ONCE: Final = 16_000
_ESCAPES: Final = {
    each: json.dumps(each)[1:-1] for each in ('"', "\\", *(chr(code) for code in range(32)))
}
"""What JSON cannot have within a text, and what stands for it."""
_FIRST_PLAIN: Final = ord(" ")
_ABSENT: Final = {"null_handling": "replace", "null_replacement": "null"}


def json_lines(findings: Iterable[pa.Table]) -> Iterator[str]:
    """Yield findings as lines, in pieces; times are as they are printed everywhere.

    Args:
        findings: Rows of `findings`, some after the others.
    """
    for piece in findings:
        for start in range(0, piece.num_rows, _AT_ONCE):
            rows = with_times_as_text(piece.slice(start, _AT_ONCE)).combine_chunks()
            columns = {name: rows[name].combine_chunks() for name in rows.column_names}
            columns["evidence"] = _records(columns["evidence"])
            lines = _objects(columns, end="}\n", written=("evidence",))
            yield _all_of(lines)


def _all_of(texts: pa.StringArray) -> str:
    """Return texts that follow each other as one."""
    return str(_content(texts), "utf-8")


def _content(texts: pa.StringArray) -> memoryview:
    """Return what texts have in memory, one after the other."""
    _, ends, content = texts.buffers()
    if content is None or not len(texts):
        return memoryview(b"")
    places = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(content)[places[0] : places[-1]]


def _records(evidence: pa.ListArray) -> pa.StringArray:
    """Return a list of objects for each finding."""
    records = evidence.flatten()
    fields = dict(zip(records.type.names, records.flatten(), strict=True))
    lengths = pc.fill_null(pc.list_value_length(evidence), 0).to_numpy()
    ends = pa.array(np.concatenate([[0], lengths.cumsum()]), pa.int32())
    lists = pa.ListArray.from_arrays(ends, _objects(fields, end="}"))
    return pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", "")


def _objects(
    columns: Mapping[str, pa.Array], end: str, written: Sequence[str] = ()
) -> pa.StringArray:
    """Return the object of each row.

    Args:
        columns: Texts and whole numbers.
        end: Of an object.
        written: Columns that are JSON already.
    """
    parts: list[pa.Array | str] = []
    before = "{"
    for name, column in columns.items():
        before += f"{json.dumps(name)}: "
        after = ""
        value = column
        if name not in written:
            if not pa.types.is_string(column.type):
                value = pc.cast(column, pa.string())
            elif column.null_count:
                value = pc.binary_join_element_wise('"', _escaped(column), '"', "")
            else:
                before, value, after = f'{before}"', _escaped(column), '"'
        parts += [before, value]
        before = f"{after}, "
    return pc.binary_join_element_wise(*parts, before.removesuffix(", ") + end, "", **_ABSENT)


def _escaped(column: pa.StringArray) -> pa.StringArray:
    """Return texts as JSON has them; few have anything that stands for something else there."""
    characters = np.frombuffer(_content(column), np.uint8)
    is_plain = np.all(characters >= _FIRST_PLAIN) and not any(
        np.any(characters == ord(each)) for each in _ESCAPES if each >= " "
    )
    if is_plain:
        return column
    texts = pl.DataFrame({"text": pl.from_arrow(column)})
    escaped = pl.col("text").str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
    found = texts.select(escaped).to_series()
    return found.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


_SCHEMA_VERSION: Final = 1
_WORST: Final = 10
_CHANGES: Final = ("new", "still_there", "gone")
_NAMED: Final = ("severity", "rule", "finding_id", "message")
"""What a summary says of a finding."""
_ENDED: Final = {
    0: "nothing as severe as --fail-on was found",
    1: "something as severe as --fail-on was found",
    3: "some of the input could not be read, or an answer cannot be told",
}


class Findings(Rows, Protocol):
    """The table of findings, of which some rows can be chosen."""

    def where(self, condition: pl.Expr) -> Rows:
        """Return the same table with the rows alone that fulfil a condition."""


@dataclass(frozen=True)
class AuditFindings:
    """What an audit found.

    Attributes:
        findings: The table, the most severe first.
        counts: How many there are, by rule and severity.
        accepted: What was suppressed, by entry.
        incidents: What the findings come to, what costs most first.
        changes: Rows of `findings` with `change`, those that are gone among them; None where there
            is no earlier audit.
        is_open: Whether an answer cannot be told, or some of the input was not read.
    """

    findings: Findings
    counts: Mapping[tuple[str, str], int]
    accepted: pa.Table
    incidents: Sequence[AuditIncident]
    changes: Rows | None = None
    is_open: bool = False


def summary_of(
    found: AuditFindings, said: Mapping[str, Any], code: int, fail_on: str, command: str
) -> dict[str, Any]:
    """Return what `summary.json` says.

    Args:
        found: What was found.
        said: Of the answer: `as_of`, `input`, and by what it was asked: `filters`, `settings`.
        code: The exit code.
        fail_on: The option.
        command: What makes the same audit again.
    """
    severities, rules = Counter[str](), Counter[str]()
    for (rule, severity), number in found.counts.items():
        rules[rule] += number
        severities[severity] += number
    worst = found.findings.first(_WORST).select(list(_NAMED))
    return {
        "schema_version": _SCHEMA_VERSION,
        "as_of": said["as_of"],
        "input": said["input"],
        "kafka_version": said.get("kafka_version"),
        "findings": {each: severities[each] for each in SEVERITIES},
        "by_rule": dict(sorted(rules.items())),
        "suppressed": pc.sum(found.accepted["suppressed"], min_count=0).as_py(),
        "could_not_be_asked": dict(said.get("could_not_be_asked", {})),
        "is_open": found.is_open,
        "filters": list(said.get("filters", ())),
        "settings": said.get("settings"),
        "changes": None if found.changes is None else _changes(found.changes),
        "incidents": as_values(found.incidents),
        "worst": worst.to_pylist(),
        "worst_by_rule": _worst_by_rule(found.findings),
        "fail_on": fail_on,
        "exit_code": code,
        "exit_reason": _ENDED.get(code, ""),
        "command": command,
    }


def _changes(changes: Rows) -> dict[str, int]:
    """Return how many findings are new, still there and gone."""
    counts = Counter(dict.fromkeys(_CHANGES, 0))
    for rows in scanned(changes, ["change"]):
        for each in pc.value_counts(rows["change"]).to_pylist():
            counts[each["values"]] += each["counts"]
    return dict(counts)


def _worst_by_rule(findings: Rows) -> dict[str, dict[str, str]]:
    """Return the first finding of each rule: the most severe come first."""
    first = folded(findings, partial(first_of_each, of="rule", most=1), _NAMED)
    first = first.select(list(_NAMED))
    return {each.pop("rule"): each for each in first.sort_by("rule").to_pylist()}


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
