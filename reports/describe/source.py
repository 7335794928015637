"""What the rows of `describe` are made of: tables at the instant asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.columns import FAMILY_OF


@dataclass(frozen=True)
class Source:
    """Tables of the groups that are described, with the columns named.

    Attributes:
        groups: The table `groups`.
        members: The table `members`.
        assignments: The table `assignments`; an id without a name stands for its topic.
        committed: The table `committed_offsets`; an offset that is not known for sure is null.
        shares: The table `share_partitions`, with `lag` as Kafka counts it.
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset`, where they are known.
        coordinators: `host:port (id)` by partition of the offsets topic.
        inputs: Of streams groups, the topics that each subtopology reads.
        lost: By group, why an offset of it that is not there may have been committed all the same.
        topics: The names of topics among all these that are asked about; None is all of them.
    """

    groups: pa.Table
    members: pa.Table
    assignments: pa.Table
    committed: pa.Table
    shares: pa.Table
    ends: pa.Table
    coordinators: Mapping[int, str] = field(default_factory=dict)
    inputs: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    topics: pa.Array | None = None

    def groups_of(self, family: str) -> pa.Table:
        """Return the groups that one of the tools describes."""
        types = [kind for kind, each in FAMILY_OF.items() if each == family]
        return self.groups.filter(pc.is_in(self.groups["group_type"], pa.array(types)))

    def members_of(self, family: str) -> pa.Table:
        """Return the members of these groups."""
        return only_groups(self.members, self.groups_of(family))


def only_groups(rows: pa.Table, groups: pa.Table) -> pa.Table:
    """Keep the rows whose `group_id` is one of the groups."""
    return rows.filter(pc.is_in(rows["group_id"], groups["group_id"].combine_chunks()))


def doubts(rows: pa.Table, lost: Mapping[str, str]) -> dict[str, pa.ChunkedArray]:
    """Return `complete` and `missing` of rows that committed offsets were joined to.

    Args:
        rows: `group_id`, `committed_offset` and `missing`.
        lost: By group, why an offset that is not there may have been committed all the same.
    """
    missing = rows["missing"]
    if lost:
        reasons = pa.table({"group_id": list(lost), "lost": list(lost.values())})
        places = pc.index_in(rows["group_id"], value_set=reasons["group_id"].combine_chunks())
        why = reasons["lost"].combine_chunks().take(places.combine_chunks())
        is_there = pc.is_valid(rows["committed_offset"])
        missing = pc.coalesce(missing, pc.if_else(is_there, pa.scalar(None, pa.string()), why))
    return {"complete": pc.is_null(missing), "missing": missing}


def joined(left: pa.Table, right: pa.Table, keys: list[str], how: str = "left outer") -> pa.Table:
    """Join two tables on columns of the same names."""
    return left.join(right, keys, join_type=how)


def sorted_by(rows: pa.Table, *names: str) -> pa.Table:
    """Sort rows ascending by columns."""
    return rows.sort_by([(name, "ascending") for name in names])


def lag(end: pa.ChunkedArray, offset: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return end - offset where both are known and the offset is one."""
    known = pc.if_else(pc.less(offset, 0), pa.scalar(None, pa.int64()), offset)
    return pc.subtract(end, known)
