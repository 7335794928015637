"""What records are about that lie between the two cuts of a log whose times go back.

A log is cut at the later of the two (`analytics.replay.log.frames`); what a record between them is
about may have been otherwise at the instant. Of everything else both cuts say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY, KINDS
from analytics.replay.log.frames import disputed
from analytics.replay.log.losses import HOME, of_partition
from analytics.replay.offsets.commit_rows import COMMITS, KEY, commit_rows, marker_rows
from analytics.replay.offsets.effective_commits import ended_commits
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.as_of import Decoded
    from analytics.replay.log.coverage import Coverage
    from analytics.replay.log.rules import ReplayRules

WHY = "between_cuts"
"""The column that says in words what is not certain, and why."""


@dataclass(frozen=True)
class BetweenCuts:
    """What is not certain of groups, a row each.

    Attributes:
        offsets: `KEY` and `WHY`.
        groups: `GROUP_KEY` and `WHY`, of groups with records of their own between the cuts.
    """

    offsets: pl.DataFrame
    groups: pl.DataFrame


NOTHING = BetweenCuts(
    pl.DataFrame(schema={**{name: COMMITS[name] for name in KEY}, WHY: pl.String()}),
    pl.DataFrame(schema={**{name: COMMITS[name] for name in GROUP_KEY}, WHY: pl.String()}),
)
"""The times of no log go back."""


def between_cuts(decoded: Decoded, rules: ReplayRules, coverage: Coverage) -> BetweenCuts:
    """Return what the records between the two cuts of partitions are about.

    Args:
        decoded: Decoded tables of whole groups, cut at an instant.
        rules: Of the release.
        coverage: Says where logs were cut.
    """
    frames = disputed(coverage.frames, CONSUMER_OFFSETS)
    if not frames:
        return NOTHING
    starts = {number: each.certain_end for number, each in frames.items()}
    words = {number: each.why(CONSUMER_OFFSETS, number) for number, each in frames.items()}
    is_there = pl.col(HOME).is_in(list(starts))
    start, why = of_partition(starts), of_partition(words, pl.String()).alias(WHY)
    commits = commit_rows(decoded["offset_commit"]).filter(is_there)
    ended = ended_commits(commits, marker_rows(decoded["control_markers"]), rules)
    is_between = (pl.col("record_offset") >= start) | (pl.col("end_offset") >= start).fill_null(
        value=False
    )
    offsets = ended.filter(is_between).select(*KEY, why).unique()
    named = [
        decoded[name].select(
            pl.col("partition").alias(HOME),
            pl.col("key").struct.field(kind.group_field).alias("group_id"),
            "offset",
        )
        for name, kind in KINDS.items()
        if decoded[name].height
    ]
    if not named:
        return BetweenCuts(offsets, NOTHING.groups)
    records = pl.concat(named).filter(is_there).filter(pl.col("offset") >= start)
    return BetweenCuts(offsets, records.select(*GROUP_KEY, why).unique())
