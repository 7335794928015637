"""What may lead to a rebalance, and what a failed coordinator leaves: `rules/rebalances.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.thresholds import rules_document


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
