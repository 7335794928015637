"""The verdict of a page: is something wrong, since when, what to do; what costs most first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reports.page.model import Clause, Incident
from reports.page.texts import LONGEST_SENTENCE, harmless, moment, name_cut, rule_anchor
from reports.page.workspace_tables import WorkspaceTables
from reports.quantities import count
from reports.verdict import (
    INCIDENT_PARTS,
    INCIDENTS,
    AuditIncident,
    incidents_in,
    parts_shown,
    serves,
)

MOST: Final = 8
"""So many incidents are in the verdict; all are among the findings."""
_EXPLAINS: Final = (": ", " (", "; ", ", last at ")
_SHORTEST_CLAUSE: Final = 24


def incidents_of_audit(read: WorkspaceTables) -> tuple[AuditIncident, ...]:
    """Return what the findings of a workspace come to, what costs most first."""
    return incidents_in(read.rows(INCIDENTS), read.rows(INCIDENT_PARTS))


def verdict_of(incidents: Sequence[AuditIncident]) -> tuple[Incident, ...]:
    """Return the lines of the verdict."""
    return tuple(_line(each) for each in incidents[:MOST])


def more_of(incidents: Sequence[AuditIncident]) -> str:
    """Return how many incidents the verdict has no room for; nothing where it has all."""
    more = len(incidents) - MOST
    return f"{count(more, 'more thing')} among the findings below" if more > 0 else ""


def _line(incident: AuditIncident) -> Incident:
    text = name_cut(incident.message, LONGEST_SENTENCE)
    first = next(
        (each for each in incident.parts if each.severity == incident.severity), incident.parts[0]
    )
    return Incident(
        text=_clause(text, incident) if incident.findings == 1 else text,
        href=f"#{rule_anchor(first.rule)}",
        severity=incident.severity,
        since="" if incident.since is None else moment(incident.since),
        command=harmless(incident.command),
        serves=serves(incident),
        parts=tuple(
            Clause(each.headline, f"#{rule_anchor(each.rule)}", each.severity)
            for each in parts_shown(incident)
        ),
    )


def _clause(message: str, incident: AuditIncident) -> str:
    """Return a message up to where it begins to explain; names are never cut."""
    names = [harmless(each) for each in incident.names]
    begins = max((message.find(each) + len(each) for each in names if each in message), default=0)
    ends = [message.find(each, max(begins, _SHORTEST_CLAUSE)) for each in _EXPLAINS]
    return message[: min((each for each in ends if each > 0), default=len(message))]
