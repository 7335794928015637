"""Findings that a team has accepted for a while: by whom, why, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

import pyarrow as pa

SUPPRESSIONS = pa.schema(
    [
        *((name, pa.string()) for name in ("rule", "group_id", "topic", "reason", "owner")),
        ("until", pa.timestamp("us", "UTC")),
        ("suppressed", pa.int64()),
    ]
)
"""The table `suppressions`, which rules can read, too."""


@dataclass(frozen=True)
class Suppression:
    """One entry.

    Attributes:
        rule: Name of the rule, or a pattern.
        reason: Why it is accepted.
        owner: Who said so.
        until: When that ends.
        group_id: Of which groups, as a pattern; `*` for all.
        topic: Of which topics, as a pattern.
    """

    rule: str
    reason: str
    owner: str
    until: datetime
    group_id: str = "*"
    topic: str = "*"

    def covers(self, finding: Mapping[str, Any], as_of: datetime) -> bool:
        """Return whether a finding is accepted at an instant."""
        return as_of < self.until and all(
            fnmatchcase(finding[name] or "", pattern)
            for name, pattern in (
                ("rule", self.rule),
                ("group_id", self.group_id),
                ("topic", self.topic),
            )
        )


def suppressed(
    findings: pa.Table,
    entries: Iterable[Suppression],
    as_of: datetime,
    originals: Mapping[str, str] = MappingProxyType({}),
) -> tuple[pa.Table, pa.Table]:
    """Return the findings that are left, and what was suppressed by which entry.

    Args:
        findings: Rows of `findings`.
        entries: What is accepted; one that has ended suppresses nothing.
        as_of: The instant asked about.
        originals: Names that entries go by, where the findings have others.

    Returns:
        The findings that no entry covers, and a row of `SUPPRESSIONS` an entry.
    """
    known = list(entries)
    counts = [0] * len(known)
    left = []
    for row in findings.select(["rule", "group_id", "topic"]).to_pylist():
        named = {name: originals.get(said, said) for name, said in row.items()}
        place = next((n for n, each in enumerate(known) if each.covers(named, as_of)), None)
        left.append(place is None)
        if place is not None:
            counts[place] += 1
    rows = [
        {
            "rule": each.rule,
            "group_id": each.group_id,
            "topic": each.topic,
            "reason": each.reason,
            "owner": each.owner,
            "until": each.until,
            "suppressed": count,
        }
        for each, count in zip(known, counts, strict=True)
    ]
    return findings.filter(pa.array(left, pa.bool_())), pa.Table.from_pylist(rows, SUPPRESSIONS)
