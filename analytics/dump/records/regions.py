"""The decompressed side of a chunk: what its compressed batches hold, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.dump.batches.damage import DamageReason
from analytics.dump.records.compression import NoRoomError, UnreadableError, decompress_into
from analytics.dump.records.raw_records import PADDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.damage import Limits


class Expansion:
    """How many bytes one read has decompressed, and may yet."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._allowance = limits.free_expansion_bytes

    def earn(self, size: int) -> None:
        """Bytes of the file were read."""
        self._allowance += size * self._limits.max_expansion

    def spend(self, size: int) -> bool:
        """Whether so many decompressed bytes are still within bounds."""
        self._allowance -= size
        return self._allowance >= 0


class Arena:
    """A buffer that decompressed regions are laid into, in order."""

    def __init__(self, size: int, limits: Limits, expansion: Expansion) -> None:
        self._room = np.empty(size + PADDING, np.uint8)
        self._limits = limits
        self._expansion = expansion
        self.used = 0

    def add(self, codec: int, content: memoryview) -> tuple[int, int] | DamageReason | None:
        """Decompress a batch.

        Returns:
            Where it lies, why it cannot be read, or None where this arena is too full for it.
        """
        room = self._room.data[self.used : -PADDING]
        try:
            size = decompress_into(codec, content, room)
        except UnreadableError:
            return DamageReason.BAD_COMPRESSION
        except NoRoomError:
            if self.used:
                return None
            return self._alone(codec, content, len(room))
        return self._room_for(size)

    def _alone(self, codec: int, content: memoryview, tried: int) -> tuple[int, int] | DamageReason:
        """A batch larger than the arena gets one of its own, of the largest size allowed."""
        most = self._limits.max_decompressed_bytes
        if tried >= most:
            return DamageReason.DECOMPRESSED_TOO_LARGE
        # Memory that is never written costs nothing.
        self._room = np.empty(most + PADDING, np.uint8)
        try:
            return self._room_for(decompress_into(codec, content, self._room.data[:-PADDING]))
        except UnreadableError:
            return DamageReason.BAD_COMPRESSION
        except NoRoomError:
            return DamageReason.DECOMPRESSED_TOO_LARGE

    def _room_for(self, size: int) -> tuple[int, int] | DamageReason:
        if size > self._limits.max_decompressed_bytes or not self._expansion.spend(size):
            return DamageReason.DECOMPRESSED_TOO_LARGE
        start, self.used = self.used, self.used + size
        return start, self.used

    @property
    def data(self) -> NDArray[np.uint8]:
        """What was laid, with `PADDING` zeros after it."""
        self._room[self.used : self.used + PADDING] = 0
        return self._room[: self.used + PADDING]
