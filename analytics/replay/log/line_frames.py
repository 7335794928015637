"""Decoded tables as they are on the lines of the log that are followed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.as_of import Decoded

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from analytics.replay.log.lines import FollowedLine


def on_lines(
    decoded: Decoded, diverged: Mapping[str, Decoded], lines: Iterable[FollowedLine]
) -> dict[str, DataFrame]:
    """Return the decoded tables as they are on the lines that are followed.

    Args:
        decoded: Tables of the lines that survived, by name.
        diverged: By copy, those of what only a lost line has.
        lines: What is followed.
    """
    lines = list(lines)
    if not lines:
        return dict(decoded)
    is_left = _any_of(_from(each.topic, each.partition, each.diverges_at) for each in lines)
    own: dict[str, list[Column]] = defaultdict(list)
    for each in lines:
        for piece in each.pieces:
            own[piece.copy].append(_from(each.topic, each.partition, piece.first, piece.end))
    found = {}
    for name, frame in decoded.items():
        kept = frame.where(~is_left)
        for copy, conditions in sorted(own.items()):
            if name in diverged.get(copy, {}):
                kept = kept.unionByName(diverged[copy][name].where(_any_of(conditions)))
        found[name] = kept
    return found


def _from(topic: str, partition: int, first: int, end: int | None = None) -> Column:
    # Damaged bytes between batches have no offset; they stay with the line that survived.
    offset = F.coalesce(F.col("offset"), F.lit(-1))
    here = (F.col("topic") == topic) & (F.col("partition") == partition) & (offset >= first)
    return here if end is None else here & (offset < end)


def _any_of(conditions: Iterable[Column]) -> Column:
    found: Column = F.lit(col=False)
    for each in conditions:
        found = found | each
    return found
