"""Which partition of which group each commit is of, as numbers that folds keep things under."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.commits.key_fold import (
    GROUP,
    PARTITION,
    PARTS,
    TOPIC,
    fill_slots,
    number_keys,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Numbers = NDArray[np.int64]

KEY: Final = ("group_id", "topic", "partition")
_FEWEST_SLOTS: Final = 1 << 10


@dataclass
class Names:
    """Texts by the number they were given, in the order in which they were seen first."""

    numbers: dict[str | None, int] = field(default_factory=dict)
    _last: tuple[pa.Array, _Numbers] | None = None

    def of(self, column: pa.ChunkedArray) -> _Numbers:
        """Return the number of each text; null has one, too. New ones are given the next."""
        encoded = column.combine_chunks()
        if not pa.types.is_dictionary(encoded.type):
            encoded = pc.dictionary_encode(encoded, null_encoding="encode")
        found = self._numbers_of(encoded.dictionary)
        indices = encoded.indices
        if indices.null_count:
            # What was read as a dictionary has its nulls among the places, not among the texts.
            found = np.append(found, self.numbers.setdefault(None, len(self.numbers)))
            indices = pc.fill_null(indices, pa.scalar(len(found) - 1, indices.type))
        places: _Numbers = found[indices.to_numpy(zero_copy_only=False)]
        return places

    def array(self) -> pa.Array:
        """Return the texts by number."""
        return pa.array(list(self.numbers), pa.string())

    def _numbers_of(self, texts: pa.Array) -> _Numbers:
        # The batches of a file share the texts of its row group.
        if self._last is None or not self._last[0].equals(texts):
            known = self.numbers
            found = [known.setdefault(each, len(known)) for each in texts.to_pylist()]
            self._last = texts, np.array(found, np.int64)
        return self._last[1]


@dataclass
class CommitKeys:
    """The partitions of groups that were seen, by number.

    Attributes:
        count: How many there are.
    """

    count: int = 0
    _groups: Names = field(default_factory=Names)
    _topics: Names = field(default_factory=Names)
    _kept: _Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    _slots: _Numbers = field(default_factory=lambda: np.zeros(_FEWEST_SLOTS, np.int64))

    def numbers_of(self, commits: pa.Table) -> _Numbers:
        """Return the number of each commit's group, topic and partition."""
        rows = commits.num_rows
        parts = np.empty((rows, PARTS), np.int64)
        parts[:, GROUP] = self._groups.of(commits["group_id"])
        parts[:, TOPIC] = self._topics.of(commits["topic"])
        parts[:, PARTITION] = commits["partition"].to_numpy()
        self._make_room(rows)
        numbers = np.empty(rows, np.int64)
        flat = parts.reshape(-1)
        self.count = number_keys(len(flat), flat, self.count, self._kept, self._slots, numbers)
        return numbers

    def named(self, first: int = 0) -> pa.Table:
        """Return `group_id`, `topic` and `partition` by number, from one on."""
        kept = self._kept[: self.count * PARTS].reshape(-1, PARTS)[first:]
        return pa.table(
            [
                self._groups.array().take(pa.array(kept[:, GROUP])),
                self._topics.array().take(pa.array(kept[:, TOPIC])),
                pa.array(kept[:, PARTITION].astype(np.int32)),
            ],
            names=list(KEY),
        )

    def _make_room(self, more: int) -> None:
        most = self.count + more
        if most * PARTS > len(self._kept):
            room = np.empty((most + self.count) * PARTS, np.int64)
            room[: self.count * PARTS] = self._kept[: self.count * PARTS]
            self._kept = room
        if 2 * most > len(self._slots):
            self._slots = np.zeros(1 << (2 * most - 1).bit_length(), np.int64)
            known = self._kept[: self.count * PARTS]
            fill_slots(len(known), known, self._slots)
