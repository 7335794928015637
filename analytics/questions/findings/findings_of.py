"""Findings of a team's rules in the answers of questions, and the rules as they were applied."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_rows, arrow_schema, polars_rows, table_of
from analytics.engine.part_runs import PartAnswer
from analytics.questions.findings.advice import GROUPS
from analytics.questions.findings.audited_groups import (
    READ,
    WORST_FIRST,
    audited_groups,
    counts_together,
    group_counts,
)
from analytics.questions.findings.configured_rules import configured_rules, suppressions_of
from analytics.questions.findings.ended_lines import ENDED_LINES, OF_LINES, elections_of
from analytics.questions.findings.evidence import KnownRecords
from analytics.questions.findings.findings_in_parts import (
    FindingCounts,
    Judgement,
    RuleFindings,
    judged_in_parts,
    with_held,
)
from analytics.questions.findings.found import findings, kept_changes
from analytics.questions.findings.incidents import INCIDENT_PARTS, INCIDENTS
from analytics.questions.findings.rows_for_rules import JudgedTables
from analytics.replayed.group_rows import PartedGroups, RowCondition, StoredGroups
from analytics.replayed.replayed_workspace import instant_of
from analytics.replayed.whole_groups import whole_group_parts
from analytics.tables.parted_table import PartedTable
from schemas.finding_rules import SEVERITIES, FindingRule, record_sources

if TYPE_CHECKING:
    from analytics.questions.findings.advice import Phrasing
    from analytics.redaction.redactor import Redactor
    from analytics.replayed.group_rows import GroupFiles
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

# The rules of an audit as they were applied: thresholds, and how much each found.


def applied_rules(
    rules: Iterable[FindingRule], counts: FindingCounts, tables: Collection[str]
) -> pa.Table:
    """Return the table `applied_rules`, a row a rule, by name.

    Args:
        rules: All, with a team's own severities and thresholds.
        counts: How many findings there are, by rule and severity.
        tables: Names of the tables that were there.
    """
    found = Counter[str]()
    for (rule, _), number in counts.items():
        found[rule] += number
    rows = [
        {
            "rule": each.name,
            "subject": each.subject,
            "severity": each.severity,
            "is_on": each.is_on,
            "was_applied": each.is_on and each.table in tables,
            "thresholds": _thresholds(each),
            "findings": found[each.name],
        }
        for each in sorted(rules, key=lambda each: each.name)
    ]
    return table_of("applied_rules", rows)


def _thresholds(rule: FindingRule) -> str | None:
    said = [f"{name} {each.value:g} ({each.unit})" for name, each in rule.thresholds.items()]
    return ", ".join(said) or None


# Findings of a team's rules in the answers of questions, but for those that it accepts.

# Tables that an audit keeps beside its findings: what its page is made of.

AT_ONCE: Final = 1_000_000
"""So many rows of whole groups are looked at together, about."""


def kept_tables(
    state: ReplayedWorkspace,
    judged: Collection[str],
    of_rules: RuleFindings,
    changes: PartedTable | None,
) -> dict[str, PartedTable]:
    """Return the tables that are kept, with the findings.

    Args:
        state: The workspace in which all questions were answered.
        judged: The tables that rules were applied to.
        of_rules: What they found, and what was accepted.
        changes: The findings of this audit and an earlier one, as `changes_in_parts` returns them.
    """
    rules = configured_rules(state.settings.from_file.findings)
    groups, counts = _audited_groups(state, of_rules.findings)
    entries = [{"entry": n, **row} for n, row in enumerate(of_rules.accepted.to_pylist(), 1)]
    few = {
        "audited_group_counts": counts,
        "applied_rules": applied_rules(rules, of_rules.counts, {*judged, "suppressions"}),
        "suppressions": table_of("suppressions", entries),
    }
    return {
        "audited_groups": groups,
        "findings": of_rules.findings,
        "finding_changes": PartedTable.held(table_of("finding_changes", []))
        if changes is None
        else kept_changes(changes),
        **{name: PartedTable.held(rows) for name, rows in few.items()},
        INCIDENTS: PartedTable.held(of_rules.incidents.incidents),
        INCIDENT_PARTS: PartedTable.held(of_rules.incidents.parts),
    }


def _audited_groups(
    state: ReplayedWorkspace, findings: PartedTable
) -> tuple[PartedTable, pa.Table]:
    """Return the tables `audited_groups` and `audited_group_counts`, made some groups at a time."""
    stored = state.tables
    there = {name: columns for name, columns in READ.items() if stored.has(name)}
    sources: dict[str, GroupFiles] = {
        name: StoredGroups(stored, name, columns) for name, columns in there.items()
    }
    sources["findings"] = PartedGroups(findings, ["group_id", "severity"], _OF_GROUPS)
    with whole_group_parts(sources, AT_ONCE, state.runner.folder) as parts:
        made = state.runner.run(_audited_part, parts, {"audited_groups": WORST_FIRST})
    return made.tables["audited_groups"], counts_together(made.sums)


def _are_of_groups(findings: pa.Table) -> pa.ChunkedArray:
    return pc.is_valid(findings["group_id"])


_OF_GROUPS: Final = RowCondition(["group_id"], _are_of_groups)


def _audited_part(rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    groups = audited_groups({name: arrow_rows(each) for name, each in rows.items()})
    return PartAnswer({"audited_groups": polars_rows(groups)}, group_counts(groups))


_SUPPRESSIONS = "suppressions"
_OF_INPUT = ("topic_partition", "prefer_copy", "value_encoding")


def findings_of(
    state: ReplayedWorkspace,
    tables: JudgedTables,
    asked_of: Mapping[str, str],
    phrasing: Phrasing,
    redactor: Redactor | None = None,
) -> RuleFindings:
    """Apply the rules, as `--config` has them, to tables of an instant.

    Args:
        state: Says the instant and the settings.
        tables: By name; a rule whose table is not there is not applied.
        asked_of: What suggestions name as INPUT, of `input_words`.
        phrasing: How bytes and durations are said.
        redactor: What took the names out of the tables, if something did.

    Raises:
        InputNotRecognizedError: `--config` names a rule or a threshold that is none.
    """
    given, as_of = state.settings.from_file, instant_of(state)
    rules = configured_rules(given.findings)
    entries = suppressions_of(given.suppressions)
    originals = {} if redactor is None else redactor.originals
    elections = elections_of(_ended_lines(state))
    judgement = Judgement(rules, entries, as_of, phrasing, asked_of, originals, elections)
    left = judged_in_parts(judgement, tables, state.tables, _known_records(state), state.runner)
    if redactor is not None:
        left = replace(left, accepted=_without_names(left.accepted, redactor))
    # An entry that has ended is a finding that nothing suppresses.
    ended = findings(rules, {_SUPPRESSIONS: left.accepted}, as_of, phrasing, asked_of)
    return with_held(left, ended)


def _ended_lines(state: ReplayedWorkspace) -> pa.Table:
    if not state.tables.has(ENDED_LINES):
        return arrow_schema(ENDED_LINES).empty_table().select(list(OF_LINES))
    return state.tables.read(ENDED_LINES, OF_LINES)


def input_words(inputs: Iterable[str], options: Mapping[str, Any]) -> dict[str, str]:
    """Return `input` and `dump` of suggestions: what a shell takes to ask the same dump.

    Args:
        inputs: As they were given.
        options: Those of the command that was given them; `dump` has what was assumed besides.
    """
    words = list(inputs)
    for name in _OF_INPUT:
        if options.get(name):
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    assumed = [word for each in options.get("assume", ()) for word in ("--assume", each)]
    return {"input": shlex.join(words), "dump": shlex.join([*words, *assumed])}


def _known_records(state: ReplayedWorkspace) -> KnownRecords:
    """Return the tables of a workspace that know where records are, and of which type groups."""
    stored = state.tables
    used = {GROUPS, *(each.table for each in record_sources().values())}
    used |= {each.located_by for each in record_sources().values() if each.located_by}

    def read(name: str, columns: Sequence[str], where: pc.Expression) -> pa.Table:
        return stored.read(name, columns, where)

    return KnownRecords(frozenset(each for each in used if stored.has(each)), read)


def _without_names(accepted: pa.Table, redactor: Redactor) -> pa.Table:
    rows = [
        {
            **row,
            "group_id": redactor.pattern("group", row["group_id"]),
            "topic": redactor.pattern("topic", row["topic"]),
            "reason": redactor.text.replaced(row["reason"]),
            "owner": redactor.pseudonyms.of("owner", row["owner"]),
        }
        for row in accepted.to_pylist()
    ]
    return pa.Table.from_pylist(rows, accepted.schema)


def as_severe(findings: PartedTable, fail_on: str) -> PartedTable:
    """Return the findings that are as severe as `--fail-on` asks; none where that is `never`."""
    return findings.where(pl.col("severity").is_in(severities_from(fail_on)))


def severities_from(fail_on: str) -> Sequence[str]:
    """Return the severities that `--fail-on` asks for; none where it is `never`."""
    return SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on in SEVERITIES else ()
