"""What `offset_expiration` must say of a printed log: one record after the other.

Written from docs/expiration.md and what is known of Kafka's cleanup, era by era. A broker's cleanup
asks of every offset whether its group keeps it, and from when the retention counts; here that is
asked after each record, so that the end of what kept an offset is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.support.plain_coordinator import CONSUMER_PROTOCOL, PlainCoordinator, read_subscription
from tests.support.plain_log import PlainRecord
from tests.support.reference_groups import ClassicGroup, ModernGroup
from tests.support.reference_offsets import OffsetKey

NO_TIME = -1
KEPT_BY_NOTHING = None


class Keeps(NamedTuple):
    """Why a group keeps an offset, or by which rule it does not; what the retention counts from."""

    rule: str
    base_ms: int | None


@dataclass(frozen=True)
class Asked:
    """By which rules, and when."""

    era: str
    release: str
    retention_ms: int
    interval_ms: int
    now_ms: int


def _is_read(member: Mapping[str, Any]) -> bool:
    """Whether a coordinator reads a subscription: topics and user data, as version 0 has them."""
    said = read_subscription(member)
    return said is not None and said.get("fieldsWritten", 2) >= 2


class PlainExpiration:
    """The offsets of one partition of `__consumer_offsets`, and what kept them until when."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.coordinator = PlainCoordinator(asked.release)
        self._kept_until: dict[tuple[str, str], int] = {}
        self._blocked_until: dict[OffsetKey, int] = {}
        self._effective: dict[OffsetKey, tuple[int, int]] = {}

    def replay(self, records: Iterable[PlainRecord]) -> None:
        """Apply records, and note what ceased to keep offsets."""
        for record in records:
            is_of_group = record.control_type is None and record.table != "offset_commit"
            before = self._kept_topics(record) if is_of_group else set()
            pending = self._pending()
            self.coordinator.replay(record)
            if is_of_group:
                after = self._kept_topics(record)
                for place in before - after:
                    self._kept_until[place] = record.timestamp
            for key in pending - self._pending():
                self._blocked_until[key] = record.timestamp
            if record.control_type == "COMMIT":
                for key in pending:
                    commit = self.coordinator.offsets.committed.get(key)
                    if commit is not None and commit.by_marker:
                        known = self._effective.get(key)
                        if known is None or known[0] != commit.record.offset:
                            self._effective[key] = commit.record.offset, record.timestamp

    def _pending(self) -> set[OffsetKey]:
        return {key for held in self.coordinator.offsets.pending.values() for key in held}

    def _kept_topics(self, record: PlainRecord) -> set[tuple[str, str]]:
        group = record.key.get("group", record.key.get("group_id"))
        keys = [key for key in self.coordinator.offsets.committed if key[0] == group]
        return {(key[0], key[1]) for key in keys if self._keeps(key).base_ms is None}

    def _keeps(self, key: OffsetKey) -> Keeps:
        """Return by which rule an offset stays or goes, expire times of its own left out."""
        name, topic, _ = key
        value = self.coordinator.offsets.committed[key].record.value
        assert value is not None
        commit_ms = value["commit_timestamp"]
        if self.asked.era == "pre-2.1":
            return Keeps("per_offset_expiry", commit_ms)
        group = self.coordinator.groups[name]
        if isinstance(group, ModernGroup):
            return self._of_modern(group, name, topic, commit_ms)
        if not isinstance(group, ClassicGroup) or not group.value["protocol_type"]:
            return Keeps("simple_consumer", commit_ms)
        if not group.value["members"]:
            since = group.value.get("current_state_timestamp", NO_TIME)
            return Keeps("empty_group", commit_ms if since == NO_TIME else since)
        return self._of_members(group, name, topic, commit_ms)

    def _of_members(self, group: ClassicGroup, name: str, topic: str, commit_ms: int) -> Keeps:
        if self.asked.era == "2.1-2.3":
            return Keeps("active_group", None)
        if group.value["protocol_type"] != CONSUMER_PROTOCOL:
            return Keeps("other_protocol_type", None)
        wanted = self.coordinator.wanted(name).values()
        if any(each is None for each in wanted) or not all(map(_is_read, group.value["members"])):
            return Keeps("unparseable_subscription", None)
        if any(topic in (each or ()) for each in wanted):
            return Keeps("subscribed_topic", None)
        return Keeps("unsubscribed_topic", commit_ms)

    def _of_modern(self, group: ModernGroup, name: str, topic: str, commit_ms: int) -> Keeps:
        wanted = self.coordinator.wanted(name).values()
        if any(topic in (each or ()) for each in wanted):
            return Keeps("subscribed_topic", None)
        rule = {"consumer": "kip_848_commit_time", "streams": "streams_commit_time"}[group.family]
        return Keeps(rule, commit_ms)

    def rows(self) -> dict[OffsetKey, dict[str, Any]]:
        """Return the columns of `offset_expiration` that are held against this; times in ms."""
        return {key: self._row(key) for key in self.coordinator.offsets.committed}

    def _row(self, key: OffsetKey) -> dict[str, Any]:
        commit = self.coordinator.offsets.committed[key].record
        assert isinstance(commit, PlainRecord)
        assert commit.value is not None
        keeps, retention, source = self._keeps(key), self.asked.retention_ms, "option"
        rule, base = keeps
        own = commit.value.get("expire_timestamp", NO_TIME)
        if own != NO_TIME and base is not None:
            rule = rule if self.asked.era == "pre-2.1" else "explicit_expire_timestamp"
            base = commit.value["commit_timestamp"]
            retention, source = own - base, "record"
        row = {
            "committed_offset": commit.value["offset"],
            "rule": rule,
            "base_timestamp": base,
            "retention_ms": retention,
            "retention_source": source,
            "rules": self.asked.era,
        }
        return {**row, **self._fate(key, base, retention, commit.timestamp, row["rule"])}

    def _fate(
        self, key: OffsetKey, base: int | None, retention: int, written: int, rule: str
    ) -> Mapping[str, Any]:
        asked = self.asked
        blockers = sorted(
            producer
            for producer, held in self.coordinator.offsets.pending.items()
            if key in held and asked.era == "current"
        )
        if base is None:
            kept = {"expires_at": None, "next_cleanup_at": None, "blocked_by": None}
            return {**kept, "status": "protected", "rule": rule}
        ends = [base + retention]
        if asked.era != "pre-2.1":
            ends.append(self._kept_until.get(key[:2], 0))
        if asked.era == "current":
            ends.append(self._blocked_until.get(key, 0))
        expires = max(ends)
        # An offset that took effect late was not there to be removed before.
        effective = self._effective.get(key)
        commit = self.coordinator.offsets.committed[key]
        since = effective[1] if commit.by_marker and effective is not None else written
        cleanup = max(expires, min(since, asked.now_ms)) + asked.interval_ms
        is_due = asked.now_ms > expires if asked.era == "pre-2.1" else asked.now_ms >= expires
        status = "scheduled"
        if is_due:
            status = "overdue" if asked.now_ms > cleanup else "due"
        is_blocked = bool(is_due and blockers)
        said = ", ".join(map(str, blockers))
        return {
            "expires_at": expires,
            "next_cleanup_at": cleanup,
            "status": "blocked" if is_blocked else status,
            "rule": "pending_transaction" if is_blocked else rule,
            "blocked_by": f"open transaction of producer {said}" if is_blocked else None,
        }
