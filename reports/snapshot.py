"""What `snapshot` says of the dump that it has taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from schemas.names import COORDINATOR_TOPICS
from schemas.snapshot import Snapshot

_MOST_NAMED: Final = 3
_VERDICTS: Final = {
    "contradicts": "that nothing explains",
    "explained": "explained by what was written or answered since",
    "cannot_tell": "that cannot be judged",
}
"""By the verdicts of `cluster_differences`."""


def snapshot_text(snapshot: Snapshot, out: str, held: Mapping[str, Any] | None = None) -> str:
    """Return lines for people: what lies where, and what holding it against its cluster gave.

    Args:
        snapshot: As it was taken.
        out: Where it lies.
        held: The summary of the question `cluster`; null where it was not asked.
    """
    return "\n".join((*_lines(snapshot, out), _held_text(held)))


def snapshot_json(snapshot: Snapshot, differences: Mapping[str, Any] | None) -> str:
    """Return what programs are told: `snapshot.json`, and what differs from the cluster.

    Args:
        snapshot: As it was taken.
        differences: `verdicts` with their numbers, `rows` of `cluster_differences`, and the `gaps`
            of what cannot be told; null where it was not held against the cluster.
    """
    document = {**msgspec.to_builtins(snapshot), "cluster_differences": differences}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


def _held_text(held: Mapping[str, Any] | None) -> str:
    if held is None:
        return "  not held against the cluster"
    verdicts: Mapping[str, int] = held["verdicts"]
    number = sum(verdicts.values())
    if not number:
        return "  held against the cluster: it answered the same"
    parts = [f"{verdicts[name]:,} {words}" for name, words in _VERDICTS.items() if verdicts[name]]
    return f"  held against the cluster: {_count(number, 'difference')}, {', '.join(parts)}"


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
    if snapshot.resumed_from is not None:
        yield from _resumed(snapshot)
    topics = sum(1 for each in snapshot.topics if each.topic not in COORDINATOR_TOPICS)
    groups = len(snapshot.groups)
    yield f"  snapshot.json: {_count(topics, 'other topic')}, {_count(groups, 'group')}"
    yield "  end-offsets.csv: where logs start and end, for --end-offsets"


def _resumed(snapshot: Snapshot) -> Iterator[str]:
    held = [each for each in snapshot.logs if each.fetched_from is not None]
    yield (
        f"  goes on from the snapshot of {snapshot.resumed_from}: of "
        f"{_count(len(held), 'partition')} only what is new was fetched"
    )
    again = [each for each in snapshot.logs if each.why_whole is not None]
    for each in again[:_MOST_NAMED]:
        yield f"  {each.topic}-{each.partition} was read whole again: {each.why_whole}"
    if len(again) > _MOST_NAMED:
        more = len(again) - _MOST_NAMED
        yield f"  and {more} more, which snapshot.json has with `why_whole`"


def unread_text(snapshot: Snapshot) -> str:
    """Return one line: what was not read, and why."""
    shown = [f"{each.what} ({each.reason})" for each in snapshot.unread[:_MOST_NAMED]]
    more = len(snapshot.unread) - len(shown)
    rest = f" and {more} more, which snapshot.json lists as `unread`" if more else ""
    return f"not read: {', '.join(shown)}{rest}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
