"""Batches as columns: one row a batch, at the same place in every array."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class BatchRows:
    """What is known of batches; what it is, the fields of those who inherit say.

    Attributes:
        position: Byte position in the file.
    """

    position: NDArray[np.int64]

    def __len__(self) -> int:
        return self.position.size

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """Return the given rows (indices, a mask or a slice)."""
        return type(self)(*(getattr(self, each.name)[rows] for each in fields(self)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of all parts; at least one part."""
        parts = [part for part in parts if len(part)] or list(parts[:1])
        if len(parts) == 1:
            return parts[0]
        names = [each.name for each in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
