"""What led to each epoch, what a failed coordinator had stored, and what stands still."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from analytics.dump.inspection.losses import Loss
from analytics.evaluate.rebalances.tables import REBALANCES, AskedTime
from analytics.replay.graph import resolve
from analytics.replay.log.coverage import Coverage
from schemas import table
from schemas.evaluation_rules import rebalance_rules
from tests.support.decoded_frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 11, 21, tzinfo=UTC)


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


def rows_of(spark: SparkSession, name: str, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Return a table; what a row does not name is null."""
    names = [column.name for column in table(name).columns]
    ddl = table(name).ddl(not_null=False)
    return spark.createDataFrame([tuple(row.get(each) for each in names) for row in rows], ddl)


def epoch(group: str, number: int, at: float, **also: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "group_type": "classic",
        "epoch": number,
        "state": "Stable",
        "from_offset": round(at * 10),
        "from_timestamp": minute(at),
        "member_count": 1,
        "missing_before": 0,
        "leader_epoch": 1,
        "missing_is_compacted": False,
        "life": 1,
        "coordinator_partition": 7,
        **also,
    }


EPOCHS = [
    epoch("kept", 1, 0, group_type="consumer"),
    epoch("kept", 2, 1, group_type="consumer", leader_epoch=2),
    epoch("synced", 1, 0),
    epoch("synced", 2, 3, leader_epoch=2),
    epoch("unsynced", 1, 0),
    epoch("unsynced", 4, 2, leader_epoch=2, missing_before=2),
    epoch("emptied", 0, 0, state="Empty", member_count=0),
    epoch("emptied", 1, 1),
    epoch("emptied", 2, 2, state="Empty", member_count=0),
    epoch("emptied", 3, 3, leader_epoch=2),
    epoch("again", 5, 1, missing_before=None, missing_is_compacted=True),
    epoch("first", 5, 1, missing_before=4),
    epoch("converted", 1, 0),
    epoch("converted", 1, 5, group_type="consumer", life=2),
    epoch("converted", 2, 5.5, group_type="consumer", life=2),
    epoch("late", 2, 10, group_type="consumer"),
    epoch("late", 3, 59, group_type="consumer"),
]


DAMAGED = Coverage(
    complete_from={("__consumer_offsets", 7): 8},
    losses={("__consumer_offsets", 7): [Loss(5, 8, "damaged")]},
)


def change(group: str, number: int, what: str, member: str, **also: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "epoch": number,
        "at": minute(1),
        "change": what,
        "member_id": member,
        "client_id": f"client-{member}",
        "before_is_compacted": False,
        "life": 1,
        "coordinator_partition": 7,
        **also,
    }


CHANGES = [
    change("synced", 2, "joined", "m2"),
    change("synced", 2, "joined", "m1"),
    change("synced", 2, "left", "m0"),
    change("synced", 2, "assignment_changed", "m1"),
    change("again", 5, "restarted", "s2"),
    change("again", 5, "joined", "old", before_is_compacted=True),
    change("unsynced", 2, "joined", "early"),
    change("converted", 1, "joined", "m1", at=minute(0)),
    change("converted", 1, "joined", "m2", at=minute(0)),
    change("converted", 1, "left", "m1", at=minute(5)),
]
GENERATIONS = [
    {"offset": 10, "leader_epoch": 1, "key": {"group": "again"}, "value": {"generation": 5}},
    {"offset": 11, "leader_epoch": 1, "key": {"group": "again"}, "value": {"generation": 5}},
    {"offset": 12, "leader_epoch": 2, "key": {"group": "again"}, "value": {"generation": 5}},
    {"offset": 20, "leader_epoch": 2, "key": {"group": "again"}, "value": {"generation": 6}},
]
GROUPS = [
    {"group_id": "late", "epoch": 3, "assignment_epoch": 2, "member_count": 2},
    {"group_id": "synced", "epoch": 2, "member_count": 2},
]
MEMBERS = [
    {"group_id": "late", "member_id": "behind", "member_epoch": 1, "state": "STABLE"},
    {"group_id": "late", "member_id": "there", "member_epoch": 2, "state": "STABLE"},
]


def owned(member: str, partition: int) -> dict[str, Any]:
    return {
        "group_id": "synced",
        "member_id": member,
        "group_instance_id": f"static-{member}",
        "kind": "current",
        "topic": "a",
        "partition": partition,
        "from_timestamp": minute(3),
    }


def advance(partition: int, at: float) -> dict[str, Any]:
    return {
        "group_id": "synced",
        "topic": "a",
        "partition": partition,
        "advance": 5,
        "effective_timestamp": minute(at),
    }


def test_epochs_tell_what_led_to_them(spark: SparkSession) -> None:
    generations = [
        {"topic": "__consumer_offsets", "partition": 7, "is_tombstone": False, **each}
        for each in GENERATIONS
    ]
    made = resolve(
        REBALANCES,
        {
            "group_epochs": rows_of(spark, "group_epochs", EPOCHS),
            "membership_changes": rows_of(spark, "membership_changes", CHANGES),
            "cut": {"group_metadata": frame_of(spark, "group_metadata", generations)},
            "groups": rows_of(spark, "groups", GROUPS),
            "members": rows_of(spark, "members", MEMBERS),
            "assignment_history": rows_of(
                spark, "assignment_history", [owned("m1", 0), owned("m2", 1)]
            ),
            "offset_history": rows_of(spark, "offset_history", [advance(0, 58), advance(1, 10)]),
            "coverage": DAMAGED,
            "asked": AskedTime(None, minute(58.5), minute(60), rebalance_rules()),
        },
    )
    rows = {(row.group_id, row.epoch): row for row in made["rebalances"].collect()}
    assert ("emptied", 0) not in rows  # what is stored before the first join is no rebalance
    assert ("late", 3) not in rows  # after the time asked about
    assert {key: row.coordinator_change for key, row in rows.items() if row.coordinator_change} == {
        ("kept", 2): "kept",
        ("synced", 2): "synced",
        ("unsynced", 4): "unsynced",
        ("emptied", 3): "empty",
        ("again", 5): "stored_again",
    }
    synced = rows["synced", 2]
    assert (synced.joined, synced.left, synced.restarted) == (["m1", "m2"], ["m0"], [])
    assert (synced.since_previous_ms, synced.missing_before) == (180_000, 0)
    assert rows["unsynced", 4].joined == ["early"]  # for a generation that left no record
    # Who left when the group was converted was in it before: what is left is the next life's.
    rows_of_both = [row for row in made["rebalances"].collect() if row.group_id == "converted"]
    assert {row.life: (row.joined, row.left) for row in rows_of_both if row.epoch == 1} == {
        1: (["m1", "m2"], []),
        2: ([], ["m1"]),
    }
    again = rows["again", 5]
    assert (again.stored_again, again.restarted) == (2, ["s2"])
    assert again.joined == []  # who was there when compaction's last record was written
    assert (again.missing_before, again.missing_is_compacted) == (None, True)

    assert not rows["synced", 2].complete  # offsets 5 to 7 are lost, its own is 30
    assert rows["synced", 2].missing == "__consumer_offsets-7 lacks offsets 5 to 7 (damaged)"
    assert rows["emptied", 2].complete

    churn = {row.group_id: row for row in made["group_churn"].collect()}
    assert not churn["synced"].complete
    assert churn["synced"].incomplete_because == rows["synced", 2].missing
    assert (churn["unsynced"].epochs, churn["unsynced"].missing) == (2, 2)
    assert churn["unsynced"].per_hour == 4 / (58.5 / 60)
    assert (churn["first"].missing, churn["first"].per_hour) == (4, 1 / (57.5 / 60))
    assert (churn["synced"].joined, churn["synced"].left) == (2, 1)
    assert (churn["synced"].top_client_id, churn["synced"].top_client_changes) == ("client-m0", 1)
    assert churn["again"].compacted == 1
    assert churn["emptied"].median_seconds_between == 60

    standing = sorted(
        (row.group_id, row.kind, row.member_id) for row in made["stalled_members"].collect()
    )
    assert standing == [
        ("late", "reconciling", "behind"),
        ("late", "unassigned_epoch", None),
        ("synced", "idle_owner", "m2"),
    ]
