"""Lag added up: by group, by topic, by member.

What nobody waits for (`stale`) is never added to what somebody does; a partition whose lag is not
known is counted, so that a sum that lacks it says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.lag.read_partitions import STALE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.evaluation_rules import LagRules

BY: Final = {
    "group": ("group_id",),
    "topic": ("topic",),
    "member": ("group_id", "member_id", "client_id", "client_host"),
}
"""What lag is added up by, and the columns that tell the sums apart."""

_BURROW_ERRORS: Final = ("STOP", "STALL", "REWIND")


def summed(rows: pa.Table, by: str, rules: LagRules) -> pa.Table:
    """Add up rows of the table `lag`, worst verdict first.

    Args:
        rows: The table `lag`.
        by: A key of `BY`.
        rules: Which verdict is worse.

    Returns:
        The columns of `BY`; `partitions`, `lag` (of all that is known and not stale, a commit
        beyond the end counting nothing), `stale_lag`, `lost_offsets`, `unknown_lag` (partitions
        whose lag is not known), `max_lag`, `groups` (how many read it), `status` (as Burrow has it
        of a group: ERR where a partition is worse than WARN; NOT_EVALUABLE where nothing worse is
        known and one is not evaluable), `verdict` (the worst).
    """
    keys = list(BY[by])
    zero = pa.scalar(0, pa.int64())
    positive = pc.max_element_wise(rows["lag"], zero, skip_nulls=False)
    is_stale = pc.equal(rows["kind"], STALE)
    nothing = pa.scalar(None, pa.int64())
    measured = pa.table(
        {
            **{name: rows[name] for name in keys},
            "group": rows["group_id"],
            "live": pc.if_else(is_stale, nothing, positive),
            "stale": pc.if_else(is_stale, positive, nothing),
            "lost": rows["lost_offsets"],
            "is_unknown": pc.cast(pc.is_null(rows["lag"]), pa.int64()),
            "status": _rank(rows["status"], _STATUSES),
            "verdict": _rank(rows["verdict"], list(rules.verdicts)),
        }
    )
    found = measured.group_by(keys).aggregate(
        [
            ("live", "sum"),
            ("live", "max"),
            ("stale", "sum"),
            ("lost", "sum"),
            ("is_unknown", "sum"),
            ("group", "count"),
            ("group", "count_distinct"),
            ("status", "min"),
            ("verdict", "min"),
        ]
    )
    rank = found["verdict_min"]
    result = pa.table(
        {
            **{name: found[name] for name in keys},
            "partitions": found["group_count"],
            "groups": found["group_count_distinct"],
            "lag": found["live_sum"],
            "max_lag": found["live_max"],
            "stale_lag": found["stale_sum"],
            "lost_offsets": found["lost_sum"],
            "unknown_lag": found["is_unknown_sum"],
            "status": _named(found["status_min"], _STATUSES_OF_GROUPS),
            "verdict": _named(rank, list(rules.verdicts)),
            "rank": rank,
        }
    )
    order = [("rank", "ascending"), ("lag", "descending")]
    return result.sort_by([*order, *((name, "ascending") for name in keys)]).drop_columns(["rank"])


_STATUSES: Final = (*_BURROW_ERRORS, "WARN", "NOT_EVALUABLE", "OK")
_STATUSES_OF_GROUPS: Final = (*("ERR" for _ in _BURROW_ERRORS), "WARN", "NOT_EVALUABLE", "OK")


def _rank(words: pa.ChunkedArray, order: Sequence[str]) -> pa.ChunkedArray:
    return pc.index_in(words, pa.array(order))


def _named(ranks: pa.ChunkedArray, words: Sequence[str]) -> pa.Array:
    return pa.array(words, pa.string()).take(ranks.combine_chunks())


def unread_topics(topics: pa.Table, *readers: pa.ChunkedArray) -> list[str]:
    """Return the topics that no group is known to read; internal ones are left out.

    Args:
        topics: The table `topics`: `topic`, `deleted_at`.
        readers: Names of topics that some group owns, has committed, subscribes to or shares.
    """
    there = topics.filter(pc.is_null(topics["deleted_at"]))["topic"]
    found = set(pc.unique(there.filter(pc.invert(pc.starts_with(there, "__")))).to_pylist())
    for each in readers:
        found -= set(pc.unique(each).to_pylist())
    return sorted(found)
