"""What `--config` says of an audit: rules of a team's own, and findings that it accepts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from analytics.errors import InputNotRecognizedError
from analytics.questions.findings.suppressions import Suppression
from schemas.finding_rules import FindingRule, finding_rules
from schemas.model import SchemaError
from schemas.names import nearest_name

_NEEDED = ("rule", "reason", "owner", "until")
_ALLOWED = (*_NEEDED, "group_id", "topic")


def configured_rules(severities: Mapping[str, Any]) -> tuple[FindingRule, ...]:
    """Return all rules, with a team's own severities and thresholds.

    Args:
        severities: By rule: `severity`, `enabled`, and thresholds.

    Raises:
        InputNotRecognizedError: It names a rule or a threshold that is none.
    """
    known = {each.name: each for each in finding_rules()}
    for name, of_rule in severities.items():
        if name not in known:
            near = nearest_name(name, known)
            hint = f"; did you mean {near!r}?" if near else ""
            raise InputNotRecognizedError(f"--config: findings: unknown rule {name!r}{hint}")
        if not isinstance(of_rule, Mapping):
            raise InputNotRecognizedError(f"--config: findings: {name}: must be a mapping")
        try:
            known[name] = known[name].configured(of_rule)
        except SchemaError as error:
            raise InputNotRecognizedError(f"--config: findings: {error}") from error
    return tuple(known.values())


def suppressions_of(entries: Any) -> list[Suppression]:  # noqa: ANN401 - as YAML has it
    """Return the entries of `suppressions:`.

    Raises:
        InputNotRecognizedError: One lacks something, or says something unknown.
    """
    if not isinstance(entries, list | tuple):
        raise InputNotRecognizedError("--config: suppressions: must be a list")
    return [_entry(place, each) for place, each in enumerate(entries, 1)]


def _entry(place: int, entry: Any) -> Suppression:  # noqa: ANN401
    where = f"--config: suppressions: entry {place}"
    if not isinstance(entry, Mapping):
        raise InputNotRecognizedError(f"{where}: must be a mapping")
    missing = [name for name in _NEEDED if not entry.get(name)]
    if missing:
        raise InputNotRecognizedError(f"{where}: {', '.join(missing)} is missing")
    unknown = [str(name) for name in entry if name not in _ALLOWED]
    if unknown:
        raise InputNotRecognizedError(
            f"{where}: unknown: {', '.join(unknown)}; known are {', '.join(_ALLOWED)}"
        )
    rest = {name: str(entry[name]) for name in _ALLOWED if name in entry and name != "until"}
    return Suppression(until=_instant(where, entry["until"]), **rest)


def _instant(where: str, value: Any) -> datetime:  # noqa: ANN401
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise InputNotRecognizedError(f"{where}: until is {value!r}, which is no date") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
