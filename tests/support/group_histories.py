"""Random histories of groups and their offsets, well formed and otherwise.

Each history is alone in an internal partition. It is made of what coordinators do in one go (a
generation, a heartbeat, a member that leaves, a deletion, a conversion), of single records that no
coordinator writes, and in the end some are taken out of it, as compaction or a lost segment would.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.support.random_group_values import (
    EPOCHS,
    MEMBERS,
    OTHERS,
    random_classic,
    random_commit,
    random_value,
)
from tests.support.reference_group_coordinator import (
    FAMILIES,
    READ,
    ReferenceGroupCoordinator,
)
from tests.support.reference_groups import RefusedByBrokerError
from tests.support.reference_offsets import NO_PRODUCER, GroupRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

TOPIC = "__consumer_offsets"
MOST_ACTS = 14
PRODUCERS = (7, 8, 9)
KINDS = [f"{family}_group_{kind}" for family in FAMILIES for kind in sorted(READ)]
MODERN = (*KINDS, *OTHERS)
TABLES = ("offset_commit", "group_metadata", *MODERN, "control_markers")
LEAVES = ("current_member_assignment", "target_assignment_member", "member_metadata")


def random_history(random: Random, partition: int, release: str) -> list[GroupRecord]:
    """Records as of `random_records`, without those that meet a group of another type."""
    return list(_loadable(random_records(random, partition, release), release))


def random_records(random: Random, partition: int, release: str) -> list[GroupRecord]:
    """Records of up to two groups, such as no broker writes among them.

    Args:
        random: The chance.
        partition: The internal partition.
        release: Such as ``4.3``: before 4.0 there are commits and classic groups only.
    """
    acts = Acts(random, partition, families_of(release))
    for _ in range(random.randrange(1, MOST_ACTS)):
        random.choice(acts.possible)()
    records = acts.records
    if random.randrange(3) == 0:
        often = random.choice((2, 4, 10))
        records = [each for each in records if random.randrange(often)]
    return records


def families_of(release: str) -> tuple[str, ...]:
    """The types of groups beside classic ones that a release has by default."""
    if release < "4":
        return ()
    return FAMILIES if release >= "4.1" else FAMILIES[:2]


def _loadable(records: Iterable[GroupRecord], release: str) -> Iterable[GroupRecord]:
    coordinator = ReferenceGroupCoordinator(release)
    for record in records:
        try:
            coordinator.replay(record)
        except RefusedByBrokerError:
            continue
        yield record


class Acts:
    """What may happen, and the log of what did."""

    def __init__(self, random: Random, partition: int, families: tuple[str, ...]) -> None:
        """Begin an empty log of commits, classic groups, and groups of these other types."""
        self.random = random
        self.partition = partition
        self.records: list[GroupRecord] = []
        self.offset = random.randrange(3)
        self.leader_epoch = random.randrange(2)
        self.groups = tuple(f"group-{partition}-{each}" for each in range(2))
        self.families = families
        self.family = random.choice(families) if families else ""
        commits = [self.commit, self.commit, self.transaction, self.marker, self.delete_offset]
        classic = [self.generation, self.delete_classic]
        newer = [self.heartbeat, self.heartbeat, self.one_record, self.one_record]
        newer += [self.leave, self.delete_group, self.upgrade, self.downgrade, self.other_family]
        self.possible: list[Callable[[], None]] = commits + classic + (newer if families else [])

    def write(
        self, table: str, key: dict[str, Any], value: dict[str, Any] | None, **batch: Any
    ) -> None:
        """Append a record; sometimes offsets skip, sometimes another broker leads."""
        record = GroupRecord(self.partition, self.offset, table, key, value, **batch)
        self.records.append(replace(record, leader_epoch=self.leader_epoch))
        self.offset += self.random.choice((1, 1, 1, 2))
        self.leader_epoch += self.random.randrange(8) == 0

    # --- offsets ---

    def _key(self) -> dict[str, Any]:
        chance = self.random
        places = {"topic": chance.choice("tu"), "partition": chance.randrange(2)}
        return {"group": chance.choice(self.groups), **places}

    def commit(self) -> None:
        """Commit some offsets, outside a transaction."""
        for _ in range(self.random.randrange(1, 4)):
            self.write("offset_commit", self._key(), random_commit(self.random))

    def _batch(self) -> dict[str, Any]:
        chance = self.random
        producer = chance.choice(PRODUCERS)
        is_transactional = bool(chance.randrange(8))
        epoch = chance.randrange(3)
        return {
            "producer_id": producer,
            "producer_epoch": epoch,
            "is_transactional": is_transactional,
        }

    def transaction(self) -> None:
        """Commit offsets in a transaction, and at times remove one there; it may end later."""
        batch = self._batch()
        for _ in range(self.random.randrange(1, 4)):
            value = random_commit(self.random) if self.random.randrange(10) else None
            self.write("offset_commit", self._key(), value, **batch)
        if self.random.randrange(3) == 0:
            self.marker(batch["producer_id"])

    def marker(self, producer: int | None = None) -> None:
        """End a transaction of a producer, whether there is one or not."""
        chance = self.random
        kind = chance.choice(("COMMIT", "COMMIT", "COMMIT", "ABORT", "LEADER_CHANGE"))
        chosen = chance.choice(PRODUCERS) if producer is None else producer
        self.write(
            "control_markers",
            {},
            None,
            control_type=kind,
            producer_id=NO_PRODUCER if kind == "LEADER_CHANGE" else chosen,
            producer_epoch=chance.randrange(4),
            is_transactional=kind != "LEADER_CHANGE",
        )

    def delete_offset(self) -> None:
        """Remove offsets, whether they are there or not."""
        for _ in range(self.random.randrange(1, 4)):
            self.write("offset_commit", self._key(), None)

    # --- classic groups ---

    def generation(self) -> None:
        """Write what a classic group is after a rebalance."""
        group = self.random.choice(self.groups)
        self.write("group_metadata", {"group": group}, random_classic(self.random))

    def delete_classic(self) -> None:
        """Remove a group by the tombstone of a classic one; some lose their offsets too."""
        group = self.random.choice(self.groups)
        if self.random.randrange(2):
            for topic in "tu":
                for partition in range(2):
                    key = {"group": group, "topic": topic, "partition": partition}
                    self.write("offset_commit", key, None)
        self.write("group_metadata", {"group": group}, None)

    # --- groups of the newer types ---

    def other_family(self) -> None:
        """Groups that come are of any type."""
        self.family = self.random.choice(self.families)

    def record(self, kind: str, group: str, member: str, epoch: int, *, gone: bool = False) -> None:
        """Write a record of the present family, or its tombstone."""
        table = kind if "_group_" in kind else f"{self.family}_group_{kind}"
        key = {"group_id": group}
        if "member" in table.partition("_group_")[2]:
            key["member_id"] = member
        if table.endswith("regular_expression"):
            key["regular_expression"] = "t.*"
        self.write(table, key, None if gone else random_value(self.random, table, epoch))

    def heartbeat(self) -> None:
        """Have members join or go on: mostly all records that this takes, in their order."""
        chance = self.random
        group, epoch = chance.choice(self.groups), chance.randrange(EPOCHS)
        members = [each for each in MEMBERS if chance.randrange(2)]
        steps = [("member_metadata", each) for each in members]
        if self.family == "streams":
            steps.insert(0, ("topology", ""))
        steps += [("metadata", "")]
        steps += [("target_assignment_member", each) for each in members]
        steps += [("target_assignment_metadata", "")]
        steps += [("current_member_assignment", each) for each in members]
        for kind, member in steps:
            if chance.randrange(8):
                self.record(kind, group, member, epoch)

    def one_record(self) -> None:
        """Write any record or tombstone, whatever it finds there."""
        chance = self.random
        table = chance.choice([each for each in MODERN if each.startswith(self.families)])
        if table in KINDS and chance.randrange(4):
            table = f"{self.family}_group_{table.partition('_group_')[2]}"
        group, member = chance.choice(self.groups), chance.choice(MEMBERS)
        epoch = chance.randrange(EPOCHS)
        self.record(table, group, member, epoch, gone=not chance.randrange(3))

    def leave(self) -> None:
        """Have a member leave, mostly as members do."""
        chance = self.random
        group, member = chance.choice(self.groups), chance.choice(MEMBERS)
        for kind in LEAVES:
            if chance.randrange(8):
                self.record(kind, group, member, 0, gone=True)
        if chance.randrange(2):
            self.record("metadata", group, "", chance.randrange(EPOCHS))

    def delete_group(self) -> None:
        """Delete a group, mostly completely."""
        self._delete(self.random.choice(self.groups))

    def _delete(self, group: str) -> None:
        kinds = [(kind, each) for kind in LEAVES[:2] for each in MEMBERS]
        kinds += [("target_assignment_metadata", "")]
        kinds += [("member_metadata", each) for each in MEMBERS]
        if self.family == "consumer":
            kinds += [("regular_expression", ""), ("partition_metadata", "")]
        if self.family == "share":
            kinds += [("state_partition_metadata", "")]
        kinds += [("metadata", "")]
        if self.family == "streams":
            kinds += [("topology", "")]
        for kind, member in kinds:
            if self.random.randrange(12):
                self.record(kind, group, member, 0, gone=True)

    def upgrade(self) -> None:
        """Have a classic group become one of the newer types."""
        group = self.random.choice(self.groups)
        self.write("group_metadata", {"group": group}, None)
        for kind in ("member_metadata", "metadata", "current_member_assignment"):
            self.record(kind, group, "m0", 3)

    def downgrade(self) -> None:
        """Have a consumer group become a classic one."""
        group = self.random.choice(self.groups)
        self._delete(group)
        self.write("group_metadata", {"group": group}, random_classic(self.random))


def decoded_rows(records: Iterable[GroupRecord]) -> dict[str, list[dict[str, Any]]]:
    """The records as rows of the decoded tables, without what replay does not look at."""
    tables: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    for record in records:
        row: dict[str, Any] = {
            "topic": TOPIC,
            "partition": record.partition,
            "offset": record.offset,
            "leader_epoch": record.leader_epoch,
            "producer_id": record.producer_id,
            "producer_epoch": record.producer_epoch,
            "is_transactional": record.is_transactional,
        }
        if record.control_type is None:
            told = {"is_tombstone": record.value is None, "key": record.key, "value": record.value}
            row |= told
        else:
            row |= {"control_type": record.control_type, "coordinator_epoch": 0}
        tables[record.table].append(row)
    return tables
