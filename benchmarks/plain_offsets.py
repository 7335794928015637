"""Fields of `__consumer_offsets` read with `struct`, one record at a time.

Only what the generated segments hold: OffsetCommit v3 and its tombstones, GroupMetadata v3 with the
consumer protocol's v1 inside.
"""

from __future__ import annotations

from analytics.decode.tables import Origin
from benchmarks.plain_columns import ROWS, Emit, Rows
from benchmarks.plain_fields import FieldReader

_NOTHING = (None,) * 6


class OffsetsRows:
    """Collects the rows of both tables."""

    def __init__(self, origin: Origin, emit: Emit) -> None:
        self.commits = Rows("offset_commit", origin, None, emit)
        self.groups = Rows("group_metadata", origin, None, emit)

    def take(self, surroundings: tuple[object, ...], key: bytes, value: bytes | None) -> None:
        """Decode one record."""
        reader = FieldReader(key)
        number, group = reader.int16(), reader.string()
        if number == 2:
            fields = _group_metadata(FieldReader(value or b""))
            self.groups.append((*surroundings, number, 3, group, *fields))
            return
        key_fields = (group, reader.string(), reader.int32())
        if value is None:
            self.commits.append((*surroundings, number, None, *key_fields, *_NOTHING))
            return
        reader = FieldReader(value)
        version = reader.int16()
        fields = (reader.int64(), reader.int32(), reader.string(), reader.int64(), None, None)
        self.commits.append((*surroundings, number, version, *key_fields, *fields))

    def flush(self) -> None:
        """Make batches of tables that have enough rows."""
        if len(self.commits.rows) >= ROWS:
            self.finish()

    def finish(self) -> None:
        """Make batches of what is left."""
        self.commits.flush()
        self.groups.flush()


def _group_metadata(reader: FieldReader) -> tuple[object, ...]:
    reader.int16()
    protocol_type, generation = reader.string(), reader.int32()
    protocol, leader, timestamp = reader.string(), reader.string(), reader.int64()
    members = [_member(reader) for _ in range(reader.int32())]
    return protocol_type, generation, protocol, leader, timestamp, members


def _member(reader: FieldReader) -> dict[str, object]:
    member: dict[str, object] = {
        name: reader.string()
        for name in ("member_id", "group_instance_id", "client_id", "client_host")
    }
    member["rebalance_timeout"] = reader.int32()
    member["session_timeout"] = reader.int32()
    subscription, assignment = reader.blob() or b"", reader.blob() or b""
    return member | {
        "subscription": subscription,
        "subscription_decoded": _subscription(FieldReader(subscription)),
        "assignment": assignment,
        "assignment_decoded": _assignment(FieldReader(assignment)),
    }


def _subscription(reader: FieldReader) -> dict[str, object]:
    reader.int16()
    return {
        "topics": [reader.string() for _ in range(reader.int32())],
        "user_data": reader.blob(),
        "owned_partitions": _topics(reader),
        "generation_id": None,
        "rack_id": None,
    }


def _assignment(reader: FieldReader) -> dict[str, object]:
    reader.int16()
    return {"assigned_partitions": _topics(reader), "user_data": reader.blob()}


def _topics(reader: FieldReader) -> list[dict[str, object]]:
    return [
        {
            "topic": reader.string(),
            "partitions": [reader.int32() for _ in range(reader.int32())],
        }
        for _ in range(reader.int32())
    ]
