"""Findings as rows, the worst first, one sentence each; and in short: how many, and how bad."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.columns import WIDTH, printable
from reports.layout.section import MOST, SHOWN, LongSection, Rows
from reports.layout.sentences import nothing, paragraphs
from reports.layout.table_section import as_main, table_section, without
from reports.printed_times import times
from reports.quantities import count
from reports.row_formats import Section, Text, render, rendered
from schemas.finding_rules import CRITICAL, SEVERITIES

_ALSO: Final = ("finding_id", "object_type", "suggestion", "evidence")
_NONE: Final = "Nothing was found."
_WORD: Final = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+")
"""A word of a command as a shell takes it: what is in quotes belongs together."""
_INDENT: Final = " " * 6
_GOES_ON: Final = " \\"

_SCHEMA_VERSION: Final = 1
_WORST: Final = 10
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
    """

    findings: Rows
    counts: Mapping[tuple[str, str], int]
    accepted: pa.Table


def answer_of(found: Rows, accepted: pa.Table, output_format: str, said: Mapping[str, Any]) -> Text:
    """Return an audit in one of the formats.

    Args:
        found: Rows of `findings`, with `change` where two audits are compared.
        accepted: What was suppressed, by entry.
        output_format: text, json, csv or markdown.
        said: What JSON says besides.
    """
    listed = LongSection(found, _listed)
    entries = table_section(
        _with_times(accepted, "until"), "suppressions", title="Suppressed", also=()
    )
    if output_format in {"json", "csv"}:
        return rendered([listed, entries], output_format, said)
    shown: list[Section | LongSection] = [listed, entries]
    sections = [each for each in shown if each.rows.num_rows]
    told = render(sections, output_format, said)
    parts = [_sentence_of(said["summary"]), told or nothing(_NONE, said), _what_to_do(found)]
    return "\n\n".join(filter(None, parts))


def _listed(findings: pa.Table) -> Section:
    has_changes = "change" in findings.column_names
    rows = _with_times(findings, "since").append_column(
        "is_severe", pc.not_equal(findings["severity"], "info")
    )
    section = as_main(table_section(rows, "findings", problem="is_severe", also=_ALSO))
    return section if has_changes else without(section, ["change"])


def _what_to_do(found: Rows) -> str:
    """Return the commands of what is critical; of more than people are shown, the first ones."""
    first = found.first(found.num_rows if found.num_rows <= MOST else SHOWN)
    critical = first.filter(pc.equal(first["severity"], CRITICAL))
    commands = list(filter(None, pc.unique(critical["suggestion"]).to_pylist()))
    return (
        "\n".join(["What to look at first:", *map(wrapped_command, commands)]) if commands else ""
    )


def wrapped_command(command: str) -> str:
    """Return a command in lines that fit the page, as a shell takes them in one piece."""
    lines = [""]
    for word in _WORD.findall(printable(command)):
        if lines[-1] and len(_INDENT) + len(lines[-1]) + 1 + len(word) + len(_GOES_ON) > WIDTH:
            lines[-1] += _GOES_ON
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(
        f"{_INDENT if number else _INDENT[:2]}{each}" for number, each in enumerate(lines)
    )


def _with_times(rows: pa.Table, name: str) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, times(rows[name]))


def summary_of(
    found: AuditFindings, said: Mapping[str, Any], code: int, fail_on: str
) -> dict[str, Any]:
    """Return what `summary.json` says.

    Args:
        found: What was found.
        said: Of the answer: `as_of`, `input`.
        code: The exit code.
        fail_on: The option.
    """
    severities, rules = Counter[str](), Counter[str]()
    for (rule, severity), number in found.counts.items():
        rules[rule] += number
        severities[severity] += number
    worst = found.findings.first(_WORST).select(["severity", "rule", "finding_id", "message"])
    return {
        "schema_version": _SCHEMA_VERSION,
        "as_of": said["as_of"],
        "input": said["input"],
        "kafka_version": said.get("kafka_version"),
        "findings": {each: severities[each] for each in SEVERITIES},
        "by_rule": dict(sorted(rules.items())),
        "suppressed": pc.sum(found.accepted["suppressed"], min_count=0).as_py(),
        "could_not_be_asked": dict(said.get("could_not_be_asked", {})),
        "worst": worst.to_pylist(),
        "fail_on": fail_on,
        "exit_code": code,
        "exit_reason": _ENDED.get(code, ""),
    }


def _sentence_of(summary: Mapping[str, Any]) -> str:
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
    return paragraphs([f"{', '.join(parts)}{accepted}", *failed])
