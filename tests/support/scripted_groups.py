"""A coordinator that plays random acts, writes what a broker would, and remembers who had what.

It knows the state after every act because it made it; nothing of it is read back from records. One
topic, whose partitions are given to members at random.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

TOPIC, TOPIC_ID = "orders", "gtb2stGYRk-vWZ2zAozmoA"
PARTITIONS = range(6)
_MEMBERS = ("ada", "bob", "cyd", "dan")
_NAMED = {"ada": "range", "bob": "uniform", "cyd": "range"}
"""The assignor that a member of a consumer group names."""

Had = frozenset[tuple[str, str, int]]
"""Kind of assignment, member and partition."""


def preferred(members: Iterable[str]) -> frozenset[str]:
    """Return the assignors that most of these members name; the broker's first where none does."""
    votes = Counter(_NAMED[who] for who in members if who in _NAMED)
    most = max(votes.values(), default=0)
    return frozenset(name for name, each in votes.items() if each == most) or frozenset({"uniform"})


@dataclass
class Epoch:
    """One epoch of one life of a group, as it was when it ended (or at the end of the log)."""

    family: str
    life: int
    epoch: int
    from_offset: int
    missing_before: int
    members: frozenset[str] = frozenset()
    protocols: frozenset[str] = frozenset()
    had: Had = frozenset()
    joined: int = 0
    left: int = 0


@dataclass
class Record:
    """One record; those of one batch were written together."""

    table: str
    key: dict[str, Any]
    value: dict[str, Any] | None
    batch: int


@dataclass
class Scripted:
    """A group's log, and its epochs in order."""

    group: str
    random: Random
    records: list[Record] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    life: int = 0
    epoch: int = 0
    has: dict[str, set[int]] = field(default_factory=dict)
    wants: dict[str, set[int]] = field(default_factory=dict)
    _batch: int = 0

    def begin(self) -> None:
        """Begin a batch."""
        self._batch = len(self.records)

    def write(self, table: str, value: dict[str, Any] | None, member: str | None = None) -> None:
        """Write one record of the batch."""
        group = "group" if table == "group_metadata" else "group_id"
        key = {group: self.group} | ({"member_id": member} if member else {})
        self.records.append(Record(table, key, value, self._batch))

    def remember(self) -> None:
        """Note how the epoch in force stands now."""
        last = self.epochs[-1]
        last.members = frozenset(self.has)
        last.protocols = preferred(self.has)
        had = {("current", who, each) for who, given in self.has.items() for each in given}
        had |= {("target", who, each) for who, given in self.wants.items() for each in given}
        last.had = frozenset(had)
        before = self.epochs[-2] if len(self.epochs) > 1 else None
        there = before.members if before and before.life == last.life else frozenset()
        last.joined, last.left = len(last.members - there), len(there - last.members)

    def open(self, family: str, missing: int = 0) -> None:
        """Begin an epoch with the record that is written next."""
        self.epochs.append(Epoch(family, self.life, self.epoch, len(self.records), missing))


def consumer_group(group: str, seed: int, acts: int) -> Scripted:
    """Play a group of KIP-848: members come, reconcile step by step and go; it may be deleted."""
    script = Scripted(group, Random(seed))
    script.life = 1
    for _ in range(acts):
        _consumer_act(script)
    return script


def _consumer_act(script: Scripted) -> None:
    random = script.random
    absent = [each for each in _MEMBERS if each not in script.has]
    act = random.choice(["join", "leave", "reconcile", "reconcile", "reconcile", "delete"])
    script.begin()
    if act == "join" and absent:
        _join(script, random.choice(absent))
    elif act == "leave" and script.has:
        _leave(script, random.choice(sorted(script.has)))
    elif act == "reconcile" and script.has:
        _reconcile(script, random.choice(sorted(script.has)))
    elif act == "delete" and not script.has and script.epoch:
        script.write("consumer_group_target_assignment_metadata", None)
        script.write("consumer_group_metadata", None)
        script.life, script.epoch = script.life + 1, 0
        return
    if script.epochs and script.epoch:
        script.remember()


def _join(script: Scripted, who: str) -> None:
    about: dict[str, Any] = {"client_id": who, "client_host": "/h"}
    about |= {"subscribed_topic_names": [TOPIC], "server_assignor": _NAMED.get(who)}
    script.write("consumer_group_member_metadata", about, who)
    script.has[who] = set()
    _new_epoch(script)
    _write_current(script, who)


def _leave(script: Scripted, who: str) -> None:
    for name in ("current_member_assignment", "target_assignment_member", "member_metadata"):
        script.write(f"consumer_group_{name}", None, who)
    del script.has[who]
    script.wants.pop(who, None)
    _new_epoch(script)


def _new_epoch(script: Scripted) -> None:
    script.epoch += 1
    script.open("consumer")
    script.write("consumer_group_metadata", {"epoch": script.epoch})
    wants: dict[str, set[int]] = defaultdict(set)
    for partition in PARTITIONS:
        if script.has:
            wants[script.random.choice(sorted(script.has))].add(partition)
    for who in sorted(script.has):
        if who not in script.wants or script.wants[who] != wants[who]:
            script.wants[who] = wants[who]
            given = {"topic_partitions": _lists(wants[who])}
            script.write("consumer_group_target_assignment_member", given, who)
    script.write("consumer_group_target_assignment_metadata", {"assignment_epoch": script.epoch})


def _reconcile(script: Scripted, who: str) -> None:
    others = set().union(*(given for each, given in script.has.items() if each != who))
    kept = script.has[who] & script.wants[who]
    script.has[who] = kept | (script.wants[who] - others if script.has[who] == kept else set())
    _write_current(script, who)


def _write_current(script: Scripted, who: str) -> None:
    value = {
        "member_epoch": script.epoch,
        "previous_member_epoch": script.epoch - 1,
        "state": 0 if script.has[who] == script.wants[who] else 2,
        "assigned_partitions": _lists(script.has[who]),
        "partitions_pending_revocation": [],
    }
    script.write("consumer_group_current_member_assignment", value, who)


def _lists(partitions: set[int]) -> list[dict[str, Any]]:
    if not partitions:
        return []
    return [{"topic_id": TOPIC_ID, "partitions": sorted(partitions)}]


def classic_group(group: str, seed: int, acts: int) -> Scripted:
    """Play a classic group: generations, some that leave no record, restarts, deletion."""
    script = Scripted(group, Random(seed))
    script.life = 1
    for _ in range(acts):
        script.begin()
        if script.random.random() < 0.1 and not script.has and script.epoch:
            script.write("group_metadata", None)
            script.life, script.epoch = script.life + 1, 0
            continue
        again = bool(script.epoch) and script.random.random() < 0.15
        if not again:
            missing = script.random.choice([0, 0, 0, 1, 2])
            script.epoch += 1 + missing
            script.open("classic", missing)
        there = script.random.sample(_MEMBERS, script.random.randint(0, len(_MEMBERS)))
        script.has = {who: set() for who in there}
        for partition in PARTITIONS:
            if there:
                script.has[script.random.choice(there)].add(partition)
        script.write("group_metadata", _snapshot(script))
        script.remember()
    return script


def _snapshot(script: Scripted) -> dict[str, Any]:
    members = [
        {
            "member_id": who,
            "client_id": who,
            "client_host": "/h",
            "subscription_decoded": {"topics": [TOPIC]},
            "assignment_decoded": {
                "assigned_partitions": [{"topic": TOPIC, "partitions": sorted(given)}]
            },
        }
        for who, given in sorted(script.has.items())
    ]
    return {
        "protocol_type": "consumer",
        "generation": script.epoch,
        "protocol": "range" if members else None,
        "leader": members[0]["member_id"] if members else None,
        "current_state_timestamp": -1,
        "members": members,
    }
