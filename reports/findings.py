"""Findings as lines of JSON; and in short: how many there are, and how bad."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import with_times_as_text
from reports.layout.section import (
    Rows,
    first_of_each,
    folded,
    scanned,
)
from reports.verdict import AuditIncident, as_values
from schemas.finding_rules import SEVERITIES

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
