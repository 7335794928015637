"""What `--config` says of an audit: rules of a team's own, and findings that it accepts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from analytics.errors import InputNotRecognizedError
from analytics.questions.findings.suppressions import Suppression
from schemas.finding_rules import FindingRule, finding_rules
from schemas.model import SchemaError
from schemas.nearest_names import nearest_name

_NEEDED = ("rule", "reason", "owner", "until")
_ALLOWED = (*_NEEDED, "group_id", "topic")


def configured_rules(said: Mapping[str, Any]) -> tuple[FindingRule, ...]:
    """Return all rules, with a team's own severities and thresholds.

    Args:
        said: By rule: `severity`, `enabled`, and thresholds.

    Raises:
        InputNotRecognizedError: It names a rule or a threshold that is none.
    """
    known = {each.name: each for each in finding_rules()}
    for name, of_rule in said.items():
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


def suppressions_of(said: Any) -> list[Suppression]:  # noqa: ANN401 - as YAML has it
    """Return the entries of `suppressions:`.

    Raises:
        InputNotRecognizedError: One lacks something, or says something unknown.
    """
    if not isinstance(said, list | tuple):
        raise InputNotRecognizedError("--config: suppressions: must be a list")
    return [_entry(place, each) for place, each in enumerate(said, 1)]


def _entry(place: int, said: Any) -> Suppression:  # noqa: ANN401
    where = f"--config: suppressions: entry {place}"
    if not isinstance(said, Mapping):
        raise InputNotRecognizedError(f"{where}: must be a mapping")
    missing = [name for name in _NEEDED if not said.get(name)]
    if missing:
        raise InputNotRecognizedError(f"{where}: {', '.join(missing)} is missing")
    unknown = [str(name) for name in said if name not in _ALLOWED]
    if unknown:
        raise InputNotRecognizedError(
            f"{where}: unknown: {', '.join(unknown)}; known are {', '.join(_ALLOWED)}"
        )
    rest = {name: str(said[name]) for name in _ALLOWED if name in said and name != "until"}
    return Suppression(until=_instant(where, said["until"]), **rest)


def _instant(where: str, said: Any) -> datetime:  # noqa: ANN401
    if isinstance(said, datetime):
        return said if said.tzinfo else said.replace(tzinfo=UTC)
    if isinstance(said, date):
        return datetime.combine(said, time(), UTC)
    try:
        found = datetime.fromisoformat(str(said))
    except ValueError as error:
        raise InputNotRecognizedError(f"{where}: until is {said!r}, which is no date") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
