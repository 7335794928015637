"""What led to each epoch, what a failed coordinator had stored, and what stands still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.dump.inspection.found_losses import Loss
from analytics.questions.rebalances.epochs import group_churn, stored_again
from analytics.questions.rebalances.rebalance_tables import (
    AskedTime,
    last_progress,
    rebalance_tables,
)
from analytics.replay.log.losses import Coverage
from schemas.evaluation_rules import rebalance_rules
from tests.support.contract_rows import rows_of

START = datetime(2026, 11, 21, tzinfo=UTC)


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


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
    change("kept", 1, "subscription_changed", "with", record_offset=0),
    change("kept", 1, "subscription_changed", "after", record_offset=4),
    change("converted", 1, "joined", "m1", at=minute(0)),
    change("converted", 1, "joined", "m2", at=minute(0)),
    change("converted", 1, "left", "m1", at=minute(5)),
]
GENERATIONS = [
    {"offset": 10, "leader_epoch": 1, "generation": 5},
    {"offset": 11, "leader_epoch": 1, "generation": 5},
    {"offset": 12, "leader_epoch": 2, "generation": 5},
    {"offset": 20, "leader_epoch": 2, "generation": 6},
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
        "last": minute(at),
    }


Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def made() -> Rows:
    group = {"coordinator_partition": 7, "group_id": "again", "is_tombstone": False}
    held = [owned("m1", 0), owned("m2", 1)]
    commits = pl.DataFrame([advance(0, 50), advance(0, 58), advance(1, 10)])
    tables = {
        "group_epochs": rows_of("group_epochs", EPOCHS),
        "membership_changes": rows_of("membership_changes", CHANGES),
        "stored_again": stored_again(pl.DataFrame([{**group, **each} for each in GENERATIONS])),
        "groups": rows_of("groups", GROUPS),
        "members": rows_of("members", MEMBERS),
        "assignment_history": rows_of("assignment_history", held),
        "progress": last_progress(commits),
    }
    asked = AskedTime(None, minute(58.5), minute(60), rebalance_rules())
    return {
        name: frame.to_dicts() for name, frame in rebalance_tables(tables, DAMAGED, asked).items()
    }


@pytest.fixture(scope="module")
def rows(made: Rows) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["group_id"], row["epoch"]): row for row in made["rebalances"]}


@pytest.fixture(scope="module")
def churn(made: Rows) -> dict[str, dict[str, Any]]:
    return {row["group_id"]: row for row in made["group_churn"]}


OfEpochs = dict[tuple[str, int], dict[str, Any]]
OfGroups = dict[str, dict[str, Any]]


def test_what_is_stored_before_the_first_join_is_no_rebalance(rows: OfEpochs) -> None:
    assert ("emptied", 0) not in rows


def test_epochs_after_the_time_asked_about_are_left_out(rows: OfEpochs) -> None:
    assert ("late", 3) not in rows


def test_what_a_failed_coordinator_had_stored_is_told(rows: OfEpochs) -> None:
    changes = {key: row["coordinator_change"] for key, row in rows.items()}
    assert {key: each for key, each in changes.items() if each} == {
        ("kept", 2): "kept",
        ("synced", 2): "synced",
        ("unsynced", 4): "unsynced",
        ("emptied", 3): "empty",
        ("again", 5): "stored_again",
    }


def test_who_came_and_went_is_named_with_the_epoch_it_led_to(rows: OfEpochs) -> None:
    synced = rows["synced", 2]
    assert (synced["joined"], synced["left"], synced["restarted"]) == (["m1", "m2"], ["m0"], [])
    assert (synced["since_previous_ms"], synced["missing_before"]) == (180_000, 0)
    assert rows["unsynced", 4]["joined"] == ["early"]  # for a generation that left no record


def test_who_subscribes_to_something_else_while_an_epoch_is_in_force_leads_to_the_next(
    rows: OfEpochs,
) -> None:
    assert rows["kept", 1]["subscription_changed"] == ["with"]
    assert rows["kept", 2]["subscription_changed"] == ["after"]


def test_who_left_when_a_group_was_converted_was_in_it_before(made: Rows) -> None:
    """What is left is the next life's."""
    both = [row for row in made["rebalances"] if row["group_id"] == "converted"]
    assert {row["life"]: (row["joined"], row["left"]) for row in both if row["epoch"] == 1} == {
        1: (["m1", "m2"], []),
        2: ([], ["m1"]),
    }


def test_generations_that_were_stored_again_are_counted(rows: OfEpochs) -> None:
    again = rows["again", 5]
    assert (again["stored_again"], again["restarted"]) == (2, ["s2"])
    assert again["joined"] is None  # who was there when compaction's last record was written
    assert (again["missing_before"], again["missing_is_compacted"]) == (None, True)


def test_epochs_beside_lost_records_say_so(rows: OfEpochs, churn: OfGroups) -> None:
    synced = rows["synced", 2]  # offsets 5 to 7 are lost, its own is 30
    assert not synced["complete"]
    assert synced["missing"] == "__consumer_offsets-7 lacks offsets 5 to 7 (damaged)"
    assert rows["emptied", 2]["complete"]
    assert not churn["synced"]["complete"]
    assert churn["synced"]["incomplete_because"] == synced["missing"]


def test_churn_sums_a_group_up(churn: OfGroups) -> None:
    unsynced, first, synced = (churn[name] for name in ("unsynced", "first", "synced"))
    assert (unsynced["epochs"], unsynced["missing"]) == (2, 2)
    assert unsynced["per_hour"] == 4 / (58.5 / 60)
    assert (first["missing"], first["per_hour"]) == (4, 1 / (57.5 / 60))
    assert (synced["joined"], synced["left"]) == (2, 1)
    assert (synced["top_client_id"], synced["top_client_changes"]) == ("client-m0", 1)
    assert churn["again"]["compacted"] == 1
    assert churn["emptied"]["median_seconds_between"] == 60


def test_where_compaction_may_have_taken_who_came_there_may_have_been_more(made: Rows) -> None:
    changes = rows_of("membership_changes", CHANGES)
    storms = rows_of("rebalance_storms", made["rebalance_storms"])

    def compacted(**untold: Any) -> int:
        rows = [
            {**row, **untold} if (row["group_id"], row["epoch"]) == ("emptied", 2) else row
            for row in made["rebalances"]
        ]
        found = group_churn(rows_of("rebalances", rows), changes, storms, None)
        (count,) = found.filter(pl.col("group_id") == "emptied")["compacted"]
        return int(count)

    assert compacted() == 0
    assert compacted(joined=None, left=None) == 1
    assert compacted(missing_is_compacted=True) == 1


def test_what_stands_still_is_told(made: Rows) -> None:
    standing = [(row["group_id"], row["kind"], row["member_id"]) for row in made["stalled_members"]]
    assert standing == [
        ("late", "reconciling", "behind"),
        ("late", "unassigned_epoch", None),
        ("synced", "idle_owner", "m2"),
    ]
