"""Lines that elections ended: one failure of a broker ends many of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from schemas.finding_rules import incident_causes

ENDED_LINES: Final = "divergences"
"""The table of lines that elections ended."""
OF_LINES: Final = ("topic", "partition", "copy", "diverges_at", "lost_records", "elected_at")


@dataclass(frozen=True)
class Election:
    """Lines that one failure of a broker ended.

    Attributes:
        lines: Rows of `OF_LINES`.
    """

    lines: tuple[Mapping[str, Any], ...]

    def has(self, line: Mapping[str, Any], within: timedelta) -> bool:
        """Return whether a line is one of the same failure."""
        return any(_is_same(each, line, within) for each in self.lines)

    def values(self) -> dict[str, str | int | None]:
        """Return what a title says: of a partition that two copies have more of, the larger one."""
        lost: dict[tuple[str, int], int] = {}
        for each in self.lines:
            place = (each["topic"], each["partition"])
            lost[place] = max(lost.get(place, 0), each["lost_records"])
        copies = sorted({each["copy"] for each in self.lines})
        return {
            "at_least": "at least " if len(self.lines) > len(lost) else "",
            "records": sum(lost.values()),
            "partitions": len(lost),
            "copies": ", ".join(copies),
        }


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any], within: timedelta) -> bool:
    if one["elected_at"] is None or other["elected_at"] is None:
        is_at_once = one["elected_at"] is other["elected_at"]
        return is_at_once and one["copy"] == other["copy"]
    place = ("topic", "partition", "elected_at")
    if all(one[each] == other[each] for each in place):
        return True
    apart = abs(one["elected_at"] - other["elected_at"])
    return bool(one["copy"] == other["copy"] and apart <= within)


Elections = Sequence[Election]
"""The failures that ended lines: each is one incident with the findings that rest on its lines."""


def elections_of(lines: pa.Table) -> Elections:
    """Return the failures that ended lines.

    Args:
        lines: `OF_LINES` of `divergences`.
    """
    within = timedelta(minutes=float(incident_causes().elections_within.minutes))
    failures: list[Election] = []
    for line in lines.select(list(OF_LINES)).to_pylist():
        same = [each for each in failures if each.has(line, within)]
        rest = [each for each in failures if each not in same]
        failures = [*rest, Election((*(one for each in same for one in each.lines), line))]
    return tuple(failures)
