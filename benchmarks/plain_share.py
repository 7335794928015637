"""Fields of `__share_group_state` read with `struct`, one record at a time.

Only what the generated segments hold: ShareSnapshot and ShareUpdate v0 in the layout of 4.1,
without tagged fields, and arrays short enough for a length of one byte.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode

from analytics.decode.tables import Origin
from benchmarks.plain_columns import ROWS, Emit, Rows
from benchmarks.plain_fields import FieldReader

_LAYOUT = "4.1+"


class ShareRows:
    """Collects the rows of both tables."""

    def __init__(self, origin: Origin, emit: Emit) -> None:
        self.snapshots = Rows("share_snapshot", origin, _LAYOUT, emit)
        self.updates = Rows("share_update", origin, _LAYOUT, emit)

    def take(self, surroundings: tuple[object, ...], key: bytes, value: bytes | None) -> None:
        """Decode one record."""
        reader = FieldReader(key)
        number, group = reader.int16(), reader.string()
        topic_id = urlsafe_b64encode(reader.take(16))[:22].decode()
        place = (*surroundings, number, 0, group, topic_id, reader.int32())
        reader = FieldReader(value or b"")
        reader.int16()
        if number == 0:
            epochs = reader.int32(), reader.int32(), reader.int32()
            start, created, written = reader.int64(), reader.int64(), reader.int64()
            batches = _state_batches(reader)
            self.snapshots.append((*place, *epochs, start, -1, created, written, batches))
        else:
            snapshot, leader, start = reader.int32(), reader.int32(), reader.int64()
            self.updates.append((*place, snapshot, leader, start, -1, _state_batches(reader)))

    def flush(self) -> None:
        """Make batches of tables that have enough rows."""
        if len(self.updates.rows) >= ROWS:
            self.finish()

    def finish(self) -> None:
        """Make batches of what is left."""
        self.snapshots.flush()
        self.updates.flush()


def _state_batches(reader: FieldReader) -> list[tuple[int, int, int, int]]:
    """Read a compact array, whose count is one too many."""
    batches = []
    for _ in range(reader.int8() - 1):
        batches.append((reader.int64(), reader.int64(), reader.int8(), reader.int16()))
        reader.int8()  # no tagged fields
    return batches
