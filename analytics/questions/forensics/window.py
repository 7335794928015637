"""Which verdicts and events fall into the time around an incident, and whose they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from analytics.questions.timeline.words import CANNOT_TELL, Verdict
from schemas.timeline_rules import harmless_verdicts

SUFFERED: Final = frozenset({"offset_lost", "offsets_deleted", "deleted"})
"""Events by which a group suffers."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Window:
    """The time around an incident; both ends belong to it."""

    begin: datetime
    end: datetime

    def touches(self, row: Row) -> bool:
        """Return whether a verdict may be of this time; one without a time may be of any."""
        at: datetime | None = row["at"]
        not_before: datetime | None = row["not_before"]
        if at is None:
            return not_before is None or not_before <= self.end
        return at >= self.begin and (not_before or at) <= self.end

    def contains(self, at: datetime | None) -> bool:
        """Return whether an instant is in it."""
        return at is not None and self.begin <= at <= self.end


def happened(verdicts: Iterable[Verdict], window: Window) -> list[Verdict]:
    """Return the verdicts on something that happened, or may have happened, in the time."""
    harmless = harmless_verdicts()
    return [each for each in verdicts if each["verdict"] not in harmless and window.touches(each)]


def suffering(verdicts: Iterable[Verdict], events: Iterable[Row], window: Window) -> list[str]:
    """Return the groups that something surely happened to in the time, those with most first.

    Args:
        verdicts: Of all groups.
        events: Rows of `group_events`: `group_id`, `at`, `event`.
        window: The time.
    """
    counts: dict[str, int] = {}
    for each in happened(verdicts, window):
        if each["verdict"] != CANNOT_TELL and each["at"] is not None:
            counts[each["group_id"]] = counts.get(each["group_id"], 0) + 1
    for row in events:
        if row["event"] in SUFFERED and window.contains(row["at"]):
            counts.setdefault(row["group_id"], 0)
    return sorted(counts, key=lambda group: (-counts[group], group))
