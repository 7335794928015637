"""What each rule found, run by run: new, worse, better or gone, and where that cannot be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.questions.findings.found import NEW, NOT_THERE_NOW, STILL
from analytics.questions.registry import question
from analytics.questions.trend.changes import (
    CANNOT_TELL,
    FINDING_CHANGES,
    MAY_BE_GONE,
    MAY_BE_NEW,
    FindingChanges,
    Unjudged,
)
from analytics.questions.trend.figures import frames
from schemas.finding_rules import finding_rules

if TYPE_CHECKING:
    from analytics.questions.trend.runs import AuditedRun, Pair

_COLUMNS: Final = ["rule", "severity", "is_on", "was_applied", "thresholds", "findings"]
_KNOW_ENDS: Final = ("lag", "share")
"""Questions whose answers rest on where logs end."""
_GO_BY_SETTINGS: Final = ("expiration", "lag", "share", "usage")
"""Questions whose answers rest on settings of brokers, topics and groups."""
FIRST, WORSE, BETTER, AS_BEFORE = "first", "worse", "better", "as_before"

_Rules = Mapping[str, Mapping[str, Any]]


def unjudged_rules(pair: Pair) -> Unjudged:
    """Return of which findings two runs do not tell whether they are new, or gone."""
    assert pair.before is not None
    now, before = _rules(pair.run), _rules(pair.before)
    rules = {*now, *before}
    accepted_now, accepted_before = (_suppressed(each, rules) for each in (pair.run, pair.before))
    new: dict[str, str] = {}
    gone: dict[str, str] = {}
    for rule in rules:
        here, then = now.get(rule), before.get(rule)
        if here is not None and then is not None and here["thresholds"] != then["thresholds"]:
            why = f"the rule had other thresholds ({then['thresholds'] or 'none'})"
            new[rule] = gone[rule] = why
        if not _was_applied(then):
            new[rule] = "the run before did not apply the rule"
        elif rule in accepted_before:
            new[rule] = "the run before suppressed findings of the rule"
        if not _was_applied(here):
            gone[rule] = "this run did not apply the rule"
        elif rule in accepted_now:
            gone[rule] = "this run suppressed findings of the rule"
        if pair.run.settings != pair.before.settings and _is_about(rule, _GO_BY_SETTINGS):
            for whys in (new, gone):
                whys.setdefault(rule, "both runs were given other settings of brokers")
    why_none = None if pair.difference is None else pair.difference.words
    of_lag = frozenset(each for each in rules if _is_about(each, _KNOW_ENDS))
    return Unjudged(why_none, new, gone, of_lag)


def _is_about(rule: str, questions: tuple[str, ...]) -> bool:
    """Return whether a rule looks at answers of questions; one of another release may."""
    tables = {each.name: each.table for each in finding_rules()}
    return rule not in tables or tables[rule] in _tables_of(questions)


@cache
def _tables_of(questions: tuple[str, ...]) -> frozenset[str]:
    return frozenset(table for name in questions for table in question(name).tables)


def rule_rows(
    pair: Pair, compared: FindingChanges | None, unjudged: Unjudged | None
) -> list[dict[str, Any]]:
    """Return `trend_rules` of a run: each rule that found something here or in the run before.

    Args:
        pair: The run, and the one before it.
        compared: What became of findings; None where there is nothing to compare with.
        unjudged: Of which findings that cannot be told; None likewise.
    """
    now = _rules(pair.run)
    before = {} if pair.before is None else _rules(pair.before)
    rows = []
    for rule in sorted({*now, *before}):
        here, then = now.get(rule), before.get(rule)
        number, earlier = _number(here), _number(then)
        if not number and not earlier:
            continue
        counts = None
        if compared is not None:
            counts = compared.counts.get(rule, dict.fromkeys(FINDING_CHANGES, 0))
        rows.append(
            {
                "cluster": pair.cluster,
                "as_of": pair.run.as_of,
                "rule": rule,
                "severity": (here or then or {})["severity"],
                "change": FIRST if pair.before is None else _change(number, counts),
                "findings": number,
                "earlier_findings": earlier,
                "new": None if counts is None else counts[NEW],
                "still_there": None if counts is None else counts[STILL],
                "gone": None if counts is None else counts[NOT_THERE_NOW],
                "uncertain": None if counts is None else _uncertain(counts),
                "message": None if compared is None else compared.first.get(rule),
                "reason": None if pair.before is None else _why(rule, counts, unjudged),
            }
        )
    return rows


def _rules(run: AuditedRun) -> _Rules:
    if not run.tables.has("applied_rules"):
        return {}
    rows = pl.concat(frames(run, "applied_rules", _COLUMNS))
    return {row["rule"]: row for row in rows.iter_rows(named=True)}


def _suppressed(run: AuditedRun, rules: Iterable[str]) -> frozenset[str]:
    """Return the rules of which a run suppressed findings; entries name them by patterns."""
    if not run.tables.has("suppressions"):
        return frozenset()
    rows = pl.concat(frames(run, "suppressions", ["rule", "suppressed"]))
    patterns = rows.filter(pl.col("suppressed") > 0)["rule"].to_list()
    return frozenset(
        rule for rule in rules for each in patterns if each is None or fnmatchcase(rule, each)
    )


def _was_applied(rule: Mapping[str, Any] | None) -> bool:
    return rule is not None and bool(rule["is_on"] and rule["was_applied"])


def _number(rule: Mapping[str, Any] | None) -> int | None:
    return rule["findings"] if rule is not None and _was_applied(rule) else None


def _uncertain(counts: Mapping[str, int]) -> int:
    return counts[MAY_BE_NEW] + counts[MAY_BE_GONE]


def _why(rule: str, counts: Mapping[str, int] | None, unjudged: Unjudged | None) -> str | None:
    """Return why it cannot be told what became of a rule's findings."""
    if counts is None or unjudged is None:
        return "one of both runs has no table of findings"
    if unjudged.why is not None:
        return unjudged.why
    whys = [unjudged.new.get(rule), unjudged.ended.get(rule)]
    if not any(whys):
        # They are about groups of which one of both does not show all.
        number = _uncertain(counts)
        whys = [f"of {number:,} the other run does not show all of the group"] if number else []
    return "; ".join(dict.fromkeys(filter(None, whys))) or None


def _change(number: int | None, counts: Mapping[str, int] | None) -> str:
    """Return what became of a rule's findings: more or fewer, whatever cannot be told of some."""
    if counts is None:
        return CANNOT_TELL
    most = counts[NEW] + counts[MAY_BE_NEW] - counts[NOT_THERE_NOW]
    least = counts[NEW] - counts[NOT_THERE_NOW] - counts[MAY_BE_GONE]
    if least > 0:
        was_there = counts[STILL] or counts[NOT_THERE_NOW] or counts[MAY_BE_GONE]
        return WORSE if was_there else NEW
    if most < 0:
        return BETTER if number or counts[MAY_BE_GONE] else NOT_THERE_NOW
    return AS_BEFORE if most == least == 0 else CANNOT_TELL
