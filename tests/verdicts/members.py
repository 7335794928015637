"""Who was in a group, in which generations, and what each member held, as clients and brokers said.

A client that the coordinator answered was a member then: it had partitions assigned or taken, or
its commit was accepted. Of members that Kafka's Streams, share consumers or raw requests made
nobody told, so their groups are left out of all but what coordinators answered last.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]

APART_MS = 5_000
"""How far apart sightings of a member are that are kept."""
QUIET_MS = 5_000
"""How long before and after an instant nothing may have happened to a group asked about then."""
UNTOLD = {"streams-opened", "share-opened", "raw-joined"}
CHANGES = {"opened", "assigned", "revoked", "closed", "resubscribed"}
TOPICS = {"topic-created", "topic-deleted", "partitions-increased"}
HALTS = {"broker-stopping", "broker-killed", "client-killed", "clients-frozen"}


def members_of(folder: Path, instants: Iterable[int]) -> dict[str, Any]:
    """Return what is told of members.

    Returns:
        `seen`: by group and member the spans of time (epoch milliseconds) in which it was seen;
        `left`: by group and member when its client closed; `epochs`: group, epoch, and when it was
        first seen; `sizes`: by instant and group, ascending, how many partitions each member had;
        `end`: the same as coordinators answered last.
    """
    lines = (folder / "timeline.jsonl").read_text("utf-8").splitlines()
    events = sorted((json.loads(line) for line in lines), key=lambda event: event["at"])
    untold = {event["group"] for event in events if event["event"] in UNTOLD}
    untold |= {event["group"] for event in events if event.get("instance")}
    told = [event for event in events if event.get("group") not in untold]
    if (folder / "tools" / "divergence.json").exists():
        # Of two lines one survived: who was in a group on the other need not be told.
        told = []
    return {
        "seen": _seen(told),
        "left": _left(told),
        "epochs": _epochs(told),
        "sizes": [{"at": at, "groups": _sizes(told, at)} for at in instants],
        "end": _sizes_at_end(folder / "tools" / "state.json.gz"),
    }


def _sightings(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        is_answer = event["event"] in {"assigned", "commit"} and not event.get("error")
        if is_answer and event.get("member") and event.get("epoch", -1) >= 0:
            yield event


def _seen(events: Iterable[Event]) -> dict[str, dict[str, list[list[int]]]]:
    seen: dict[str, dict[str, list[list[int]]]] = defaultdict(lambda: defaultdict(list))
    last: dict[tuple[str, str], list[int]] = {}
    for event in _sightings(events):
        group, member = event["group"], event["member"]
        span = [event.get("sent_at", event["at"]), event["at"]]
        kept = seen[group][member]
        if not kept or span[0] > kept[-1][1] + APART_MS:
            kept.append(span)
        last[group, member] = span
    for (group, member), span in last.items():
        if seen[group][member][-1] != span:
            seen[group][member].append(span)
    return {group: dict(members) for group, members in sorted(seen.items())}


def _left(events: Sequence[Event]) -> dict[str, dict[str, int]]:
    """Return when clients closed, by their members' ids."""
    member_of: dict[tuple[str, str], str] = {}
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for event in events:
        actor = event.get("group", ""), event.get("actor", "")
        if event["event"] == "closed" and actor in member_of:
            found[event["group"]][member_of.pop(actor)] = event["at"]
        elif event.get("member") and event["event"] in CHANGES | {"commit"}:
            member_of[actor] = event["member"]
    return dict(sorted(found.items()))


def _epochs(events: Iterable[Event]) -> list[list[Any]]:
    first: dict[tuple[str, int], int] = {}
    for event in _sightings(events):
        first.setdefault((event["group"], event["epoch"]), event["at"])
    return [[*key, at] for key, at in sorted(first.items())]


def _sizes(events: Sequence[Event], at: int) -> dict[str, list[int]]:
    """Return how many partitions members had, of groups that stood still around an instant."""
    held: dict[str, dict[str, set[str]]] = defaultdict(dict)
    restless, alive = set[str | None](), set[tuple[str, str]]()
    joined = set[tuple[str, str]]()
    for event in events:
        kind, group, actor = event["event"], event.get("group"), event.get("actor")
        near = abs(event["at"] - at) <= QUIET_MS
        if near and (kind in TOPICS | HALTS):
            return {}
        if near and kind in CHANGES:
            restless.add(group)
        if event["at"] > at:
            if group and actor:
                alive.add((group, actor))
        elif group and actor:
            _change(held[group], event)
            # Who chooses partitions by itself, or has not come that far, was given none.
            joined -= {(group, actor)} if kind == "opened" else set()
            joined |= {(group, actor)} if kind == "assigned" else set()
    return {
        group: sorted(len(each) for each in members.values())
        for group, members in sorted(held.items())
        if members
        and group not in restless
        # Of a client that nobody heard of again nobody knows when it was killed.
        and all((group, actor) in alive and (group, actor) in joined for actor in members)
    }


def _change(members: dict[str, set[str]], event: Event) -> None:
    kind, actor = event["event"], event["actor"]
    if kind == "opened":
        members[actor] = set()
    elif kind == "closed":
        members.pop(actor, None)
    elif kind == "assigned":
        members.setdefault(actor, set()).update(event["partitions"])
    elif kind == "revoked":
        members.setdefault(actor, set()).difference_update(event["partitions"])


def _sizes_at_end(path: Path) -> dict[str, list[int]]:
    state = json.loads(gzip.decompress(path.read_bytes()))
    found = {}
    for row in state["groups"]:
        described = row["described"]["groups"][0]
        sizes = [_size(described, member) for member in described["members"]]
        if all(size is not None for size in sizes):
            found[row["group_id"]] = sorted(size for size in sizes if size is not None)
    return found


def _size(group: Mapping[str, Any], member: Mapping[str, Any]) -> int | None:
    """Return how much a member has; None where it is on its way to something else."""
    if "memberAssignment" in member:
        if group["protocolType"] != "consumer" or group["groupState"] != "Stable":
            return None
        return _assigned(base64.b64decode(member["memberAssignment"]))
    now = member["assignment"]
    if now != member.get("targetAssignment", now) or member["memberEpoch"] != group["groupEpoch"]:
        return None
    placed = now["activeTasks"] if "activeTasks" in now else now["topicPartitions"]
    return sum(len(each["partitions"]) for each in placed)


def _assigned(data: bytes) -> int | None:
    """Count the partitions of an assignment of the consumer protocol."""
    if not data:
        return 0
    at, count = 6, 0
    try:
        for _ in range(struct.unpack_from(">i", data, 2)[0]):
            at += 2 + struct.unpack_from(">h", data, at)[0]
            (partitions,) = struct.unpack_from(">i", data, at)
            at, count = at + 4 + 4 * partitions, count + partitions
    except struct.error:
        return None
    return count
