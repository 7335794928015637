"""The table `group_events`: everything that happened to a group, told from the other tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from analytics.replay.contract import as_table
from analytics.replay.union import union_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Made = Mapping[str, "DataFrame"]


def group_events(
    of_groups: Made, of_offsets: Made, of_share_state: Made, of_dependencies: Made
) -> DataFrame:
    """Return the table `group_events`; each of what is given has some of them, as `events`."""
    given = (of_groups, of_offsets, of_share_state, of_dependencies)
    return as_table(union_all(each["events"] for each in given), "group_events")
