"""Where releases replay the same records differently, read from `rules/replay_rules.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from schemas.errors import SchemaError
from schemas.releases import release_key

_FILE = "rules/replay_rules.json"
RuleValue = str | int


def replay_rule_values(release: str) -> dict[str, RuleValue]:
    """Return the value of every rule in a release ("3.9", "4.3.1").

    Raises:
        SchemaError: The release is older than any that a rule knows.
    """
    return {name: _value(name, values, release) for name, values in _rules().items()}


def _value(name: str, values: tuple[tuple[str, RuleValue], ...], release: str) -> RuleValue:
    known = [value for since, value in values if release_key(since) <= release_key(release)]
    if not known:
        raise SchemaError(f"has no value for release {release}", file=_FILE, field=name)
    return known[-1]


@cache
def _rules() -> Mapping[str, tuple[tuple[str, RuleValue], ...]]:
    document: dict[str, Any] = json.loads(
        files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    )
    return {name: _ascending(name, rule["values"]) for name, rule in document["rules"].items()}


def _ascending(name: str, values: list[dict[str, Any]]) -> tuple[tuple[str, RuleValue], ...]:
    since = [release_key(each["from"]) for each in values]
    if not values or since != sorted(set(since)):
        raise SchemaError("names its releases in ascending order", file=_FILE, field=name)
    return tuple((each["from"], each["value"]) for each in values)
