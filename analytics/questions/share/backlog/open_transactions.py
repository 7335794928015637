"""Open transactions on partitions that share groups read.

A group with ``share.isolation.level=read_committed`` is given records up to the last stable offset
only: the first record of the oldest open transaction keeps back all behind it. Which transactions
are open, and on which partitions, the transaction log says; not at which offset they began.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.time_columns import times_of

COLUMNS: Final = ("partition", "offset", "is_tombstone", "key", "value")
"""What is needed of the decoded table ``transaction_log``."""

OPEN: Final = (1, 2, 3)
"""Ongoing, PrepareCommit, PrepareAbort: no marker says yet that it is over."""

TRANSACTIONS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("transactional_id", pa.string()),
        ("transaction_since", pa.timestamp("us", "UTC")),
    ]
)


def open_transactions(records: pa.Table) -> pa.Table:
    """Return the oldest open transaction of each partition that has one: `TRANSACTIONS`.

    Args:
        records: `COLUMNS`, cut at the instant.
    """
    if not records.num_rows:
        return TRANSACTIONS.empty_table()
    order = [("partition", "ascending"), ("offset", "ascending")]
    records = records.sort_by(order).combine_chunks()
    ids = pc.struct_field(records["key"].combine_chunks(), "transactional_id")
    value = records["value"].combine_chunks()
    rows = pa.table(
        {
            "id": ids,
            "is_tombstone": records["is_tombstone"],
            "status": pc.struct_field(value, "transaction_status"),
            "since": pc.struct_field(value, "transaction_start_timestamp_ms"),
            "place": pa.array(range(records.num_rows), pa.int64()),
        }
    )
    last = rows.group_by("id").aggregate([("place", "max")])["place_max"]
    last = rows.take(last)
    still = last.filter(
        pc.and_(
            pc.invert(last["is_tombstone"]), pc.is_in(last["status"], pa.array(OPEN, pa.int8()))
        )
    )
    topics = pc.struct_field(value.take(still["place"].combine_chunks()), "transaction_partitions")
    of_topic = pc.list_parent_indices(topics)
    each = pc.list_flatten(topics)
    partitions = pc.struct_field(each, "partition_ids")
    of_partition = pc.list_parent_indices(partitions)
    whose = still.take(of_topic).take(of_partition)
    is_untold = pc.less_equal(pc.fill_null(whose["since"], 0), 0).to_numpy()
    found = pa.table(
        {
            "topic": pc.struct_field(each, "topic").take(of_partition),
            "partition": pc.list_flatten(partitions).cast(pa.int32()),
            "transactional_id": whose["id"],
            "transaction_since": times_of(pc.fill_null(whose["since"], 0).to_numpy(), is_untold),
        }
    )
    oldest = found.sort_by([("transaction_since", "ascending"), ("transactional_id", "ascending")])
    keys = ["topic", "partition"]
    picked = oldest.group_by(keys, use_threads=False).aggregate(
        [(name, "first") for name in TRANSACTIONS.names[2:]]
    )
    return picked.rename_columns(TRANSACTIONS.names)
