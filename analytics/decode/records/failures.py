"""Records that could not be decoded: which, why, and where in the record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from analytics.wire.columns import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.wire.cursor import Cursor
    from analytics.wire.failure import Reason


@dataclass
class Failures:
    """Failed raw records, with an enumerated reason and a detail in words."""

    rows: list[NDArray[np.int64]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    def add(self, rows: NDArray[np.int64], reason: Reason, detail: str) -> None:
        """Note raw records that failed for one reason."""
        if rows.size:
            self.rows.append(rows)
            self.reasons.append(str(reason))
            self.details.append(detail)

    def add_journal(self, cursor: Cursor, rows: NDArray[np.int64], what: str) -> None:
        """Note what a cursor's journal has; ``rows`` maps its rows to raw records (-1: skip)."""
        failure = cursor.journal.failure
        for number in distinct(failure[failure >= 0]):
            reason, path = cursor.journal.causes[number]
            failed = rows[failure == number]
            detail = f"{what}: {path}" if path else what
            self.add(failed[failed >= 0], reason, detail)

    def take_over(self, rows: NDArray[np.int64], reason: Reason, detail: str) -> None:
        """Give records that are noted already, and nothing else, another reason."""
        noted = zip(self.rows, self.reasons, self.details, strict=True)
        left = [(each[~np.isin(each, rows)], why, what) for each, why, what in noted]
        self.rows, self.reasons, self.details = [], [], []
        for each, why, what in left:
            if each.size:
                self.rows.append(each)
                self.reasons.append(why)
                self.details.append(what)
        self.add(rows, reason, detail)

    def extend(self, other: Failures) -> None:
        """Take over another list."""
        self.rows.extend(other.rows)
        self.reasons.extend(other.reasons)
        self.details.extend(other.details)

    @property
    def count(self) -> int:
        """Number of records."""
        return sum(rows.size for rows in self.rows)
