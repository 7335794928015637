"""What an audit comes to: incidents, what costs most first, as its page and its texts say them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from reports.layout.cells import times
from reports.plain_text import count
from schemas.finding_rules import CRITICAL

INCIDENTS: Final = "audit_incidents"
INCIDENT_PARTS: Final = "audit_incident_parts"
MOST_KEPT: Final = 100
"""So many incidents are in `summary.json`."""


@dataclass(frozen=True)
class IncidentPart:
    """Findings of one rule that belong to an incident.

    Attributes:
        rule: The rule.
        severity: critical, warning or info.
        findings: How many.
        headline: What they come to.
        groups: How many groups they name.
        names: The first of these groups.
    """

    rule: str
    severity: str
    findings: int
    headline: str
    groups: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class AuditIncident:
    """Findings that share a cause; or, where they share none, those of one rule.

    Attributes:
        cause: Its name in `schemas/rules/incidents.json`; empty of findings of a rule.
        severity: The worst of its parts.
        message: What happened.
        since: When it began; None where no finding says.
        findings: How many there are.
        groups: How many groups they name.
        command: What to do first; empty where nothing is advised.
        served: For how many findings of its rule that command is known to be advised.
        of: So many findings that rule has here.
        parts: By rule, the most severe first; one at least.
        names: The group and the topic of its first finding.
    """

    cause: str
    severity: str
    message: str
    since: datetime | None
    findings: int
    groups: int
    command: str
    served: int
    of: int
    parts: tuple[IncidentPart, ...]
    names: tuple[str, ...] = ()


def incidents_in(incidents: pa.Table, parts: pa.Table) -> tuple[AuditIncident, ...]:
    """Return the incidents of an audit, what costs most first.

    Args:
        incidents: The table `audit_incidents`.
        parts: The table `audit_incident_parts`.
    """
    of_incident: dict[int, list[IncidentPart]] = {}
    for row in parts.to_pylist():
        of_incident.setdefault(row["incident"], []).append(_part(row))
    rows = sorted(incidents.to_pylist(), key=lambda row: int(row["incident"]))
    return tuple(_incident(row, of_incident[row["incident"]]) for row in rows)


def _part(row: Mapping[str, Any]) -> IncidentPart:
    return IncidentPart(
        row["rule"],
        row["severity"],
        row["findings"],
        row["headline"],
        row["groups"],
        tuple(row["group_ids"]),
    )


def _incident(row: Mapping[str, Any], parts: Sequence[IncidentPart]) -> AuditIncident:
    return AuditIncident(
        cause=row["cause"] or "",
        severity=row["severity"],
        message=row["message"],
        since=row["since"],
        findings=row["findings"],
        groups=row["groups"],
        command=row["command"] or "",
        served=row["command_serves"],
        of=row["command_findings"],
        parts=tuple(parts),
        names=tuple(filter(None, (row["group_id"], row["topic"]))),
    )


def sentence_of(incidents: Sequence[AuditIncident]) -> str:
    """Return whether something is wrong, since when, and for whom; nothing where it is not.

    What costs most may be about few groups, while most of them are concerned by something else.

    Args:
        incidents: What costs most first.
    """
    if not incidents:
        return ""
    critical = sum(each.severity == CRITICAL for each in incidents)
    wrong = count(len(incidents), "thing is", "things are")
    of_them = f", {critical:,} of them critical" if critical and len(incidents) > 1 else ""
    since = as_text(incidents[0].since)
    began = "" if since is None else f"; what costs most began at {since}"
    widest = max(incidents, key=lambda each: each.groups)
    is_other = widest.groups > incidents[0].groups
    most = f" What concerns most groups: {widest.message}." if is_other else ""
    return f"{wrong} wrong{of_them}{began}.{most}"


def serves(incident: AuditIncident) -> str:
    """Return of how many findings a command is that is not known to be of all of them."""
    if not incident.command or incident.served >= incident.of:
        return ""
    if not incident.cause:
        return f"for the first of {count(incident.of, 'finding')}; each says what to do"
    return f"for {incident.served:,} of {incident.of:,}; the findings say what to do for each"


def parts_shown(incident: AuditIncident) -> tuple[IncidentPart, ...]:
    """Return the parts of an incident that say more than its message does."""
    worst = [each for each in incident.parts if each.severity == incident.severity]
    is_more = len(incident.parts) > 1 and incident.message != worst[0].headline
    return incident.parts if incident.cause and is_more else ()


def as_values(incidents: Iterable[AuditIncident]) -> list[dict[str, Any]]:
    """Return incidents as `summary.json` has them."""
    return [
        {
            "cause": each.cause or None,
            "severity": each.severity,
            "message": each.message,
            "since": as_text(each.since),
            "findings": each.findings,
            "groups": each.groups,
            "by_rule": {part.rule: part.findings for part in each.parts},
            "command": each.command or None,
            "command_serves": {"findings": each.served, "of": each.of},
        }
        for each in list(incidents)[:MOST_KEPT]
    ]


def as_text(value: datetime | None) -> str | None:
    """Return a time as it is printed everywhere; None where there is none."""
    text: str | None = times(pa.chunked_array([pa.array([value], pa.timestamp("us", "UTC"))]))[
        0
    ].as_py()
    return text
