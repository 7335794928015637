"""Members of whom nobody can tell what they own: of another protocol, or with unreadable bytes."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from analytics.gaps.group_selection import GroupSelection

COLUMNS = ("group_id", "unread")


def with_unread(groups: GroupSelection, members: pa.Table) -> GroupSelection:
    """Say of which groups it cannot be told what their members own.

    Args:
        groups: The groups asked for.
        members: `COLUMNS` of the table `members`, of these groups and maybe others.
    """
    is_asked = pc.is_in(members["group_id"], groups.rows["group_id"].combine_chunks())
    unread = members.filter(pc.and_(is_asked, pc.is_valid(members["unread"])))
    told = {f"{each['group_id']}: {each['unread']}": None for each in unread.to_pylist()}
    return replace(groups, cannot_tell=(*groups.cannot_tell, *told))
