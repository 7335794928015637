"""What happened in the time of an incident, by the clients, operators and brokers who did it.

Counted plainly from `timeline.jsonl` and `divergence.json` of a dump, for the sentences of
`forensics` to be held against.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.verdicts.truth import NO_MARKER, OFFSETS_PARTITIONS, home_of
from tests.verdicts.witness import Act, Key, acts_in, place

TIMELINES = Path(__file__).parent / "timelines"
Event = Mapping[str, Any]
Offsets = dict[Key, int | None]
Window = tuple[int, int]
"""The first and the last instant of it, in epoch milliseconds."""
NO_SUCH_GROUP = "GroupIdNotFoundException"


def timeline_of(dump: str) -> list[Event]:
    """Return the events of a dump, as they were written while it was made."""
    lines = gzip.decompress((TIMELINES / f"{dump}.jsonl.gz").read_bytes()).decode().splitlines()
    return sorted(map(json.loads, lines), key=lambda event: int(event["at"]))


# Groups that were removed.


def groups_gone(events: Iterable[Event], window: Window) -> set[str]:
    """Return groups that were there and were gone, or were deleted, in the time.

    That a group is gone shows to who asks for it again and again, or to who deletes it too late.
    """
    begin, end = window
    gone = set()
    for each in events:
        kind, error = each["event"], str(each.get("error") or "")
        is_deleted = kind in {"group-deleted", "share-group-deleted", "streams-group-deleted"}
        took_place = not error or NO_SUCH_GROUP in error
        if is_deleted and took_place and begin <= each["at"] <= end:
            gone.add(each["group"])
        if kind == "group-gone" and begin <= each["after_ms"] and each["by_ms"] <= end:
            gone.add(each["group"])
    return gone


def share_partitions_deleted(events: Iterable[Event], window: Window) -> set[Key]:
    """Return share partitions whose state was deleted in the time, with or without their group."""
    begin, end = window
    sizes: dict[str, int] = {}
    topics: dict[str, set[str]] = {}
    deleted: set[Key] = set()
    for each in events:
        kind, group = each["event"], each.get("group", "")
        taken: Collection[str] = ()
        if kind in {"topic-created", "partitions-increased"}:
            sizes[each["topic"]] = each.get("partitions") or each["to"]
        elif kind == "share-opened":
            topics.setdefault(group, set()).update(each["subscription"])
        elif kind == "share-offsets-deleted" and not each["error"]:
            taken = each["topics"]
        elif kind == "share-group-deleted" and not each["error"]:
            taken = topics.get(group, ())
        if begin <= each["at"] <= end:
            deleted |= {(group, topic, n) for topic in taken for n in range(sizes[topic])}
    return deleted


# A failover: what the line of the dead broker had, and where groups went on.


@dataclass(frozen=True)
class Failover:
    """What an unclean election took.

    Attributes:
        lost: Offsets that the line of the dead broker had, and the other one did not: what was in
            force on the lost line, None where it was deleted there.
        again: How many records each of `lost` is read again; None where nobody told.
        unwitnessed: Groups of which nobody told what they committed, on lost logs.
        share_groups: Groups that were handed records on the lost line.
        records: How many records of internal topics were lost,
        partitions: of how many partitions.
        survivors: Who was elected there.
        elected: When the operator was told of the first and of the last of these elections.
        last: When the last commit was sent to the dead broker that it answered, and when clients
            were stopped before it died.
    """

    lost: Offsets
    again: Mapping[Key, int | None]
    unwitnessed: set[str]
    share_groups: set[str]
    records: int
    partitions: int
    survivors: list[int]
    elected: Window
    last: Window


def failover_of(events: Sequence[Event], divergence: Sequence[Mapping[str, Any]]) -> Failover:
    """Count what happened to groups when brokers that lacked records were elected."""
    cut = {
        each["partition"]: each
        for each in divergence
        if each["partition"].startswith("__") and each.get("dead_copy_records_lost")
    }
    elections = {
        each["partition"]: each["at"]
        for each in events
        if each["event"] == "election" and each["type"] == "UNCLEAN"
    }
    killed = [each["at"] for each in events if each["event"] == "broker-killed"]
    alone, elected = min(killed), min(elections[each] for each in cut)
    acts = acts_in(events)
    common, line = Offsets(), Offsets()
    first_after: Offsets = {}
    for key, offset, at in _commits(acts):
        if at < alone:
            common[key] = offset
        if at < elected:
            line[key] = offset
        else:
            first_after.setdefault(key, offset)
    lost = {
        key: was
        for key, was in line.items()
        if f"__consumer_offsets-{home_of(key[0], OFFSETS_PARTITIONS)}" in cut
        and was != common.get(key)
    }
    on_lost_line = [each for each in events if alone <= each["at"] < elected]
    return Failover(
        lost=lost,
        again={
            key: _again(was, first_after.get(key, common.get(key))) for key, was in lost.items()
        },
        unwitnessed={each["group"] for each in events if each["event"] == "streams-opened"},
        share_groups={each["group"] for each in on_lost_line if each["event"] == "share-polled"},
        records=sum(each["dead_copy_records_lost"] for each in cut.values()),
        partitions=len(cut),
        survivors=sorted({each["survivor"] for each in cut.values()}),
        elected=(elected, max(elections[each] for each in cut)),
        last=(
            max(
                each["sent_at"]
                for each in on_lost_line
                if each["event"] == "commit" and "sent_at" in each
            ),
            max(each["at"] for each in on_lost_line if each["event"] == "clients-frozen"),
        ),
    )


def _again(was: int | None, goes_on_at: int | None) -> int | None:
    """Return how many records are read again; None where nothing says where a group goes on."""
    if was is None:
        return 0
    return None if goes_on_at is None else max(0, was - goes_on_at)


def _commits(acts: Iterable[Act]) -> Iterable[tuple[Key, int | None, int]]:
    """Yield what took effect for certain, in order; None where an offset was deleted."""
    staged: dict[str, list[tuple[Key, int]]] = {}
    groups: dict[str, set[Key]] = {}
    for act in acts:
        group = act.group or ""
        offsets = [((group, *where), offset) for where, offset in (act.offsets or {}).items()]
        if act.kind == "staged":
            staged.setdefault(act.names[0], []).extend(offsets)
            continue
        found: list[tuple[Key, int | None]] = []
        if act.kind == "settled":
            producer, end = act.names
            begun = staged.pop(producer, [])
            found = [*begun] if end == "COMMIT" and producer not in NO_MARKER else []
        elif act.kind == "commit" and act.is_certain:
            found = [*offsets]
        elif act.kind == "deleted":
            found = [(key, None) for key, _ in offsets]
        elif act.kind == "group_deleted":
            found = [(key, None) for key in sorted(groups.get(group, ()))]
        for key, offset in found:
            groups.setdefault(key[0], set()).add(key)
            yield key, offset, act.answered


def commits_after(events: Sequence[Event], key: Key, at: int) -> int | None:
    """Return what was committed of an offset next after an instant; None where nothing was."""
    later = (
        offset
        for each, offset, answered in _commits(acts_in(events))
        if each == key and answered > at and offset is not None
    )
    return next(iter(later), None)


def rewinds_of(events: Sequence[Event], window: Window) -> dict[Key, int]:
    """Return by offset how many records members went back over by their own commits in the time."""
    begin, end = window
    found: dict[Key, int] = {}
    before: dict[Key, int] = {}
    for event in events:
        if event["event"] != "commit" or event.get("error") or not event.get("member"):
            continue
        for name, offset in event["offsets"].items():
            key = (event["group"], *place(name))
            if begin <= event["at"] <= end and offset < before.get(key, offset):
                found[key] = found.get(key, 0) + before[key] - offset
            before[key] = offset
    return found
