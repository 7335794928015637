"""A coordinator that keeps groups and offsets and cleans up, written from the facts, plainly.

It runs forward in time, leaves the records a broker would leave, and `sweep` removes what the
cleanup of an era would remove now.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

TOPIC = "__consumer_offsets"
Key = tuple[str, str, int]
Rows = dict[str, list[dict[str, Any]]]


@dataclass
class Group:
    """``kind``: simple, consumer (classic), connect, unreadable, or modern (KIP-848)."""

    kind: str
    members: dict[str, list[str]] = field(default_factory=dict)
    state_ms: int = -1


@dataclass
class Commit:
    """A committed offset: when it was made, when it expires if that was asked for."""

    commit_ms: int
    expire_ms: int | None
    record: int


@dataclass
class Coordinator:
    """One partition of the offsets topic, by the rules of an era."""

    number: int
    era: str
    retention_ms: int
    now: int
    rows: Rows = field(default_factory=lambda: defaultdict(list))
    groups: dict[str, Group] = field(default_factory=dict)
    offsets: dict[Key, Commit] = field(default_factory=dict)
    pending: dict[int, dict[Key, Commit]] = field(default_factory=dict)
    end: int = 0

    # --- what clients do ---------------------------------------------------------------------

    def commit(self, key: Key, *, keep_ms: int | None = None, producer: int | None = None) -> None:
        expire = None if keep_ms is None else self.now + keep_ms
        if self.era == "pre-2.1" and expire is None:
            expire = self.now + self.retention_ms
        said = Commit(self.now, expire, self.end)
        value = {
            "offset": self.end,
            "commit_timestamp": self.now,
            "expire_timestamp": expire,
            "metadata": "",
        }
        version = 3 if expire is None else 1
        self.offset_record(key, value, version, -1 if producer is None else producer)
        if producer is None:
            self.offsets[key] = said
        else:
            self.pending.setdefault(producer, {})[key] = said

    def end_transaction(self, producer: int, *, commit: bool) -> None:
        self._record(
            "control_markers",
            producer_id=producer,
            is_transactional=True,
            control_type="COMMIT" if commit else "ABORT",
        )
        for key, said in self.pending.pop(producer, {}).items():
            there = self.offsets.get(key)
            if commit and (there is None or said.record > there.record):
                self.offsets[key] = said

    def join(self, name: str, kind: str, member: str, topics: list[str]) -> None:
        group = self.groups.setdefault(name, Group(kind))
        group.members[member] = topics
        if kind == "modern":
            self._member_record(name, member, topics)
        self._group_record(name)

    def leave(self, name: str, member: str) -> None:
        group = self.groups[name]
        del group.members[member]
        if group.kind == "modern":
            self._member_record(name, member, None)
        self._group_record(name)

    # --- what the coordinator does -----------------------------------------------------------

    def due(self, now: int) -> set[Key]:
        """What a cleanup at an instant would remove."""
        return {key for key, said in self.offsets.items() if self._is_due(key, said, now)}

    def sweep(self) -> set[Key]:
        """Clean up now, with tombstones: empty groups without offsets go too."""
        gone = self.due(self.now)
        for key in sorted(gone):
            self.offset_record(key, None, None, -1)
            del self.offsets[key]
        pending = {key for held in self.pending.values() for key in held}
        with_offsets = {group for group, _, _ in (*self.offsets, *pending)}
        for name in sorted(self.groups.keys() - with_offsets):
            if not self.groups[name].members:
                self._group_tombstone(self.groups.pop(name), name)
        return gone

    def _is_due(self, key: Key, said: Commit, now: int) -> bool:
        if self.era == "pre-2.1":
            return said.expire_ms is not None and said.expire_ms < now
        base = self._base(key, said)
        if base is None:
            return False
        expires = base + self.retention_ms if said.expire_ms is None else said.expire_ms
        is_pending = any(key in held for held in self.pending.values())
        return now >= expires and not (self.era == "current" and is_pending)

    def _base(self, key: Key, said: Commit) -> int | None:
        """What the retention counts from; None where the group keeps the offset."""
        group = self.groups.get(key[0])
        if group is None or group.kind == "simple":
            return said.commit_ms
        subscribed = {topic for topics in group.members.values() for topic in topics}
        if group.kind == "modern":
            return None if key[1] in subscribed else said.commit_ms
        if not group.members:
            return group.state_ms
        if self.era == "2.1-2.3" or group.kind != "consumer" or key[1] in subscribed:
            return None
        return said.commit_ms

    # --- the records it leaves ---------------------------------------------------------------

    def _record(self, table: str, **values: Any) -> None:
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        row = {
            "topic": TOPIC,
            "partition": self.number,
            "offset": self.end,
            "timestamp": epoch + timedelta(milliseconds=self.now),
            "leader_epoch": 0,
            "producer_id": -1,
            "is_transactional": False,
            "batch_offset": self.end,
        }
        self.rows[table].append({**row, **values})
        self.end += 1

    def offset_record(
        self, key: Key, value: dict[str, Any] | None, version: int | None, producer: int
    ) -> None:
        group, topic, partition = key
        self._record(
            "offset_commit",
            producer_id=producer,
            is_transactional=producer >= 0,
            is_tombstone=value is None,
            value_version=version,
            key={"group": group, "topic": topic, "partition": partition},
            value=value,
        )

    def _group_record(self, name: str) -> None:
        group = self.groups[name]
        if group.kind == "modern":
            self._record(
                "consumer_group_metadata",
                is_tombstone=False,
                key={"group_id": name},
                value={"epoch": self.end},
            )
            return
        group.state_ms = self.now
        is_readable = group.kind != "unreadable"
        members = [
            {
                "member_id": member,
                "subscription": b"",
                "subscription_decoded": {"topics": topics} if is_readable else None,
            }
            for member, topics in group.members.items()
        ]
        self._record(
            "group_metadata",
            is_tombstone=False,
            value_version=3,
            key={"group": name},
            value={
                "protocol_type": "connect" if group.kind == "connect" else "consumer",
                "generation": self.end,
                "protocol": "range" if members else None,
                "leader": None,
                "current_state_timestamp": self.now,
                "members": members,
            },
        )

    def _group_tombstone(self, group: Group, name: str) -> None:
        if group.kind == "modern":
            self._record("consumer_group_metadata", is_tombstone=True, key={"group_id": name})
        else:
            self._record("group_metadata", is_tombstone=True, key={"group": name})

    def _member_record(self, name: str, member: str, topics: list[str] | None) -> None:
        self._record(
            "consumer_group_member_metadata",
            is_tombstone=topics is None,
            key={"group_id": name, "member_id": member},
            value=None if topics is None else {"subscribed_topic_names": topics},
        )
