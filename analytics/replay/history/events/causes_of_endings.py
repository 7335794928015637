"""Why a group was deleted: what took its last offsets in the same act took the group, too.

DeleteGroups, the cleanup and the deletion of a topic write the group's own tombstone with those of
its offsets (``OffsetMetadataManager``, ``GroupMetadataManager.maybeDeleteGroup``), at one time. A
group whose tombstone is alone had no offset to say why: who deleted it is not known.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY
from analytics.replay.history.events.event_frames import with_word, words
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import uncompacted_from, with_missing
from analytics.replay.offsets.offset_causes import UNKNOWN
from analytics.replay.offsets.offset_changes import DELETE

DELETED: Final = "deleted"
_ACT: Final = (*GROUP_KEY, "at")
_SEVERAL: Final = f"{UNKNOWN} (its offsets went for several reasons)"
_LEFT_OUT: Final = "offsets of other topics, which may tell why it went, were left out by --topic"
_MAY_BE_TAKEN: Final = "the tombstones of its offsets, which tell why it went, may be gone"


def with_causes_of_endings(
    events: pl.DataFrame, history: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Say in the detail of `deleted` by what, as of the offsets that went in the same act.

    Args:
        events: Of groups, rows of `group_events`.
        history: The table `offset_history` of the same groups.
        coverage: What the dump holds.

    Returns:
        The same rows. Where no offset went at that time, or two of them for two reasons, the cause
        is unknown; `missing` says what the dump lacks that might tell it.
    """
    of_acts = (
        history.filter((pl.col("event") == DELETE) & pl.col("effective_timestamp").is_not_null())
        .select(
            *GROUP_KEY,
            pl.col("effective_timestamp").alias("at"),
            _why().alias("why"),
            pl.when(_is_unknown()).then("missing").alias("lacking"),
        )
        .group_by(_ACT)
        .agg(
            pl.when(pl.col("why").n_unique() == 1)
            .then(pl.col("why").first())
            .otherwise(pl.lit(_SEVERAL))
            .alias("why"),
            pl.col("lacking").min(),
        )
    )
    ends = pl.col("event") == DELETED
    detail = words(pl.col("detail"), "; cause: ", pl.col("why").fill_null(UNKNOWN))
    lacking = pl.coalesce(
        "lacking", pl.when(pl.col("why").is_null()).then(_why_tombstones_lack(coverage))
    )
    told = events.join(of_acts, on=list(_ACT), how="left", maintain_order="left").with_columns(
        pl.when(ends).then(detail).otherwise("detail").alias("detail"),
        pl.when(ends).then(lacking).alias("lacking"),
    )
    missing = pl.concat_str("lacking", "missing", separator="; ", ignore_nulls=True)
    return with_missing(told, missing).drop("why", "lacking")


def _is_unknown() -> pl.Expr:
    return pl.col("cause").fill_null(UNKNOWN) == UNKNOWN


def _why() -> pl.Expr:
    sure = with_word("", " (", pl.col("confidence"), " confidence)")
    cause = pl.col("cause").fill_null(UNKNOWN).str.replace_all("_", " ", literal=True)
    return words(cause, sure)


def _why_tombstones_lack(coverage: Coverage) -> pl.Expr:
    """Return why tombstones of its offsets may not be here, which lie right before its own."""
    start = uncompacted_from(coverage)
    may_be = (start > 0) & (pl.col("record_offset") <= start)
    left_out = pl.lit(coverage.has_topic_filter)
    return pl.when(left_out).then(pl.lit(_LEFT_OUT)).when(may_be).then(pl.lit(_MAY_BE_TAKEN))
