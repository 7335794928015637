"""Who owns partitions and tasks while a coordinator loads a group, slowly and plainly.

Written from what is known of ``ConsumerGroup`` and ``StreamsGroup`` in 4.0 to 4.4 alone: each
record of a member takes away what it had, and then puts what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.reference_groups import Member, ModernGroup, Value

ROLES = ("active", "standby", "warmup")
BEFORE_FIX = {"4.0.0", "4.0.1", "4.1.0", "4.1.1"}
TASKS_CHECKED = {"4.1.0", "4.1.1"}


@dataclass(frozen=True)
class Change:
    """What a record of a member takes away and puts."""

    had: Value | None
    had_epoch: int
    had_process: str | None
    has: Value | None
    epoch: int
    process: str | None


def change_of(group: ModernGroup, kind: str, name: str, value: Value | None) -> Change | None:
    """Return what a record does, before it is applied; None where it does nothing about owners."""
    there = group.members.get(name)
    if there is None and value is None:
        return None
    member = there or Member()
    process = None if member.metadata is None else member.metadata.get("process_id")
    has, epoch = (member.current, member.epoch)
    if kind == "current_member_assignment":
        has, epoch = (value, value["member_epoch"]) if value is not None else (None, -1)
    elif value is None:
        has, epoch = None, -1
    new_process = process
    if kind == "member_metadata" and value is not None:
        new_process = value.get("process_id")
    return Change(member.current, member.epoch, process, has, epoch, new_process)


def fault_of(group: ModernGroup, change: Change, release: str) -> str | None:
    """Apply a change to the owners; return why the release refuses it, or None."""
    if group.family == "consumer":
        return _partitions(group.owners, change, release)
    if group.family == "streams" and release in TASKS_CHECKED:
        return "task_not_owned" if _is_refused(group.owners, change) else None
    return None


def _partitions(owners: dict[Any, int], change: Change, release: str) -> str | None:
    for partitions in _lists(change.had):
        for each in partitions:
            if owners.get(each) == change.had_epoch:
                del owners[each]
    fault = None
    for partitions in _lists(change.has):
        for each in partitions:
            owned_at = owners.get(each)
            if owned_at is not None and (release in BEFORE_FIX or owned_at >= change.epoch):
                fault = "partition_still_owned"
            owners[each] = change.epoch
    return fault


def _lists(value: Value | None) -> Iterator[set[tuple[str, int]]]:
    for name in ("assigned_partitions", "partitions_pending_revocation"):
        told = (value or {}).get(name) or ()
        yield {(each["topic_id"], number) for each in told for number in each["partitions"]}


def _is_refused(owners: dict[Any, Any], change: Change) -> bool:
    try:
        for suffix in ("_tasks", "_tasks_pending_revocation"):
            _take(owners, change.had, suffix, change.had_process)
        for suffix in ("_tasks", "_tasks_pending_revocation"):
            _put(owners, change.has, suffix, change.process)
    except LookupError:
        return True
    return False


def _tasks(value: Value | None, suffix: str) -> Iterator[tuple[str, str, int]]:
    for role in ROLES:
        told: list[Mapping[str, Any]] = (value or {}).get(f"{role}{suffix}") or []
        for each in told:
            for number in each["partitions"]:
                yield role, each["subtopology_id"], number


def _take(owners: dict[Any, Any], value: Value | None, suffix: str, process: str | None) -> None:
    by_subtopology: dict[tuple[str, str], list[int]] = {}
    for role, subtopology, number in _tasks(value, suffix):
        by_subtopology.setdefault((role, subtopology), []).append(number)
    for (role, subtopology), numbers in by_subtopology.items():
        here = owners.get((role, subtopology))
        if here is None:
            raise LookupError("it does not have any process")
        for number in numbers:
            if role == "active":
                if here.pop(number, None) != process:
                    raise LookupError("still owned by another process")
            else:
                here[number].remove(process)
        if not here:
            del owners[role, subtopology]


def _put(owners: dict[Any, Any], value: Value | None, suffix: str, process: str | None) -> None:
    if process is None:
        return
    for role, subtopology, number in _tasks(value, suffix):
        here = owners.setdefault((role, subtopology), {})
        if role != "active":
            here.setdefault(number, set()).add(process)
        elif here.get(number) is not None:
            raise LookupError("still owned by a process")
        else:
            here[number] = process
