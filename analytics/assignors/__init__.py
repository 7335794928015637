"""Kafka's partition assignors as pure functions: members and partitions in, assignment out.

`assign` is the door; `group` says what goes in. Nothing here imports Spark, Arrow or
pandas, so `groupscope assign` answers at once.

The assignors by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from analytics.assignors.group import Assignment, Group
from analytics.assignors.in_member_order import (
    assign_range,
    assign_roundrobin,
    assign_server_range,
    assign_share_simple,
)
from analytics.assignors.server_uniform import assign_uniform
from analytics.assignors.sticky import assign_cooperative_sticky, assign_sticky

Assignor = Callable[[Group], Assignment]

ASSIGNORS: Mapping[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_roundrobin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative_sticky,
    "server-range": assign_server_range,
    "server-uniform": assign_uniform,
    "share-simple": assign_share_simple,
}
"""Client assignors first, then the broker's; the latter's own names are range, uniform, simple."""


def assign(name: str, group: Group) -> Assignment:
    """Return what the assignor of this name gives the group.

    Raises:
        AssignmentRefusedError: It gives nothing.
        KeyError: There is no such assignor.
    """
    return ASSIGNORS[name](group)
