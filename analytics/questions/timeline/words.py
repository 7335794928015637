"""The words of verdicts, from worst to best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LOST = "lost by an election"
LOST_BY_GROWTH = "lost by a new partition count"
LOST_WITH_TOPIC = "lost with a deleted offsets topic"
TOPIC_DELETED = "topic deleted"
RECREATED = "topic re-created under another id"
EXPIRED = "expired"
GROUP_DELETED = "group deleted"
OFFSET_DELETED = "offset deleted"
REWOUND = "rewound by a member"
RESET_WHILE_EMPTY = "committed while the group was Empty"
BELOW_ZERO = "an offset below 0 was committed"
BELOW_LOG_START = "below the log start"
WITHOUT_GROUP = "kept without its group"
"""Its transaction committed after the group was removed: nobody is told of it until a group of that
name is there again."""
CANNOT_TELL = "cannot tell"
PENDING = "pending in a transaction"
NEVER_COMMITTED = "never committed"
NO_LOSS_SINCE = "no loss found since"
"""The time follows: from then on the history of the offset has no gap, and nothing went back."""

WORST_FIRST = (
    *(LOST, LOST_BY_GROWTH, LOST_WITH_TOPIC, TOPIC_DELETED, RECREATED, EXPIRED, GROUP_DELETED),
    *(OFFSET_DELETED, REWOUND, RESET_WHILE_EMPTY, BELOW_ZERO, BELOW_LOG_START, WITHOUT_GROUP),
    *(CANNOT_TELL, PENDING, NEVER_COMMITTED, NO_LOSS_SINCE),
)

OF_CAUSE = {
    "expiration": EXPIRED,
    "group_deleted": GROUP_DELETED,
    "offsets_deleted": OFFSET_DELETED,
    "topic_deleted": TOPIC_DELETED,
    "topic_recreated": RECREATED,
    "committed_while_empty": RESET_WHILE_EMPTY,
    "rewound_by_member": REWOUND,
    "lost_by_election": REWOUND,
    "unknown": CANNOT_TELL,
}
"""The verdict on each cause in `offset_history`. What that table calls lost by an election is a
member that committed an earlier offset after its topic had lost records."""

HIGH, MEDIUM, LOW = "high", "medium", "low"

Row = Mapping[str, Any]
Verdict = dict[str, Any]
Place = tuple[str, str, int]
"""Group, topic and partition."""

GroupPlace = tuple[str, None, None]
"""Of a verdict on a whole group."""

PLACE = ("group_id", "topic", "partition")
COLUMNS = (
    *PLACE,
    *("verdict", "at", "not_before", "was", "committed_at", "became", "cost"),
    *("confidence", "record", "reason"),
)


def place_of(row: Row) -> Place:
    """Return the group, topic and partition of a row."""
    return row["group_id"], row["topic"], row["partition"]


def record_of(row: Row, offset: int | None = None) -> str:
    """Return where a record is: internal partition and offset."""
    at = row["record_offset"] if offset is None else offset
    return f"__consumer_offsets-{row['coordinator_partition']}@{at}"


def verdict_row(place: Place | GroupPlace, verdict: str, **columns: Any) -> Verdict:  # noqa: ANN401 - columns
    """Return a row with all `COLUMNS`; what is not said is null."""
    row = dict.fromkeys(COLUMNS) | dict(zip(PLACE, place, strict=True)) | columns
    return row | {"verdict": verdict}


def rank(row: Row) -> tuple[int, float]:
    """Return how bad a verdict is, the worst lowest: by its word, then by what it cost."""
    word = row["verdict"]
    place = next((n for n, each in enumerate(WORST_FIRST) if word.startswith(each)), 0)
    cost = row["cost"]
    return place, -float("inf") if cost is None else -abs(cost)
