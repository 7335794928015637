"""Messages inside bytes fields: the consumer protocol's subscription and assignment.

Bytes that do not parse give null, never a failure: they are the client's, not the broker's
(``ConsumerProtocol`` reads a version above its newest as its newest and ignores what follows).

Some clients leave out the last fields of the version they name. Where the bytes end exactly behind
a field, the others have their defaults, and ``fields_written`` says how many were there. Bytes that
end anywhere else are null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.wire.columns import (
    Binary,
    Column,
    Fixed,
    Group,
    distinct,
    invalid_rows,
    scatter,
    struct_type,
    take,
)
from analytics.wire.cursor import Cursor, Reason
from analytics.wire.defaults import absent, absent_struct, default
from schemas.model import FIELDS_WRITTEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.wire.cursor import ByteBuffer, Journal
    from analytics.wire.structs import StructReader
    from schemas.model import Embedded, EmbeddedUse

_VERSION = np.dtype(">i2")


@dataclass(frozen=True)
class EmbeddedReader:
    """Parses a bytes column where its condition holds.

    Attributes:
        use: The condition.
        message: What is parsed.
        readers: Of all fields, by version.
        early: Of bytes that end early, by version: the reader of the most fields first.
    """

    use: EmbeddedUse
    message: Embedded
    readers: Mapping[int, StructReader]
    early: Mapping[int, Sequence[StructReader]]

    def read(self, journal: Journal, record: NDArray[np.int64], column: Binary) -> Column:
        """Return the parsed messages, null where there is none.

        Args:
            journal: Where the strings are that the condition is about.
            record: Of each row of the column.
            column: The bytes.
        """
        rows = np.flatnonzero((column.length > 0) & self._is_used(journal, record, column.buffer))
        parsed = [(rows[part], group) for part, group in self._parse(column, rows)]
        return scatter(column.size, absent_struct(self.message.row, column.buffer, 1), parsed)

    def _is_used(
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
            part
            for number in distinct(version[known])
            for part in self._parse_version(
                cursor, number, np.flatnonzero(known & (version == number))
            )
        ]

    def _parse_version(
        self, cursor: Cursor, version: int, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], Column]]:
        must_end = not self.message.lenient_tail
        found, group, rows = _read(cursor, rows, self.readers[version], must_end=must_end)
        yield self._marked(found, group, None)
        for reader in self.early.get(version, ()):
            if not rows.size:
                return
            found, group, rows = _read(cursor, rows, reader, must_end=True)
            whole = self._completed(group, version, cursor.buffer)
            yield self._marked(found, whole, len(group.columns))

    def _completed(self, group: Group, version: int, buffer: ByteBuffer) -> Group:
        """Give the fields that are missing their defaults, as if the message had not ended."""
        columns = dict(group.columns)
        for each in self.message.struct.fields:
            if each.column not in columns and each.is_in(version, None):
                one = default(each, version, buffer)
                columns[each.column] = take(one, np.zeros(group.size, np.int64))
            elif each.column not in columns:
                columns[each.column] = absent(each, buffer, group.size)
        return Group(columns, group.size)

    def _marked(
        self, rows: NDArray[np.int64], group: Group, fields_written: int | None
    ) -> tuple[NDArray[np.int64], Column]:
        """Say how many fields were written; leave out messages with text that is no UTF-8."""
        if self.message.may_end_early:
            mark = np.full(group.size, fields_written or 0, np.int32)
            is_early = np.full(group.size, fields_written is not None)
            group.columns[FIELDS_WRITTEN.column] = Fixed(mark, is_early)
        broken = invalid_rows(group, struct_type(self.message.row))
        if not broken.any():
            return rows, group
        # A null over text that is no UTF-8 would still fail the whole record.
        readable = np.flatnonzero(~broken)
        return rows[readable], take(group, readable)


def _read(
    cursor: Cursor, rows: NDArray[np.int64], reader: StructReader, *, must_end: bool
) -> tuple[NDArray[np.int64], Group, NDArray[np.int64]]:
    """Read rows; return those that can be read, what they hold, and the others."""
    part = cursor.select(rows)
    group = reader.read(part)
    if must_end:
        part.require_exhausted(Reason.TRAILING_BYTES, "")
    dead = part.dead
    if not dead.any():
        return rows, group, rows[:0]
    living = take(group, np.flatnonzero(~dead))
    assert isinstance(living, Group)
    return rows[~dead], living, rows[dead]
