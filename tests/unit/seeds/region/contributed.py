"""Contributions as tests write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analytics.seeds.region.contributions import CheckpointKey, Contribution
from analytics.seeds.region.merge import Checkpoint, merged
from schemas.evaluation_rules import region_rules

RULES = region_rules()
NAMES = ("A", "B", "C")


def contribution(
    operator: str,
    offsets: Mapping[str, int],
    *,
    names: Sequence[str] = NAMES,
    sequence_id: int = 7,
    **more: Any,
) -> Contribution:
    return Contribution(
        CheckpointKey("group", "region", None, sequence_id),
        (operator,),
        tuple(names),
        len(set(names)),
        tuple((place(name), offset) for name, offset in sorted(offsets.items())),
        **more,
    )


def place(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def checkpoint(*contributions: Contribution, **more: Any) -> Checkpoint:
    """Return the one checkpoint that these are of."""
    (found,) = merged(contributions, RULES.merge.timeout_ms, **more)
    return found
