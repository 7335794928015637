"""What `snapshot` says of the dump that it has taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from schemas.names import COORDINATOR_TOPICS
from schemas.snapshot import Snapshot

_MOST_NAMED: Final = 3


def snapshot_text(snapshot: Snapshot, out: str) -> str:
    """Return lines for people: what lies where, and how to go on."""
    return "\n".join(_lines(snapshot, out))


def _lines(snapshot: Snapshot, out: str) -> Iterator[str]:
    cluster = snapshot.cluster_id or "without an id"
    brokers = len(snapshot.brokers)
    yield f"{out}: cluster {cluster}, {_count(brokers, 'broker')}, as of {snapshot.taken_at}"
    for topic in COORDINATOR_TOPICS:
        logs = [each for each in snapshot.logs if each.topic == topic]
        if logs:
            size = sum(each.bytes for each in logs)
            read = sum(each.failure is None for each in logs)
            of_so_many = "" if read == len(logs) else f"{read:,} of "
            yield f"  {topic}: {of_so_many}{_count(len(logs), 'partition')}, {size:,} bytes"
    topics = sum(1 for each in snapshot.topics if each.topic not in COORDINATOR_TOPICS)
    groups = len(snapshot.groups)
    yield f"  snapshot.json: {_count(topics, 'other topic')}, {_count(groups, 'group')}"
    yield "  end-offsets.csv: where logs start and end, for --end-offsets"


def unread_text(snapshot: Snapshot) -> str:
    """Return one line: what was not read, and why."""
    shown = [f"{each.what} ({each.reason})" for each in snapshot.unread[:_MOST_NAMED]]
    more = len(snapshot.unread) - len(shown)
    rest = f" and {more} more, which snapshot.json lists as `unread`" if more else ""
    return f"not read: {', '.join(shown)}{rest}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
