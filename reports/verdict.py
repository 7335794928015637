"""What an audit comes to: incidents, what costs most first; findings of one cause are one of them.

Which findings share a cause says `schemas/rules/incidents.json`; of the others those of a rule
stand together. What costs most is the most severe; of these what concerns the most groups, then
what has the most findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

import polars as pl
import pyarrow as pa

from reports.layout.cells import times
from reports.quantities import count
from schemas.finding_rules import CRITICAL, INFO, SEVERITIES, finding_rules
from schemas.gaps import Template
from schemas.incident_causes import COPY, LINE, RULE, TOPIC, Cause, incident_causes

COLUMNS: Final = (
    *("rule", "severity", "group_id", "topic", "since", "message", "suggestion", "evidence"),
)
"""What is read of findings."""
ENDED_LINES: Final = "divergences"
"""The table of lines that elections ended."""
OF_LINES: Final = ("topic", "partition", "copy", "diverges_at", "lost_records", "elected_at")
MOST_KEPT: Final = 100
"""So many incidents are in `summary.json`."""
MOST_NAMED: Final = 3
"""So many groups of a part are named."""

_CAUSE: Final = ("cause", "shared")
_PART: Final = (*_CAUSE, "rule")
_NONE: Final = ""
_WHOLE: Final = pl.Datetime("us", "UTC")


@dataclass(frozen=True)
class IncidentPart:
    """Findings of one rule that belong to an incident.

    Attributes:
        rule: The rule.
        severity: critical, warning or info.
        findings: How many.
        headline: What they come to.
        groups: How many groups they name.
        names: The first of these groups, at most `MOST_NAMED`.
    """

    rule: str
    severity: str
    findings: int
    headline: str
    groups: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class AuditIncident:
    """Findings that share a cause; or, where they share none, those of one rule.

    Attributes:
        cause: Its name in `schemas/rules/incidents.json`; empty of findings of a rule.
        severity: The worst of its parts.
        message: What happened.
        since: When it began; None where no finding says.
        findings: How many there are.
        groups: How many groups they name.
        command: What to do first; empty where nothing is advised.
        served: For how many findings of its rule that command is known to be advised.
        of: So many findings that rule has here.
        parts: By rule, the most severe first; one at least.
        names: The group and the topic of its first finding.
    """

    cause: str
    severity: str
    message: str
    since: datetime | None
    findings: int
    groups: int
    command: str
    served: int
    of: int
    parts: tuple[IncidentPart, ...]
    names: tuple[str, ...] = ()


def incidents_of(findings: Iterable[pa.Table], lines: pa.Table) -> tuple[AuditIncident, ...]:
    """Return what findings come to, what costs most first; what is only worth knowing is no part.

    An incident that has a warning or worse has those of its findings, too, that are worth knowing.

    Args:
        findings: `COLUMNS` of all of them in their order, some at a time; at least once.
        lines: `OF_LINES` of `divergences`; no rows where there are none.
    """
    elections = _elections(lines)
    sums = _Sums()
    for piece in findings:
        sums.add(_with_causes(pl.DataFrame(pl.from_arrow(piece)), elections))
    found = [_incident(each, elections) for each in sums.incidents()]
    return tuple(sorted((each for each in found if each.severity != INFO), key=_cost))


def sentence_of(incidents: Sequence[AuditIncident]) -> str:
    """Return whether something is wrong, and since when, in one sentence; nothing where it is not.

    Args:
        incidents: What costs most first.
    """
    if not incidents:
        return ""
    critical = sum(each.severity == CRITICAL for each in incidents)
    wrong = count(len(incidents), "thing is", "things are")
    of_them = f", {critical:,} of them critical" if critical and len(incidents) > 1 else ""
    since = as_text(incidents[0].since)
    began = "" if since is None else f"; what costs most began at {since}"
    return f"{wrong} wrong{of_them}{began}."


def serves(incident: AuditIncident) -> str:
    """Return of how many findings a command is that is not known to be of all of them."""
    if not incident.command or incident.served >= incident.of:
        return ""
    if not incident.cause:
        return f"for the first of {count(incident.of, 'finding')}; each says what to do"
    return f"for {incident.served:,} of {incident.of:,}; the findings say what to do for each"


def parts_shown(incident: AuditIncident) -> tuple[IncidentPart, ...]:
    """Return the parts of an incident that say more than its message does."""
    worst = [each for each in incident.parts if each.severity == incident.severity]
    return incident.parts if incident.cause and incident.message != worst[0].headline else ()


def as_values(incidents: Iterable[AuditIncident]) -> list[dict[str, Any]]:
    """Return incidents as `summary.json` has them."""
    return [
        {
            "cause": each.cause or None,
            "severity": each.severity,
            "message": each.message,
            "since": as_text(each.since),
            "findings": each.findings,
            "groups": each.groups,
            "by_rule": {part.rule: part.findings for part in each.parts},
            "command": each.command or None,
            "command_serves": {"findings": each.served, "of": each.of},
        }
        for each in list(incidents)[:MOST_KEPT]
    ]


def as_text(value: datetime | None) -> str | None:
    """Return a time as it is printed everywhere; None where there is none."""
    text: str | None = times(pa.chunked_array([pa.array([value], pa.timestamp("us", "UTC"))]))[
        0
    ].as_py()
    return text


def _cost(incident: AuditIncident) -> tuple[Any, ...]:
    rank = SEVERITIES.index(incident.severity)
    return rank, -incident.groups, -incident.findings, incident.parts[0].rule, incident.message


# Lines that elections ended: one failure of a broker ends many of them.


@dataclass(frozen=True)
class _Election:
    """Lines of one failure: rows of `OF_LINES`."""

    lines: tuple[Mapping[str, Any], ...]

    def has(self, line: Mapping[str, Any], within: timedelta) -> bool:
        """Return whether a line is one of the same failure."""
        return any(_is_same(each, line, within) for each in self.lines)

    def values(self) -> dict[str, str | int | None]:
        """Return what a title says: of a partition that two copies have more of, the larger one."""
        lost: dict[tuple[str, int], int] = {}
        for each in self.lines:
            place = (each["topic"], each["partition"])
            lost[place] = max(lost.get(place, 0), each["lost_records"])
        copies = sorted({each["copy"] for each in self.lines})
        return {
            "at_least": "at least " if len(self.lines) > len(lost) else "",
            "records": sum(lost.values()),
            "partitions": len(lost),
            "copies": ", ".join(copies),
        }


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any], within: timedelta) -> bool:
    if one["elected_at"] is None or other["elected_at"] is None:
        is_at_once = one["elected_at"] is other["elected_at"]
        return is_at_once and one["copy"] == other["copy"]
    place = ("topic", "partition", "elected_at")
    if all(one[each] == other[each] for each in place):
        return True
    apart = abs(one["elected_at"] - other["elected_at"])
    return bool(one["copy"] == other["copy"] and apart <= within)


def _elections(lines: pa.Table) -> list[_Election]:
    within = timedelta(minutes=float(incident_causes().elections_within.minutes))
    found: list[_Election] = []
    for line in lines.select(list(OF_LINES)).to_pylist():
        same = [each for each in found if each.has(line, within)]
        rest = [each for each in found if each not in same]
        found = [*rest, _Election((*(one for each in same for one in each.lines), line))]
    return found


def _lines_of(elections: Sequence[_Election]) -> pl.DataFrame:
    rows = [
        {
            "topic": line["topic"],
            "partition": line["partition"],
            "line_of": line["copy"],
            "diverges_at": line["diverges_at"],
            "elected_at": line["elected_at"],
            "shared": str(number),
        }
        for number, each in enumerate(elections)
        for line in each.lines
    ]
    return pl.DataFrame(rows, schema=_OF_LINES)


_OF_LINES: Final = pl.Schema(
    [
        *(("topic", pl.String()), ("partition", pl.Int32()), ("line_of", pl.String())),
        *(("diverges_at", pl.Int64()), ("elected_at", _WHOLE), ("shared", pl.String())),
    ]
)


# The cause of each finding.


def _with_causes(findings: pl.DataFrame, elections: Sequence[_Election]) -> pl.DataFrame:
    """Return findings with `cause` and `shared`, which are empty where they share none."""
    of_rule = _causes_of_rules()
    cause = pl.col("rule").replace_strict(
        {rule: name for rule, (name, _) in of_rule.items()}, default=_NONE, return_dtype=pl.String
    )
    kind = pl.col("rule").replace_strict(
        {rule: one.shared for rule, (_, one) in of_rule.items()},
        default=_NONE,
        return_dtype=pl.String,
    )
    rows = findings.with_row_index("row").with_columns(
        pl.col("group_id", "topic", "suggestion").cast(pl.String),
        pl.col("since").cast(_WHOLE),
        cause=cause,
        kind=kind,
    )
    records = _records(rows.filter(pl.col("kind").is_in([LINE, COPY])))
    copies = records.group_by("row").agg(pl.col("copy").drop_nulls().first().alias("on_copy"))
    rows = rows.join(copies, on="row", how="left", maintain_order="left")
    rows = rows.join(_on_lines(records, elections), on="row", how="left", maintain_order="left")
    shared = (
        pl.when(pl.col("kind") == RULE).then(pl.lit(RULE))
        .when(pl.col("kind") == TOPIC).then(pl.col("topic"))
        .when(pl.col("kind") == COPY).then(pl.col("on_copy"))
        .when(pl.col("kind") == LINE).then(pl.col("on_line"))
    )  # fmt: skip
    rows = rows.with_columns(shared=shared)
    is_known = pl.col("shared").is_not_null()
    return rows.with_columns(
        cause=pl.when(is_known).then(pl.col("cause")).otherwise(pl.lit(_NONE)),
        shared=pl.col("shared").fill_null(_NONE),
    )


@cache
def _causes_of_rules() -> Mapping[str, tuple[str, Cause]]:
    causes = incident_causes().causes.items()
    return {rule: (name, each) for name, each in causes for rule in each.rules}


def _records(findings: pl.DataFrame) -> pl.DataFrame:
    """Return the records that findings rest on: `row`, `since` and their places."""
    each = findings.select("row", "since", "evidence").filter(pl.col("evidence").list.len() > 0)
    places = each.explode("evidence")
    return places.with_columns(
        pl.col("evidence").struct.field(name).cast(kind).alias(name)
        for name, kind in (
            *(("copy", pl.String), ("topic", pl.String)),
            *(("partition", pl.Int32), ("offset", pl.Int64)),
        )
    )


def _on_lines(records: pl.DataFrame, elections: Sequence[_Election]) -> pl.DataFrame:
    """Return the failure that each finding rests on: `row` and `on_line`.

    Where its records are on lines of several, it is that which began when the finding did; where
    that does not tell, it is none.
    """
    near = records.join(_lines_of(elections), on=["topic", "partition"], how="inner").filter(
        (pl.col("offset") >= pl.col("diverges_at"))
        & (pl.col("copy").is_null() | (pl.col("copy") == pl.col("line_of")))
    )
    is_then = (pl.col("elected_at") == pl.col("since")).fill_null(value=False)
    candidates = near.group_by("row", "shared").agg(is_then.any().alias("is_then"))
    best = candidates.filter(pl.col("is_then") | ~pl.col("is_then").any().over("row"))
    alone = best.filter(pl.len().over("row") == 1)
    return alone.select("row", pl.col("shared").alias("on_line"))


# What findings come to, of any number of them.


class _Sums:
    """By cause, what it is shared by, and rule: counts, the first finding, groups, commands."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self._groups: list[pl.DataFrame] = []
        self._commands: list[pl.DataFrame] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Add findings with their causes."""
        one = rows.with_columns(
            findings=pl.lit(1, pl.Int64), names=pl.concat_list(pl.col("group_id"))
        )
        self._parts = [_summed([*self._parts, one])]
        groups = rows.filter(pl.col("group_id").is_not_null()).select(
            *_PART, pl.col("group_id").hash().alias("group")
        )
        self._groups = [pl.concat([*self._groups, groups]).unique()]
        commands = one.filter(pl.col("suggestion").is_not_null() & (pl.col("cause") != _NONE))
        self._commands = [_counted([*self._commands, commands])]

    def incidents(self) -> list[_Rows]:
        """Return the rows of each incident: a finding that shares its cause with none has none."""
        (parts,), (groups,), (commands,) = self._parts, self._groups, self._commands
        is_alone = pl.col("findings").sum().over(_CAUSE) == 1
        alone = parts.filter(is_alone & (pl.col("cause") != _NONE)).select(_CAUSE)
        parts = _summed([_without(parts, alone)])
        groups = _without(groups, alone).unique()
        in_one, apart = (pl.col("cause") != _NONE, pl.col("cause") == _NONE)
        counts = {
            tuple(row[:-1]): row[-1]
            for rows in (
                groups.filter(in_one).group_by(_CAUSE).agg(pl.col("group").n_unique()),
                groups.filter(apart).group_by(_PART).agg(pl.len()),
            )
            for row in rows.rows()
        }
        of_part = {row[:-1]: row[-1] for row in groups.group_by(_PART).agg(pl.len()).rows()}
        by_incident: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for row in parts.rows(named=True):
            row["groups"] = of_part.get(tuple(row[each] for each in _PART), 0)
            names = _PART if row["cause"] == _NONE else _CAUSE
            by_incident.setdefault(tuple(row[each] for each in names), []).append(row)
        return [
            _Rows(rows, counts.get(name, 0), _commands_of(rows, commands))
            for name, rows in by_incident.items()
        ]


@dataclass(frozen=True)
class _Rows:
    """The rows of an incident, one a rule; how many groups; by rule its commonest command."""

    parts: Sequence[Mapping[str, Any]]
    groups: int
    commands: Mapping[str, tuple[str, int]]


def _summed(rows: Sequence[pl.DataFrame]) -> pl.DataFrame:
    first = ("severity", "group_id", "topic", "message", "suggestion")
    names = (*_PART, *first, "since", "findings", "names")
    named = pl.col("names").list.explode().drop_nulls().unique(maintain_order=True)
    return (
        pl.concat([each.select(names) for each in rows])
        .group_by(_PART, maintain_order=True)
        .agg(
            pl.col(*first).first(),
            pl.col("since").min(),
            pl.col("findings").sum(),
            named.head(MOST_NAMED),
        )
    )


def _counted(rows: Sequence[pl.DataFrame]) -> pl.DataFrame:
    names = (*_PART, "suggestion", "findings")
    counted = pl.concat([each.select(names) for each in rows])
    return counted.group_by(*_PART, "suggestion", maintain_order=True).agg(pl.col("findings").sum())


def _without(rows: pl.DataFrame, alone: pl.DataFrame) -> pl.DataFrame:
    """Return rows in which findings that are alone share no cause."""
    marked = rows.join(
        alone.with_columns(is_alone=True), on=_CAUSE, how="left", maintain_order="left"
    )
    is_alone = pl.col("is_alone").fill_null(value=False)
    return marked.with_columns(
        pl.when(is_alone).then(pl.lit(_NONE)).otherwise(pl.col(each)).alias(each) for each in _CAUSE
    ).drop("is_alone")


def _commands_of(
    rows: Sequence[Mapping[str, Any]], commands: pl.DataFrame
) -> dict[str, tuple[str, int]]:
    """Return by rule the command that most findings have, and how many; the first of the same."""
    if rows[0]["cause"] == _NONE:
        # Those of a rule may have one each: that of the first is kept.
        return {row["rule"]: (row["suggestion"], 1) for row in rows if row["suggestion"]}
    mine = commands.filter(
        (pl.col("cause") == rows[0]["cause"]) & (pl.col("shared") == rows[0]["shared"])
    ).sort("findings", descending=True, maintain_order=True)
    first = mine.unique("rule", keep="first", maintain_order=True)
    return {row["rule"]: (row["suggestion"], row["findings"]) for row in first.rows(named=True)}


def _incident(rows: _Rows, elections: Sequence[_Election]) -> AuditIncident:
    name = rows.parts[0]["cause"]
    cause = incident_causes().causes.get(name)
    parts = sorted(
        (_part(each) for each in rows.parts),
        key=lambda each: (SEVERITIES.index(each.severity), -each.findings, each.rule),
    )
    counts = {each.rule: each.findings for each in parts}
    order = list(counts) if cause is None else cause.rules
    first = next((each for each in order if each in rows.commands), None)
    command, served = ("", 0) if first is None else rows.commands[first]
    begins = [each["since"] for each in rows.parts if each["since"] is not None]
    return AuditIncident(
        cause=name,
        severity=parts[0].severity,
        message=_message(rows, parts, cause, elections),
        since=min(begins, default=None),
        findings=sum(counts.values()),
        groups=rows.groups,
        command=command,
        served=served,
        of=0 if first is None else counts[first],
        parts=tuple(parts),
        names=tuple(filter(None, (rows.parts[0][each] for each in ("group_id", "topic")))),
    )


def _message(
    rows: _Rows, parts: Sequence[IncidentPart], cause: Cause | None, elections: Sequence[_Election]
) -> str:
    if len(parts) == 1 and parts[0].findings == 1:
        message: str = rows.parts[0]["message"]
        return message
    if cause is None or not set(cause.needs) <= {each.rule for each in parts}:
        return parts[0].headline
    return Template(cause.title).filled(_values(rows, cause, elections))


def _part(row: Mapping[str, Any]) -> IncidentPart:
    rule = _rules().get(row["rule"])
    words = row["rule"].replace("_", " ") if rule is None else rule
    headline = Template(words).filled({"count": row["findings"]})
    return IncidentPart(
        row["rule"],
        row["severity"],
        row["findings"],
        headline,
        row["groups"],
        tuple(row["names"]),
    )


@cache
def _rules() -> Mapping[str, str]:
    return {each.name: each.headline for each in finding_rules()}


def _values(
    rows: _Rows, cause: Cause, elections: Sequence[_Election]
) -> dict[str, str | int | None]:
    shared = rows.parts[0]["shared"]
    of_line = elections[int(shared)].values() if cause.shared == LINE else {}
    return {
        "groups": rows.groups,
        **{each["rule"]: each["findings"] for each in rows.parts},
        **({cause.shared: shared} if cause.shared in (TOPIC, COPY) else {}),
        **of_line,
    }
