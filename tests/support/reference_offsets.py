"""Offsets that groups committed, replayed one record after the other, slowly and plainly.

Written from what is known of Kafka's ``OffsetMetadataManager`` (4.x) and ``GroupMetadataManager``
(3.x) alone, to be held against the replay. It knows nothing of columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NO_PRODUCER = -1
OffsetKey = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass(frozen=True)
class GroupRecord:
    """One record of a partition of ``__consumer_offsets``.

    ``table`` names what it is as the decoded tables are named; ``key`` and ``value`` have the
    fields of Kafka's message in snake case. A marker has a ``control_type`` and neither.
    """

    partition: int
    offset: int
    table: str
    key: Mapping[str, Any] = field(default_factory=dict)
    value: Mapping[str, Any] | None = None
    control_type: str | None = None
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    is_transactional: bool = False
    leader_epoch: int = 0


@dataclass(frozen=True)
class Commit:
    """A committed or pending offset: the record, and whether a marker made it count."""

    record: GroupRecord
    by_marker: bool


class ReferenceOffsets:
    """The committed offsets of one partition, and those of transactions that have not ended."""

    def __init__(self, *, scala: bool) -> None:
        """Begin with nothing; ``scala`` is the coordinator of 3.x."""
        self.scala = scala
        self.committed: dict[OffsetKey, Commit] = {}
        self.pending: dict[int, dict[OffsetKey, Commit]] = {}

    def groups(self) -> set[str]:
        """The groups that have a committed or a pending offset."""
        kept = [self.committed, *self.pending.values()]
        return {key[0] for offsets in kept for key in offsets}

    def replay(self, record: GroupRecord) -> None:
        """Apply a commit, or the tombstone of one."""
        key = record.key["group"], record.key["topic"], record.key["partition"]
        waits = record.is_transactional if self.scala else record.producer_id != NO_PRODUCER
        own = self.pending.setdefault(record.producer_id, {}) if waits else self.committed
        if record.value is not None:
            own[key] = Commit(record, by_marker=waits)
        elif self.scala:
            own.pop(key, None)
        else:
            for offsets in (self.committed, *self.pending.values()):
                offsets.pop(key, None)

    def end_transaction(self, record: GroupRecord) -> None:
        """Apply a marker; those of other kinds mean nothing here."""
        if record.control_type not in {"COMMIT", "ABORT"}:
            return
        ended = self.pending.pop(record.producer_id, {})
        if record.control_type == "ABORT":
            return
        for key, commit in ended.items():
            present = self.committed.get(key)
            if present is None or commit.record.offset > present.record.offset:
                self.committed[key] = commit
