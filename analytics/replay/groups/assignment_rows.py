"""What members have, give back and shall have, as rows of `assignments`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.groups.coded_log import NONE, numbers
from analytics.replay.groups.columns import ASSIGNMENTS, CLASSIC, ITEMS, PENDING
from analytics.replay.groups.group_records import CURRENT, GROUP, TARGET
from analytics.replay.groups.member_rows import struct, type_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.replay.groups.coded_log import Numbers
    from analytics.replay.groups.group_rows import Groups
    from analytics.replay.groups.in_force import InForce
    from analytics.replay.groups.member_rows import Members

_WHOSE = ("group", "member_id", "kind", "role", "subtopology_id", "topic_id", "topic", "partition")
_ASSIGNMENT_KINDS = pa.array([CURRENT, PENDING, TARGET])


@dataclass(frozen=True)
class Assignments:
    """Partitions and tasks of members: their rows, and the group of each."""

    rows: pa.StructArray
    group: Numbers


def assignment_rows(in_force: InForce, members: Members, groups: Groups) -> Assignments:
    """Return what members were given, a row for each partition or task."""
    own, _ = in_force.of_groups(GROUP)
    classic = np.flatnonzero((in_force.lives.family == CLASSIC) & (own != NONE))
    (current, current_group), (target, target_group) = members.current, members.target
    rows = np.concatenate([own[classic], current, target])
    group = np.concatenate([classic, current_group, target_group])
    # A target belongs to the group's assignment epoch, all else to the epoch its record names.
    epoch = pa.concat_arrays(
        [
            in_force.values_in("epoch", np.concatenate([own[classic], current])),
            pa.array(groups.assignment_epoch[target_group].astype(np.int32)),
        ]
    )
    lists = in_force.values_in("items", rows)
    items, holder = pc.list_flatten(lists), numbers(pc.list_parent_indices(lists))
    is_given = pc.is_in(pc.struct_field(items, "kind"), _ASSIGNMENT_KINDS)
    items, holder = items.filter(is_given), holder[is_given.to_numpy(zero_copy_only=False)]
    partitions = pc.struct_field(items, "partitions")
    item = numbers(pc.list_parent_indices(partitions))
    holder, each = holder[item], items.take(pa.array(item))
    told = {
        name: pc.struct_field(each, name)
        for name in (field.name for field in ITEMS)
        if name != "partitions"
    }
    told |= {
        "group_type": type_names(in_force.lives.family[group[holder]]),
        "epoch": epoch.take(pa.array(holder)),
        "member_id": pc.coalesce(told["member_id"], in_force.values_in("member_id", rows[holder])),
        "partition": pc.list_flatten(partitions),
    }
    told["group"] = pa.array(group[holder])
    is_first = _is_first(told)
    return Assignments(
        struct(ASSIGNMENTS, told).filter(pa.array(is_first)), group[holder][is_first]
    )


def _is_first(columns: Mapping[str, pa.Array]) -> NDArray[np.bool_]:
    """Return which rows say what no row before them says.

    Brokers keep partitions and tasks as sets, whatever a list in a record repeats.
    """
    whose = pl.from_arrow(pa.table({name: columns[name] for name in _WHOSE}))
    assert isinstance(whose, pl.DataFrame)
    found: NDArray[np.bool_] = (
        whose.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    )
    return found
