"""Records of some batches as columns, before they are put in order with those of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from analytics.dump.records.raw_records import Spans

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class RecordColumns:
    """One row a record; the columns of `RawRecords` of the same names."""

    batch: NDArray[np.int64]
    offset: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    record_bytes: NDArray[np.int64]
    key: Spans
    value: Spans

    def __len__(self) -> int:
        return self.offset.size

    def take(self, rows: NDArray[Any]) -> Self:
        """Return the given rows (indices or a mask)."""
        return type(self)(
            self.batch[rows],
            self.offset[rows],
            self.timestamp[rows],
            self.record_bytes[rows],
            self.key.take(rows),
            self.value.take(rows),
        )

    @classmethod
    def empty(cls) -> Self:
        """Return no rows."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, none, Spans(none, none), Spans(none, none))

    @classmethod
    def in_batch_order(cls, parts: list[Self]) -> Self:
        """Return the rows of all parts, ordered by batch, else as they were."""
        parts = [part for part in parts if len(part)] or [cls.empty()]
        if len(parts) == 1:
            return parts[0]
        joined = cls(
            np.concatenate([part.batch for part in parts]),
            np.concatenate([part.offset for part in parts]),
            np.concatenate([part.timestamp for part in parts]),
            np.concatenate([part.record_bytes for part in parts]),
            _joined([part.key for part in parts]),
            _joined([part.value for part in parts]),
        )
        return joined.take(np.argsort(joined.batch, kind="stable"))


def _joined(parts: list[Spans]) -> Spans:
    starts = np.concatenate([part.start for part in parts])
    return Spans(starts, np.concatenate([part.length for part in parts]))
