"""Topics of rows at the instant asked about: those that are gone, and those without a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analytics.tables.stored_tables import StoredTables

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


def topics_gone(state: ReplayedWorkspace) -> pa.Array:
    """Return the ids of topics that were deleted before the instant: a broker leaves them out."""
    topics = StoredTables(state.tables.workspace).read(
        "topics", ["topic_id"], pc.field("deleted_at").is_valid()
    )
    return topics["topic_id"].combine_chunks().drop_null()


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
