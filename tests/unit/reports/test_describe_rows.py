"""Rows of describe, made of small tables: every type of group, every release's columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.contracts import arrow_rows, polars_rows
from analytics.questions.describe.description import without_incomplete
from analytics.questions.share.backlog import with_share_lag
from reports.describe.answer import rows_of, shown_columns
from reports.describe.groups import Source, partitions_text, tasks_text
from reports.describe.tool_output import (
    CONSUMER,
    FAMILIES,
    HEADS,
    KEYS,
    MEMBERS,
    OFFSETS,
    SHARE,
    STATE,
    STREAMS,
    View,
    columns_of,
)

TEXT, INT, LONG = pa.string(), pa.int32(), pa.int64()
GROUPS = {
    **dict.fromkeys(("group_id", "group_type", "protocol_type", "state", "protocol"), TEXT),
    **dict.fromkeys(("epoch", "assignment_epoch", "member_count", "coordinator_partition"), INT),
}
MEMBER = {
    **dict.fromkeys(("group_id", "member_id", "group_instance_id", "client_id"), TEXT),
    **dict.fromkeys(("client_host", "process_id"), TEXT),
    **dict.fromkeys(("member_epoch", "topology_epoch"), INT),
    "is_classic": pa.bool_(),
    "assignment_fields_written": INT,
    "missing": TEXT,
    "unread": TEXT,
}
ASSIGNED = {
    **dict.fromkeys(("group_id", "member_id", "kind", "role", "subtopology_id"), TEXT),
    **dict.fromkeys(("topic", "topic_id"), TEXT),
    "partition": INT,
}
COMMITTED = {
    **dict.fromkeys(("group_id", "topic"), TEXT),
    "partition": INT,
    "committed_offset": LONG,
    "committed_leader_epoch": INT,
    "complete": pa.bool_(),
    "missing": TEXT,
}
SHARES = {
    **dict.fromkeys(("group_id", "topic", "topic_id", "phase"), TEXT),
    **dict.fromkeys(("partition", "leader_epoch", "delivery_complete_count"), INT),
    "start_offset": LONG,
}
ENDS = {"topic": TEXT, "partition": INT, "log_start_offset": LONG, "log_end_offset": LONG}


def table(columns: dict[str, pa.DataType], *rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), pa.schema(list(columns.items())))


def group(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "group_id": name,
        "group_type": kind,
        "state": "Stable",
        "epoch": 7,
        "assignment_epoch": 6,
        "member_count": 1,
        "coordinator_partition": 3,
        **more,
    }


def owns(name: str, member: str, topic: str, partition: int, **more: Any) -> dict[str, Any]:
    return {
        "group_id": name,
        "member_id": member,
        "kind": "current",
        "topic": topic,
        "partition": partition,
        **more,
    }


def commit(name: str, topic: str, partition: int, offset: int) -> dict[str, Any]:
    return {
        "group_id": name,
        "topic": topic,
        "partition": partition,
        "committed_offset": offset,
        "committed_leader_epoch": 2,
        "complete": True,
        "missing": None,
    }


def end(topic: str, partition: int, start: int, after: int) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "log_start_offset": start,
        "log_end_offset": after,
    }


def member(name: str, member_id: str, **more: Any) -> dict[str, Any]:
    return {
        "group_id": name,
        "member_id": member_id,
        "client_host": "/h",
        "client_id": "c",
        "member_epoch": 5,
        "is_classic": False,
        **more,
    }


LOGS = table(
    ENDS,
    end("orders", 0, 10, 100),
    end("orders", 1, 10, 100),
    end("orders", 2, 0, 60),
    end("orders", 9, 0, 100),
)
SHARED = table(
    SHARES,
    {
        "group_id": "queue",
        "topic": "orders",
        "partition": 2,
        "phase": "initialized",
        "leader_epoch": 4,
        "start_offset": 40,
        "delivery_complete_count": 5,
    },
    {
        "group_id": "queue",
        "topic": "orders",
        "partition": 3,
        "phase": "initializing",
        "leader_epoch": 4,
    },
    {
        "group_id": "queue",
        "topic": "orders",
        "partition": 4,
        "phase": "deleting",
        "leader_epoch": 4,
        "start_offset": 1,
    },
)
SOURCE = Source(
    groups=table(
        GROUPS,
        group("classic", "classic", protocol="range", assignment_epoch=None),
        group("cron", "simple", state="Empty", epoch=None, assignment_epoch=None, member_count=0),
        group("modern", "consumer", protocol="uniform"),
        group("queue", "share"),
        group("words", "streams"),
    ),
    members=table(
        MEMBER,
        member("classic", "a", group_instance_id="static-a"),
        member("modern", "b"),
        member("modern", "old", is_classic=True),
        member("queue", "q"),
        member("words", "w", process_id="p", topology_epoch=0),
    ),
    assignments=table(
        ASSIGNED,
        owns("classic", "a", "orders", 10),
        owns("classic", "a", "orders", 9),
        owns("classic", "a", "clicks", 0),
        owns("modern", "b", "orders", 0),
        owns("modern", "b", "orders", 1, kind="target"),
        owns("queue", "q", "orders", 2),
        *(
            {
                "group_id": "words",
                "member_id": "w",
                "kind": kind,
                "role": role,
                "subtopology_id": subtopology,
                "partition": number,
            }
            for kind, role, subtopology, number in (
                ("current", "active", "0", 1),
                ("current", "active", "0", 0),
                ("current", "standby", "1", 2),
                ("target", "active", "0", 0),
            )
        ),
    ),
    committed=table(
        COMMITTED,
        commit("classic", "orders", 9, 90),
        commit("classic", "gone", 0, 4),
        commit("cron", "orders", 0, 120),
        commit("words", "orders", 0, 50),
    ),
    shares=arrow_rows(with_share_lag(polars_rows(SHARED), polars_rows(LOGS))),
    ends=LOGS,
    coordinators={3: "kafka-1:9092 (1)"},
    inputs={"words": {"0": ("orders",)}},
)


def rows(family: str, what: str, release: str = "4.3", *, verbose: bool = True) -> list[Any]:
    view = View(family, what)
    found = rows_of(view, SOURCE, release, verbose=verbose)
    listed: list[Any] = found.select(columns_of(view, release, verbose=verbose)).to_pylist()
    return listed


def test_offsets_are_those_owned_and_those_committed() -> None:
    found = {
        (row["group"], row["topic"], row["partition"]): (
            row["current_offset"],
            row["log_end_offset"],
            row["lag"],
            row["consumer_id"],
        )
        for row in rows(CONSUMER, OFFSETS)
    }
    assert found == {
        ("classic", "clicks", 0): (None, None, None, "a"),
        ("classic", "gone", 0): (4, None, None, None),
        ("classic", "orders", 9): (90, 100, 10, "a"),
        ("classic", "orders", 10): (None, None, None, "a"),
        ("cron", "orders", 0): (120, 100, -20, None),
        ("modern", "orders", 0): (None, 100, None, "b"),
    }


def test_an_offset_that_cannot_be_told_is_left_open_and_says_why() -> None:
    doubtful = {"complete": False, "missing": "it may be 4, or none"}
    stored = table(COMMITTED, {**commit("classic", "gone", 0, 4), **doubtful})
    source = replace(SOURCE, committed=without_incomplete(stored))
    found = rows_of(View(CONSUMER, OFFSETS), source, "4.3", verbose=True).to_pylist()
    (row,) = [each for each in found if each["topic"] == "gone"]
    told = ("current_offset", "leader_epoch", "lag", "complete", "missing")
    assert [row[name] for name in told] == [None, None, None, *doubtful.values()]
    assert {each["complete"] for each in found if each["topic"] != "gone"} == {True}


def test_an_offset_that_may_be_among_lost_records_is_not_told_to_be_none() -> None:
    why = "a segment is missing"
    lost = replace(SOURCE, lost={"classic": why, "words": why})
    found = rows_of(View(CONSUMER, OFFSETS), lost, "4.3", verbose=True).to_pylist()
    told = {(row["group"], row["topic"], row["partition"]): row["missing"] for row in found}
    assert told["classic", "clicks", 0] == told["classic", "orders", 10] == why
    assert told["classic", "orders", 9] is told["modern", "orders", 0] is None
    assert [row["complete"] for row in found] == [row["missing"] is None for row in found]
    streams = rows_of(View(STREAMS, OFFSETS), lost, "4.3", verbose=True).to_pylist()
    nothing = [row for row in streams if row["current_offset"] is None]
    assert nothing
    assert {(row["offset_lag"], row["missing"]) for row in nothing} == {(None, why)}


def test_members_of_classic_and_consumer_groups() -> None:
    classic, modern, old = rows(CONSUMER, MEMBERS)
    assert classic["current_assignment"] == "clicks:0;orders:9,10"
    assert [classic[name] for name in ("current_epoch", "target_epoch", "upgraded")] == [None] * 3
    assert (modern["current_epoch"], modern["target_epoch"]) == (5, 6)
    assert (modern["current_assignment"], modern["target_assignment"]) == ("orders:0", "orders:1")
    assert (modern["upgraded"], old["upgraded"]) == ("true", "false")
    assert (classic["partitions"], modern["partitions"], old["partitions"]) == (3, 1, 0)


def test_what_a_member_has_yet_to_give_up_is_its_own_since_4_3() -> None:
    kept = owns("modern", "b", "orders", 0)
    leaving = owns("modern", "b", "clicks", 3, kind="pending_revocation")
    source = replace(SOURCE, assignments=table(ASSIGNED, kept, leaving))
    given = []
    for release in ("4.2.1", "4.3.0"):
        told = rows_of(View(CONSUMER, MEMBERS), source, release, verbose=True).to_pylist()
        owned = rows_of(View(CONSUMER, OFFSETS), source, release, verbose=True).to_pylist()
        assignment = next(each["assignment"] for each in told if each["consumer_id"] == "b")
        given.append((assignment, {each["topic"] for each in owned if each["consumer_id"] == "b"}))
    assert given == [("orders:0", {"orders"}), ("clicks:3;orders:0", {"clicks", "orders"})]


def test_states_of_groups_have_epochs_where_kafkas_tool_knows_such() -> None:
    found = {row["group"]: row for row in rows(CONSUMER, STATE)}
    assert found["classic"]["group_epoch"] is None
    assert (found["modern"]["group_epoch"], found["modern"]["target_assignment_epoch"]) == (7, 6)
    assert found["modern"]["coordinator"] == "kafka-1:9092 (1)"
    assert [row["assignment_epoch"] for row in rows(SHARE, STATE)] == [6]
    assert [row["target_assignment_epoch"] for row in rows(STREAMS, STATE)] == [6]


def test_lag_of_a_share_partition_leaves_out_what_was_delivered_beyond_its_start() -> None:
    assert rows(SHARE, OFFSETS) == [
        {
            "group": "queue",
            "topic": "orders",
            "partition": 2,
            "leader_epoch": 4,
            "start_offset": 40,
            "lag": 15,
        },
        {
            "group": "queue",
            "topic": "orders",
            "partition": 3,
            "leader_epoch": None,
            "start_offset": None,
            "lag": None,
        },
    ]


def test_streams_offsets_are_those_of_active_tasks() -> None:
    found = {
        row["partition"]: (row["current_offset"], row["log_end_offset"], row["offset_lag"])
        for row in rows(STREAMS, OFFSETS)
    }
    # Without a commit a task starts at the log's start.
    assert found == {0: (50, 100, 50), 1: (None, 100, 90)}


def test_streams_members_have_tasks_by_role() -> None:
    (row,) = rows(STREAMS, MEMBERS, verbose=False)
    assert row["assignments"] == "ACTIVE: 0:[0,1]; STANDBY: 1:[2];"
    (row,) = rows(STREAMS, MEMBERS)
    assert row["assignments"].endswith("STANDBY: 1:[2]; TARGET-ACTIVE: 0:[0];")


@pytest.mark.parametrize(
    ("release", "of_share", "text"),
    [
        ("4.3.1", False, "clicks:0;orders:2,10"),
        ("4.3.1", True, "clicks:0;orders:2,10"),
        ("4.0", True, "clicks:0,orders:2,orders:10"),
        ("4.0", False, "clicks:0;orders:2,10"),
        ("3.9", False, "clicks(0), orders(2,10)"),
    ],
)
def test_partitions_are_written_as_the_release_writes_them(
    release: str,
    of_share: bool,
    text: str,
) -> None:
    given = [("orders", 10), ("clicks", 0), ("orders", 2)]
    listed = [{"topic": topic, "partition": number} for topic, number in given]
    assert partitions_text(listed, release, of_share=of_share) == text
    assert partitions_text([], release, of_share=of_share) is None


def test_no_tasks_are_no_text() -> None:
    assert tasks_text([]) is None


FILES = {
    "consumer-groups-offsets": View(CONSUMER, OFFSETS),
    "consumer-groups-offsets-verbose": View(CONSUMER, OFFSETS),
    "consumer-groups-state": View(CONSUMER, STATE),
    "consumer-groups-state-verbose": View(CONSUMER, STATE),
    "share-groups-offsets": View(SHARE, OFFSETS),
    "share-groups-offsets-verbose": View(SHARE, OFFSETS),
    "share-groups-members": View(SHARE, MEMBERS),
    "share-groups-members-verbose": View(SHARE, MEMBERS),
    "share-groups-state": View(SHARE, STATE),
    "share-groups-state-verbose": View(SHARE, STATE),
    "streams-groups-offsets": View(STREAMS, OFFSETS),
    "streams-groups-offsets-verbose": View(STREAMS, OFFSETS),
    "streams-groups-members": View(STREAMS, MEMBERS),
    "streams-groups-members-verbose": View(STREAMS, MEMBERS),
    "streams-groups-state": View(STREAMS, STATE),
    "streams-groups-state-verbose": View(STREAMS, STATE),
    # These were asked for with --verbose, whatever their name says.
    "consumer-groups-members": View(CONSUMER, MEMBERS),
}
SOMETIMES = {"GROUP-INSTANCE-ID", "UPGRADED"}


@pytest.mark.parametrize(
    ("dump", "release"),
    [
        ("kafka-3.9.2-classic", "3.9.2"),
        ("kafka-4.0.2-share", "4.0.2"),
        ("kafka-4.1.2-share-streams", "4.1.2"),
        ("kafka-4.2.1-share", "4.2.1"),
        ("kafka-4.3.1-failover", "4.3.1"),
    ],
)
def test_columns_are_those_that_the_releases_tool_printed(
    repository: Path, dump: str, release: str
) -> None:
    folder = repository / "tests" / "data" / "dumps" / dump / "tools" / "describe"
    files = sorted(folder.glob("*.txt"))
    assert files
    for file in files:
        view = FILES[file.stem]
        is_verbose = file.stem.endswith("verbose") or view == View(CONSUMER, MEMBERS)
        names = columns_of(view, release, verbose=is_verbose)
        if release < "4.2" and view == View(SHARE, OFFSETS):
            names.remove("lag")  # left out where no partition has one
        lines = file.read_text("utf-8").split("\n")
        heads = next(line for line in lines if line.startswith("GROUP "))
        ours = [HEADS[name] for name in names if HEADS[name] not in SOMETIMES]
        printed = heads.replace("COORDINATOR (ID)", "COORDINATOR").split()
        assert [each for each in printed if each not in SOMETIMES] == [
            each.replace(" (ID)", "") for each in ours
        ], file.name


@pytest.mark.parametrize("what", [OFFSETS, MEMBERS, STATE])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("release", ["3.9", "4.0", "4.3"])
def test_rows_have_every_column_and_the_groups_type(family: str, what: str, release: str) -> None:
    view = View(family, what)
    found = rows_of(view, SOURCE, release, verbose=True)
    assert {*columns_of(view, release, verbose=True), *KEYS[view]} <= set(found.column_names)
    assert found["group_type"].null_count == 0


def test_columns_of_what_no_member_has_are_left_out() -> None:
    view = View(CONSUMER, MEMBERS)
    found = rows_of(view, SOURCE, "4.3", verbose=True)
    names = shown_columns(view, found, "4.3", verbose=True)
    assert {"group_instance_id", "upgraded"} <= set(names)
    dynamic = found.filter(pa.array([each == "b" for each in found["consumer_id"].to_pylist()]))
    assert {"group_instance_id", "upgraded"}.isdisjoint(
        shown_columns(view, dynamic, "4.3", verbose=True)
    )
    shares = rows_of(View(SHARE, OFFSETS), SOURCE, "4.1", verbose=True)
    assert "lag" in shown_columns(View(SHARE, OFFSETS), shares, "4.1", verbose=True)
    assert "lag" not in shown_columns(View(SHARE, OFFSETS), shares.slice(1), "4.1", verbose=True)
