"""Control records: transaction markers and, in the metadata log, leader changes and snapshots.

Key: int16 version, int16 type. COMMIT and ABORT have int16 version and int32 coordinator epoch in
their value (``EndTransactionMarker``); the producer is that of the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analytics.decode.records.failures import Failures
from analytics.decode.records.tables import CONTROL_MARKERS, Origin, labels, surroundings, table_of
from analytics.wire.failure import Reason

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.records.raw_records import RawRecords
    from analytics.wire.cursor import ByteBuffer

# ControlRecordType; a number without a word stands for itself.
CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
_TRANSACTION_ENDS = (0, 1)
_KEY = np.dtype([("version", ">i2"), ("type", ">i2")])
_END = np.dtype([("version", ">i2"), ("epoch", ">i4")])


def decode_control(
    records: RawRecords, rows: NDArray[np.int64], buffer: ByteBuffer, origin: Origin
) -> tuple[pa.RecordBatch, Failures]:
    """Decode control records into rows of ``control_markers``."""
    failures = Failures()
    key_length = records.key.length[rows]
    readable = key_length >= _KEY.itemsize
    failures.add(rows[key_length < 0], Reason.NULL_KEY, "control record")
    short = rows[~readable & (key_length >= 0)]
    failures.add(short, Reason.TRUNCATED, "control record: key")
    rows = rows[readable]
    number = buffer.gather(_KEY, records.key.start[rows])["type"].astype(np.int64)
    ends = np.isin(number, _TRANSACTION_ENDS)
    cut = ends & (records.value.length[rows] < _END.itemsize)
    failures.add(rows[cut], Reason.TRUNCATED, "control record: coordinatorEpoch")
    rows, number, ends = rows[~cut], number[~cut], ends[~cut]
    epoch = buffer.gather(_END, np.where(ends, records.value.start[rows], 0))["epoch"]
    known, index = np.unique(number, return_inverse=True)
    words = [CONTROL_TYPES.get(each, str(each)) for each in known.tolist()]
    columns = surroundings(records, rows, origin) | {
        "control_type": labels(index, words),
        "coordinator_epoch": pa.array(epoch.astype(np.int32), mask=~ends),
    }
    return table_of(CONTROL_MARKERS, columns, origin), failures
