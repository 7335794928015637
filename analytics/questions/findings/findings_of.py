"""Findings of a team's rules in the answers of questions, but for those that it accepts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.findings.advised_tools import GROUPS
from analytics.questions.findings.configured_rules import configured_rules, suppressions_of
from analytics.questions.findings.evidence import KnownRecords
from analytics.questions.findings.found import findings, in_order
from analytics.questions.findings.judged_tables import JudgedTables
from analytics.questions.findings.suppressions import suppressed
from analytics.replayed.answered_instant import instant_of
from schemas.finding_records import record_sources
from schemas.finding_rules import SEVERITIES

if TYPE_CHECKING:
    from analytics.questions.findings.wording import Phrasing
    from analytics.redaction.redactor import Redactor
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_SUPPRESSIONS = "suppressions"
_OF_INPUT = ("topic_partition", "prefer_copy", "value_encoding")


class RuleFindings(NamedTuple):
    """What rules find.

    Attributes:
        findings: The table `findings`, the most severe first.
        accepted: What was suppressed, by which entry.
    """

    findings: pa.Table
    accepted: pa.Table


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
    found = findings(rules, tables, as_of, phrasing, asked_of, _known_records(state))
    left, accepted = suppressed(found, entries, as_of, originals)
    if redactor is not None:
        accepted = _without_names(accepted, redactor)
    # An entry that has ended is a finding that nothing suppresses.
    ended = findings(rules, {_SUPPRESSIONS: accepted}, as_of, phrasing, asked_of)
    return RuleFindings(in_order(pa.concat_tables([left, ended])), accepted)


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


def as_severe(findings: pa.Table, fail_on: str) -> pa.Table:
    """Return the findings that are as severe as `--fail-on` asks; none where that is `never`."""
    words = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on in SEVERITIES else ()
    return findings.filter(pc.is_in(findings["severity"], pa.array(words, pa.string())))
