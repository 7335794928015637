"""One static name that processes at several hosts use in turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.questions.rebalances.rebalance_tables import shared_instances
from analytics.replay.history.group_history import group_history, group_steps
from analytics.replay.log.losses import WHOLE
from analytics.replay.log.rules import replay_rules
from tests.support.history_log import Written, history_rows, topic_names
from tests.support.reference_offsets import GroupRecord

_OF_A_MEMBER = ("current_member_assignment", "target_assignment_member", "member_metadata")
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TIME = pl.Datetime("us", "UTC")
CHANGES = {
    **dict.fromkeys(("group_id", "change", "member_id", "group_instance_id"), pl.String),
    "client_host": pl.String,
    "group_type": pl.String,
    "at": TIME,
    "coordinator_partition": pl.Int32,
    "record_offset": pl.Int64,
}
HELD = {
    **dict.fromkeys(("group_id", "member_id", "group_instance_id", "kind", "topic"), pl.String),
    "partition": pl.Int32,
    "from_timestamp": TIME,
    "to_offset": pl.Int64,
}
PROGRESS = {"group_id": pl.String, "topic": pl.String, "partition": pl.Int32, "last": TIME}


def told(*hosts: str | None, progressed_at: int | None = None) -> list[dict[str, Any]]:
    """Return what is told of a static name whose members were at these hosts, one after another."""
    changes = [
        {
            "group_id": "g",
            "change": "restarted" if number else "joined",
            "member_id": f"m{number}",
            "group_instance_id": "worker",
            "client_host": host,
            "group_type": "classic",
            "at": NOON + timedelta(minutes=number),
            "coordinator_partition": 0,
            "record_offset": number,
        }
        for number, host in enumerate(hosts)
    ]
    held = {"group_id": "g", "member_id": f"m{len(hosts) - 1}", "group_instance_id": "worker"}
    held |= {"kind": "current", "topic": "orders"}
    last = None if progressed_at is None else NOON + timedelta(minutes=progressed_at)
    progress = {"group_id": "g", "topic": "orders", "partition": 0, "last": last}
    return shared_instances(
        pl.DataFrame(changes, CHANGES),
        pl.DataFrame([held | {"partition": 0, "from_timestamp": NOON}], HELD),
        pl.DataFrame([progress], PROGRESS),
    ).to_dicts()


def test_two_hosts_in_turn_are_two_processes_and_both_are_named() -> None:
    (row,) = told("/a", "/b", "/a", "/b")
    assert (row["kind"], row["member_id"]) == ("shared_instance", "m3")
    assert row["since"] == NOON + timedelta(minutes=1)
    assert row["detail"] == (
        "static name worker is used by processes at /a and /b, each of which fences the other: "
        "taken 3 times; no progress on 1 of its 1 partitions since"
    )


def test_in_a_group_of_kip_848_they_take_the_name_in_turn_and_fence_nobody() -> None:
    """The coordinator refuses the second until the first has left for a while, at epoch -2."""
    records: list[Written] = []

    def write(table: str, member: str | None, value: dict[str, Any] | None, batch: int) -> None:
        key = {"group_id": "g"} | ({"member_id": member} if member else {})
        record = GroupRecord(0, len(records), f"consumer_group_{table}", key, value)
        records.append(Written(record, batch))

    for number, host in enumerate(("/a", "/b", "/a", "/b")):
        batch, who = len(records), f"m{number}"
        if number:
            gone = {"member_epoch": -2, "previous_member_epoch": 1, "state": 0}
            gone |= {"assigned_partitions": [], "partitions_pending_revocation": []}
            write("current_member_assignment", f"m{number - 1}", gone, batch)
            batch = len(records)
            for table in _OF_A_MEMBER:
                write(table, f"m{number - 1}", None, batch)
        about = {"instance_id": "worker", "client_host": host, "subscribed_topic_names": ["orders"]}
        write("member_metadata", who, about, batch)
        if not number:
            write("metadata", None, {"epoch": 1}, batch)
        write("target_assignment_member", who, {"topic_partitions": []}, batch)
        if not number:
            write("target_assignment_metadata", None, {"assignment_epoch": 1}, batch)
        here = {"member_epoch": 1, "previous_member_epoch": 0, "state": 0}
        here |= {"assigned_partitions": [], "partitions_pending_revocation": []}
        write("current_member_assignment", who, here, batch)
    rows, rules = history_rows(records), replay_rules("4.3")
    made = group_history(group_steps(rows, rules), rows, topic_names({}), rules, WHOLE)
    changes = made["membership_changes"]
    assert changes["change"].to_list() == ["joined", *["restarted"] * 3]
    nothing = pl.DataFrame([], PROGRESS)
    (row,) = shared_instances(changes, made["assignment_history"], nothing).to_dicts()
    assert row["member_id"] == "m3"
    assert row["detail"] == (
        "static name worker is used by processes at /a and /b, each of which takes it when the "
        "other has let go of it: taken 3 times"
    )


@pytest.mark.parametrize(
    "hosts",
    [("/a", "/a", "/a", "/a"), ("/a", "/b", "/c", "/d"), ("/a", "/b", "/a"), ("/a", None, "/a")],
)
def test_a_process_that_restarts_or_moves_is_one(hosts: tuple[str | None, ...]) -> None:
    assert told(*hosts) == []


def test_partitions_that_advanced_since_are_not_said_to_stand() -> None:
    (row,) = told("/a", "/b", "/a", "/b", progressed_at=3)
    assert "no progress" not in row["detail"]
