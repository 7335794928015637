"""What a line of history that did not survive had committed last, place by place."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import polars as pl

from analytics.questions.timeline.words import PLACE, VERDICTS
from analytics.replay.offsets.effective_commits import COMMIT

LAST: Final = pl.Schema(
    {
        **{name: VERDICTS[name] for name in PLACE},
        "committed_offset": pl.Int64(),
        "record_offset": pl.Int64(),
        "timestamp": VERDICTS["at"],
    }
)
"""What `last_on_line` returns."""
OTHER_TYPES: Final = pl.Schema({"group_id": pl.String(), "other_type": pl.String()})
"""Of groups, what they were on a lost line."""


@dataclass(frozen=True)
class LostLine:
    """A line of one internal partition that parts from the one that survived.

    Attributes:
        copy: Whose log has it.
        partition: Of `__consumer_offsets`.
        diverges_at: The first offset at which it differs.
        leader_epoch: Of the leader whose election made it a lost one; None where it is not known.
        elected_at: When that was, or no later than when; None where the dump does not say.
        elected_after: Where only bounds are known, the time before which it was not.
        committed_below: The offset below which its records are known to have been committed; None
            where all of them were.
        last: What each place had at its end (`last_on_line`).
        lacks: Which records of either line the dump lacks, in a sentence; None where none.
        other_topic: The id of the topic that the line is of, where that is another one of the same
            name: it was deleted and made again.
        types: `OTHER_TYPES` of groups of which the surviving line says another one.
    """

    copy: str
    partition: int
    diverges_at: int
    leader_epoch: int | None
    elected_at: datetime | None
    last: pl.DataFrame
    lacks: str | None = None
    elected_after: datetime | None = None
    committed_below: int | None = None
    types: pl.DataFrame = field(default_factory=OTHER_TYPES.to_frame)
    other_topic: str | None = None


def last_on_line(ended: pl.DataFrame, diverges_at: int) -> pl.DataFrame:
    """Return the last change of each place that took effect on a line.

    A commit in a transaction takes effect with its COMMIT marker; what another commit made later
    has replaced by then it does not replace (``OffsetMetadataManager``).

    Args:
        ended: Of `ended_commits`: commits of the line, and those before it that may have been
            pending there.
        diverges_at: The first offset of the line.

    Returns:
        `LAST`, in the order of `PLACE`; `committed_offset` is null where the offset was deleted.
    """
    is_of_line = pl.coalesce("end_offset", "record_offset") >= diverges_at
    effective = ended.filter(is_of_line & (~pl.col("waits") | (pl.col("outcome") == COMMIT)))
    last = effective.sort("record_offset").unique(PLACE, keep="last").sort(PLACE)
    last = last.with_columns(pl.col("committed_at").alias("timestamp"))
    return last.select(pl.col(name).cast(kind) for name, kind in LAST.items())
