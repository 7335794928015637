"""The tagged section that ends every struct of a flexible version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.wire.columns import Column, distinct, scatter
from analytics.wire.cursor import UnknownTags
from analytics.wire.defaults import default
from analytics.wire.failure import Reason
from analytics.wire.primitives import read_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.wire.cursor import Cursor
    from analytics.wire.fields import Reader
    from schemas.model import Field

Parts = dict[int, list[tuple["NDArray[np.int64]", Column]]]
_LEAST_TAG = 2


@dataclass(frozen=True)
class TaggedField:
    """A field with a tag and the reader of its payload."""

    each: Field
    reader: Reader


@dataclass(frozen=True)
class TagSection:
    """Reads the section: known tags become columns, unknown ones are kept raw."""

    path: str
    version: int
    fields: Mapping[int, TaggedField]

    def read(self, cursor: Cursor, columns: dict[str, Column]) -> None:
        """Read the section of every row; a tag that was not written holds its default."""
        count = read_unsigned_varint(cursor, self._at("tags"))
        parts: Parts = {tag: [] for tag in self.fields}
        if count.any():
            too_many = count * _LEAST_TAG > cursor.remaining
            if too_many.any():
                cursor.fail(too_many & ~cursor.dead, Reason.LENGTH_BEYOND_END, self._at("tags"))
            rows = np.flatnonzero((count > 0) & ~cursor.dead)
            step = 0
            while rows.size:
                part = cursor.select(rows)
                self._read_one(part, rows, parts)
                cursor.rejoin(rows, part)
                step += 1
                rows = rows[(count[rows] > step) & ~part.dead]
        for tag, tagged in self.fields.items():
            unwritten = default(tagged.each, self.version, cursor.buffer)
            columns[tagged.each.column] = scatter(cursor.size, unwritten, parts[tag])

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _read_one(self, cursor: Cursor, rows: NDArray[np.int64], parts: Parts) -> None:
        tag = read_unsigned_varint(cursor, self._at("tag"))
        size = read_unsigned_varint(cursor, self._at("tag size"))
        start = cursor.claim(size, Reason.LENGTH_BEYOND_END, self._at("tag size"))
        dead = cursor.dead
        for number in distinct(tag[~dead]):
            chosen = np.flatnonzero((tag == number) & ~dead)
            tagged = self.fields.get(number)
            if tagged is None:
                self._keep(cursor, chosen, number, start[chosen], size[chosen])
            else:
                column = self._payload(cursor, tagged, chosen, start[chosen], size[chosen])
                parts[number].append((rows[chosen], column))

    def _payload(
        self,
        cursor: Cursor,
        tagged: TaggedField,
        chosen: NDArray[np.int64],
        start: NDArray[np.int64],
        size: NDArray[np.int64],
    ) -> Column:
        after, end = cursor.position[chosen], cursor.end[chosen]
        part = cursor.select(chosen)
        part.position, part.end = start, start + size
        column = tagged.reader.read(part)
        part.require_exhausted(Reason.TRAILING_BYTES, self._at(tagged.each.name))
        living = ~part.dead
        part.position, part.end = np.where(living, after, 0), np.where(living, end, part.end)
        cursor.rejoin(chosen, part)
        return column

    def _keep(
        self,
        cursor: Cursor,
        chosen: NDArray[np.int64],
        tag: int,
        start: NDArray[np.int64],
        size: NDArray[np.int64],
    ) -> None:
        tags = np.full(chosen.size, tag, np.int64)
        cursor.journal.unknown_tags.append(
            UnknownTags(cursor.row[chosen], self.path, tags, start, size)
        )
