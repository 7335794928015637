"""The consumer protocol inside group metadata, read one value at a time with ``struct``.

An independent reading of what Kafka's ``ConsumerProtocolSubscription`` and
``ConsumerProtocolAssignment`` hold, in the shape the tools print it: it ties the raw bytes a
decoded row keeps to the object the tool printed in their place.

Bytes that end right behind a field are read as far as they go, which the tools do not:
``fieldsWritten`` is there then, and says how far that is.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
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


_Read = Callable[[_Reader], Any]


def is_newer(data: bytes) -> bool:
    """Whether a message names a version above the newest: Kafka reads it as that one."""
    return _Reader(data).number("h") > NEWEST_VERSION


def parse_subscription(data: bytes) -> dict[str, Any] | None:
    """The fields of a subscription in the version the bytes name; null where they are none."""
    since_version: list[tuple[int, str, _Read, Any]] = [
        (0, "topics", lambda of: [of.string() for _ in of.count()], None),
        (0, "userData", _Reader.nullable_octets, None),
        (1, "ownedPartitions", _Reader.partitions, []),
        (2, "generationId", lambda of: of.number("i"), -1),
        (3, "rackId", _Reader.nullable_string, None),
    ]
    return _parsed(data, since_version)


def parse_assignment(data: bytes) -> dict[str, Any] | None:
    """The fields of an assignment; null where the bytes are none."""
    return _parsed(
        data,
        [
            (0, "assignedPartitions", _Reader.partitions, None),
            (0, "userData", _Reader.nullable_octets, None),
        ],
    )


def _parsed(data: bytes, fields: list[tuple[int, str, _Read, Any]]) -> dict[str, Any] | None:
    reader = _Reader(data)
    found: dict[str, Any] = {}
    try:
        version = min(reader.number("h"), NEWEST_VERSION)
        if version < 0:
            return None
        for since, name, read, default in fields:
            if since > version:
                continue
            if found and reader.position == len(data):
                found.setdefault("fieldsWritten", len(found))
                found[name] = default
            else:
                found[name] = read(reader)
    except (struct.error, UnicodeDecodeError):
        return None
    return found
