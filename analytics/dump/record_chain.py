"""Where records lie in magic 2 batches: nothing says so but the lengths of those before.

The k-th record of every batch is found in one step; the few batches that have many more records
than the others are followed one by one.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.dump.damage import DamageReason
from analytics.dump.headers import MIN_RECORD
from analytics.dump.varints import VARINT, read_varints

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOGETHER: Final = 48
"""Below so many rows a plain loop over what is left is faster than steps of numpy."""

Failures = dict[int, DamageReason]
"""Why the batch in a row could not be read."""


class RecordChain:
    """Where the records of each batch begin and end.

    Attributes:
        begin: First byte of each record, its length included; batch after batch.
        body: First byte after the length.
        end: After the last byte.
        failures: Batches whose records do not fit them exactly; what stands in their rows above
            means nothing.
    """

    def __init__(
        self,
        data: NDArray[np.uint8],
        start: NDArray[np.int64],
        limit: NDArray[np.int64],
        count: NDArray[np.int64],
    ) -> None:
        self._data, self._start, self._limit, self._count = data, start, limit, count
        total = int(count.sum())
        self._first = np.cumsum(count) - count
        self.begin = np.empty(total, np.int64)
        self.body = np.empty(total, np.int64)
        self.end = np.empty(total, np.int64)
        self.failures: Failures = {}

    def follow(self) -> None:
        """Find all records; batches that do not end where they should are failures."""
        # Largest first, so that the batches that still have a record are always the first rows.
        order = np.argsort(-self._count, kind="stable")
        counts = -self._count[order]
        place = self._start[order]
        limit, first = self._limit[order], self._first[order]
        done = 0
        for step in itertools.count():
            width = int(np.searchsorted(counts, -step))
            if width < TOGETHER:
                break
            place[:width] = self._step(place[:width], limit[:width], first[:width] + step, order)
            done = step + 1
        rest = int(np.searchsorted(counts, -done))
        for row in range(rest):
            place[row] = self._one(int(order[row]), int(place[row]), done)
        short = order[place < limit]
        for row in short.tolist():
            self.failures.setdefault(row, DamageReason.BAD_RECORD_COUNT)

    def _step(
        self,
        place: NDArray[np.int64],
        limit: NDArray[np.int64],
        slot: NDArray[np.int64],
        order: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Find one record in each batch; return where the next ones begin."""
        length, body, endless = read_varints(self._data, place, VARINT)
        end = body + length
        wrong = (length < MIN_RECORD - 1) | (end > limit)
        if endless is not None:
            wrong |= endless
        if wrong.any():
            for row in np.flatnonzero(wrong).tolist():
                self._fail(int(order[row]), at_end=bool(place[row] >= limit[row]))
            # Nothing further is read of them; the limit is a safe place to stay.
            body = np.where(wrong, limit, body)
            end = np.where(wrong, limit, end)
        self.begin[slot], self.body[slot], self.end[slot] = place, body, end
        return end

    def _one(self, batch: int, place: int, done: int) -> int:
        """Find all further records of one batch; return where it ends."""
        limit, slot = int(self._limit[batch]), int(self._first[batch]) + done
        left = int(self._count[batch]) - done
        if batch in self.failures:
            self._fill(slot, left, limit)
            return limit
        start = place
        raw = self._data[start : limit + VARINT].tobytes()
        found, at_end = _follow_records(raw, limit - start, left)
        size = len(found) // 2
        edges = np.array(found, np.int64).reshape(-1, 2) + start
        self.begin[slot : slot + size] = edges[:, 0]
        self.body[slot : slot + size] = edges[:, 1]
        ends = np.append(edges[1:, 0], limit) if size == left else edges[1:, 0]
        self.end[slot : slot + ends.size] = ends
        if size < left:
            self._fill(slot, left, limit)
            self._fail(batch, at_end=at_end)
        return limit

    def _fill(self, slot: int, count: int, limit: int) -> None:
        for column in (self.begin, self.body, self.end):
            column[slot : slot + count] = limit

    def _fail(self, batch: int, *, at_end: bool) -> None:
        reason = DamageReason.BAD_RECORD_COUNT if at_end else DamageReason.BAD_RECORD
        self.failures.setdefault(batch, reason)


def _follow_records(raw: bytes, limit: int, count: int) -> tuple[list[int], bool]:
    """Return begin and body of each record, alternating; fewer than ``count`` where they fail.

    The last record must end at ``limit``. Also returned is whether it is the number of records that
    is wrong.
    """
    found: list[int] = []
    place = 0
    for _ in range(count):
        value = shift = 0
        body = place
        while True:
            byte = raw[body]
            body += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift >= 7 * VARINT:
                break
        length = (value >> 1) ^ -(value & 1)
        if byte >= 0x80 or length < MIN_RECORD - 1 or body + length > limit:
            return found, place >= limit
        found += (place, body)
        place = body + length
    return (found, False) if place == limit else (found[:-2], True)
