"""Lag added up: by group, by topic, by member.

What nobody waits for (`stale`) is never added to what somebody does; a partition whose lag is not
known is counted, so that a sum that lacks it says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.read_partitions import STALE, by_owner
from analytics.questions.lag.topic_readers import READING
from analytics.questions.sums import with_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.evaluation_rules import LagRules

MEMBER: Final = "member"
BY: Final = {
    "group": ("group_id",),
    "topic": ("topic",),
    MEMBER: ("group_id", "member_id", "client_id", "client_host"),
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
        beyond the end counting nothing), `stale_lag`, `lost_offsets` (all three at most
        `analytics.questions.sums.MOST`), `unknown_lag` (partitions whose lag is not known),
        `max_lag`, `groups` (how many read it), `status` (as Burrow has it of a group: ERR where a
        partition is worse than WARN; NOT_EVALUABLE where nothing worse is known and one is not
        evaluable), `verdict` (the worst).
    """
    keys = list(BY[by])
    if by == MEMBER:
        rows = by_owner(rows)
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
    found = with_sums(
        measured.append_column("largest", measured["live"]),
        keys,
        ("live", "stale", "lost"),
        [
            ("largest", "max"),
            ("is_unknown", "sum"),
            ("group", "count"),
            ("group", "count_distinct"),
            ("status", "min"),
            ("verdict", "min"),
        ],
    )
    rank = found["verdict_min"]
    result = pa.table(
        {
            **{name: found[name] for name in keys},
            "partitions": found["group_count"],
            "groups": found["group_count_distinct"],
            "lag": found["live_sum"],
            "max_lag": found["largest_max"],
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


def with_capacity(sums: pa.Table, capacity: pa.Table) -> pa.Table:
    """Add to sums by group, in their order, how many members it has and could use."""
    names = ["members", "useful_members", "needed_members"]
    place = pc.index_in(sums["group_id"], capacity["group_id"].combine_chunks()).combine_chunks()
    for name in names:
        sums = sums.append_column(name, capacity[name].combine_chunks().take(place))
    return sums


def with_readers(
    sums: pa.Table, readers: pa.Table, unread: Sequence[str], *, is_whole: bool
) -> pa.Table:
    """Add to sums by topic who reads it, and rows of topics without committed offsets.

    Args:
        sums: As `summed` returns them by topic.
        readers: The table `topic_readers`.
        unread: Topics that nobody reads.
        is_whole: No row was left out of the sums: other topics get a row, too.

    Returns:
        `sums` with `readers` (groups that read it), `once_readers` (groups that committed, and of
        which no member claims it), and `groups` of both.
    """
    reading: dict[str, list[str]] = {}
    once: dict[str, list[str]] = {}
    for each in readers.select(["topic", "group_id", "how"]).to_pylist():
        place = reading if each["how"] in READING else once
        place.setdefault(each["topic"], []).append(each["group_id"])
    there = sums["topic"].to_pylist()
    others = sorted({*reading, *once, *unread} - set(there)) if is_whole else []
    more = pa.table({"topic": pa.array(others, pa.string())})
    sums = pa.concat_tables([sums, more], promote_options="default")
    named = [(reading.get(each, []), once.get(each, [])) for each in (*there, *others)]
    groups = pa.array([len(now) + len(then) for now, then in named], pa.int64())
    texts = pa.list_(pa.string())
    sums = sums.set_column(sums.column_names.index("groups"), "groups", groups)
    sums = sums.append_column("once_readers", pa.array([then for _, then in named], texts))
    return sums.append_column("readers", pa.array([now for now, _ in named], texts))
