"""Findings as rows, the worst first, one sentence each; as lines of JSON; and in short.

In short is how many there are, and how bad.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import times, with_times_as_text
from reports.layout.output_format import width_of
from reports.layout.section import (
    MOST,
    SHOWN,
    LongSection,
    Rows,
    as_main,
    folded,
    scanned,
    table_section,
    without,
)
from reports.plain_text import nothing, paragraphs, printable
from reports.quantities import count
from reports.row_formats import Section, Text, render, rendered
from reports.verdict import AuditIncident, as_values
from schemas.finding_rules import CRITICAL, SEVERITIES

# Findings for programs, one a line, written as `json.dumps` writes them, but by columns.

_AT_ONCE: Final = 5_000
_ROW: Final = "row"
_ESCAPES: Final = {
    each: json.dumps(each)[1:-1] for each in ('"', "\\", *(chr(code) for code in range(32)))
}
"""What JSON cannot have within a text, and what stands for it."""


def json_lines(findings: Iterable[pa.Table]) -> Iterator[str]:
    """Yield findings as lines, in pieces; times are as they are printed everywhere.

    Args:
        findings: Rows of `findings`, some after the others.
    """
    for piece in findings:
        for start in range(0, piece.num_rows, _AT_ONCE):
            rows = pl.DataFrame(pl.from_arrow(with_times_as_text(piece.slice(start, _AT_ONCE))))
            lines = rows.select(_object(rows, {"evidence": _records(rows["evidence"])}))
            yield lines.to_series().str.join("\n").item() + "\n"


def _records(evidence: pl.Series) -> pl.Series:
    """Return a list of objects for each finding."""
    listed = evidence.rename(_ROW).to_frame().with_row_index("finding")
    records = listed.filter(pl.col(_ROW).list.len() > 0).explode(_ROW)
    fields = records[_ROW].struct.unnest()
    objects = pl.DataFrame({"finding": records["finding"]}).with_columns(
        fields.select(_object(fields)).to_series().alias(_ROW)
    )
    joined = objects.group_by("finding", maintain_order=True).agg(pl.col(_ROW).str.join(", "))
    lists = listed.select("finding").join(joined, on="finding", how="left", maintain_order="left")
    return pl.select(pl.format("[{}]", lists[_ROW].fill_null(""))).to_series()


def _object(rows: pl.DataFrame, written: dict[str, pl.Series] | None = None) -> pl.Expr:
    """Return the object of each row.

    Args:
        rows: Texts and whole numbers.
        written: Columns that are JSON already, by name.
    """
    parts: list[pl.Expr] = []
    for name, kind in rows.schema.items():
        parts.append(pl.lit(f"{', ' if parts else '{'}{json.dumps(name)}: "))
        if written and name in written:
            parts.append(pl.lit(written[name]))
        else:
            value = _text(pl.col(name)) if kind == pl.String else pl.col(name).cast(pl.String)
            parts.append(value.fill_null("null"))
    return pl.concat_str(*parts, pl.lit("}"))


def _text(column: pl.Expr) -> pl.Expr:
    escaped = column.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
    return pl.concat_str(pl.lit('"'), escaped, pl.lit('"'))


_ALSO: Final = ("finding_id", "object_type", "suggestion", "evidence")
_NONE: Final = "Nothing was found."
_WORD: Final = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+")
"""A word of a command as a shell takes it: what is in quotes belongs together."""
_INDENT: Final = " " * 6
_GOES_ON: Final = " \\"

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
    """

    findings: Rows
    counts: Mapping[tuple[str, str], int]
    accepted: pa.Table
    incidents: Sequence[AuditIncident]
    changes: Rows | None = None


def answer_of(found: Rows, accepted: pa.Table, output_format: str, said: Mapping[str, Any]) -> Text:
    """Return an audit in one of the formats.

    Args:
        found: Rows of `findings`, with `change` where two audits are compared.
        accepted: What was suppressed, by entry.
        output_format: text, json, csv or markdown.
        said: What JSON says besides.
    """
    is_for_programs = output_format in {"json", "csv"}
    listed = LongSection(found, _listed if is_for_programs else _listed_in_words)
    entries = table_section(
        _with_times(accepted, "until"), "suppressions", title="Suppressed", also=()
    )
    if is_for_programs:
        return rendered([listed, entries], output_format, said)
    shown: list[Section | LongSection] = [listed, entries]
    sections = [each for each in shown if each.rows.num_rows]
    told, width = render(sections, output_format, said), width_of(output_format)
    parts = [
        _sentence_of(said["summary"], width),
        told or nothing(_NONE, said, width),
        _what_to_do(found, width),
    ]
    return "\n\n".join(filter(None, parts))


def _listed_in_words(findings: pa.Table) -> Section:
    section = _listed(findings)
    if "change" not in section.rows.column_names:
        return section
    place = section.rows.column_names.index("change")
    words = pc.replace_substring(section.rows["change"], "_", " ")
    return replace(section, rows=section.rows.set_column(place, "change", words))


def _listed(findings: pa.Table) -> Section:
    has_changes = "change" in findings.column_names
    rows = _with_times(findings, "since").append_column(
        "is_severe", pc.not_equal(findings["severity"], "info")
    )
    section = as_main(table_section(rows, "findings", problem="is_severe", also=_ALSO))
    return section if has_changes else without(section, ["change"])


def _what_to_do(found: Rows, width: int) -> str:
    """Return the commands of what is critical; of more than people are shown, the first ones."""
    first = found.first(found.num_rows if found.num_rows <= MOST else SHOWN)
    critical = first.filter(pc.equal(first["severity"], CRITICAL))
    commands = list(filter(None, pc.unique(critical["suggestion"]).to_pylist()))
    if not commands:
        return ""
    lines = (wrapped_command(each, width) for each in commands)
    return "\n".join(["What to look at first:", *lines])


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


def _with_times(rows: pa.Table, name: str) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, times(rows[name]))


def summary_of(
    found: AuditFindings, said: Mapping[str, Any], code: int, fail_on: str, command: str
) -> dict[str, Any]:
    """Return what `summary.json` says.

    Args:
        found: What was found.
        said: Of the answer: `as_of`, `input`.
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
    first = folded(findings, partial(first_of_rules, most=1), _NAMED).select(list(_NAMED))
    return {each.pop("rule"): each for each in first.sort_by("rule").to_pylist()}


def first_of_rules(findings: Iterable[pa.Table], most: int) -> pa.Table:
    """Return the first findings of each rule, in their order.

    Args:
        findings: Rows of `findings` in their order, some at a time; at least once.
        most: So many of each.
    """
    held: list[pa.Table] = []
    for each in findings:
        rows = pa.concat_tables([*held, each])
        rules = pl.DataFrame({"rule": pl.from_arrow(rows["rule"])}).with_row_index("nth")
        first = rules.group_by("rule").head(most)["nth"].sort()
        # Only what is returned is gathered.
        held = [rows.take(first.to_arrow())]
    return held[0]


def _sentence_of(summary: Mapping[str, Any], width: int) -> str:
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
