"""The page of an incident as HTML: one file, nothing in it runs and nothing is loaded."""

from __future__ import annotations

from reports.incident.page import IncidentPage
from reports.page.html import rendered


def html_of(page: IncidentPage) -> str:
    """Return the file."""
    return rendered("incident.html.j2", page)
