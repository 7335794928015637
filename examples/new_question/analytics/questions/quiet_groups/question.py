"""Which groups have members, and have committed nothing for a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import in_contract_order, polars_rows, table_of_frame
from analytics.gaps.gap import gap
from analytics.gaps.group_selection import select_groups
from analytics.questions.question import Answer, Question
from analytics.replayed.replayed_workspace import instant_of

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

TABLE: Final = "quiet_groups"
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True)
class QuietSettings:
    """What of quiet groups is asked.

    Attributes:
        minutes: A group without a commit for longer is quiet.
    """

    minutes: float = 3


def quiet_groups(state: ReplayedWorkspace, settings: QuietSettings) -> Answer:
    """Return when each group with members last committed, and whether that is long ago.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    selected = select_groups(state)
    groups = polars_rows(selected.rows).filter(pl.col("member_count") > 0)
    offsets = polars_rows(state.tables.read("committed_offsets"))
    commits = offsets.group_by("group_id").agg(
        pl.col("commit_timestamp").max().alias("last_commit_at"),
        pl.col("missing").drop_nulls().first().alias("lacks"),
    )
    since = (pl.lit(instant_of(state)) - pl.col("last_commit_at")).dt.total_milliseconds()
    rows = groups.join(commits, on="group_id", how="left").select(
        "group_id",
        pl.col("member_count").alias("members"),
        "last_commit_at",
        since.alias("quiet_ms"),
        pl.coalesce("missing", "lacks").alias("missing"),
    )
    verdict = (
        pl.when(pl.col("missing").is_not_null())
        .then(pl.lit("cannot_tell"))
        .when(pl.col("quiet_ms").is_null())
        .then(pl.lit("never_committed"))
        .when(pl.col("quiet_ms") > settings.minutes * _MINUTE_MS)
        .then(pl.lit("quiet"))
        .otherwise(pl.lit("committing"))
    )
    rows = rows.with_columns(
        verdict.alias("verdict"), pl.col("missing").is_null().alias("complete")
    )
    lacking = rows.filter(~pl.col("complete")).group_by("missing").len().sort("missing")
    return Answer(
        {TABLE: table_of_frame(TABLE, in_contract_order(TABLE, rows))},
        selected,
        tuple(gap("quietness_unknown", groups=n, why=why) for why, n in lacking.rows()),
    )


QUIET_GROUPS: Final = Question(
    name=TABLE,
    needs=("groups", "committed_offsets"),
    tables=(TABLE,),
    settings=QuietSettings,
    answer=quiet_groups,
)
