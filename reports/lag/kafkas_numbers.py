"""The table `lag` under the columns of Kafka's own tools, to be held against what these printed."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.columns import STREAMS, View

NEVER_COMMITTED: Final = "never_committed"

_KEY: Final = ("group", "topic", "partition")


def with_numbers(rows: pa.Table, view: View, groups: pa.Table, lag: pa.Table) -> pa.Table:
    """Return the rows of a view with the numbers that the table `lag` has.

    Args:
        rows: Of `describe`: whose a partition is, and what a client said of itself.
        view: Offsets of consumer or of streams groups.
        groups: The groups that the tool describes: `group_id`.
        lag: The table `lag`.

    Returns:
        `current_offset`, `log_end_offset` and `lag` (`offset_lag`) from `lag`, everything else from
        `rows`. What only `rows` has is left out, and what only `lag` has has nothing but these
        numbers: a comparison finds either.
    """
    ours = lag.filter(pc.is_in(lag["group_id"], groups["group_id"].combine_chunks()))
    numbers = _as_printed(ours, is_streams=view.family == STREAMS)
    beside = [
        name for name in rows.column_names if name in _KEY or name not in numbers.schema.names
    ]
    found = numbers.join(rows.select(beside), list(_KEY), join_type="left outer")
    return found.select(rows.column_names)


def _as_printed(lag: pa.Table, *, is_streams: bool) -> pa.Table:
    """Return what Kafka's tool prints of these numbers, a row for each partition of a group.

    It has no row for what is neither committed nor owned. Of what was never committed
    kafka-consumer-groups prints no lag, kafka-streams-groups what the log holds.
    """
    is_there = pc.or_(pc.not_equal(lag["kind"], NEVER_COMMITTED), pc.is_valid(lag["owners"]))
    there = lag.filter(is_there)
    number = there["lag"]
    if not is_streams:
        number = pc.if_else(pc.is_valid(there["committed_offset"]), number, None)
    return pa.table(
        {
            "group": there["group_id"],
            "topic": there["topic"],
            "partition": there["partition"],
            "current_offset": there["committed_offset"],
            "log_end_offset": there["log_end_offset"],
            "offset_lag" if is_streams else "lag": number,
        }
    )
