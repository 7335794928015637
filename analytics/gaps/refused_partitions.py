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
_STOPS, _PATCHES, _MISSING = "stops_loading", "patch_releases", "missing"
_COLUMNS = (
    *("topic", "coordinator_partition", "record_offset"),
    *("group_id", "record_type", "fault", "detail", _STOPS),
)


def refused_partitions(
    tables: StoredTables, release: str, partitions: Collection[int] | None = None
) -> list[str]:
    """Return a sentence for each partition that is refused, about the first record that is why.

    Where it cannot be told whether a record before that stops loading, a sentence says so.

    Args:
        tables: Of a workspace, of all groups; nothing is said of one without the table.
        release: The release by whose rules it was replayed.
        partitions: Those of `__consumer_offsets` that are asked about; None is all of all topics.
    """
    if not tables.has(TABLE):
        return []
    # A workspace of an older groupscope knows no patch releases, and has no marks.
    newer = {_PATCHES, _MISSING} & set(tables.schema(TABLE).names)
    columns = [*_COLUMNS, *sorted(newer)]
    may_stop = pc.field(_STOPS) | pc.field(_STOPS).is_null()
    found = tables.read(TABLE, columns, may_stop)
    firsts: dict[tuple[str, int, bool], dict[str, Any]] = {}
    for each in found.sort_by("record_offset").to_pylist():
        topic, partition = each["topic"], each["coordinator_partition"]
        if partitions is not None and (topic != CONSUMER_OFFSETS or partition not in partitions):
            continue
        if (topic, partition, True) not in firsts:
            firsts.setdefault((topic, partition, each[_STOPS] is not None), each)
    in_order = sorted(firsts, key=lambda each: (*each[:2], firsts[each]["record_offset"]))
    return [_sentence(firsts[each], release) for each in in_order]


def _sentence(first: dict[str, Any], release: str) -> str:
    partition = f"{first['topic']}-{first['coordinator_partition']}"
    of_group = "" if first["group_id"] is None else f" of group {first['group_id']}"
    fails = _FAILS[replay_rules(release).failed_load]
    where = (
        f"at offset {first['record_offset']}, {_record(first)}{of_group}: "
        f"{first['detail'] or first['fault']} ({first['fault']})"
    )
    if first[_STOPS] is not None:
        return (
            f"by the rules of Kafka {release} a broker {fails} of {partition}: it fails to load "
            f"it {where}"
        )
    if first.get(_MISSING):
        return (
            f"cannot tell whether a broker of Kafka {release} {fails} of {partition}: as far as "
            f"the dump shows it fails to load it {where}, but {first[_MISSING]}"
        )
    patches = first.get(_PATCHES)
    if patches is None:
        return (
            f"cannot tell whether a broker {fails} of {partition}: one of Kafka {release} fails "
            f"to load it, a newer one may not, {where}"
        )
    return (
        f"cannot tell from Kafka {release} alone whether a broker {fails} of {partition}: "
        f"{patches} fails to load it {where}; name the patch release with --kafka-version"
    )


def _record(first: dict[str, Any]) -> str:
    number = first["record_type"]
    if number is None:
        return "a record that does not decode"
    return str(record_types(first["topic"])[number].name)
