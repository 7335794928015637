"""Findings as lines of JSON; and in short: how many there are, and how bad."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

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
    first = folded(findings, partial(first_of_each, of="rule", most=1), _NAMED)
    first = first.select(list(_NAMED))
    return {each.pop("rule"): each for each in first.sort_by("rule").to_pylist()}
