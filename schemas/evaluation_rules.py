"""Bands and thresholds of evaluations, read from the files in `rules/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.thresholds import NONE_GIVEN, GivenThresholds, rules_document


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
