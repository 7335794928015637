"""How much there is to do, as far as Spark's settings depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.dump.files.model import Slice

SMALL_BYTES = 16 * 1024 * 1024
"""What of segments is decoded and replayed in less time than compiling the queries would take."""

SMALL_RECORDS = 150_000
"""The same in records: about what such segments hold."""


def is_small_dump(slices: Iterable[Slice]) -> bool:
    """Whether the segments that will be read are a small dump."""
    return sum(each.to_position - each.from_position for each in slices) <= SMALL_BYTES


def is_small_workspace(manifest: Mapping[str, Any]) -> bool:
    """Whether the decoded tables of a workspace hold few records."""
    records: int = sum(kind["records"] for kind in manifest["record_types"])
    return records <= SMALL_RECORDS
