"""Topics at an instant: those gone, those nameless, and what subtopologies read (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import arrow_rows, polars_rows
from analytics.replay.topics import RECORD, SNAPSHOT
from analytics.replayed.records import Records
from analytics.tables.stored_tables import StoredTables

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def topics_gone(state: ReplayedWorkspace) -> pa.Array:
    """Return the ids of topics that were deleted before the instant: a broker leaves them out.

    At the end of a snapshot they are those, too, whose name the cluster has for another id.
    """
    topics = polars_rows(
        StoredTables(state.tables.workspace).read(
            "topics", ["topic", "topic_id", "deleted_at", "source"]
        )
    )
    gone = topics.filter(pl.col("deleted_at").is_not_null())
    if state.is_end:
        there = topics.filter((pl.col("source") == SNAPSHOT) & pl.col("topic_id").is_not_null())
        named = topics.filter(pl.col("source") == RECORD).join(there, "topic", "semi")
        gone = pl.concat([gone, named])
    return arrow_rows(gone)["topic_id"].combine_chunks().drop_null()


def with_names(rows: pa.Table) -> tuple[pa.Table, list[str]]:
    """Let the id stand for a topic that the dump cannot name.

    Args:
        rows: `topic` and `topic_id`.

    Returns:
        The rows, and a sentence for each topic without a name.
    """
    nameless = pc.and_(pc.is_null(rows["topic"]), pc.is_valid(rows["topic_id"]))
    ids = pc.unique(rows.filter(nameless)["topic_id"]).to_pylist()
    place = rows.column_names.index("topic")
    named = rows.set_column(place, "topic", pc.coalesce(rows["topic"], rows["topic_id"]))
    return named, [f"the dump has no name for topic {id_}: --topic-ids gives it one" for id_ in ids]


def subtopology_inputs(state: ReplayedWorkspace) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return by streams group the topics that each of its subtopologies reads."""
    records = Records(state).table("streams_group_topology", ["key", "value"])
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
