"""What subtopologies of streams groups read at the instant asked about (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.replayed.records_at import records_at

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def subtopology_inputs(state: ReplayedWorkspace) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return by streams group the topics that each of its subtopologies reads."""
    records = records_at(state, "streams_group_topology", ["key", "value"])
    latest: dict[str, Any] = {}
    for key, value in zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True):
        latest[key["group_id"]] = value
    return {
        group: {
            each["subtopology_id"]: (
                *(each["source_topics"] or ()),
                *(topic["name"] for topic in each["repartition_source_topics"] or ()),
            )
            for each in value["subtopologies"] or ()
        }
        for group, value in latest.items()
        if value is not None
    }
