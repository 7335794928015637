"""Internal partitions that a broker does not load to their end, and what it answers then.

What the tables hold of such groups is what their records say, which is more than the broker knew.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from analytics.replay.log.rules import replay_rules
from schemas import CONSUMER_OFFSETS, record_types

if TYPE_CHECKING:
    from analytics.tables.stored_tables import StoredTables

TABLE = "load_faults"
_FAILS = {
    "refused": "answers for none of the groups",
    "empty": "answers as if there were none of the groups and offsets",
}
_COLUMNS = (
    *("topic", "coordinator_partition", "record_offset"),
    *("group_id", "record_type", "fault", "detail"),
)


def refused_partitions(
    tables: StoredTables, release: str, partitions: Collection[int] | None = None
) -> list[str]:
    """Return a sentence for each partition that is refused, about the first record that is why.

    Args:
        tables: Of a workspace, of all groups; nothing is said of one without the table.
        release: The release by whose rules it was replayed.
        partitions: Those of `__consumer_offsets` that are asked about; None is all of all topics.
    """
    if not tables.has(TABLE):
        return []
    found = tables.read(TABLE, _COLUMNS, pc.field("stops_loading"))
    firsts: dict[tuple[str, int], dict[str, Any]] = {}
    for each in found.sort_by("record_offset").to_pylist():
        place = each["topic"], each["coordinator_partition"]
        if partitions is None or (place[0] == CONSUMER_OFFSETS and place[1] in partitions):
            firsts.setdefault(place, each)
    return [_sentence(firsts[place], release) for place in sorted(firsts)]


def _sentence(first: dict[str, Any], release: str) -> str:
    partition = f"{first['topic']}-{first['coordinator_partition']}"
    of_group = "" if first["group_id"] is None else f" of group {first['group_id']}"
    return (
        f"by the rules of Kafka {release} a broker {_FAILS[replay_rules(release).failed_load]} "
        f"of {partition}: it fails to load it at offset {first['record_offset']}, "
        f"{_record(first)}{of_group}: {first['detail'] or first['fault']} ({first['fault']})"
    )


def _record(first: dict[str, Any]) -> str:
    number = first["record_type"]
    if number is None:
        return "a record that does not decode"
    return str(record_types(first["topic"])[number].name)
