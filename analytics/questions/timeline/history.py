"""The history of offsets, looked up by place without a Python step for each change."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.timeline.words import PLACE, Place
from analytics.replay.offsets.offset_causes import TOPIC_RECREATED

TRANSACTION_COMMIT = "transaction_commit"
COMMITS = ("commit", TRANSACTION_COMMIT)
ABORT, DELETE = "transaction_abort", "delete"

Change = dict[str, Any]


class OffsetHistory:
    """Changes of committed offsets, those of one place in the order in which they took effect."""

    def __init__(self, rows: pa.Table) -> None:
        """Sort the changes.

        Args:
            rows: Of the table `offset_history`. Aborted transactions changed nothing, and are left
                out.
        """
        effective = rows.filter(pc.not_equal(rows["event"], ABORT))
        order = [(name, "ascending") for name in (*PLACE, "effective_offset")]
        self.rows = effective.sort_by(order).combine_chunks()

    @cached_property
    def places(self) -> dict[Place, range]:
        """Where the changes of each place are."""
        if not self.rows.num_rows:
            return {}
        is_first = np.zeros(self.rows.num_rows, bool)
        is_first[0] = True
        for name in PLACE:
            codes = self.rows[name].combine_chunks().dictionary_encode().indices.to_numpy()
            is_first[1:] |= codes[1:] != codes[:-1]
        firsts = np.flatnonzero(is_first)
        ends = [*firsts[1:].tolist(), self.rows.num_rows]
        named = self.rows.take(pa.array(firsts))
        keys = zip(*(named[name].to_pylist() for name in PLACE), strict=True)
        return {
            key: range(first, end)
            for key, first, end in zip(keys, firsts.tolist(), ends, strict=True)
        }

    def at(self, index: int) -> Change:
        """Return one change."""
        row: Change = self.rows.slice(index, 1).to_pylist()[0]
        return row

    def of(self, place: Place) -> range:
        """Return where the changes of a place are; an empty range where it has none."""
        return self.places.get(place, range(0))

    def place_of(self, index: int) -> Place:
        """Return the place whose change this is."""
        group, topic, partition = (self.rows[name][index].as_py() for name in PLACE)
        return group, topic, partition

    def before(self, place: Place, offset: int) -> Change | None:
        """Return the last change that took effect before a record of the internal partition."""
        found = self._first_from(place, offset)
        return self.at(found - 1) if found > self.of(place).start else None

    def first_from(self, place: Place, offset: int) -> Change | None:
        """Return the first change that took effect at a record or later."""
        found = self._first_from(place, offset)
        return self.at(found) if found < self.of(place).stop else None

    def highest_of(self, place: Place, topic_id: str | None) -> int | None:
        """Return the highest offset that was committed at a place for the topic of an id.

        Commits that name no id count since the topic is last known to have been another one.
        """
        span = self.of(place)
        rows = self.rows.slice(span.start, len(span))
        again = np.flatnonzero(
            pc.fill_null(pc.equal(rows["cause"], TOPIC_RECREATED), fill_value=False).to_numpy()
        )
        rows = rows.slice(int(again[-1])) if len(again) else rows
        if topic_id is not None:
            is_same = pc.fill_null(pc.equal(rows["topic_id"], topic_id), fill_value=True)
            rows = rows.filter(is_same)
        highest: int | None = pc.max(rows["committed_offset"]).as_py()
        return highest

    def last_time_before(self, place: Place, offset: int) -> datetime | None:
        """Return the time of the last change before a record, or else of the first one."""
        span = self.of(place)
        if not span:
            return None
        found = max(self._first_from(place, offset) - 1, span.start)
        at: datetime | None = self.rows["effective_timestamp"][found].as_py()
        return at

    def _first_from(self, place: Place, offset: int) -> int:
        span = self.of(place)
        return span.start + int(np.searchsorted(self._offsets[span.start : span.stop], offset))

    def next_commit(self, index: int) -> Change | None:
        """Return the first commit of the same place after a change."""
        end = self.of(self.place_of(index)).stop
        found = int(np.searchsorted(self._commits, index, side="right"))
        if found == len(self._commits) or self._commits[found] >= end:
            return None
        return self.at(int(self._commits[found]))

    def where(self, mask: pa.ChunkedArray) -> list[int]:
        """Return the places in the order of all changes for which a condition holds."""
        found: list[int] = np.flatnonzero(pc.fill_null(mask, False).to_numpy()).tolist()  # noqa: FBT003
        return found

    def last_in_force(self) -> list[Change]:
        """Return the commit in force at the end of each place that has one."""
        lasts = self.rows.take(pa.array([span[-1] for span in self.places.values()], pa.int64()))
        found: list[Change] = lasts.filter(pc.not_equal(lasts["event"], DELETE)).to_pylist()
        return found

    @cached_property
    def _offsets(self) -> np.ndarray[Any, Any]:
        offsets: np.ndarray[Any, Any] = self.rows["effective_offset"].to_numpy()
        return offsets

    @cached_property
    def _commits(self) -> np.ndarray[Any, Any]:
        is_commit = pc.is_in(self.rows["event"], pa.array(COMMITS))
        return np.flatnonzero(is_commit.to_numpy())
