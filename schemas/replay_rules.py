"""Where releases replay or load the same records differently.

Read from `rules/replay_rules.json`, in which lines of releases differ, and from
`rules/loading_rules.json`, in which patch releases do as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from schemas.errors import SchemaError
from schemas.releases import is_line, line_of, release_key

_REPLAY = "rules/replay_rules.json"
_LOADING = "rules/loading_rules.json"
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


@dataclass(frozen=True)
class PatchReleases:
    """Releases of a line between which no loading rule changes.

    Attributes:
        since: The first of them; None where the release is known with its patch, or where rules do
            not tell the patches of its line apart.
        values: The value of every loading rule.
    """

    since: str | None
    values: Mapping[str, RuleValue]


def replay_rule_values(release: str) -> dict[str, RuleValue]:
    """Return the value of every replay rule in a release ("3.9", "4.3.1").

    Raises:
        SchemaError: The release is older than any that a rule knows.
    """
    return _values(_REPLAY, release)


def loading_rule_values(release: str) -> tuple[PatchReleases, ...]:
    """Return the loading rules of a release; of each patch, where it is named without one.

    Raises:
        SchemaError: The release is older than any that a rule knows.
    """
    if not is_line(release):
        return (PatchReleases(None, _values(_LOADING, release)),)
    line = line_of(release)
    first = ".".join(str(part) for part in (*line, 0))
    patches = {
        since: release_key(since)
        for rule in _differences(_LOADING).values()
        for since, _ in rule.values
        if line_of(since) == line and not is_line(since)
    }
    starts = sorted({first: release_key(first), **patches}.items(), key=lambda each: each[1])
    found: list[PatchReleases] = []
    for since, _ in starts:
        values = _values(_LOADING, since)
        if not found or found[-1].values != values:
            found.append(PatchReleases(since, values))
    return tuple(found) if len(found) > 1 else (PatchReleases(None, found[0].values),)


def replay_rule_differences() -> Mapping[str, RuleDifference]:
    """Return every replay rule by name, as they are shipped."""
    return _differences(_REPLAY)


def loading_rule_differences() -> Mapping[str, RuleDifference]:
    """Return every loading rule by name, as they are shipped."""
    return _differences(_LOADING)


def _values(file: str, release: str) -> dict[str, RuleValue]:
    return {
        name: _value(file, name, rule.values, release) for name, rule in _differences(file).items()
    }


def _value(
    file: str, name: str, values: tuple[tuple[str, RuleValue], ...], release: str
) -> RuleValue:
    known = [value for since, value in values if release_key(since) <= release_key(release)]
    if not known:
        raise SchemaError(f"has no value for release {release}", file=file, field=name)
    return known[-1]


@cache
def _differences(file: str) -> Mapping[str, RuleDifference]:
    document: dict[str, Any] = json.loads(
        files(__package__).joinpath(file).read_text(encoding="utf-8")
    )
    rules = {
        name: RuleDifference(rule["about"], _ascending(file, name, rule["values"]))
        for name, rule in document["rules"].items()
    }
    if file == _REPLAY:
        for name, rule in rules.items():
            if not all(is_line(since) for since, _ in rule.values):
                # What is replayed has one answer for a release that is named without its patch.
                raise SchemaError("changes with a patch release", file=file, field=name)
    return rules


def _ascending(
    file: str, name: str, values: list[dict[str, Any]]
) -> tuple[tuple[str, RuleValue], ...]:
    since = [release_key(each["from"]) for each in values]
    if not values or since != sorted(set(since)):
        raise SchemaError("names its releases in ascending order", file=file, field=name)
    return tuple((each["from"], each["value"]) for each in values)
