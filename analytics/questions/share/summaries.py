"""The backlog added up: by group, by topic.

A share partition whose number is not known is counted, so that a sum that lacks it says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.sums import with_sums

if TYPE_CHECKING:
    from schemas.share_rules import ShareRules

BY: Final = {"group": ("group_id",), "topic": ("topic",)}
"""What the backlog is added up by, and the columns that tell the sums apart."""

_SUMS: Final = (
    *("lag", "records_left", "in_flight", "near_limit_count", "archived_count", "lost_offsets"),
    "offsets_beyond_end",
)


def summed(rows: pa.Table, by: str, rules: ShareRules) -> pa.Table:
    """Add up rows of the table `share_backlog`, worst status first.

    Args:
        rows: The table `share_backlog`.
        by: A key of `BY`.
        rules: Which status is worse.

    Returns:
        The columns of `BY`; `partitions`, `groups`; sums of what is known (`MOST`
        where they are that or more): `lag` (state beyond the
        end of a log counting nothing), `records_left`, `in_flight`, `near_limit_count`,
        `archived_count`, `lost_offsets`, `offsets_beyond_end`; `unknown_lag` (partitions whose lag
        is not known), `stalled_since` (the earliest of those that are blocked or stalled),
        `status` (the worst).
    """
    keys = list(BY[by])
    words = list(rules.statuses)
    is_stuck = pc.is_in(rows["status"], pa.array(["window_full", "blocked", "stalled"]))
    measured = pa.table(
        {
            **{name: rows[name] for name in keys},
            "group": rows["group_id"],
            **{name: rows[name] for name in _SUMS},
            "lag": pc.max_element_wise(rows["lag"], pa.scalar(0, pa.int64()), skip_nulls=False),
            "is_unknown": pc.cast(pc.is_null(rows["lag"]), pa.int64()),
            "stuck": pc.if_else(is_stuck, rows["stalled_since"], None),
            "rank": pc.index_in(rows["status"], pa.array(words)),
        }
    )
    found = with_sums(
        measured,
        keys,
        _SUMS,
        [
            ("group", "count"),
            ("group", "count_distinct"),
            ("is_unknown", "sum"),
            ("stuck", "min"),
            ("rank", "min"),
        ],
    )
    result = pa.table(
        {
            **{name: found[name] for name in keys},
            "partitions": found["group_count"],
            "groups": found["group_count_distinct"],
            **{name: found[f"{name}_sum"] for name in _SUMS},
            "unknown_lag": found["is_unknown_sum"],
            "stalled_since": found["stuck_min"],
            "status": pa.array(words, pa.string()).take(found["rank_min"].combine_chunks()),
            "rank": found["rank_min"],
        }
    )
    order = [("rank", "ascending"), ("records_left", "descending")]
    return result.sort_by([*order, *((name, "ascending") for name in keys)]).drop_columns(["rank"])
