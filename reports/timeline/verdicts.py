"""What became of a group's offsets, topic by topic: the first thing a timeline says.

A verdict is about the last thing that took an offset away or back in the time asked about; where
nothing did, it says how the offset stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from reports.quantities import ranges
from reports.timeline.topic_lives import DELETED, RECREATED, TopicLives

LOST = "lost by an election"

EXPLAINED = {
    "expiration": "expired",
    "group_deleted": "group deleted",
    "offsets_deleted": "offset deleted",
    "topic_deleted": DELETED,
    "topic_recreated": RECREATED,
    "committed_while_empty": "committed while the group was Empty",
    "rewound_by_member": "rewound by a member",
    "lost_by_election": LOST,
    "unknown": "cannot tell",
}
"""The causes of `offset_history` in words."""

GOES_FORWARD = "in force, never went back"
PENDING = "pending in a transaction"
NEVER_COMMITTED = "never committed"
BELOW_LOG_START = "below the log start"
CANNOT_TELL = "cannot tell"

HEADS = {
    "group_id": "GROUP",
    "topic": "TOPIC",
    "partitions": "PARTITIONS",
    "verdict": "VERDICT",
    "at": "AT",
    "advance": "ADVANCE",
    "confidence": "CONFIDENCE",
    "record": "RECORD",
    "reason": "REASON",
}
"""The columns of verdicts by topic; ADVANCE is that of all the partitions together."""

_SHARED = ("group_id", "topic", "verdict", "confidence", "reason")
VERDICT_COLUMNS = (
    *("group_id", "topic", "partition"),
    *("verdict", "at", "was", "became", "now", "advance", "confidence", "record", "reason"),
)
"""Of a verdict on one partition."""
_SAID = VERDICT_COLUMNS[3:]

Row = Mapping[str, Any]
Place = tuple[str, str, int]


@dataclass(frozen=True)
class Known:
    """What verdicts are made of; rows are those of the tables of the same names.

    Attributes:
        setbacks: Rows of `offset_history` that took an offset away or back, in log order.
        committed: Of `committed_offsets`.
        pending: Of `pending_offsets`.
        given: Partitions that members own or shall own: group, topic, partition.
        seen: Partitions of which `offset_history` has any row.
        log_starts: Log start offsets of data partitions, by topic and partition.
        topics: What became of topics.
        lost: Commits that only a line has which did not survive: `committed_offset`, `at` (of the
            election), `copy`, and where their records are.
        untold: Why a commit may have been there of which nothing is left, by group.
    """

    setbacks: Sequence[Row] = ()
    committed: Sequence[Row] = ()
    pending: Sequence[Row] = ()
    given: Iterable[Place] = ()
    seen: frozenset[Place] = frozenset()
    log_starts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    lost: Sequence[Row] = ()
    topics: TopicLives = field(default_factory=TopicLives)
    untold: Mapping[str, str] = field(default_factory=dict)


def verdicts(known: Known) -> list[dict[str, Any]]:
    """Return one row for each partition of a group.

    Returns:
        `group_id`, `topic`, `partition`, `verdict`; and where they mean something `at`, `was`,
        `became`, `now` (offsets), `advance`, `confidence`, `record` and `reason`, else None.
    """
    now = {_place(row): row["committed_offset"] for row in known.committed}
    found: dict[Place, dict[str, Any]] = {
        _place(row): _standing(known, row) for row in known.committed
    }
    # These came after everything that the group itself did.
    of_no_use = {place for place, row in found.items() if row["verdict"] != GOES_FORWARD}
    for row in known.pending:
        found.setdefault(
            _place(row), {"verdict": PENDING, "at": row["commit_timestamp"], **_record(row)}
        )
    for row in known.setbacks:
        place = _place(row)
        if place not in of_no_use:
            found[place] = _setback(row, now.get(place))
    for row in known.lost:
        place = _place(row)
        if place not in of_no_use and _is_lost(row, now.get(place), found.get(place)):
            found[place] = _lost(row, now.get(place))
    for place in set(known.given) - found.keys() - known.seen:
        reason = known.untold.get(place[0])
        found[place] = {
            "verdict": CANNOT_TELL if reason else NEVER_COMMITTED,
            "reason": reason,
        }
    return [
        dict(zip(("group_id", "topic", "partition"), place, strict=True))
        | {name: found[place].get(name) for name in _SAID}
        for place in sorted(found)
    ]


def by_topic(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Put partitions together that share a topic, verdict, confidence and reason."""
    together: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        shared = tuple(row[name] for name in _SHARED)
        together.setdefault(shared, []).append(row)
    return [_merged(dict(zip(_SHARED, key, strict=True)), of) for key, of in together.items()]


def _merged(shared: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    # The last of them stands for all, where a record is named.
    last = max(rows, key=lambda row: row["at"] or datetime.min.replace(tzinfo=UTC))
    advances = [row["advance"] for row in rows if row["advance"] is not None]
    return shared | {
        "partitions": ranges(row["partition"] for row in rows if row["partition"] is not None),
        "at": last["at"],
        "record": last["record"],
        "advance": sum(advances) if advances else None,
    }


def _standing(known: Known, row: Row) -> dict[str, Any]:
    offset = row["committed_offset"]
    topic = known.topics.since(row) or {}
    if "verdict" in topic:
        return {**topic, "now": offset}
    start = known.log_starts.get((row["topic"], row["partition"]))
    if start is not None and offset < start:
        reason = "what was committed is deleted: a consumer goes where auto.offset.reset says"
        return {"verdict": BELOW_LOG_START, "now": offset, "reason": reason}
    return {"verdict": GOES_FORWARD, "now": offset, **topic}


def _setback(row: Row, now: int | None) -> dict[str, Any]:
    cause = row["cause"] or "unknown"
    return {
        "verdict": EXPLAINED.get(cause, cause),
        "at": row["effective_timestamp"],
        "was": row["previous_offset"],
        "became": row["committed_offset"],
        "now": now,
        "advance": row["advance"],
        "confidence": row["confidence"],
        **_record(row),
    }


def _is_lost(row: Row, now: int | None, told: dict[str, Any] | None) -> bool:
    """Return whether the group has not come that far again, and nothing befell it since."""
    if now is not None and now >= row["committed_offset"]:
        return False
    if told is None or told["verdict"] == GOES_FORWARD:
        return True
    return bool(row["at"] and told["at"] and told["at"] < row["at"])


def _lost(row: Row, now: int | None) -> dict[str, Any]:
    copy, was = row["copy"], row["committed_offset"]
    return {
        "verdict": LOST,
        "at": row["at"],
        "was": was,
        "became": now,
        "now": now,
        "advance": None if now is None else now - was,
        "confidence": "high",
        **_record(row),
        "reason": f"only copy {copy} has what was committed: --prefer-copy {copy}",
    }


def _record(row: Row) -> dict[str, str]:
    # What took effect with a marker is found at the marker.
    offset = row.get("effective_offset", row["record_offset"])
    return {"record": f"__consumer_offsets-{row['coordinator_partition']}@{offset}"}


def _place(row: Row) -> Place:
    return row["group_id"], row["topic"], row["partition"]
