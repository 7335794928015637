"""The table `share_delivery_counts`: how often records were delivered, by share partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.share.state_log.window import is_done, state_name

if TYPE_CHECKING:
    from analytics.replay.share.share_ranges import Ranges

_MOST = pa.scalar(np.iinfo(np.int64).max, pa.uint64())
_OF = ("group_id", "topic_id", "topic", "partition", "delivery_count_limit")


def delivery_counts(rows: pa.Table, ranges: Ranges) -> pa.Table:
    """Return the histogram: a row for each share partition, state and delivery count.

    Args:
        rows: Share partitions: `group_id`, `topic_id`, `topic`, `partition`,
            `delivery_count_limit`.
        ranges: Their stored ranges; `key` is the place in ``rows``.
    """
    counted = pa.table(
        {
            "place": ranges.key,
            "delivery_state": ranges.state.astype(np.int64),
            "delivery_count": ranges.count.astype(np.int32),
            "records": ranges.sizes,
        }
    )
    keys = ["place", "delivery_count", "delivery_state"]
    found = counted.group_by(keys, use_threads=False).aggregate([("records", "sum")])
    found = found.sort_by([(name, "ascending") for name in keys])
    of = rows.select(list(_OF)).take(found["place"])
    states = found["delivery_state"].to_numpy()
    left = pc.subtract(of["delivery_count_limit"], found["delivery_count"].cast(pa.int64()))
    known = [state_name(int(each)) for each in states]
    return pa.table(
        {
            **{name: of[name] for name in _OF[:4]},
            "delivery_count": found["delivery_count"],
            "delivery_state_name": pa.array(known, pa.string()),
            "records": pc.min_element_wise(found["records_sum"], _MOST).cast(pa.int64()),
            "deliveries_left": pc.if_else(
                pa.array(is_done(states.astype(np.int8))),
                pa.scalar(None, pa.int64()),
                pc.max_element_wise(left, pa.scalar(0, pa.int64())),
            ),
        }
    )
