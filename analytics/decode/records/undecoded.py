"""What could not be decoded, kept with its bytes and its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.records.secrets import may_hold_secrets, without_bytes
from analytics.decode.records.tables import UNDECODED, Origin, label, labels, surroundings, table_of
from analytics.wire.columns import Binary
from analytics.wire.text import binary_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.decode.records.failures import Failures
    from analytics.dump.batches.damage import Damage
    from analytics.dump.records.raw_records import RawRecords
    from analytics.wire.cursor import ByteBuffer

_INT32_MAX = 2**31 - 1


def undecoded_records(
    records: RawRecords, failures: Failures, buffer: ByteBuffer, origin: Origin
) -> pa.RecordBatch:
    """Rows of ``undecoded`` for failed records, in log order."""
    if not failures.count:
        return pa.RecordBatch.from_pylist([], schema=UNDECODED)
    rows = np.concatenate(failures.rows)
    number = np.repeat(np.arange(len(failures.rows)), [each.size for each in failures.rows])
    order = np.argsort(rows, kind="stable")
    rows, number = rows[order], number[order]
    detail = pa.array(failures.details, pa.string()).take(pa.array(number))
    value = binary_array(Binary(buffer, records.value.start[rows], records.value.length[rows]))
    if may_hold_secrets(origin.topic):
        detail = without_bytes(detail, pa.array(records.value.length[rows]))
        value = pa.nulls(rows.size, pa.binary())
    columns = surroundings(records, rows, origin) | {
        "key": binary_array(Binary(buffer, records.key.start[rows], records.key.length[rows])),
        "value": value,
        "reason": labels(number, failures.reasons),
        "detail": detail,
    }
    return table_of(UNDECODED, columns, origin)


def undecoded_damages(damages: Sequence[Damage], origin: Origin) -> pa.RecordBatch:
    """Rows of ``undecoded`` for damaged batches and bytes between batches."""
    rows = len(damages)
    detail = pa.array([each.detail for each in damages], pa.string())
    value = pa.array([each.content for each in damages], pa.binary())
    if may_hold_secrets(origin.topic):
        detail = without_bytes(detail, pc.binary_length(value))
        value = pa.nulls(rows, pa.binary())
    columns = {
        "topic": label(origin.topic, rows),
        "partition": pa.array(np.full(rows, origin.partition, np.int32)),
        "offset": pa.nulls(rows, pa.int64()),
        "timestamp": pa.nulls(rows, UNDECODED.field("timestamp").type),
        "key": pa.nulls(rows, pa.binary()),
        "value": value,
        "reason": labels(np.arange(rows), [str(each.reason) for each in damages]),
        "detail": detail,
        "batch_offset": pa.array([each.offset for each in damages], pa.int64()),
        "batch_position": pa.array([each.position for each in damages], pa.int64()),
        "batch_bytes": pa.array([min(each.size, _INT32_MAX) for each in damages], pa.int32()),
        "copy": label(origin.copy, rows),
        "segment": label(origin.segment, rows),
    }
    return table_of(UNDECODED, columns, origin)
