"""Random logs of one group's offsets, and what each record changed, told record by record.

Written from the rules of ``OffsetMetadataManager``: a commit of a producer waits for the marker of
its producer id; by a COMMIT it takes effect unless the offset in force is a later record; a
tombstone removes what is in force, and since 4.0 what waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

TOPIC = "orders"
OFFSETS = "__consumer_offsets"
MEMBERS = ("ada", "bob")
PRODUCERS = (7, 8)
PARTITIONS = (0, 1)


class Change(NamedTuple):
    """One expected row."""

    event: str
    partition: int
    committed_offset: int | None
    previous_offset: int | None
    effective_offset: int
    record_offset: int
    epoch: int | None
    member_id: str | None
    origin: str | None
    cause: str | None


@dataclass
class Said:
    """A commit, and who could have made it."""

    offset: int
    record_offset: int
    epoch: int | None
    member_id: str | None
    origin: str


@dataclass
class Log:
    """A log of one internal partition, and what it changed."""

    number: int
    clears_pending: bool
    rows: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {"offset_commit": [], "control_markers": [], "group_metadata": []}
    )
    changes: list[Change] = field(default_factory=list)
    end: int = 0
    generation: int | None = None
    owners: dict[int, str] = field(default_factory=dict)
    members: int = 0
    in_force: dict[int, Said] = field(default_factory=dict)
    waiting: dict[int, dict[int, Said]] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The only group of the log."""
        return f"g{self.number}"

    def commit(self, partition: int, offset: int, producer: int = -1) -> None:
        """Commit an offset, in a transaction where there is a producer."""
        owner = self.owners.get(partition)
        # Producers need not say for which member of the group they commit.
        filled = "member" if producer < 0 else "unknown"
        origin = filled if self.members else "admin_or_simple"
        said = Said(offset, self.end, self.generation, owner, origin)
        value = {"offset": offset, "leader_epoch": -1, "metadata": "", "commit_timestamp": self.end}
        if producer < 0:
            self._apply("commit", partition, said, self.end)
        else:
            self.waiting.setdefault(producer, {})[partition] = said
        self._write("offset_commit", producer, key=self._key(partition), value=value)

    def tombstone(self, partition: int) -> None:
        """Delete an offset."""
        gone = self.in_force.pop(partition, None)
        before = gone.offset if gone else None
        self.changes.append(
            Change(
                *("delete", partition, None, before, self.end, self.end, self.generation),
                *(None, None, None),
            )
        )
        if self.clears_pending:
            for entries in self.waiting.values():
                entries.pop(partition, None)
        self._write("offset_commit", -1, key=self._key(partition), value=None)

    def marker(self, producer: int, *, commits: bool) -> None:
        """End a transaction."""
        for partition, said in self.waiting.pop(producer, {}).items():
            if not commits:
                self._tell("transaction_abort", partition, said, self.end)
            elif self._is_latest(partition, said):
                self._apply("transaction_commit", partition, said, self.end)
        word = "COMMIT" if commits else "ABORT"
        self._write("control_markers", producer, control_type=word)

    def snapshot(self, owners: dict[int, str]) -> None:
        """Begin a generation in which these members own these partitions."""
        self.generation = (self.generation or 0) + 1
        self.owners, self.members = owners, len(set(owners.values()))
        members = [
            {
                "member_id": who,
                "client_id": who,
                "assignment_decoded": {
                    "assigned_partitions": [
                        {"topic": TOPIC, "partitions": [p for p in owners if owners[p] == who]}
                    ]
                },
            }
            for who in sorted(set(owners.values()))
        ]
        value = {"protocol_type": "consumer", "generation": self.generation, "members": members}
        self._write("group_metadata", -1, key={"group": self.group}, value=value)

    def remove_group(self) -> None:
        """Delete the group, not its offsets."""
        self.generation, self.owners, self.members = None, {}, 0
        self._write("group_metadata", -1, key={"group": self.group}, value=None)

    def _is_latest(self, partition: int, said: Said) -> bool:
        current = self.in_force.get(partition)
        return current is None or said.record_offset > current.record_offset

    def _apply(self, event: str, partition: int, said: Said, effective: int) -> None:
        self._tell(event, partition, said, effective)
        self.in_force[partition] = said

    def _tell(self, event: str, partition: int, said: Said, effective: int) -> None:
        before = self.in_force.get(partition)
        back = event != "transaction_abort" and before and said.offset < before.offset
        causes = {
            "member": "rewound_by_member",
            "admin_or_simple": "committed_while_empty",
            "unknown": "unknown",
        }
        self.changes.append(
            Change(
                event,
                partition,
                said.offset,
                before.offset if before else None,
                effective,
                said.record_offset,
                said.epoch,
                said.member_id,
                said.origin,
                causes[said.origin] if back else None,
            )
        )

    def _key(self, partition: int) -> dict[str, Any]:
        return {"group": self.group, "topic": TOPIC, "partition": partition}

    def _write(self, table: str, producer: int, **row: Any) -> None:
        common = {
            "topic": OFFSETS,
            "partition": self.number,
            "offset": self.end,
            "batch_offset": self.end,
            "leader_epoch": 1,
            "producer_id": producer,
            "is_transactional": producer >= 0,
        }
        if "key" in row:
            common["is_tombstone"] = row["value"] is None
        self.rows[table].append(common | row)
        self.end += 1


def random_log(number: int, acts: int, *, clears_pending: bool) -> Log:
    """Play random acts, the same ones for the same number."""
    random, log = Random(number), Log(number, clears_pending)
    for _ in range(acts):
        partition, producer = random.choice(PARTITIONS), random.choice(PRODUCERS)
        act = random.randrange(12)
        if act < 4:
            log.commit(partition, random.randrange(50))
        elif act < 7:
            log.commit(partition, random.randrange(50), producer)
        elif act == 7:
            log.tombstone(partition)
        elif act < 10:
            log.marker(producer, commits=random.random() < 0.7)
        elif act == 10:
            there = random.sample(MEMBERS, random.randint(0, 2))
            log.snapshot({p: random.choice(there) for p in PARTITIONS} if there else {})
        elif log.generation and not log.members:
            log.remove_group()
    return log
