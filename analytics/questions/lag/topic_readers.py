"""Which groups read a topic, of every kind, and how that is known; and topics that nobody reads.

A group reads what its members own or subscribe to. Share groups read what they hold state of,
streams groups what their topology names. What a group has committed and no member claims, it read
once: a client without subscription may still do so, or nobody does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.read_partitions import STALE, is_owned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analytics.questions.lag.read_partitions import GroupTables

OWNS, SUBSCRIBES, SHARES, COMMITTED, LEFT = "owns", "subscribes", "shares", "committed", "left"
WAYS: Final = (OWNS, SUBSCRIBES, SHARES, COMMITTED, LEFT)
"""How a group is known to read a topic, the surest first. By the last two nobody is known to do so
now."""

READING: Final = (OWNS, SUBSCRIBES, SHARES)
_INTERNAL: Final = "__"

READERS = pa.schema(
    [
        ("topic", pa.string()),
        ("group_id", pa.string()),
        ("group_type", pa.string()),
        ("how", pa.string()),
        ("last_commit_at", pa.timestamp("us", "UTC")),
    ]
)


def topic_readers(rows: pa.Table, tables: GroupTables, shares: pa.Table) -> pa.Table:
    """Return a row for each topic and each group that reads it or did: the table `topic_readers`.

    Args:
        rows: The table `lag`.
        tables: State tables at the instant.
        shares: The table `share_partitions`: `group_id`, `topic`.
    """
    types = dict(
        zip(*(tables.groups[name].to_pylist() for name in ("group_id", "group_type")), strict=True)
    )
    found: dict[tuple[str, str], int] = {}
    for topic, group, how in (*_of_members(tables), *_of_commits(rows), *_of_shares(shares)):
        if group in types and topic is not None:
            rank = WAYS.index(how)
            found[topic, group] = min(rank, found.get((topic, group), rank))
    last = rows.group_by(["topic", "group_id"]).aggregate([("last_commit_at", "max")])
    readers = pa.table(
        [
            pa.array([topic for topic, _ in found], pa.string()),
            pa.array([group for _, group in found], pa.string()),
            pa.array([types[group] for _, group in found], pa.string()),
            pa.array([WAYS[rank] for rank in found.values()], pa.string()),
        ],
        names=READERS.names[:4],
    )
    joined = readers.join(last, ["topic", "group_id"])
    order = [("topic", "ascending"), ("group_id", "ascending")]
    renamed = joined.rename_columns(
        ["last_commit_at" if name.endswith("_max") else name for name in joined.column_names]
    )
    return renamed.select(READERS.names).sort_by(order)


def unread_topics(topics: pa.Table, readers: pa.Table) -> list[str]:
    """Return the topics that no group is known to read, or to have read; without internal ones.

    Args:
        topics: The table `topics`: `topic`, `deleted_at`.
        readers: The table `topic_readers`, of all groups.
    """
    there = pc.unique(topics.filter(pc.is_null(topics["deleted_at"]))["topic"]).to_pylist()
    known = set(pc.unique(readers["topic"]).to_pylist())
    return sorted(each for each in there if not each.startswith(_INTERNAL) and each not in known)


def _of_members(tables: GroupTables) -> Iterator[tuple[str | None, str, str]]:
    given = tables.assignments.filter(pc.equal(tables.assignments["kind"], "current"))
    named = given.group_by(["topic", "group_id"]).aggregate([]).to_pylist()
    yield from ((each["topic"], each["group_id"], OWNS) for each in named)
    for each in tables.members.select(["group_id", "subscribed_topics"]).to_pylist():
        for topic in each["subscribed_topics"] or ():
            yield topic, each["group_id"], SUBSCRIBES
    for group, subtopologies in tables.inputs.items():
        for inputs in subtopologies.values():
            yield from ((topic, group, SUBSCRIBES) for topic in inputs)


def _of_commits(rows: pa.Table) -> Iterator[tuple[str, str, str]]:
    """Yield what the table `lag` knows: tasks of streams own what it says that members own."""
    kinds = rows.select(["topic", "group_id", "kind"])
    kinds = kinds.append_column("is_owned", is_owned(rows))
    for each in kinds.group_by(kinds.column_names).aggregate([]).to_pylist():
        how = OWNS if each["is_owned"] else LEFT if each["kind"] == STALE else COMMITTED
        if each["is_owned"] or each["kind"] != "never_committed":
            yield each["topic"], each["group_id"], how


def _of_shares(shares: pa.Table) -> Iterable[tuple[str | None, str, str]]:
    named = shares.group_by(["topic", "group_id"]).aggregate([]).to_pylist()
    return ((each["topic"], each["group_id"], SHARES) for each in named)
