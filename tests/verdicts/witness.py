"""What clients, operators and brokers say they did, read from the `timeline.jsonl` of a dump.

None of it was decoded from the logs. A client knows when it asked and when it was answered: an act
took effect somewhere in between, and one that was never answered may have taken effect or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = tuple[str, str, int]
"""A group, a topic, a partition."""

SLACK_MS = 15_000
"""How long before the answer an act may have begun where the client did not say."""
MARKER_MS = 15_000
"""How long after its answer a transaction's marker may be written."""
TIMED_OUT_MS = 120_000
"""How long after a client gave up a broker may still do what it was asked."""


@dataclass(frozen=True)
class Act:
    """One thing that was done to an offset, or to what it hangs on.

    Attributes:
        kind: `commit`, `staged` (in a transaction), `settled` (a transaction's end), `deleted`,
            `group_deleted`, `topic_deleted`.
        at: The two instants between which it took effect, in epoch milliseconds.
        answered: When whoever did it was told so: acts took effect in this order.
        group: The group; None where the act is about a topic or a producer.
        offsets: What was committed, by topic and partition.
        by_member: Whether a member of the group did it.
        is_certain: Whether the broker said that it is done.
        names: The topic, the producer, or COMMIT and ABORT with the producer.
    """

    kind: str
    at: tuple[int, int]
    answered: int
    group: str | None = None
    offsets: Mapping[tuple[str, int], int] | None = None
    by_member: bool = False
    is_certain: bool = True
    names: tuple[str, ...] = ()


def acts_of(timeline: Path) -> list[Act]:
    """Return the acts of a dump in the order in which they were answered."""
    return acts_in(json.loads(line) for line in timeline.read_text("utf-8").splitlines())


def acts_in(events: Iterable[Mapping[str, Any]]) -> list[Act]:
    """Return the acts of events in the order in which they were answered."""
    in_order = sorted(events, key=lambda event: event["at"])
    return [act for event in in_order for act in _acts(event)]


def _acts(event: Mapping[str, Any]) -> Iterator[Act]:
    kind, group = event["event"], event.get("group")
    done = event["at"]
    asked = event.get("sent_at", done - SLACK_MS)
    if kind in {"commit", "raw-commit", "offsets-altered", "commit-failed"}:
        if "offsets" not in event:
            return
        failed = kind == "commit-failed" or bool(event.get("error")) or any(_errors(event))
        if failed and not _may_have_been_done(event):
            return
        yield Act(
            "commit",
            (asked, done + TIMED_OUT_MS) if failed else (asked, done),
            done,
            group,
            {place(name): offset for name, offset in event["offsets"].items()},
            by_member=event.get("epoch", -1) >= 0 or bool(event.get("member")),
            is_certain=not failed,
        )
    elif kind == "txn-offsets":
        offsets = {place(name): offset for name, offset in event["offsets"].items()}
        yield Act("staged", (asked, done), done, group, offsets, names=(event["producer"],))
    elif kind in {"txn-committed", "txn-aborted", "txn-opened"}:
        # A producer that opens again fences the one before: what that one began is aborted.
        end = "COMMIT" if kind == "txn-committed" else "ABORT"
        yield Act("settled", (asked, done + MARKER_MS), done, names=(event["producer"], end))
    elif kind == "offsets-deleted" and not event.get("error"):
        gone = {place(name): -1 for name in event["partitions"]}
        yield Act("deleted", (asked, done), done, group, gone)
    elif kind in {"group-deleted", "streams-group-deleted"} and not event.get("error"):
        yield Act("group_deleted", (asked, done), done, group)
    elif kind == "topic-deleted":
        yield Act("topic_deleted", (asked, done + MARKER_MS), done, names=(event["topic"],))


def _errors(event: Mapping[str, Any]) -> list[int]:
    return list(event.get("errors", ()))


def _may_have_been_done(event: Mapping[str, Any]) -> bool:
    """Return whether a commit that failed may have been done: only where nobody answered."""
    return not _errors(event) and "Timeout" in str(event.get("error"))


def place(name: str) -> tuple[str, int]:
    """Return the topic and the number of a partition's name."""
    topic, _, number = name.rpartition("-")
    return topic, int(number)
