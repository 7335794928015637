"""The table `size_limits`: how near records and metadata come to what brokers take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from analytics.evaluate.usage.contract_table import table_of

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.evaluate.usage.log_settings import LogSettings

_TOPIC: Final = "__consumer_offsets"
_COMMITS: Final = "offset_commit"
_MESSAGE: Final = "max.message.bytes"
_METADATA: Final = "offset.metadata.max.bytes"
_HEADER: Final = 61
"""A batch that holds the record alone has a header, too: the limit is of batches."""


def size_limits(usage: pa.Table, settings: LogSettings) -> pa.Table:
    """Return each group's largest record of a type, and its longest metadata, the nearest first.

    Args:
        usage: The table `topic_usage`.
        settings: The limits in force.
    """
    usage = usage.filter(pc.and_(pc.equal(usage["topic"], _TOPIC), pc.is_valid(usage["group_id"])))
    sums = usage.group_by(["group_id", "record_type"]).aggregate(
        [("max_record_bytes", "max"), ("max_metadata_bytes", "max")]
    )
    found = []
    for row in sums.to_pylist():
        sizes = {}
        if row["max_record_bytes_max"]:
            sizes[_MESSAGE] = row["max_record_bytes_max"] + _HEADER
        if row["record_type"] == _COMMITS and row["max_metadata_bytes_max"]:
            sizes[_METADATA] = row["max_metadata_bytes_max"]
        for name, size in sizes.items():
            limit = settings.number(name, _TOPIC, None)
            share = size / limit if limit > 0 else 1.0
            found.append(
                {
                    "group_id": row["group_id"],
                    "record_type": row["record_type"],
                    "setting": name,
                    "largest_bytes": size,
                    "limit_bytes": round(limit),
                    "limit_source": settings.in_force(name, _TOPIC, None).source,
                    "share": share,
                    "is_near": share > settings.rules.near_share,
                }
            )
    keys = [(name, "ascending") for name in ("group_id", "record_type", "setting")]
    return table_of("size_limits", found).sort_by([("share", "descending"), *keys])
