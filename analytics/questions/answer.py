"""What a question to a replayed workspace was answered with, and what it could not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from analytics.gaps.group_selection import GroupSelection


@dataclass(frozen=True)
class Evaluated:
    """Tables, and the limits of what they say.

    Attributes:
        tables: By name, with the columns of their contracts (`schemas/tables/`).
        groups: The groups that were asked about.
        doubts: What single rows cannot tell, one sentence each.
    """

    tables: Mapping[str, pa.Table]
    groups: GroupSelection
    doubts: tuple[str, ...] = ()

    @property
    def cannot_tell(self) -> tuple[str, ...]:
        """What the dump does not hold the answer to, one sentence each."""
        return tuple(dict.fromkeys((*self.groups.cannot_tell, *self.doubts)))
