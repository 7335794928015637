"""The table `size_limits`: how near records and metadata come to what brokers take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.usage.cleaning.log_settings import DEFAULT
from analytics.questions.usage.keys.key_states import COMMITS
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.questions.usage.cleaning.log_settings import LogSettings

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
    usage = usage.filter(
        pc.and_(pc.equal(usage["topic"], CONSUMER_OFFSETS), pc.is_valid(usage["group_id"]))
    )
    sums = usage.group_by(["group_id", "record_type"]).aggregate(
        [("max_record_bytes", "max"), ("max_metadata_bytes", "max")]
    )
    batch = pc.add(sums["max_record_bytes_max"], _HEADER)
    is_commit = pc.equal(sums["record_type"], COMMITS)
    metadata = pc.if_else(is_commit, sums["max_metadata_bytes_max"], None)
    found = pa.concat_tables(
        [
            _limited(sums, batch, _MESSAGE, settings),
            _limited(sums, metadata, _METADATA, settings),
        ]
    )
    keys = [(name, "ascending") for name in ("group_id", "record_type", "setting")]
    return found.sort_by([("share", "descending"), *keys])


def _limited(sums: pa.Table, sizes: pa.ChunkedArray, name: str, settings: LogSettings) -> pa.Table:
    """Return what is not nothing against the limit of a setting."""
    limit = settings.number(name, CONSUMER_OFFSETS, None)
    source = settings.in_force(name, CONSUMER_OFFSETS, None).source
    limits = pa.repeat(pa.scalar(round(limit), pa.int64()), len(sums))
    if source == DEFAULT:
        # Brokers took what the default forbids: somebody has set it, and the dump does not say how.
        limits = pc.if_else(pc.greater(sizes, limits), None, limits)
    share = pc.divide(pc.cast(sizes, pa.float64()), pc.cast(limits, pa.float64()))
    columns = {
        "group_id": sums["group_id"],
        "record_type": sums["record_type"],
        "setting": pa.repeat(name, len(sums)),
        "largest_bytes": sizes,
        "limit_bytes": limits,
        "limit_source": pa.repeat(source, len(sums)),
        "share": share,
        "is_near": pc.fill_null(pc.greater(share, settings.rules.near_share), fill_value=False),
    }
    return pa.table(columns).filter(pc.fill_null(pc.greater(sizes, 0), fill_value=False))
