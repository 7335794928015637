"""Messages inside bytes fields: the consumer protocol's subscription and assignment.

Bytes that do not parse give null, never a failure: they are the client's, not the broker's
(``ConsumerProtocol`` reads a version above its newest as its newest and ignores what follows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.wire.arrow import invalid_rows, struct_type
from analytics.wire.columns import Binary, Column, distinct, scatter, take
from analytics.wire.cursor import Cursor
from analytics.wire.defaults import absent_struct
from analytics.wire.failure import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.wire.cursor import ByteBuffer, Journal
    from analytics.wire.structs import StructReader
    from schemas.model import Embedded, EmbeddedUse

_VERSION = np.dtype(">i2")


@dataclass(frozen=True)
class EmbeddedReader:
    """Parses a bytes column where its condition holds; one struct reader a version."""

    use: EmbeddedUse
    message: Embedded
    readers: Mapping[int, StructReader]

    def read(self, journal: Journal, record: NDArray[np.int64], column: Binary) -> Column:
        """Return the parsed messages, null where there is none.

        Args:
            journal: Where the strings are that the condition is about.
            record: Of each row of the column.
            column: The bytes.
        """
        rows = np.flatnonzero((column.length > 0) & self._wanted(journal, record, column.buffer))
        parsed = [(rows[part], group) for part, group in self._parse(column, rows)]
        return scatter(column.size, absent_struct(self.message.struct, column.buffer, 1), parsed)

    def _wanted(
        self, journal: Journal, record: NDArray[np.int64], buffer: ByteBuffer
    ) -> NDArray[np.bool_]:
        if self.use.when_field is None or self.use.when_value is None:
            return np.ones(record.size, np.bool_)
        condition = journal.scope[self.use.when_field]
        expected = self.use.when_value.encode()
        start, length = condition.start[record], condition.length[record]
        wanted = length == len(expected)
        content = buffer.gather(np.dtype((np.void, len(expected))), np.where(wanted, start, 0))
        same = content.view(np.uint8).reshape(-1, len(expected)) == np.frombuffer(expected, "u1")
        matches: NDArray[np.bool_] = wanted & same.all(axis=1)
        return matches

    def _parse(
        self, column: Binary, rows: NDArray[np.int64]
    ) -> list[tuple[NDArray[np.int64], Column]]:
        cursor = Cursor.over(column.buffer, column.start[rows], column.length[rows])
        version = cursor.gather(_VERSION, Reason.TRUNCATED, "version").astype(np.int64)
        version = np.minimum(version, self.message.versions.last)
        known = (version >= self.message.versions.first) & ~cursor.dead
        return [
            self._parse_version(cursor, number, np.flatnonzero(known & (version == number)))
            for number in distinct(version[known])
        ]

    def _parse_version(
        self, cursor: Cursor, version: int, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Column]:
        part = cursor.select(rows)
        group = self.readers[version].read(part)
        if not self.message.lenient_tail:
            part.require_exhausted(Reason.TRAILING_BYTES, "")
        living = np.flatnonzero(~part.dead)
        good = take(group, living) if living.size < rows.size else group
        broken = invalid_rows(good, struct_type(self.message.struct))
        if broken.any():
            # A null over text that is no UTF-8 would still fail the whole record.
            readable = np.flatnonzero(~broken)
            living, good = living[readable], take(good, readable)
        return rows[living], good
