"""How checkpoints of consistent regions are judged, read from `rules/region.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.thresholds import NONE_GIVEN, GivenThresholds, rules_document


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
