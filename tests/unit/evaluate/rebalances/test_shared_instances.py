"""One static name that processes at several hosts use in turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.evaluate.rebalances.shared_instances import shared_instances

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TIME = pl.Datetime("us", "UTC")
CHANGES = {
    **dict.fromkeys(("group_id", "change", "member_id", "group_instance_id"), pl.String),
    "client_host": pl.String,
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


@pytest.mark.parametrize(
    "hosts",
    [("/a", "/a", "/a", "/a"), ("/a", "/b", "/c", "/d"), ("/a", "/b", "/a"), ("/a", None, "/a")],
)
def test_a_process_that_restarts_or_moves_is_one(hosts: tuple[str | None, ...]) -> None:
    assert told(*hosts) == []


def test_partitions_that_advanced_since_are_not_said_to_stand() -> None:
    (row,) = told("/a", "/b", "/a", "/b", progressed_at=3)
    assert "no progress" not in row["detail"]
