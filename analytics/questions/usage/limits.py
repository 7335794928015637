"""How near records come to what brokers take: the tables `size_limits` and `record_growth`.

A classic group is one record, which holds all members; a broker refuses a batch above
`max.message.bytes`, and the group cannot rebalance any more (KAFKA-7149). What one more member, or
topic, takes is told by the group's own records of different lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import table_of_frame
from analytics.questions.quotients import divided
from analytics.questions.usage.log_settings import DEFAULT
from analytics.questions.usage.ranking import ranking
from analytics.questions.usage.records import COMMITS
from analytics.replay.log.arrow_rows import polars_rows
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from analytics.questions.usage.log_settings import LogSettings
    from schemas.usage_rules import GrowingRecord

HEADER: Final = 61
"""A batch that holds the record alone has a header, too: the limit is of batches."""
NOT_GROWN: Final = "its records did not grow with them"
NO_LIMIT: Final = "brokers took more than the default; the limit in force is not known"
ONLY_ONE: Final = "none of its records has any"

_MESSAGE: Final = "max.message.bytes"
_METADATA: Final = "offset.metadata.max.bytes"
_HISTORY, _RECORD = "history", "record"


def size_limits(usage: pa.Table, settings: LogSettings) -> pa.Table:
    """Return each group's largest record of a type, and its longest metadata, the nearest first.

    Args:
        usage: The table `topic_usage`.
        settings: The limits in force.
    """
    sums = (
        polars_rows(usage)
        .filter((pl.col("topic") == CONSUMER_OFFSETS) & pl.col("group_id").is_not_null())
        .group_by("group_id", "record_type")
        .agg(pl.col("max_record_bytes", "max_metadata_bytes").max())
    )
    metadata = pl.when(pl.col("record_type") == COMMITS).then(pl.col("max_metadata_bytes"))
    found = pl.concat(
        [
            _limited(sums, pl.col("max_record_bytes") + HEADER, _MESSAGE, settings),
            _limited(sums, metadata, _METADATA, settings),
        ]
    )
    return table_of_frame("size_limits", NEAREST.sort(found))


NEAREST: Final = ranking({"share": True, "group_id": False, "record_type": False, "setting": False})
"""The order of `size_limits`."""


def _limited(sums: pl.DataFrame, size: pl.Expr, name: str, settings: LogSettings) -> pl.DataFrame:
    """Return what is not nothing against the limit of a setting."""
    limit = round(settings.number(name, CONSUMER_OFFSETS, None))
    source = settings.in_force(name, CONSUMER_OFFSETS, None).source
    # Brokers took what the default forbids: somebody has set it, and the dump does not say how.
    is_known = pl.lit(source != DEFAULT) | (size <= limit)
    share = pl.when(is_known).then(divided(size.cast(pl.Float64), limit))
    return sums.select(
        "group_id",
        "record_type",
        setting=pl.lit(name),
        largest_bytes=size,
        limit_bytes=pl.when(is_known).then(pl.lit(limit, pl.Int64)),
        limit_source=pl.lit(source),
        share=share,
        is_near=(share > settings.rules.near_share).fill_null(value=False),
    ).filter(pl.col("largest_bytes") > 0)


def growth_rows(records: pl.DataFrame) -> pl.DataFrame:
    """Return the shortest and the longest lists of each group and record type.

    Args:
        records: `RECORD`, of whole groups.

    Returns:
        `group_id`, `record_type`, how many items they have (`least`, `most`), and the bytes of the
        largest record with so many (`least_bytes`, `most_bytes`).
    """
    return (
        records.filter(
            pl.col("items").is_not_null() & ~pl.col("is_tombstone") & pl.col("bytes").is_not_null()
        )
        .group_by("group_id", pl.col("table").cast(pl.String).alias("record_type"), "items")
        .agg(pl.col("bytes").max())
        .sort("items")
        .group_by("group_id", "record_type")
        .agg(
            pl.col("items").first().alias("least"),
            pl.col("bytes").first().alias("least_bytes"),
            pl.col("items").last().alias("most"),
            pl.col("bytes").last().alias("most_bytes"),
        )
    )


def record_growth(
    made: pl.DataFrame, growing: Mapping[str, GrowingRecord], settings: LogSettings
) -> pa.Table:
    """Return the table `record_growth`, where the fewest more fit first.

    Args:
        made: What `growth_rows` returned of all buckets.
        growing: What grows with what, by the record type's table.
        settings: The limits in force.
    """
    limit = round(settings.number(_MESSAGE, CONSUMER_OFFSETS, None))
    source = settings.in_force(_MESSAGE, CONSUMER_OFFSETS, None).source
    batch = pl.max_horizontal("least_bytes", "most_bytes") + HEADER
    is_unknown = pl.lit(source == DEFAULT) & (batch > limit)
    has_history = pl.col("most") > pl.col("least")
    before = pl.when(has_history)
    gain = before.then(pl.col("most_bytes") - pl.col("least_bytes")).otherwise("most_bytes")
    items = before.then(pl.col("most") - pl.col("least")).otherwise("most")
    has_grown = (items > 0) & (gain > 0)
    names = {name: each.grows_with for name, each in growing.items()}
    found = made.with_columns(
        grows_with=pl.col("record_type").replace_strict(names, return_dtype=pl.String),
        bytes_each=pl.when(has_grown).then(gain / items),
        basis=before.then(pl.lit(_HISTORY)).otherwise(pl.lit(_RECORD)),
        limit_bytes=pl.when(~is_unknown).then(pl.lit(limit, pl.Int64)),
        limit_source=pl.lit(source),
        more_fit=pl.when(has_grown & ~is_unknown).then(
            ((limit - batch) * items // gain).clip(lower_bound=0)
        ),
        reason=pl.when(pl.col("most") == 0)
        .then(pl.lit(ONLY_ONE))
        .when(~has_grown)
        .then(pl.lit(NOT_GROWN))
        .when(is_unknown)
        .then(pl.lit(NO_LIMIT)),
    )
    return table_of_frame("record_growth", FEWEST_FIT.sort(found))


FEWEST_FIT: Final = ranking(
    {"more_fit": False, "most_bytes": True, "group_id": False, "record_type": False}
)
"""The order of `record_growth`."""
