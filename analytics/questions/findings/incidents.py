"""What findings come to: incidents, what costs most first; findings of one cause are one of them.

Which findings share a cause says `schemas/rules/incidents.json`; of the others those of a rule
stand together. What costs most is the most severe; of these what concerns the most groups, then
what has the most findings.

Findings are counted part by part: all of a group are in one part, so that groups of several parts
add up, and what is put together grows with causes and rules alone: of groups that have a cause each
for itself no more are told apart than there is room for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa

from analytics.contracts import polars_rows, table_of
from analytics.questions.findings.ended_lines import Elections
from analytics.questions.findings.found import WORST_FIRST
from schemas.finding_rules import (
    COPY,
    GROUP,
    INFO,
    LINE,
    RULE,
    SEVERITIES,
    TOPIC,
    Cause,
    finding_rules,
    incident_causes,
)
from schemas.gaps import Template

INCIDENTS: Final = "audit_incidents"
"""The table of incidents."""
INCIDENT_PARTS: Final = "audit_incident_parts"
"""The table of what each incident has of each rule."""
MOST_NAMED: Final = 3
"""So many groups of a part are named."""

_MOST_COMMANDS: Final = 100
"""Of the commands that findings of a part advise, so many are counted: the commonest."""
_CAUSE: Final = ("cause", "shared")
_PART: Final = (*_CAUSE, "rule")
_NONE: Final = ""
_WHOLE: Final = pl.Datetime("us", "UTC")
_FIRST: Final = (
    *("severity", "group_id", "topic", "partition", "finding_id", "message", "suggestion"),
)
"""What is kept of the first finding: what it says, and what tells its place."""


class IncidentSums(NamedTuple):
    """What some findings come to: all of those that are of the same groups.

    Attributes:
        rules: By cause, what is shared, and rule: the first finding, `since`, `findings`,
            `groups`, and the first of these as `group_ids`.
        causes: By cause and what is shared: how many `groups`.
        alone: Of each cause of which there is one finding: its `rule`, its `group_id`, and whether
            the group has one of the same rule that is of no cause (`is_apart`).
        commands: By cause, what is shared, rule and `suggestion`: how many `findings` advise it.
    """

    rules: pl.DataFrame
    causes: pl.DataFrame
    alone: pl.DataFrame
    commands: pl.DataFrame


class Incidents(NamedTuple):
    """What the findings of an audit come to.

    Attributes:
        incidents: The table `audit_incidents`.
        parts: The table `audit_incident_parts`.
    """

    incidents: pa.Table
    parts: pa.Table


def incident_sums(findings: pa.Table, elections: Elections) -> IncidentSums:
    """Return what findings come to.

    Args:
        findings: Rows of `findings` in their order: all of some groups.
        elections: Lines that elections ended.
    """
    rows = _of_few_groups(_with_causes(polars_rows(findings), elections))
    has_group = pl.col("group_id").is_not_null()
    is_first_of_group = has_group & pl.struct(*_PART, "group_id").is_first_distinct()
    one_each = rows.with_columns(
        findings=pl.lit(1, pl.Int64),
        groups=is_first_of_group.cast(pl.Int64),
        group_ids=pl.concat_list("group_id").list.drop_nulls(),
    )
    groups = pl.col("group_id").drop_nulls().n_unique().cast(pl.Int64)
    is_alone = (pl.len().over(_CAUSE) == 1) & (pl.col("cause") != _NONE)
    apart = (
        rows.filter((pl.col("cause") == _NONE) & has_group)
        .select("rule", "group_id", is_apart=True)
        .unique()
    )
    return IncidentSums(
        _summed(one_each),
        rows.filter(pl.col("cause") != _NONE).group_by(_CAUSE).agg(groups.alias("groups")),
        rows.filter(is_alone)
        .select(*_PART, "group_id")
        .join(apart, on=["rule", "group_id"], how="left")
        .with_columns(pl.col("is_apart").fill_null(value=False)),
        _commonest(
            rows.filter(pl.col("suggestion").is_not_null() & (pl.col("cause") != _NONE))
            .group_by(*_PART, "suggestion")
            .agg(pl.len().cast(pl.Int64).alias("findings"))
        ),
    )


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """Return by cause, what is shared, and rule the sums of rows, and the first of them."""
    ids = (
        pl.col("group_ids")
        .explode(empty_as_null=False, keep_nulls=False)
        .unique()
        .sort()
        .head(MOST_NAMED)
    )
    return (
        WORST_FIRST.sort(rows)
        .group_by(_PART, maintain_order=True)
        .agg(
            pl.col(*_FIRST).first(),
            pl.col("since").min(),
            pl.col("findings", "groups").sum(),
            ids,
        )
    )


def _commonest(commands: pl.DataFrame) -> pl.DataFrame:
    """Return of each rule of a cause the commands that most findings advise."""
    ordered = commands.sort(
        *_PART, "findings", "suggestion", descending=[False] * 3 + [True, False]
    )
    return ordered.group_by(_PART, maintain_order=True).head(_MOST_COMMANDS)


def incidents_of(sums: Sequence[IncidentSums], elections: Elections) -> Incidents:
    """Return what findings come to, what costs most first; what is only worth knowing is no part.

    An incident that has a warning or worse has those of its findings, too, that are worth knowing.

    Args:
        sums: Of all of them, one at least: each has all findings of its groups.
        elections: Lines that elections ended.
    """
    incidents = [_incident(each, elections) for each in _rows_of(sums)]
    ordered = sorted((each for each in incidents if each["severity"] != INFO), key=_cost)
    numbered = [{**each, "incident": number} for number, each in enumerate(ordered, 1)]
    parts = [
        {**part, "incident": each["incident"]} for each in numbered for part in each.pop("parts")
    ]
    return Incidents(table_of(INCIDENTS, numbered), table_of(INCIDENT_PARTS, parts))


def _cost(incident: Mapping[str, Any]) -> tuple[Any, ...]:
    rules = {each["rule"] for each in incident["parts"] if each["severity"] == incident["severity"]}
    return (
        SEVERITIES.index(incident["severity"]),
        rules.isdisjoint(incident_causes().losses.rules),
        -incident["groups"],
        -incident["findings"],
        incident["parts"][0]["rule"],
        incident["message"],
    )


# The lines of failures, for findings to be joined with.


def _lines_of(elections: Elections) -> pl.DataFrame:
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
    return pl.DataFrame(rows, schema=_LINES)


_LINES: Final = pl.Schema(
    [
        *(("topic", pl.String()), ("partition", pl.Int32()), ("line_of", pl.String())),
        *(("diverges_at", pl.Int64()), ("elected_at", _WHOLE), ("shared", pl.String())),
    ]
)


# The cause of each finding.


def _with_causes(findings: pl.DataFrame, elections: Elections) -> pl.DataFrame:
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
        .when(pl.col("kind") == GROUP).then(pl.col("group_id"))
        .when(pl.col("kind") == COPY).then(pl.col("on_copy"))
        .when(pl.col("kind") == LINE).then(pl.col("on_line"))
    )  # fmt: skip
    rows = rows.with_columns(shared=shared)
    is_known = pl.col("shared").is_not_null()
    return rows.with_columns(
        cause=pl.when(is_known).then(pl.col("cause")).otherwise(pl.lit(_NONE)),
        shared=pl.col("shared").fill_null(_NONE),
    )


def _of_few_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Return findings of some groups, of which no more than can be told apart have a cause each.

    Args:
        rows: Of `_with_causes`: all findings of these groups.
    """
    is_one = pl.col("kind") == GROUP
    is_alone = pl.len().over(_CAUSE) == 1
    rows = _of_no_cause(rows, is_one & is_alone)
    # One more than there may be: where all parts are known there are too many of them.
    place = pl.col("shared").rank("dense").over("cause")
    return _of_no_cause(rows, is_one & (place > incident_causes().groups_at_most.groups + 1))


def _of_no_cause(rows: pl.DataFrame, which: pl.Expr) -> pl.DataFrame:
    return rows.with_columns(
        pl.when(which).then(pl.lit(_NONE)).otherwise(pl.col(each)).alias(each) for each in _CAUSE
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


def _on_lines(records: pl.DataFrame, elections: Elections) -> pl.DataFrame:
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


# What is put together of all parts.


@dataclass(frozen=True)
class _Rows:
    """The rows of an incident, one a rule; how many groups; by rule its commonest command."""

    rules: Sequence[Mapping[str, Any]]
    groups: int
    commands: Mapping[str, tuple[str, int]]


def _rows_of(sums: Sequence[IncidentSums]) -> list[_Rows]:
    """Return the rows of each incident: a finding that shares its cause with none has none."""
    rules, causes, alone, commands = (pl.concat(each) for each in zip(*sums, strict=True))
    rules = _without_many_groups(_without_lonely_causes(_summed(rules), alone))
    groups = {
        (cause, shared): number
        for cause, shared, number in causes.group_by(_CAUSE).agg(pl.col("groups").sum()).rows()
    }
    totals = _commonest(commands.group_by(*_PART, "suggestion").agg(pl.col("findings").sum()))
    best = {
        (cause, shared, rule): (command, number)
        for cause, shared, rule, command, number in totals.unique(_PART, keep="first").rows()
    }
    of_incident: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rules.rows(named=True):
        names = _PART if row["cause"] == _NONE else _CAUSE
        of_incident.setdefault(tuple(row[each] for each in names), []).append(row)
    return [
        _Rows(
            rows,
            rows[0]["groups"] if rows[0]["cause"] == _NONE else groups[name[0], name[1]],
            _commands_of(rows, best),
        )
        for name, rows in of_incident.items()
    ]


def _without_lonely_causes(rules: pl.DataFrame, alone: pl.DataFrame) -> pl.DataFrame:
    """Return rows by rule in which findings that share their cause with none are of no cause.

    Args:
        rules: Of all findings.
        alone: Of parts, as `IncidentSums` has them.
    """
    is_lonely = (pl.col("findings").sum().over(_CAUSE) == 1) & (pl.col("cause") != _NONE)
    lonely, others = rules.filter(is_lonely), rules.filter(~is_lonely)
    # A group that has more of them, or one that is of no cause anyway, counts once.
    counted = (
        alone.join(lonely, on=_PART, how="semi")
        .filter(~pl.col("is_apart") & pl.col("group_id").is_not_null())
        .unique(["rule", "group_id"])
        .select(*_PART, counts=pl.lit(1, pl.Int64))
    )
    apart = lonely.join(counted, on=_PART, how="left").with_columns(
        pl.col("counts").fill_null(0).alias("groups"),
        *(pl.lit(_NONE).alias(each) for each in _CAUSE),
    )
    return _summed(pl.concat([others, apart.select(others.columns)]))


def _without_many_groups(rules: pl.DataFrame) -> pl.DataFrame:
    """Return rows by rule in which causes that too many groups have are none.

    Args:
        rules: Of all findings.
    """
    of_groups = [name for name, each in incident_causes().causes.items() if each.shared == GROUP]
    most = incident_causes().groups_at_most.groups
    is_of_many = pl.col("shared").n_unique().over("cause") > most
    return _summed(_of_no_cause(rules, pl.col("cause").is_in(of_groups) & is_of_many))


def _commands_of(
    rows: Sequence[Mapping[str, Any]], commonest: Mapping[tuple[str, str, str], tuple[str, int]]
) -> dict[str, tuple[str, int]]:
    """Return by rule the command that most findings have, and of how many that is known."""
    if rows[0]["cause"] == _NONE:
        # Those of a rule may have one each: that of the first is kept.
        return {row["rule"]: (row["suggestion"], 1) for row in rows if row["suggestion"]}
    keys = {row["rule"]: (row["cause"], row["shared"], row["rule"]) for row in rows}
    return {rule: commonest[key] for rule, key in keys.items() if key in commonest}


# Incidents in words.


def _incident(rows: _Rows, elections: Elections) -> dict[str, Any]:
    """Return the row of an incident, with those of its `parts`."""
    name = rows.rules[0]["cause"]
    cause = incident_causes().causes.get(name)
    parts = sorted(
        map(_part, rows.rules),
        key=lambda each: (SEVERITIES.index(each["severity"]), -each["findings"], each["rule"]),
    )
    counts = {each["rule"]: each["findings"] for each in parts}
    order = list(counts) if cause is None else cause.rules
    first = next((each for each in order if each in rows.commands), None)
    command, served = (None, 0) if first is None else rows.commands[first]
    # What is only worth knowing may rest on a record from long before anything was wrong.
    begins = [
        each["since"]
        for each in rows.rules
        if each["since"] is not None and each["severity"] != INFO
    ]
    return {
        "cause": name or None,
        "severity": parts[0]["severity"],
        "message": _message(rows, parts, cause, elections),
        "since": min(begins, default=None),
        "findings": sum(counts.values()),
        "groups": rows.groups,
        "command": command,
        "command_serves": served,
        "command_findings": 0 if first is None else counts[first],
        "group_id": rows.rules[0]["group_id"],
        "topic": rows.rules[0]["topic"],
        "parts": parts,
    }


def _message(
    rows: _Rows, parts: Sequence[Mapping[str, Any]], cause: Cause | None, elections: Elections
) -> str:
    if len(parts) == 1 and parts[0]["findings"] == 1:
        message: str = rows.rules[0]["message"]
        return message
    if cause is not None and len(parts) == 1 and (title := cause.titles.get(parts[0]["rule"])):
        return Template(title).filled(_values(rows, cause, elections))
    if cause is None or not set(cause.needs) <= {each["rule"] for each in parts}:
        headline: str = parts[0]["headline"]
        return headline
    return Template(cause.title).filled(_values(rows, cause, elections))


def _part(row: Mapping[str, Any]) -> dict[str, Any]:
    words = _headlines().get(row["rule"], row["rule"].replace("_", " "))
    return {
        **{each: row[each] for each in ("rule", "severity", "findings", "groups", "group_ids")},
        "headline": Template(words).filled({"count": row["findings"]}),
    }


@cache
def _headlines() -> Mapping[str, str]:
    return {each.name: each.headline for each in finding_rules()}


def _values(rows: _Rows, cause: Cause, elections: Elections) -> dict[str, str | int | None]:
    shared = rows.rules[0]["shared"]
    of_line = elections[int(shared)].values() if cause.shared == LINE else {}
    return {
        "groups": rows.groups,
        **{each["rule"]: each["findings"] for each in rows.rules},
        **({cause.shared: shared} if cause.shared in (TOPIC, COPY, GROUP) else {}),
        **of_line,
    }
