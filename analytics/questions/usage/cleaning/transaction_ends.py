"""How the transactions of a partition ended: what the cleaner drops, and how far it may go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARKERS: Final = (
    *("topic", "partition", "offset", "producer_id", "control_type"),
    "record_bytes",
)
"""The columns of `control_markers` that are read."""
IN_TRANSACTIONS: Final = ("topic", "partition", "offset", "producer_id")
"""The columns of records in transactions that are read."""

ENDS: Final = ("ABORT", "COMMIT")
_ABORT = 0
COMMITTED, ABORTED, OPEN = 0, 1, 2

_Producer = tuple[str, int, int]


@dataclass
class TransactionEnds:
    """The markers of every producer in every partition.

    A record belongs to the first marker of its producer behind it. Behind the last there is none:
    the transaction is open, and the last stable offset is its first record.
    """

    _ends: dict[_Producer, tuple[NDArray[np.int64], NDArray[np.bool_]]] = field(
        default_factory=dict
    )
    _markers: dict[tuple[str, int], list[tuple[int, int]]] = field(default_factory=dict)
    _needed: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    first_open: dict[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, markers: pa.Table) -> TransactionEnds:
        """Take rows of `control_markers`."""
        columns = (markers[name].to_pylist() for name in MARKERS)
        found: dict[_Producer, list[tuple[int, bool]]] = {}
        sizes: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for topic, partition, offset, producer, kind, size in sorted(zip(*columns, strict=True)):
            sizes.setdefault((topic, partition), []).append((offset, size or 0))
            if kind in ENDS and producer is not None:
                ends = found.setdefault((topic, partition, producer), [])
                ends.append((offset, kind == ENDS[_ABORT]))
        return cls(
            {
                key: (
                    np.array([offset for offset, _ in ends], np.int64),
                    np.array([is_abort for _, is_abort in ends], np.bool_),
                )
                for key, ends in found.items()
            },
            sizes,
        )

    def see(self, records: Iterable[pa.Table]) -> None:
        """Look at the records that are in transactions: which transactions are open?"""
        for each in records:
            for topic in each["topic"].unique().to_pylist():
                rows = each.filter(pa.compute.equal(each["topic"], topic))
                offset = rows["offset"].to_numpy()
                partition = rows["partition"].to_numpy()
                state = self.outcome(topic, partition, rows["producer_id"].to_numpy(), offset)
                for number in np.unique(partition[state == OPEN]).tolist():
                    first = int(offset[(state == OPEN) & (partition == number)].min())
                    before = self.first_open.get((topic, number), first)
                    self.first_open[topic, number] = min(first, before)

    def markers_below(self, place: tuple[str, int], bound: int) -> list[tuple[int, int, bool]]:
        """Return the control records that a partition has below an offset.

        Returns:
            Offset, bytes, and whether records of its transaction are still there, as far as `see`
            was shown them.
        """
        needed = self._needed.get(place, set())
        return [
            (offset, size, offset in needed)
            for offset, size in self._markers.get(place, ())
            if offset < bound
        ]

    def outcome(
        self,
        topic: str,
        partition: NDArray[np.int32],
        producer: NDArray[np.int64],
        offset: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Return how the transaction of each record ended."""
        state = np.full(offset.size, OPEN, np.int64)
        order = np.lexsort((producer, partition))
        parts = np.flatnonzero(
            (np.diff(partition[order], prepend=-1) != 0)
            | (np.diff(producer[order], prepend=-2) != 0)
        )
        for rows in np.split(order, parts[1:]) if order.size else ():
            key = (topic, int(partition[rows[0]]), int(producer[rows[0]]))
            ends = self._ends.get(key)
            if ends is None:
                continue
            offsets, is_abort = ends
            place = np.searchsorted(offsets, offset[rows], "right")
            is_ended = place < offsets.size
            ended = np.where(is_abort[np.minimum(place, offsets.size - 1)], ABORTED, COMMITTED)
            state[rows] = np.where(is_ended, ended, OPEN)
            used = offsets[np.unique(place[is_ended])].tolist()
            self._needed.setdefault(key[:2], set()).update(used)
        return state
