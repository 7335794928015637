"""Rows of `--state`: one for each group, alike for all types."""

from __future__ import annotations

import pyarrow as pa

from reports.describe.source import Source, sorted_by


def state_rows(source: Source, family: str) -> pa.Table:
    """Return the groups that one of Kafka's tools describes, with their states.

    Returns:
        The columns of `--state --verbose`, and `group_type`.
    """
    groups = source.groups_of(family)
    places = [
        source.coordinators.get(number) for number in groups["coordinator_partition"].to_pylist()
    ]
    return sorted_by(
        pa.table(
            {
                "group": groups["group_id"],
                "coordinator": pa.array(places, pa.string()),
                "assignment_strategy": groups["protocol"],
                "state": groups["state"],
                "group_epoch": groups["epoch"],
                "target_assignment_epoch": groups["assignment_epoch"],
                "assignment_epoch": groups["assignment_epoch"],
                "members": groups["member_count"],
                "group_type": groups["group_type"],
            }
        ),
        "group",
    )
