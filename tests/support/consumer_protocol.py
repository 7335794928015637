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

    def taken(self, size: int) -> bytes | None:
        if size < 0:
            return None
        piece = self.data[self.position : self.position + size]
        if len(piece) < size:
            raise struct.error("short")
        self.position += size
        return piece

    def string(self) -> str | None:
        piece = self.taken(self.number("h"))
        return None if piece is None else piece.decode("utf-8")

    def octets(self) -> str | None:
        piece = self.taken(self.number("i"))
        return None if piece is None else base64.b64encode(piece).decode("ascii")

    def partitions(self) -> list[dict[str, Any]]:
        return [
            {
                "topic": self.string(),
                "partitions": [self.number("i") for _ in range(self.number("i"))],
            }
            for _ in range(self.number("i"))
        ]


def parse_subscription(data: bytes) -> dict[str, Any] | None:
    """The fields of a subscription in the version the bytes name; null where they are none."""
    reader = _Reader(data)
    try:
        version = min(reader.number("h"), NEWEST_VERSION)
        if version < 0:
            return None
        found: dict[str, Any] = {
            "topics": [reader.string() for _ in range(reader.number("i"))],
            "userData": reader.octets(),
        }
        if version >= 1:
            found["ownedPartitions"] = reader.partitions()
        if version >= 2:
            found["generationId"] = reader.number("i")
        if version >= 3:
            found["rackId"] = reader.string()
    except (struct.error, UnicodeDecodeError):
        return None
    return found


def parse_assignment(data: bytes) -> dict[str, Any] | None:
    """The fields of an assignment; null where the bytes are none."""
    reader = _Reader(data)
    try:
        if reader.number("h") < 0:
            return None
        return {"assignedPartitions": reader.partitions(), "userData": reader.octets()}
    except (struct.error, UnicodeDecodeError):
        return None
