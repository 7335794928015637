"""What a state cannot tell of topics, settings and leaders.

That is where the metadata log's clock went back around the instant
(`analytics.replay.between_cuts`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from analytics.gaps.gap import Gap, gap
from analytics.replay.log.log_times import disputed, frames_of_rows
from analytics.tables.stored_tables import StoredTables
from schemas import CLUSTER_METADATA, INTERNAL_TOPICS, table

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

Row = Mapping[str, Any]
TABLES: Final = ("topics", "configs", "partition_leaders")
_MOST_NAMES: Final = 5


def uncertain_metadata(state: ReplayedWorkspace, needs: Iterable[str]) -> list[Gap]:
    """Return what cannot be told of topics, settings and leaders, one gap a table and reason.

    Args:
        state: A replayed workspace.
        needs: The tables that an answer is made of; others than `TABLES` are passed over.
    """
    if not disputed(frames_of_rows(state.frames), CLUSTER_METADATA):
        return []
    everything = StoredTables(state.tables.workspace)
    found: list[Gap] = []
    for name in TABLES:
        if name not in needs or not everything.has(name):
            continue
        columns = [*table(name).key, "missing"]
        rows = everything.read(name, columns, pc.invert(pc.field("complete"))).to_pylist()
        names: dict[str, list[str]] = defaultdict(list)
        for each in rows:
            if _is_asked_about(each, state):
                names[each["missing"]].append(_WORDS[name](each))
        found += [_gap(name, each, why) for why, each in names.items()]
    return found


def _is_asked_about(row: Row, state: ReplayedWorkspace) -> bool:
    """Return whether a row is of a topic that is asked about, of an internal one, or of none."""
    topic = row["resource"] if row.get("resource_type") == "topic" else row.get("topic")
    asked = state.tables.selection.topics
    return not asked or topic is None or topic in asked or topic in INTERNAL_TOPICS


_WORDS: Final = {
    "topics": lambda row: f"topic {row['topic']}",
    "configs": lambda row: (
        f"setting {row['name']} of {row['resource_type']} {row['resource'] or 'default'}"
    ),
    "partition_leaders": lambda row: f"leader of {row['topic']}-{row['partition']}",
}


_CODES: Final = {
    "topics": ("topics_uncertain", "topics"),
    "configs": ("settings_uncertain", "settings"),
    "partition_leaders": ("leaders_uncertain", "leaders"),
}
"""By table the code, and its parameter that lists what is uncertain."""


def _gap(table_name: str, names: list[str], why: str) -> Gap:
    code, listed = _CODES[table_name]
    distinct = sorted(dict.fromkeys(names))
    more = max(len(distinct) - _MOST_NAMES, 0) or None
    return gap(code, **{listed: tuple(distinct[:_MOST_NAMES])}, more=more, why=why)
