"""Arrays of variable-width elements, in lock-step: the k-th element of every row that has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.wire.columns import Column, Repeated, concat, starts_of, take
from analytics.wire.defaults import absent
from analytics.wire.failure import Reason
from analytics.wire.primitives import checked_length

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.wire.cursor import Cursor
    from analytics.wire.fields import Reader
    from analytics.wire.structs import FlatStruct
    from schemas.model import Field


@dataclass(frozen=True)
class ArrayContent:
    """An array of strings or structs.

    ``flat`` reads elements that, without tagged fields, all have one width; where a tag is there
    after all, the rows go in lock-step like the others.
    """

    each: Field
    path: str
    prefix: np.dtype[np.signedinteger] | None
    nullable: bool
    item: Reader
    flat: FlatStruct | None = None

    def read(self, cursor: Cursor, length: NDArray[np.int64]) -> Repeated:
        """Read count elements of every row; a count that cannot fit fails at once."""
        length = checked_length(cursor, length, self.path, nullable=self.nullable)
        too_many = length * self.item.least > cursor.remaining
        if too_many.any():
            cursor.fail(too_many & ~cursor.dead, Reason.LENGTH_BEYOND_END, self.path)
        dead = cursor.dead
        if dead.any():
            length = np.where(dead, 0, length)
        count = np.maximum(length, 0)
        items: Column | None = self.flat.read(cursor, count) if self.flat is not None else None
        if items is None:
            length, items = self._in_lock_step(cursor, length)
        return Repeated(length, items)

    def _in_lock_step(
        self, cursor: Cursor, length: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Column]:
        rows = np.flatnonzero(length > 0)
        steps: list[tuple[NDArray[np.int64], Column]] = []
        while rows.size:
            part = cursor.select(rows)
            column = self.item.read(part)
            cursor.rejoin(rows, part)
            steps.append((rows, column))
            rows = rows[(length[rows] > len(steps)) & ~part.dead]
        return self._in_order(cursor, length, steps)

    def _in_order(
        self,
        cursor: Cursor,
        length: NDArray[np.int64],
        steps: list[tuple[NDArray[np.int64], Column]],
    ) -> tuple[NDArray[np.int64], Column]:
        """Put elements that were read step by step into row order, those of dead rows left out."""
        if not steps:
            item = absent(self.each, cursor.buffer, 0)
            return length, item.items if isinstance(item, Repeated) else item
        dead = cursor.dead
        length = np.where(dead, 0, length) if dead.any() else length
        items = concat([column for _, column in steps])
        if len(steps) == 1 and not dead.any():
            return length, items
        row = np.concatenate([rows for rows, _ in steps])
        step = np.repeat(np.arange(len(steps)), [rows.size for rows, _ in steps])
        kept = np.flatnonzero(~dead[row])
        place = (starts_of(length)[row] + step)[kept]
        order = np.empty(kept.size, np.int64)
        order[place] = kept
        return length, take(items, order)
