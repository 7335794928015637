"""Bands and thresholds of evaluations, read from the files in `rules/`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from schemas.thresholds import NONE_GIVEN, GivenThresholds, rules_document

# Why two states differ, in words, read from `rules/diff.json`.


@cache
def diff_causes() -> Mapping[str, str]:
    """Return the words of the codes that `cause` has in the tables of changes."""
    text = files(__package__).joinpath("rules/diff.json").read_text(encoding="utf-8")
    causes: Mapping[str, str] = json.loads(text)["causes"]
    return causes


# The verdicts of a timeline and their words, read from `rules/timeline.json`.

SINCE: Final = "{since}"
"""In the words of a verdict, where its time stands."""


@dataclass(frozen=True)
class TimelineVerdict:
    """What may have happened to an offset.

    Attributes:
        words: What people read; `SINCE` in them is the time of the column `since`.
        severity: critical or warning; info where nothing is wrong.
        about: What it means.
    """

    words: str
    severity: str
    about: str

    @property
    def is_harmless(self) -> bool:
        """Whether nothing is wrong, and nothing may be."""
        return self.severity == "info"


@cache
def timeline_verdicts() -> Mapping[str, TimelineVerdict]:
    """Return the verdicts of `offset_verdicts` by their codes, the worst first."""
    return {code: TimelineVerdict(**each) for code, each in _document()["verdicts"].items()}


def harmless_verdicts() -> frozenset[str]:
    """Return the codes of verdicts by which nothing is wrong."""
    return frozenset(code for code, each in timeline_verdicts().items() if each.is_harmless)


@cache
def _document() -> dict[str, Any]:
    text = files(__package__).joinpath("rules/timeline.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


# How checkpoints of consistent regions are judged, read from `rules/region.json`.


@dataclass(frozen=True)
class RegionRules:
    """From when on something is called wrong.

    Attributes:
        reset_timeout_ms: How long a reset of the region may take,
        max_poll_interval_ms: and how long its consumers may be without a poll:
        longest_ms: of both, the half is waited for contributions, and never longer than this.
        clock_difference_ms: How far clocks of operators and of the coordinator may differ.
        findings: What each finding means, worst first.
    """

    reset_timeout_ms: int
    max_poll_interval_ms: int
    longest_ms: int
    clock_difference_ms: int
    findings: Mapping[str, str]

    @property
    def merge_timeout_ms(self) -> int:
        """Return how long an operator waits for the merged checkpoint."""
        halves = (self.reset_timeout_ms // 2, self.max_poll_interval_ms // 2)
        return min(*halves, self.longest_ms)


def region_rules(overrides: GivenThresholds = NONE_GIVEN) -> RegionRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    document = rules_document("region", overrides)
    merge = document["merge"]
    return RegionRules(
        reset_timeout_ms=merge["reset_timeout_ms"],
        max_poll_interval_ms=merge["max_poll_interval_ms"],
        longest_ms=merge["longest_ms"],
        clock_difference_ms=document["drain"]["clock_difference_ms"],
        findings=document["findings"],
    )


# What may lead to a rebalance, and what a failed coordinator leaves: `rules/rebalances.json`.


@dataclass(frozen=True)
class CoordinatorFailure:
    """What the next coordinator's first epoch shows of the one that failed.

    Attributes:
        cases: Of the client-side assignment proposal's four, those that leave this; none where it
            has no such group.
        leaves: What is left, in words.
    """

    cases: Sequence[int]
    leaves: str


def rebalance_causes() -> Mapping[str, str]:
    """Return what each cause means, the most telling first."""
    said = rules_document("rebalances")["causes"]
    return {word: text for word, text in said.items() if word != "about"}


def coordinator_failures() -> Mapping[str, CoordinatorFailure]:
    """Return by word for a change of the coordinator what it may have been."""
    said = rules_document("rebalances")["coordinator_failures"]
    return {
        word: CoordinatorFailure(each["cases"], each["leaves"])
        for word, each in said.items()
        if word != "about"
    }


@dataclass(frozen=True)
class BalanceRules:
    """How the balance of an assignment is judged (`rules/balance.json`).

    Attributes:
        threshold: How far sizes may be above their mean, as a factor above 1.
        margin: Which part of that distance counts.
        verdicts: What each verdict means, strongest first.
    """

    threshold: float
    margin: float
    verdicts: Mapping[str, str]

    @property
    def reach(self) -> float:
        """Return how far a size may be from the mean, as a fraction of it."""
        return (self.threshold - 1) * self.margin


@dataclass(frozen=True)
class RebalanceRules:
    """From when on rebalancing is called too much (`rules/rebalances.json`).

    Attributes:
        storm_epochs: So many epochs make a storm,
        storm_minutes: if they began within so many minutes.
        reconciling_minutes: A member that is behind for longer takes long to reconcile.
        idle_owner_minutes: A static owner without progress for longer is told.
        skew_times: An internal partition with more groups than so many times the mean,
        skew_groups_above: and more than so many above it, is overloaded.
        coordinator_changes: What each word for a change of the coordinator means.
    """

    storm_epochs: int
    storm_minutes: float
    reconciling_minutes: float
    idle_owner_minutes: float
    skew_times: float
    skew_groups_above: int
    coordinator_changes: Mapping[str, str]


@dataclass(frozen=True)
class BurrowRules:
    """By what Burrow judges a partition (`rules/lag.json`, under Burrow's own names).

    Attributes:
        intervals: Commits in a window.
        min_distance: A commit closer to the one before, in seconds, takes its place.
        allowed_lag: A lag up to this is none.
        expire_group: A group without a commit for so many seconds is forgotten.
    """

    intervals: int = 10
    min_distance: int = 0
    allowed_lag: int = 0
    expire_group: int = 604_800

    @property
    def min_distance_ms(self) -> int:
        """Return the distance in milliseconds."""
        return self.min_distance * 1000


@dataclass(frozen=True)
class JumpRules:
    """Which step forward is a jump (`rules/lag.json`).

    Attributes:
        times: At least so many times the mean step forward before it,
        records: and at least so many records,
        after: once so many steps forward were seen.
    """

    times: int
    records: int
    after: int


@dataclass(frozen=True)
class TrendRules:
    """When a lag grows (`rules/lag.json`).

    Attributes:
        minutes: So long before the instant the trend begins.
        steady_share: A change up to this share of the greater lag is none,
        steady_records: nor is one up to so many records.
    """

    minutes: float
    steady_share: float
    steady_records: int


@dataclass(frozen=True)
class LagRules:
    """How lag is judged (`rules/lag.json`).

    Attributes:
        burrow: Burrow's rules.
        jump: Which step forward is told.
        trend: Since when, and from how much on, a lag grows or shrinks.
        stuck_minutes: After so long without progress a partition with lag is stuck.
        verdicts: What each verdict means, worst first.
    """

    burrow: BurrowRules
    jump: JumpRules
    trend: TrendRules
    stuck_minutes: float
    verdicts: Mapping[str, str]


def lag_rules(overrides: GivenThresholds = NONE_GIVEN) -> LagRules:
    """Return the rules as they are shipped, Burrow's defaults and our own, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    document = rules_document("lag", overrides)
    said = document["burrow"]
    burrow = BurrowRules(
        said["intervals"], said["min-distance"], said["allowed-lag"], said["expire-group"]
    )
    jump, trend = document["jump"], document["trend"]
    return LagRules(
        burrow,
        JumpRules(jump["times"], jump["records"], jump["after"]),
        TrendRules(trend["minutes"], trend["steady_share"], trend["steady_records"]),
        document["stuck"]["minutes"],
        document["verdicts"],
    )


def balance_rules(overrides: GivenThresholds = NONE_GIVEN) -> BalanceRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    document = rules_document("balance", overrides)
    band = document["band"]
    return BalanceRules(band["threshold"], band["margin"], _words(document["verdicts"]))


def rebalance_rules(overrides: GivenThresholds = NONE_GIVEN) -> RebalanceRules:
    """Return the rules as they are shipped, or as a team has them.

    Raises:
        SchemaError: A threshold that was given is none.
    """
    document = rules_document("rebalances", overrides)
    return RebalanceRules(
        storm_epochs=document["storm"]["epochs"],
        storm_minutes=document["storm"]["minutes"],
        reconciling_minutes=document["reconciling"]["minutes"],
        idle_owner_minutes=document["idle_owner"]["minutes"],
        skew_times=document["skew"]["times"],
        skew_groups_above=document["skew"]["groups_above"],
        coordinator_changes=_words(document["coordinator_changes"]),
    )


def _words(explained: Mapping[str, str]) -> dict[str, str]:
    return {word: text for word, text in explained.items() if word != "about"}
