"""Commits of groups, as the requests they came in: one request, one instant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.seeds.region.contributions import Partition

HISTORY: Final = (
    *("group_id", "topic", "partition", "event", "committed_offset", "commit_timestamp"),
    *("effective_timestamp", "member_id", "batch_offset", "coordinator_partition"),
    "record_offset",
)
"""Of the table `offset_history`, what is read."""

_COMMITS: Final = pa.array(["commit", "transaction_commit"])
_KEY: Final = ("group_id", "topic", "partition")
_REQUEST: Final = ("group_id", "coordinator_partition", "commit_timestamp", "batch")
_NO_BATCH: Final = -1


@dataclass(frozen=True)
class Request:
    """Offsets of a group that were committed together.

    A request has one time of commit and lies in one batch. A coordinator may append several as one
    batch: those of one millisecond then look like one.

    Attributes:
        committed_at: In epoch milliseconds.
        coordinator_partition: Where it lies.
        record_offset: Of its first record.
        member_id: Who committed; None where it cannot be told, or is not one.
        offsets: What it committed.
    """

    committed_at: int
    coordinator_partition: int
    record_offset: int
    member_id: str | None
    offsets: Mapping[Partition, int]


def requests_of(
    history: Iterable[pa.Table], offsets: Collection[tuple[str, str, int, int]]
) -> dict[str, list[Request]]:
    """Return by group the requests that committed a wanted offset, in the order of the log.

    Args:
        history: `HISTORY` in parts.
        offsets: Group, topic, partition and offset.
    """
    columns = list(zip(*sorted(offsets), strict=True)) or [(), (), (), ()]
    types = (pa.string(), pa.string(), pa.int32(), pa.int64())
    sought = pa.table(
        [pa.array(each, kind) for each, kind in zip(columns, types, strict=True)],
        [*_KEY, "committed_offset"],
    )
    groups = pc.unique(sought["group_id"])
    parts = [_commits(each, groups) for each in history]
    if not sought.num_rows or not parts:
        return {}
    commits = pa.concat_tables(parts)
    hits = commits.join(sought, [*_KEY, "committed_offset"], join_type="left semi")
    requests = hits.select(_REQUEST).group_by(list(_REQUEST)).aggregate([])
    rows = commits.join(requests, list(_REQUEST), join_type="left semi")
    return _grouped(rows.sort_by([("group_id", "ascending"), ("record_offset", "ascending")]))


def _commits(history: pa.Table, groups: pa.Array) -> pa.Table:
    names = pc.cast(history["group_id"], pa.string())
    events = pc.cast(history["event"], pa.string())
    is_wanted = pc.and_(pc.is_in(names, groups), pc.is_in(events, _COMMITS))
    is_wanted = pc.and_(is_wanted, pc.is_valid(history["commit_timestamp"]))
    rows = history.filter(is_wanted)
    return pa.table(
        {
            **{
                name: pc.cast(rows[name], pa.string())
                for name in ("group_id", "topic", "member_id")
            },
            "partition": pc.cast(rows["partition"], pa.int32()),
            "committed_offset": pc.cast(rows["committed_offset"], pa.int64()),
            "commit_timestamp": pc.cast(
                pc.cast(rows["commit_timestamp"], pa.timestamp("ms", tz="UTC"), safe=False),
                pa.int64(),
            ),
            "coordinator_partition": pc.cast(rows["coordinator_partition"], pa.int32()),
            "record_offset": pc.cast(rows["record_offset"], pa.int64()),
            "batch": pc.fill_null(pc.cast(rows["batch_offset"], pa.int64()), _NO_BATCH),
        }
    )


def _grouped(rows: pa.Table) -> dict[str, list[Request]]:
    made: dict[tuple[str, int, int, int], list[dict[str, object]]] = defaultdict(list)
    for row in rows.to_pylist():
        made[tuple(row[name] for name in _REQUEST)].append(row)
    found: dict[str, list[Request]] = defaultdict(list)
    for (group, home, at, _), each in made.items():
        found[group].append(_request(home, at, each))
    for requests in found.values():
        requests.sort(key=lambda each: (each.committed_at, each.record_offset))
    return found


def _request(home: int, at: int, rows: list[dict[str, object]]) -> Request:
    members = {row["member_id"] for row in rows}
    member = members.pop() if len(members) == 1 else None
    return Request(
        at,
        home,
        min(int(str(row["record_offset"])) for row in rows),
        None if member is None else str(member),
        {
            (str(row["topic"]), int(str(row["partition"]))): int(str(row["committed_offset"]))
            for row in rows
        },
    )


def shown_since(history: Iterable[pa.Table], starts: Mapping[int, int]) -> dict[int, int]:
    """Return by partition of `__consumer_offsets` a time since which every commit is shown.

    Args:
        history: `HISTORY` in parts.
        starts: By partition, the first offset behind all that compaction may have taken.

    Returns:
        Epoch milliseconds, of the first record there is behind that offset; a partition without
        one has none.
    """
    found: dict[int, int] = {}
    for part in history:
        for home, start in starts.items():
            is_behind = pc.and_(
                pc.equal(part["coordinator_partition"], home),
                pc.greater_equal(part["record_offset"], start),
            )
            first = pc.min(part.filter(is_behind)["effective_timestamp"]).as_py()
            if first is not None:
                at = round(first.timestamp() * 1000)
                found[home] = min(at, found.get(home, at))
    return found
