"""Where the clock of share coordinators went back, by partition of `__share_group_state`.

Records of a partition follow each other; where one has an earlier time than the one before it a
clock was set, or the next leader has another one. How far it went back no record shows, as nothing
tells how long it was between the two; nor when a clock that is behind was put right: it only seems
that nothing happened for longer. So in such a log times do not measure how long something took.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

WENT_BACK: Final = "cannot tell how long it stood: the share coordinator's clock was set"
GROUPS_WENT_BACK: Final = "cannot tell how long it is in this phase: the clock of its group was set"
SAME_CLOCK_MS: Final = 1000
"""Clocks of the brokers of a cluster differ by less."""


def clock_steps(tables: Iterable[pa.Table], as_of_ms: int) -> Mapping[int, Numbers]:
    """Return of each partition with such steps the offsets of the first record after each.

    Args:
        tables: All records of the topic up to the instant: `partition`, `offset`, `timestamp`.
        as_of_ms: The instant. Times later than that are not believed, and left out.
    """
    columns = ["partition", "offset", "timestamp"]
    # Tables that were read have columns that may be null, those of a stretch have none such.
    rows = pa.concat_tables([each.select(columns) for each in tables], promote_options="default")
    rows = rows.filter(pc.is_valid(rows["timestamp"]))
    at = pc.cast(rows["timestamp"], pa.int64()).to_numpy() // 1000
    partition, offset = (rows[name].to_numpy().astype(np.int64) for name in columns[:2])
    is_believed = at <= as_of_ms
    at, partition, offset = at[is_believed], partition[is_believed], offset[is_believed]
    order = np.lexsort((offset, partition))
    at, partition, offset = at[order], partition[order], offset[order]
    is_back = (partition[1:] == partition[:-1]) & (at[:-1] - at[1:] > SAME_CLOCK_MS)
    back = np.flatnonzero(is_back) + 1
    return {
        int(number): offset[back[partition[back] == number]]
        for number in np.unique(partition[back])
    }


def are_crossed(steps: Numbers, after: int, until: int | None) -> bool:
    """Return whether the clock went back behind a record, up to another one, or to the end."""
    return bool(((steps > after) & (steps <= (steps if until is None else until))).any())
