"""The table `offset_deletions`: offsets that groups keep of topics that are gone, for review.

A coordinator deletes a topic's offsets when it is told that the topic was deleted. One that was not
told, and clients that commit afterwards, leave offsets that nothing removes while the group lives.
Kafka's tool asks brokers for the partitions of a topic by name, and they no longer know this one:
the command names them (``ConsumerGroupCommand.deleteOffsets``).
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import table_of
from schemas.group_tools import tool_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

OFFSETS_COLUMNS: Final = ("group_id", "topic", "partition", "commit_timestamp", "complete")
"""The columns of `committed_offsets` that are read."""
_LOG: Final = "metadata_log"


def offset_deletions(committed: pa.Table, groups: pa.Table, topics: pa.Table) -> pa.Table:
    """Return a row for each group and topic that is gone, those that take most offsets first.

    A topic is gone where the metadata log, which tells of later than the last commit, knows only of
    lives that have ended, or does not know it. Where that log is not there, nothing is gone. A
    group that a lost record may have changed is left out.

    Args:
        committed: The state table `committed_offsets`: `OFFSETS_COLUMNS`.
        groups: The state table `groups`.
        topics: The state table `topics`.
    """
    there, ended, told_until = _lives(topics)
    wanted = pc.invert(pc.is_in(committed["topic"], pa.array(sorted(there), pa.string())))
    rows = committed.filter(wanted).sort_by([("group_id", "ascending"), ("topic", "ascending")])
    state = {row["group_id"]: row for row in groups.to_pylist()}
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows.to_pylist():
        found[row["group_id"], row["topic"]].append(row)
    gone = {
        place: each
        for place, each in found.items()
        if _is_older(each, told_until)
        and all(row["complete"] for row in each)
        and state.get(place[0], {}).get("complete")
    }
    kept = _topics_kept(committed, gone)
    made = [
        _deletion(group, topic, each, state[group], kept[group], ended.get(topic))
        for (group, topic), each in gone.items()
    ]
    order = [("offsets", "descending"), ("group_id", "ascending"), ("topic", "ascending")]
    return table_of("offset_deletions", made).sort_by(order)


def _lives(topics: pa.Table) -> tuple[set[str], dict[str, datetime], datetime | None]:
    """Return topics that are there, when the others ended, and until when the log tells of any."""
    there: set[str] = set()
    ended: dict[str, datetime] = {}
    told = []
    for row in topics.to_pylist():
        if row["source"] == _LOG:
            told += [each for each in (row["created_at"], row["deleted_at"]) if each is not None]
        if row["deleted_at"] is None:
            there.add(row["topic"])
        else:
            ended[row["topic"]] = max(row["deleted_at"], ended.get(row["topic"], row["deleted_at"]))
    for topic in there:
        ended.pop(topic, None)
    return there, ended, max(told, default=None)


def _is_older(rows: list[dict[str, Any]], told_until: datetime | None) -> bool:
    times = [row["commit_timestamp"] for row in rows]
    if told_until is None or None in times:
        return False
    return bool(max(times) <= told_until)


def _topics_kept(
    committed: pa.Table, gone: Mapping[tuple[str, str], object]
) -> dict[str, list[str]]:
    """Return, of groups with something gone, the other topics of which they keep offsets."""
    names = pa.array(sorted({group for group, _ in gone}), pa.string())
    rows = committed.filter(pc.is_in(committed["group_id"], names))
    pairs = rows.group_by(["group_id", "topic"]).aggregate([]).to_pylist()
    kept: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        if (pair["group_id"], pair["topic"]) not in gone:
            kept[pair["group_id"]].append(pair["topic"])
    return kept


def _deletion(
    group: str,
    topic: str,
    rows: list[dict[str, Any]],
    state: Mapping[str, Any],
    kept: list[str],
    deleted_at: datetime | None,
) -> dict[str, Any]:
    numbers = sorted(row["partition"] for row in rows)
    is_whole = not kept and not state["member_count"]
    tool, kind = tool_of(state["group_type"]), state["group_type"]
    call = f'{tool.script} --bootstrap-server "$BOOTSTRAP_SERVER"'
    place = shlex.quote(f"{topic}:{','.join(map(str, numbers))}")
    name = shlex.quote(group)
    times = [row["commit_timestamp"] for row in rows if row["commit_timestamp"] is not None]
    return {
        "group_id": group,
        "topic": topic,
        "group_type": kind,
        "members": state["member_count"],
        "offsets": len(rows),
        "topics_left": len(kept),
        "last_commit_at": max(times, default=None),
        "topic_deleted_at": deleted_at,
        "command": f"{call} --delete --group {name}"
        if is_whole
        else f"{call} --delete-offsets --group {name} {tool.topic_option} {place}",
    }
