"""Findings of tables of any size: those of some whole groups at a time, here or in tasks on Spark.

Rules whose findings are not of one group are about few rows (partitions, copies, suites) and are
applied at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa

from analytics.contracts import arrow_rows, polars_rows
from analytics.engine.part_runs import PartAnswer, PartRunner
from analytics.questions.findings.advice import (
    OF_GROUP,
    SPANS,
    Phrasing,
    RestoreCommands,
    lost_spans,
    shared_commands,
)
from analytics.questions.findings.configured_rules import Suppression, accepted_together, suppressed
from analytics.questions.findings.ended_lines import Elections
from analytics.questions.findings.evidence import HeldRecords, KnownRecords, Records
from analytics.questions.findings.finding_rows import rows_of
from analytics.questions.findings.found import FINDINGS, WORST_FIRST, findings, in_order
from analytics.questions.findings.incidents import (
    Incidents,
    IncidentSums,
    incident_sums,
    incidents_of,
)
from analytics.questions.findings.rows_for_rules import (
    JudgedTables,
    records_in,
    rows_for_rules,
    rows_to_give_back,
)
from analytics.tables.parted_table import PartedTable
from schemas.finding_rules import FindingRule

if TYPE_CHECKING:
    from analytics.tables.stored_tables import StoredTables

_GROUP: Final = OF_GROUP[0]
_PART: Final = "rule_findings"

AT_ONCE: Final = 50_000
"""So many findings are held together when they are read: their texts are long."""

FindingCounts = Mapping[tuple[str, str], int]
"""How many findings there are, by rule and severity; where there are none, nothing."""


@dataclass(frozen=True)
class RuleFindings:
    """What rules find.

    Attributes:
        findings: The table `findings`, the most severe first.
        accepted: What was suppressed, by which entry.
        counts: How many findings there are, of those that are left.
        elections: Lines that elections ended.
        sums: What the findings of some whole groups come to, of all of them.
    """

    findings: PartedTable
    accepted: pa.Table
    counts: FindingCounts
    elections: Elections
    sums: Sequence[IncidentSums]

    @cached_property
    def incidents(self) -> Incidents:
        """What the findings come to."""
        return incidents_of(self.sums, self.elections)


@dataclass(frozen=True)
class Judgement:
    """How tables are judged.

    Attributes:
        rules: Those that are looked for.
        entries: What is accepted.
        as_of: The instant asked about.
        phrasing: How bytes and durations are said.
        asked_of: `input` and `dump` of suggestions.
        originals: Names that entries go by, where the tables have others.
        elections: Lines that elections ended.
    """

    rules: Sequence[FindingRule]
    entries: Sequence[Suppression]
    as_of: datetime
    phrasing: Phrasing
    asked_of: Mapping[str, str]
    originals: Mapping[str, str]
    elections: Elections

    def left(
        self,
        tables: JudgedTables,
        records: Records | None = None,
        given_back: Mapping[str, RestoreCommands] | None = None,
    ) -> tuple[pa.Table, pa.Table]:
        """Return the findings in tables that are held, and what of them is accepted."""
        found = findings(
            self.rules, tables, self.as_of, self.phrasing, self.asked_of, records, given_back or {}
        )
        return suppressed(found, self.entries, self.as_of, self.originals)

    def summed(self, left: pa.Table, accepted: pa.Table) -> _Sums:
        """Return what is put together of the findings of some whole groups."""
        return _Sums(accepted, counts_of(left), incident_sums(left, self.elections))


class _Sums(NamedTuple):
    """What is put together of parts: it does not grow with findings."""

    accepted: pa.Table
    counts: FindingCounts
    incidents: IncidentSums


def judged_in_parts(
    judgement: Judgement,
    tables: JudgedTables,
    stored: StoredTables,
    records: KnownRecords,
    runner: PartRunner,
) -> RuleFindings:
    """Apply rules to tables of any size.

    Args:
        judgement: How.
        tables: By name; a rule whose table is not there is not applied.
        stored: The workspace, which knows where records are.
        records: The same, read where it is asked.
        runner: Makes parts.
    """
    applied = [each for each in judgement.rules if each.is_on and each.table in tables]
    by_group = [each for each in applied if _GROUP in each.per]
    others = [each for each in applied if _GROUP not in each.per]
    left, accepted = replace(judgement, rules=others).left(tables, records)
    parts: list[pa.Table | str] = [left]
    sums = [judgement.summed(left, accepted)]
    if by_group:
        as_of = judgement.as_of
        with rows_for_rules(by_group, tables, stored, as_of, runner.folder) as read:
            its = replace(judgement, rules=by_group)
            given_back = _given_back(its, tables, runner) if len(read) > 1 else {}
            make = partial(_findings_of_part, its, given_back)
            made = runner.run(make, read, {_PART: WORST_FIRST})
        parts += made.tables[_PART].parts
        sums += made.sums
    return RuleFindings(
        _in_parts(parts),
        accepted_together([each.accepted for each in sums]),
        _added_up(each.counts for each in sums),
        judgement.elections,
        [each.incidents for each in sums],
    )


def with_held(findings: RuleFindings, more: pa.Table) -> RuleFindings:
    """Return findings with others, which are few and of no groups."""
    return replace(
        findings,
        findings=_in_parts([*findings.findings.parts, more]),
        counts=_added_up([findings.counts, counts_of(more)]),
        sums=[*findings.sums, incident_sums(more, findings.elections)],
    )


def _in_parts(parts: Sequence[pa.Table | str]) -> PartedTable:
    """Return the table of parts; where all are here, they become one."""
    held = [each.cast(FINDINGS) for each in parts if isinstance(each, pa.Table)]
    if len(held) == len(parts):
        return PartedTable.held(in_order(pa.concat_tables(held)))
    few = in_order(pa.concat_tables([FINDINGS.empty_table(), *held]))
    stored = [each for each in parts if isinstance(each, str)]
    return PartedTable(FINDINGS, [few, *stored], WORST_FIRST, at_once=AT_ONCE)


def _added_up(counts: Iterable[FindingCounts]) -> FindingCounts:
    total: Counter[tuple[str, str]] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def counts_of(findings: pa.Table) -> FindingCounts:
    """Return how many findings there are, by rule and severity."""
    counted = findings.group_by(["rule", "severity"]).aggregate([([], "count_all")]).to_pylist()
    return {(each["rule"], each["severity"]): each["count_all"] for each in counted}


def _findings_of_part(
    judgement: Judgement,
    given_back: Mapping[str, RestoreCommands],
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    records = HeldRecords(records_in(judgement.rules, rows))
    # Several rules are about the same table.
    names = dict.fromkeys(each.table for each in judgement.rules)
    tables = {each: arrow_rows(rows[each]) for each in names}
    left, accepted = judgement.left(tables, records, given_back)
    return PartAnswer({_PART: polars_rows(left)}, judgement.summed(left, accepted))


def _given_back(
    judgement: Judgement, tables: JudgedTables, runner: PartRunner
) -> dict[str, RestoreCommands]:
    """Return by rule the commands that serve groups of several parts."""
    restoring = [each for each in judgement.rules if each.restore is not None]
    if not restoring:
        return {}
    names = {each.name: f"spans_{each.name}" for each in restoring}
    with rows_to_give_back(restoring, tables, judgement.as_of, runner.folder) as parts:
        made = runner.run(
            partial(_spans_of_part, restoring, names, judgement.as_of),
            parts,
            dict.fromkeys(names.values(), SPANS),
        )
    return {
        rule: shared_commands(map(polars_rows, made.tables[name].pieces()))
        for rule, name in names.items()
    }


def _spans_of_part(
    rules: Sequence[FindingRule],
    names: Mapping[str, str],
    as_of: datetime,
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    spans = {}
    for rule in rules:
        if rule.restore is not None:
            mine = polars_rows(rows_of(rule, arrow_rows(rows[rule.table]), as_of))
            spans[names[rule.name]] = lost_spans(rule.restore, mine)
    return PartAnswer(spans)
