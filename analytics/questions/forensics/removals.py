"""What was removed in the time of an incident that no verdict on a committed offset tells of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import polars_rows

if TYPE_CHECKING:
    from analytics.tables.parted_table import PartedTable

GROUP_REMOVED, STATE_DELETED = "deleted", "share_deleted"
"""Events: the tombstone of a group, and that of the state of a share partition."""
_REMOVALS: Final = ("expired", "group_deleted", "offset_deleted", "topic_deleted")


@dataclass(frozen=True)
class Removals:
    """Groups and states of share partitions whose tombstones are in the dump.

    Attributes:
        share_partitions: How many share partitions lost their state,
        share_groups: of how many groups.
        groups: How many other groups were removed, and none of their offsets was with them.
    """

    share_partitions: int = 0
    share_groups: int = 0
    groups: int = 0

    @property
    def are_none(self) -> bool:
        """Whether nothing was removed."""
        return not (self.share_partitions or self.groups)


def removals_without_offsets(events: PartedTable, costs: pl.DataFrame) -> Removals:
    """Return what was removed beside committed offsets.

    Args:
        events: Rows of `group_events` of the groups and the time asked about.
        costs: Of `costs_of_offsets`: a group that lost offsets is told of with them.
    """
    columns = ["group_id", "event", "subject"]
    is_removal = pl.col("event").is_in([GROUP_REMOVED, STATE_DELETED])
    pieces = (polars_rows(each).select(columns) for each in events.scan(columns))
    removed = pl.concat(each.filter(is_removal) for each in pieces).unique()
    states = removed.filter(pl.col("event") == STATE_DELETED)
    with_offsets = costs.filter(pl.col("verdict").is_in(_REMOVALS) | (pl.col("removals") > 0))
    told = [*states["group_id"], *with_offsets["group_id"]]
    others = removed.filter(pl.col("event") == GROUP_REMOVED, ~pl.col("group_id").is_in(told))
    return Removals(states.height, states["group_id"].n_unique(), others["group_id"].n_unique())
