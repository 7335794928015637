"""The table `clock_differences`: records whose times contradict each other.

A coordinator stores a commit with the time at which it was made, and a classic group with the time
at which it entered its state; the record has the time at which it was appended. All three are of
the same broker within less than a second, unless a client gave the time of its commit
(OffsetCommit up to version 1), a clock was set, or clocks of two leaders differ. Offsets expire by
these times (``OffsetExpirationConditionImpl``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import table_of
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from numpy.typing import NDArray

COMMIT_TIME, STATE_TIME, APPEND_TIME = "commit_time", "state_time", "append_time"
COMMITTED: Final = "value.commit_timestamp"
ENTERED: Final = "value.current_state_timestamp"
PLACED: Final = ("partition", "offset", "timestamp")
"""The columns of every table that are read."""
_SAME: Final = ("partition", "clock", "group_id")
_FOUND: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("clock", pa.string()),
        ("group_id", pa.string()),
        ("offset", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("least", pa.int64()),
        ("most", pa.int64()),
        ("count", pa.int64()),
    ]
)
_FOLDED: Final = (
    *(("offset", "min"), ("at", "min"), ("least", "min")),
    *(("most", "max"), ("count", "sum")),
)


@dataclass
class ClockDifferences:
    """Records whose times differ by more than a limit.

    Attributes:
        limit_ms: Up to so many milliseconds are none; whole ones, as times may be any number of 64
            bits, which a fraction is not compared with.
    """

    limit_ms: int
    _found: list[pa.Table] = field(default_factory=list)
    _latest: dict[int, int] = field(default_factory=dict)

    def add_commits(self, records: pa.RecordBatch) -> None:
        """Take commits in the order of the log: `PLACED`, `COMMITTED` and the key."""
        made = _milliseconds(pc.struct_field(records["value"], COMMITTED.rpartition(".")[2]))
        appended = _milliseconds(records["timestamp"])
        groups = pc.struct_field(records["key"], "group")
        ahead = pc.subtract(made, appended)
        is_apart = pc.greater(pc.abs(ahead), self.limit_ms)
        self._keep(records, COMMIT_TIME, groups, ahead, is_apart)
        behind = self._behind(records["partition"], appended)
        nobody = pa.nulls(len(records), pa.string())
        self._keep(records, APPEND_TIME, nobody, behind, pc.less(behind, -self.limit_ms))

    def add_states(self, records: pa.RecordBatch) -> None:
        """Take records of classic groups: `PLACED`, `ENTERED` and the key.

        A group that is stored anew stays in the state that it entered long ago; it cannot have
        entered one after its record was appended.
        """
        entered = _milliseconds(pc.struct_field(records["value"], ENTERED.rpartition(".")[2]))
        ahead = pc.subtract(entered, _milliseconds(records["timestamp"]))
        groups = pc.struct_field(records["key"], "group")
        self._keep(records, STATE_TIME, groups, ahead, pc.greater(ahead, self.limit_ms))

    def rows(self) -> pa.Table:
        """Return the table `clock_differences`, the largest first."""
        rows = [
            {
                "topic": CONSUMER_OFFSETS,
                **{name: each[name] for name in _SAME},
                "records": each["count"],
                "most_ahead_ms": each["most"] if each["most"] > 0 else None,
                "most_behind_ms": -each["least"] if each["least"] < 0 else None,
                "most_ms": max(each["most"], -each["least"]),
                "first_offset": each["offset"],
                "first_at": each["at"],
            }
            for each in _folded(self._found).to_pylist()
        ]
        order = [("most_ms", "descending"), *((name, "ascending") for name in _SAME)]
        return table_of("clock_differences", rows).sort_by(order)

    def _keep(
        self,
        records: pa.RecordBatch,
        clock: str,
        groups: pa.Array,
        ahead: pa.Array,
        is_apart: pa.Array,
    ) -> None:
        kept = pc.fill_null(is_apart, False)  # noqa: FBT003
        if not pc.any(kept).as_py():
            return
        columns = [
            pc.cast(records["partition"], pa.int32()),
            pa.repeat(clock, len(records)),
            pc.cast(groups, pa.string()),
            records["offset"],
            pc.cast(records["timestamp"], _FOUND.field("at").type),
            *(ahead, ahead),
            pa.repeat(pa.scalar(1, pa.int64()), len(records)),
        ]
        self._found.append(_folded([pa.table(columns, schema=_FOUND).filter(kept)]))

    def _behind(self, partitions: pa.Array, appended: pa.Array) -> pa.Array:
        """Return how far each record is before the latest one before it; at most 0."""
        known = pc.is_valid(appended).to_numpy(zero_copy_only=False)
        times: NDArray[np.int64] = pc.fill_null(appended, 0).to_numpy(zero_copy_only=False)
        numbers = partitions.to_numpy(zero_copy_only=False)
        behind = np.zeros(len(times), np.int64)
        for partition in np.unique(numbers).tolist():
            mine = np.flatnonzero((numbers == partition) & known)
            if len(mine):
                before = self._latest.get(partition, int(times[mine[0]]))
                latest = np.maximum.accumulate(np.append(before, times[mine]))
                behind[mine] = times[mine] - latest[1:]
                self._latest[partition] = int(latest[-1])
        return pa.array(behind)


def _folded(found: list[pa.Table]) -> pa.Table:
    rows = pa.concat_tables([_FOUND.empty_table(), *found])
    folded = rows.group_by(list(_SAME), use_threads=False).aggregate(list(_FOLDED))
    return folded.rename_columns([*_SAME, *(name for name, _ in _FOLDED)]).cast(_FOUND)


def _milliseconds(times: pa.Array) -> pa.Array:
    """Return times as numbers; -1 is none."""
    if pa.types.is_timestamp(times.type):
        times = pc.cast(times, pa.timestamp("ms", times.type.tz), safe=False)
    numbers = pc.cast(times, pa.int64())
    return pc.if_else(pc.less(numbers, 0), pa.scalar(None, pa.int64()), numbers)
