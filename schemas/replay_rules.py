"""Where releases replay the same records differently, read from `rules/replay_rules.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from schemas.errors import SchemaError
from schemas.releases import release_key

_FILE = "rules/replay_rules.json"
RuleValue = str | int


@dataclass(frozen=True)
class RuleDifference:
    """A rule in which releases differ.

    Attributes:
        about: What its values mean.
        values: From which release on it has which, oldest first.
    """

    about: str
    values: tuple[tuple[str, RuleValue], ...]


def replay_rule_values(release: str) -> dict[str, RuleValue]:
    """Return the value of every rule in a release ("3.9", "4.3.1").

    Raises:
        SchemaError: The release is older than any that a rule knows.
    """
    return {
        name: _value(name, rule.values, release) for name, rule in replay_rule_differences().items()
    }


def _value(name: str, values: tuple[tuple[str, RuleValue], ...], release: str) -> RuleValue:
    known = [value for since, value in values if release_key(since) <= release_key(release)]
    if not known:
        raise SchemaError(f"has no value for release {release}", file=_FILE, field=name)
    return known[-1]


@cache
def replay_rule_differences() -> Mapping[str, RuleDifference]:
    """Return every rule by name, as they are shipped."""
    document: dict[str, Any] = json.loads(
        files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    )
    return {
        name: RuleDifference(rule["about"], _ascending(name, rule["values"]))
        for name, rule in document["rules"].items()
    }


def _ascending(name: str, values: list[dict[str, Any]]) -> tuple[tuple[str, RuleValue], ...]:
    since = [release_key(each["from"]) for each in values]
    if not values or since != sorted(set(since)):
        raise SchemaError("names its releases in ascending order", file=_FILE, field=name)
    return tuple((each["from"], each["value"]) for each in values)
