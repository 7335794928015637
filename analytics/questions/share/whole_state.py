"""Whether a dump that has no state of a share partition shows that there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from analytics.replay.log.internal_partitions import internal_partition, share_key

UNKNOWN_HOME: Final = (
    "no record of its state is in the dump, and how many partitions __share_group_state has is not "
    "known, so neither is the one it belongs to"
)
_LACKS: Final = "no record of its state is in the dump, and {}"


@dataclass(frozen=True)
class StateCoverage:
    """What the dump shows of `__share_group_state`.

    Attributes:
        partitions: How many partitions it has; None where that is not known.
        gaps: By partition, what the dump lacks of it, in words; others are whole.
    """

    partitions: int | None = None
    gaps: Mapping[int, str] = field(default_factory=dict)


def with_absence(shares: pl.DataFrame, coverage: StateCoverage) -> pl.DataFrame:
    """Say of share partitions without state whether that is known: `complete` and `missing`.

    Args:
        shares: Rows of `share_partitions`.
        coverage: What the dump shows.
    """
    has_none = pl.col("record_offset").is_null() & (pl.col("phase") == "initialized")
    why = pl.lit(UNKNOWN_HOME)
    if coverage.partitions is not None:
        key = share_key(*(pl.col(name) for name in ("group_id", "topic_id", "partition")))
        home = internal_partition(pl.when(has_none).then(key), coverage.partitions)
        gap = home.cast(pl.Int64).replace_strict(
            list(coverage.gaps), list(coverage.gaps.values()), default=None, return_dtype=pl.String
        )
        why = pl.format(_LACKS, gap)
    return shares.with_columns(
        missing=pl.when(has_none).then(why).otherwise("missing")
    ).with_columns(
        complete=pl.when(has_none).then(pl.col("missing").is_null()).otherwise("complete")
    )
