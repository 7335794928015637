"""Findings of a team's rules in the answers of questions, but for those that it accepts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.findings.advised_tools import GROUPS
from analytics.questions.findings.configured_rules import configured_rules, suppressions_of
from analytics.questions.findings.evidence import KnownRecords
from analytics.questions.findings.findings_in_parts import (
    Judgement,
    RuleFindings,
    judged_in_parts,
    with_held,
)
from analytics.questions.findings.found import findings
from analytics.questions.findings.judged_tables import JudgedTables
from analytics.replayed.answered_instant import instant_of
from analytics.tables.parted_table import PartedTable
from schemas.finding_records import record_sources
from schemas.finding_rules import SEVERITIES

if TYPE_CHECKING:
    from analytics.questions.findings.wording import Phrasing
    from analytics.redaction.redactor import Redactor
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

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
    judgement = Judgement(rules, entries, as_of, phrasing, asked_of, originals)
    left = judged_in_parts(judgement, tables, state.tables, _known_records(state), state.runner)
    if redactor is not None:
        left = left._replace(accepted=_without_names(left.accepted, redactor))
    # An entry that has ended is a finding that nothing suppresses.
    ended = findings(rules, {_SUPPRESSIONS: left.accepted}, as_of, phrasing, asked_of)
    return with_held(left, ended)


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
