"""Fields read with `struct`, one after the other: the small reader that every such script has."""

from __future__ import annotations

import struct

_INT8, _INT16, _INT32, _INT64 = (struct.Struct(f">{each}") for each in "bhiq")


class FieldReader:
    """A position in the bytes of one key or value."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def int8(self) -> int:
        """Read a number of one byte."""
        return self._number(_INT8)

    def int16(self) -> int:
        """Read a number of two bytes."""
        return self._number(_INT16)

    def int32(self) -> int:
        """Read a number of four bytes."""
        return self._number(_INT32)

    def int64(self) -> int:
        """Read a number of eight bytes."""
        return self._number(_INT64)

    def string(self) -> str | None:
        """Read a text behind its length of two bytes; -1 is null."""
        size = self.int16()
        return None if size < 0 else self.take(size).decode()

    def blob(self) -> bytes | None:
        """Read bytes behind their length of four bytes; -1 is null."""
        size = self.int32()
        return None if size < 0 else self.take(size)

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        self.at += size
        return self.data[self.at - size : self.at]

    def _number(self, layout: struct.Struct) -> int:
        value: int = layout.unpack_from(self.data, self.at)[0]
        self.at += layout.size
        return value
