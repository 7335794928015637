"""Groups that Kafka's own tools name by themselves: patterns in `expiration_rules.json`."""

from __future__ import annotations

import re
from functools import cache

from schemas.thresholds import rules_document


def tool_naming(group: str) -> str | None:
    """Return the tool that gave a group its name; None where none is known to.

    Each run of such a tool makes another name: nobody comes back for what it committed (KIP-211,
    "Another Related Change").
    """
    return next((tool for pattern, tool, _ in _patterns() if pattern.fullmatch(group)), None)


def tools_by_pattern() -> list[tuple[str, str]]:
    """Return what `tool_naming` goes by: what a whole name matches, and the tool."""
    return [(pattern.pattern, tool) for pattern, tool, _ in _patterns()]


def shared_name(group: str) -> str:
    """Return what all groups of a tool are called together; of another group its own name."""
    for pattern, _, name in _patterns():
        if pattern.fullmatch(group):
            return name
    return group


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str, str], ...]:
    said = rules_document("expiration")["generated_names"]["patterns"]
    return tuple((re.compile(each["matches"]), each["tool"], each["called"]) for each in said)
