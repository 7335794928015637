"""How balance, rebalances, lag, regions and timelines are judged, and in which words: `rules/`.

Thresholds of the questions: the numbers in `rules/`, and a team's own in their place.

A rules file has sections; one that holds numbers beside its `about` holds thresholds. A threshold
is called by its section and its name there: `minutes` of `stalled` is `stalled_minutes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

from schemas.reading import (
    Explained,
    Minutes,
    Number,
    SchemaError,
    Shape,
    document,
    load,
    read_as,
    words_of,
)

_FILES: Final = MappingProxyType(
    {
        "expiration": "expiration_rules",
        "balance": "balance",
        "rebalances": "rebalances",
        "lag": "lag",
        "share": "share",
        "region": "region",
        "usage": "usage",
    }
)
QUESTIONS: Final = tuple(_FILES)
"""What `rules:` of a settings file may have thresholds for."""

_SHARE: Final = "_share"
_T = TypeVar("_T")

GivenThresholds = Mapping[str, Any]
"""A team's own thresholds, by name."""
NONE_GIVEN: Final[GivenThresholds] = MappingProxyType({})


@dataclass(frozen=True)
class Threshold:
    """A number that decides.

    Attributes:
        section: Of the rules file,
        key: and its name there.
        value: As shipped.
        about: What the section says of it.
    """

    section: str
    key: str
    value: float
    about: str


def thresholds(question: str) -> dict[str, Threshold]:
    """Return the thresholds of a question by name, in the order of its file."""
    return {
        f"{section}_{key}".replace("-", "_"): Threshold(section, key, value, said.get("about", ""))
        for section, said in _sections(document(_path(question)))
        for key, value in said.items()
        if _is_number(value)
    }


def checked(question: str, overrides: GivenThresholds) -> None:
    """Check a team's own thresholds.

    Raises:
        SchemaError: One is none of the question's, or not a number that it may have.
    """
    known = thresholds(question)
    for name, value in overrides.items():
        if name not in known:
            raise SchemaError(f"{question} has no threshold {name!r}; it has {', '.join(known)}")
        if not _is_number(value) or not math.isfinite(value) or value < 0:
            raise SchemaError(f"{question}: {name} is {value!r}, which is not a number from 0 on")
        if isinstance(known[name].value, int) and value != int(value):
            raise SchemaError(f"{question}: {name} is {value!r}; it must be a whole number")
        if name.endswith(_SHARE) and value > 1:
            raise SchemaError(f"{question}: {name} is {value!r}; a share is at most 1")


def rules_of(kind: type[_T], question: str, overrides: GivenThresholds = NONE_GIVEN) -> _T:
    """Return the rules file of a question, with a team's own thresholds in place of ours.

    Args:
        kind: The file's shape.
        question: One of `QUESTIONS`.
        overrides: The team's own thresholds.

    Raises:
        SchemaError: A threshold is not what it has to be, or the file is not of that shape.
    """
    return read_as(kind, rules_document(question, overrides), _path(question))


def rules_document(question: str, overrides: GivenThresholds = NONE_GIVEN) -> dict[str, Any]:
    """Return the content of a rules file; arguments and errors as in `rules_of`."""
    content: dict[str, Any] = document(_path(question))
    if overrides:
        checked(question, overrides)
        for name, each in thresholds(question).items():
            if name in overrides:
                content[each.section][each.key] = type(each.value)(overrides[name])
    return content


def _path(question: str) -> str:
    return f"rules/{_FILES[question]}.json"


def _sections(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, said in content.items():
        if isinstance(said, dict) and not any(isinstance(each, dict) for each in said.values()):
            yield name, said


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Diff(Explained, frozen=True):
    causes: Mapping[str, str]


@cache
def diff_causes() -> Mapping[str, str]:
    """Return the words of the codes that `cause` has in the tables of changes."""
    return load(_Diff, "rules/diff.json").causes


SINCE: Final = "{since}"
"""In the words of a verdict, where its time stands."""


class TimelineVerdict(Shape, frozen=True):
    """What may have happened to an offset.

    Attributes:
        words: What people read; `SINCE` in them is the time of the column `since`.
        severity: critical or warning; info where nothing is wrong.
        about: What it means.
    """

    words: str
    severity: Literal["critical", "warning", "info"]
    about: str

    @property
    def is_harmless(self) -> bool:
        """Whether nothing is wrong, and nothing may be."""
        return self.severity == "info"


class _Timeline(Explained, frozen=True):
    verdicts: Mapping[str, TimelineVerdict]
    rungs: Mapping[str, str]


@cache
def timeline_verdicts() -> Mapping[str, TimelineVerdict]:
    """Return the verdicts of `offset_verdicts` by their codes, the worst first."""
    return load(_Timeline, "rules/timeline.json").verdicts


def harmless_verdicts() -> frozenset[str]:
    """Return the codes of verdicts by which nothing is wrong."""
    return frozenset(code for code, each in timeline_verdicts().items() if each.is_harmless)


class MergeRules(Explained, frozen=True):
    """How long operators wait for the merged checkpoint.

    Attributes:
        reset_timeout_ms: How long a reset of the region may take,
        max_poll_interval_ms: and how long its consumers may be without a poll:
        longest_ms: of both, the half is waited for contributions, and never longer than this.
    """

    reset_timeout_ms: int
    max_poll_interval_ms: int
    longest_ms: int

    @property
    def timeout_ms(self) -> int:
        """Return how long an operator waits for the merged checkpoint."""
        halves = (self.reset_timeout_ms // 2, self.max_poll_interval_ms // 2)
        return min(*halves, self.longest_ms)


class DrainRules(Explained, frozen=True):
    """How far clocks of operators and of the coordinator may differ, in milliseconds."""

    clock_difference_ms: int


class RegionRules(Explained, frozen=True):
    """From when on something is called wrong in checkpoints of regions (`rules/region.json`).

    Attributes:
        merge: How long operators wait for the merged checkpoint.
        drain: How far clocks may differ.
        findings: What each finding means, worst first.
    """

    merge: MergeRules
    drain: DrainRules
    findings: Mapping[str, str]


def region_rules(overrides: GivenThresholds = NONE_GIVEN) -> RegionRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    return rules_of(RegionRules, "region", overrides)


class CoordinatorFailure(Shape, frozen=True):
    """What the next coordinator's first epoch shows of the one that failed.

    Attributes:
        cases: Of the client-side assignment proposal's four, those that leave this; none where it
            has no such group.
        leaves: What is left, in words.
    """

    cases: Sequence[int]
    leaves: str


class Storm(Explained, frozen=True):
    """What a storm is.

    Attributes:
        epochs: So many epochs make one,
        minutes: if they began within so many minutes.
    """

    epochs: int
    minutes: Number


class Skew(Explained, frozen=True):
    """From when on an internal partition is overloaded.

    Attributes:
        times: With more groups than so many times the mean,
        groups_above: and more than so many above it.
    """

    times: Number
    groups_above: int


class RebalanceRules(Explained, frozen=True):
    """From when on rebalancing is called too much (`rules/rebalances.json`).

    Attributes:
        storm: What a storm is.
        reconciling: A member that is behind for longer takes long to reconcile.
        idle_owner: A static owner without progress for longer is told.
        skew: From when on an internal partition is overloaded.
        coordinator_changes: What each word for a change of the coordinator means, and `about`.
        coordinator_failures: By such a word what it may have been, and `about`.
        causes: What each cause means, the most telling first, and `about`.
    """

    storm: Storm
    reconciling: Minutes
    idle_owner: Minutes
    skew: Skew
    coordinator_changes: Mapping[str, str]
    coordinator_failures: Mapping[str, str | CoordinatorFailure]
    causes: Mapping[str, str]


def rebalance_rules(overrides: GivenThresholds = NONE_GIVEN) -> RebalanceRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    return rules_of(RebalanceRules, "rebalances", overrides)


def rebalance_causes() -> Mapping[str, str]:
    """Return what each cause means, the most telling first."""
    return words_of(rebalance_rules().causes)


def coordinator_failures() -> Mapping[str, CoordinatorFailure]:
    """Return by word for a change of the coordinator what it may have been."""
    failures = rebalance_rules().coordinator_failures
    return {word: each for word, each in failures.items() if not isinstance(each, str)}


class Band(Explained, frozen=True):
    """How far sizes may be from their mean.

    Attributes:
        threshold: How far they may be above it, as a factor above 1.
        margin: Which part of that distance counts.
    """

    threshold: Number
    margin: Number

    @property
    def reach(self) -> float:
        """Return how far a size may be from the mean, as a fraction of it."""
        return (self.threshold - 1) * self.margin


class BalanceRules(Explained, frozen=True):
    """How the balance of an assignment is judged (`rules/balance.json`).

    Attributes:
        band: How far sizes may be from their mean.
        verdicts: What each verdict means, strongest first, and `about`.
    """

    band: Band
    verdicts: Mapping[str, str]


def balance_rules(overrides: GivenThresholds = NONE_GIVEN) -> BalanceRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    return rules_of(BalanceRules, "balance", overrides)


class BurrowRules(Shape, frozen=True, rename="kebab"):
    """By what Burrow judges a partition (`rules/lag.json`, under Burrow's own names).

    Attributes:
        intervals: Commits in a window.
        min_distance: A commit closer to the one before, in seconds, takes its place.
        allowed_lag: A lag up to this is none.
        expire_group: A group without a commit for so many seconds is forgotten.
        about: The rules in words.
    """

    intervals: int
    min_distance: int
    allowed_lag: int
    expire_group: int
    about: str = ""

    @property
    def min_distance_ms(self) -> int:
        """Return the distance in milliseconds."""
        return self.min_distance * 1000


class JumpRules(Shape, frozen=True):
    """Which step forward is a jump (`rules/lag.json`).

    Attributes:
        times: At least so many times the mean step forward before it,
        records: and at least so many records,
        after: once so many steps forward were seen.
        about: The rule in words.
    """

    times: int
    records: int
    after: int
    about: str = ""


class TrendRules(Shape, frozen=True):
    """When a lag grows (`rules/lag.json`).

    Attributes:
        minutes: So long before the instant the trend begins.
        steady_share: A change up to this share of the greater lag is none,
        steady_records: nor is one up to so many records.
        about: The rule in words.
    """

    minutes: Number
    steady_share: Number
    steady_records: int
    about: str = ""


class LagRules(Explained, frozen=True):
    """How lag is judged (`rules/lag.json`).

    Attributes:
        burrow: Burrow's rules.
        jump: Which step forward is told.
        trend: Since when, and from how much on, a lag grows or shrinks.
        stuck: After so long without progress a partition with lag is stuck.
        verdicts: What each verdict means, worst first.
    """

    burrow: BurrowRules
    jump: JumpRules
    trend: TrendRules
    stuck: Minutes
    verdicts: Mapping[str, str]


def lag_rules(overrides: GivenThresholds = NONE_GIVEN) -> LagRules:
    """Return the rules as they are shipped, Burrow's defaults and our own, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    return rules_of(LagRules, "lag", overrides)
