"""Whether the dump shows all that the broker knew of a row, and what it lacks otherwise.

A record that is lost can matter to a group only if it lies behind what the group is known from: the
record that is the whole of a classic group, or the end of the life before the present one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NO_GROUP_RECORD = "the group's own record is not in the dump"


@dataclass(frozen=True)
class Loss:
    """Records of a partition that the dump should hold and does not.

    Attributes:
        end_offset: The first offset after them.
        words: What is lost, for people.
    """

    end_offset: int
    words: str


@dataclass(frozen=True)
class Edges:
    """What the dump lacks.

    Attributes:
        losses: By partition of the internal topic, those that can matter at the instant; holes
            that compaction leaves are none.
    """

    losses: Mapping[int, tuple[Loss, ...]] = field(default_factory=dict)


EVERYTHING_KNOWN = Edges()


def with_completeness(rows: DataFrame, edges: Edges) -> DataFrame:
    """Add `complete` and `missing` to groups.

    Args:
        rows: Has `coordinator_partition`, `group_type`, `record_offset` and `known_from`.
        edges: What the dump lacks.
    """
    reasons = [_without_record(), *_losses(edges)]
    missing = F.concat_ws("; ", *reasons)
    return rows.withColumn("missing", F.when(missing != "", missing)).withColumn(
        "complete", F.col("missing").isNull()
    )


def _without_record() -> Column:
    unnamed = F.col("record_offset").isNull() & (F.col("group_type") != "simple")
    return F.when(unnamed, NO_GROUP_RECORD)


def _losses(edges: Edges) -> list[Column]:
    return [
        F.when(
            (F.col("coordinator_partition") == partition) & (F.col("known_from") < loss.end_offset),
            loss.words,
        )
        for partition, losses in sorted(edges.losses.items())
        for loss in losses
    ]
