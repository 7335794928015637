"""The consumer protocol inside group metadata, read one value at a time with ``struct``.

An independent reading of what Kafka's ``ConsumerProtocolSubscription`` and
``ConsumerProtocolAssignment`` hold, in the shape the tools print it: it ties the raw bytes a
decoded row keeps to the object the tool printed in their place.
"""

from __future__ import annotations

import base64
import struct
from typing import Any

NEWEST_VERSION = 3


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def number(self, code: str) -> int:
        (value,) = struct.unpack_from(">" + code, self.data, self.position)
        self.position += struct.calcsize(">" + code)
        return int(value)

    def taken(self, size: int) -> bytes:
        if size < 0:
            raise struct.error("null or negative")
        piece = self.data[self.position : self.position + size]
        if len(piece) < size:
            raise struct.error("short")
        self.position += size
        return piece

    def count(self) -> range:
        size = self.number("i")
        if size < 0:
            raise struct.error("null or negative")
        return range(size)

    def string(self) -> str:
        return self.taken(self.number("h")).decode("utf-8")

    def nullable_string(self) -> str | None:
        size = self.number("h")
        return None if size < 0 else self.taken(size).decode("utf-8")

    def nullable_octets(self) -> str | None:
        size = self.number("i")
        return None if size < 0 else base64.b64encode(self.taken(size)).decode("ascii")

    def partitions(self) -> list[dict[str, Any]]:
        return [
            {"topic": self.string(), "partitions": [self.number("i") for _ in self.count()]}
            for _ in self.count()
        ]


def parse_subscription(data: bytes) -> dict[str, Any] | None:
    """The fields of a subscription in the version the bytes name; null where they are none."""
    reader = _Reader(data)
    try:
        version = min(reader.number("h"), NEWEST_VERSION)
        if version < 0:
            return None
        found: dict[str, Any] = {
            "topics": [reader.string() for _ in reader.count()],
            "userData": reader.nullable_octets(),
        }
        if version >= 1:
            found["ownedPartitions"] = reader.partitions()
        if version >= 2:
            found["generationId"] = reader.number("i")
        if version >= 3:
            found["rackId"] = reader.nullable_string()
    except (struct.error, UnicodeDecodeError):
        return None
    return found


def parse_assignment(data: bytes) -> dict[str, Any] | None:
    """The fields of an assignment; null where the bytes are none."""
    reader = _Reader(data)
    try:
        if reader.number("h") < 0:
            return None
        return {"assignedPartitions": reader.partitions(), "userData": reader.nullable_octets()}
    except (struct.error, UnicodeDecodeError):
        return None
