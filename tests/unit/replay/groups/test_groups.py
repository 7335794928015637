"""Groups, members and assignments, told as short logs: each case is an internal partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from analytics.contracts import contract_schema
from analytics.replay.groups.coordinator_log import coordinator_log
from analytics.replay.groups.fold import GroupState, folded_groups, groups_gone
from analytics.replay.groups.group_records import KINDS, MEMBER_ROLES
from analytics.replay.log.losses import Coverage
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.offset_state import committed_offsets, pending_offsets
from analytics.replay.state import assignments, groups, members
from schemas import table
from tests.support.decoded_frames import frames_of
from tests.support.history_log import rows_by_group

if TYPE_CHECKING:
    from types import SimpleNamespace

    from analytics.replay.log.log_times import Decoded

TOPIC = "__consumer_offsets"
TABLES = (*KINDS, "offset_commit", "control_markers", "transaction_log")
STABLE, UNREVOKED = 0, 1
AT = 1_700_000_000_000
ID, OTHER_ID = "gtb2stGYRk-vWZ2zAozmoA", "EYAGe3ybSjSvj5d44sPkEw"

Record = tuple[str, str | None, dict[str, Any] | None]
"""Table, member (None where the record is about the group), value (None: a tombstone)."""


def classic(*names: str, protocol_type: str = "consumer") -> Record:
    there = [
        {
            "member_id": name,
            "client_id": f"client-{name}",
            "client_host": "/host",
            "rebalance_timeout": -1,
            "session_timeout": 45_000,
            "subscription_decoded": {"topics": ["t"], "rack_id": "rack"},
            "assignment_decoded": {"assigned_partitions": [{"topic": "t", "partitions": [0, 2]}]},
        }
        for name in names
    ]
    value = {
        "protocol_type": protocol_type,
        "generation": 5,
        "protocol": "range" if names else None,
        "leader": names[0] if names else None,
        "current_state_timestamp": AT,
        "members": there,
    }
    return "group_metadata", None, value


def gone(name: str, member: str | None = None) -> Record:
    return name, member, None


def epoch(number: int, family: str = "consumer", **also: Any) -> Record:
    return f"{family}_group_metadata", None, {"epoch": number, **also}


def assigned(number: int, family: str = "consumer") -> Record:
    return f"{family}_group_target_assignment_metadata", None, {"assignment_epoch": number}


def member(name: str, family: str = "consumer", **also: Any) -> Record:
    value = {"client_id": f"client-{name}", "client_host": "/host", **also}
    return f"{family}_group_member_metadata", name, value


def current(
    name: str, number: int, state: int = STABLE, family: str = "consumer", **also: Any
) -> Record:
    value = {"member_epoch": number, "previous_member_epoch": number - 1, "state": state, **also}
    return f"{family}_group_current_member_assignment", name, value


def target(name: str, topic_id: str, partitions: list[int]) -> Record:
    given = [{"topic_id": topic_id, "partitions": partitions}]
    return "consumer_group_target_assignment_member", name, {"topic_partitions": given}


COMMITTED: Record = ("offset_commit", None, {"offset": 1, "metadata": "", "commit_timestamp": AT})
CONSUMER = [member("m"), epoch(3), assigned(3), current("m", 3)]
MEMBER_LEFT = [
    gone("consumer_group_current_member_assignment", "m"),
    gone("consumer_group_target_assignment_member", "m"),
    gone("consumer_group_member_metadata", "m"),
]
CONSUMER_DELETED = [
    *MEMBER_LEFT,
    gone("consumer_group_target_assignment_metadata"),
    gone("consumer_group_metadata"),
]
STREAMS = [
    member("m", "streams", topology_epoch=0, process_id="p"),
    assigned(3, "streams"),
    current("m", 3, 1, "streams"),
]

Told = tuple[str, str, int | None, int | None, dict[str, int]] | None
"""Type, state, epoch, assignment epoch, and the epoch of each member; None: no such group."""

CASES: dict[str, tuple[list[Record], Told]] = {
    "nothing": ([], None),
    "classic": ([classic("m", "n")], ("classic", "Stable", 5, None, {"m": 5, "n": 5})),
    "classic and empty": ([classic()], ("classic", "Empty", 5, None, {})),
    "classic and deleted": ([classic("m"), gone("group_metadata")], None),
    "classic, born again": (
        [classic("m"), gone("group_metadata"), classic("n")],
        ("classic", "Stable", 5, None, {"n": 5}),
    ),
    "offsets alone": ([COMMITTED], ("simple", "Empty", None, None, {})),
    "offsets outlive the group, and nobody is told of them": (
        [classic("m"), COMMITTED, gone("group_metadata")],
        None,
    ),
    "offsets outlive the group, until a commit brings it back": (
        [classic("m"), COMMITTED, gone("group_metadata"), COMMITTED],
        ("simple", "Empty", None, None, {}),
    ),
    "offsets outlive the group, until a member brings it back": (
        [classic("m"), COMMITTED, gone("group_metadata"), *CONSUMER],
        ("consumer", "Stable", 3, 3, {"m": 3}),
    ),
    "offsets alone, each of them deleted": (
        [COMMITTED, gone("offset_commit")],
        ("simple", "Empty", None, None, {}),
    ),
    "offsets alone, and deleted": (
        [COMMITTED, gone("offset_commit"), gone("group_metadata")],
        None,
    ),
    "consumer": (CONSUMER, ("consumer", "Stable", 3, 3, {"m": 3})),
    "a simple group becomes a consumer group": (
        [COMMITTED, *CONSUMER],
        ("consumer", "Stable", 3, 3, {"m": 3}),
    ),
    "consumer, assigning": ([*CONSUMER, epoch(4)], ("consumer", "Assigning", 4, 3, {"m": 3})),
    "consumer, reconciling by epoch": (
        [*CONSUMER, epoch(4), assigned(4)],
        ("consumer", "Reconciling", 4, 4, {"m": 3}),
    ),
    "consumer, reconciling by state": (
        [*CONSUMER, current("m", 3, UNREVOKED)],
        ("consumer", "Reconciling", 3, 3, {"m": 3}),
    ),
    "a static member is away": (
        [*CONSUMER, current("m", -2)],
        ("consumer", "Reconciling", 3, 3, {"m": -2}),
    ),
    "before the first assignment": (
        [member("m"), epoch(1), current("m", 1)],
        ("consumer", "Stable", 1, 1, {"m": 1}),
    ),
    "a member that has just joined": (
        [*CONSUMER, member("n"), epoch(4)],
        ("consumer", "Assigning", 4, 3, {"m": 3, "n": 0}),
    ),
    "the last member left": (
        [*CONSUMER, *MEMBER_LEFT, epoch(4)],
        ("consumer", "Empty", 4, 3, {}),
    ),
    "a member without its assignment": (
        [*CONSUMER, gone("consumer_group_current_member_assignment", "m")],
        ("consumer", "Reconciling", 3, 3, {"m": -1}),
    ),
    "a member without its assignment, written once more": (
        [*CONSUMER, gone("consumer_group_current_member_assignment", "m"), member("m")],
        ("consumer", "Reconciling", 3, 3, {"m": -1}),
    ),
    "a member that never had one, and is written once more behind its tombstone": (
        [
            *CONSUMER,
            member("n"),
            gone("consumer_group_current_member_assignment", "n"),
            member("n"),
        ],
        ("consumer", "Reconciling", 3, 3, {"m": 3, "n": -1}),
    ),
    "a member that comes behind a tombstone of what it never had": (
        [*CONSUMER, gone("consumer_group_current_member_assignment", "n"), member("n")],
        ("consumer", "Reconciling", 3, 3, {"m": 3, "n": 0}),
    ),
    "a tombstone of a member that is not there": (
        [*CONSUMER, gone("consumer_group_current_member_assignment", "n")],
        ("consumer", "Stable", 3, 3, {"m": 3}),
    ),
    "consumer and deleted": ([*CONSUMER, *CONSUMER_DELETED], None),
    "consumer, born again without its old members": (
        [*CONSUMER, gone("consumer_group_metadata"), member("n"), epoch(1)],
        ("consumer", "Reconciling", 1, 1, {"n": 0}),
    ),
    "classic becomes consumer": (
        [classic("m"), gone("group_metadata"), *CONSUMER],
        ("consumer", "Stable", 3, 3, {"m": 3}),
    ),
    "consumer becomes classic": (
        [*CONSUMER, *CONSUMER_DELETED, classic("m")],
        ("classic", "Stable", 5, None, {"m": 5}),
    ),
    "a classic value replaces a consumer group": (
        [*CONSUMER, classic("n")],
        ("classic", "Stable", 5, None, {"n": 5}),
    ),
    "a classic tombstone removes a consumer group": ([*CONSUMER, gone("group_metadata")], None),
    "share": (
        [
            member("m", "share"),
            epoch(4, "share"),
            assigned(3, "share"),
            current("m", 3, 0, "share"),
        ],
        ("share", "Stable", 4, 3, {"m": 3}),
    ),
    "share and empty": ([epoch(4, "share")], ("share", "Empty", 4, 1, {})),
    "streams": (
        [
            *STREAMS,
            epoch(3, "streams", validated_topology_epoch=0),
            ("streams_group_topology", None, {"epoch": 0, "subtopologies": []}),
        ],
        ("streams", "Stable", 3, 3, {"m": 3}),
    ),
    "streams, another topology validated": (
        [
            *STREAMS,
            epoch(3, "streams", validated_topology_epoch=0),
            ("streams_group_topology", None, {"epoch": 1, "subtopologies": []}),
        ],
        ("streams", "NotReady", 3, 3, {"m": 3}),
    ),
    "streams without a topology": (
        [*STREAMS, epoch(3, "streams", validated_topology_epoch=0)],
        ("streams", "NotReady", 3, 3, {"m": 3}),
    ),
    "streams whose own record is not there: topology 0 stands as validated in memory": (
        [
            member("m", "streams", topology_epoch=0, process_id="p"),
            current("m", 2, 1, "streams"),
            ("streams_group_topology", None, {"epoch": 0, "subtopologies": []}),
        ],
        ("streams", "Reconciling", 1, 1, {"m": 2}),
    ),
    "a streams member without its current assignment has no state, so that nothing is stable": (
        [
            member("m", "streams", topology_epoch=0, process_id="p"),
            epoch(0, "streams", validated_topology_epoch=0),
            assigned(0, "streams"),
            ("streams_group_topology", None, {"epoch": 0, "subtopologies": []}),
        ],
        ("streams", "Reconciling", 0, 0, {"m": 0}),
    ),
    "the late tombstone of a topology": (
        [epoch(3, "streams"), gone("streams_group_metadata"), gone("streams_group_topology")],
        None,
    ),
    "members without their group's record": (
        [member("m"), current("m", 3)],
        ("consumer", "Reconciling", 1, 1, {"m": 3}),
    ),
}
NUMBERS = {name: number for number, name in enumerate(CASES)}


def rows_of(cases: list[list[Record]]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {}
    for partition, records in enumerate(cases):
        for offset, (name, member_id, value) in enumerate(records):
            rows.setdefault(name, []).append(
                {
                    "topic": TOPIC,
                    "partition": partition,
                    "offset": offset,
                    "leader_epoch": 2,
                    "producer_id": -1,
                    "is_tombstone": value is None,
                    "key": key_of(name, f"g{partition}", member_id),
                    "value": value,
                }
            )
    return rows


def key_of(name: str, group: str, member_id: str | None) -> dict[str, Any]:
    if name == "offset_commit":
        return {"group": group, "topic": "t", "partition": 0}
    if name == "group_metadata":
        return {"group": group}
    if KINDS[name].role in MEMBER_ROLES:
        return {"group_id": group, "member_id": member_id}
    return {"group_id": group}


Found = dict[str, dict[int, list["SimpleNamespace"]]]
"""Rows by table and case."""
RULES = replay_rules("4.3")


def state_of(decoded: Decoded) -> GroupState:
    return folded_groups(coordinator_log(decoded), decoded, RULES)


def number_of(group: str) -> int:
    return int(group.removeprefix("g"))


@pytest.fixture(scope="module")
def found() -> Found:
    """All cases replayed at once, by table and case."""
    decoded = frames_of(rows_of([case[0] for case in CASES.values()]), TABLES)
    state = state_of(decoded)
    offsets = [
        of_table(decoded, RULES, groups_gone(state))
        for of_table in (committed_offsets, pending_offsets)
    ]
    lost = NUMBERS["consumer"], NUMBERS["classic"]
    coverage = Coverage(complete_from={(TOPIC, number): 1 for number in lost})
    found = groups(state, *offsets, coverage)
    tables = {
        "groups": found,
        "members": members(state, found),
        "committed_offsets": offsets[0],
    }
    by_case: Found = {}
    for name, frame in tables.items():
        assert frame.columns == [column.name for column in table(name).columns]
        for group, rows in rows_by_group(frame).items():
            by_case.setdefault(name, {})[number_of(group)] = rows
    return by_case


def test_what_each_log_leaves(found: Found) -> None:
    told: dict[str, Told] = {}
    for name, number in NUMBERS.items():
        there = {row.member_id: row.member_epoch for row in found["members"].get(number, [])}
        rows = found["groups"].get(number, [])
        assert len(rows) <= 1, name
        assert all(row.member_count == len(there) for row in rows), name
        told[name] = next(
            ((row.group_type, row.state, row.epoch, row.assignment_epoch, there) for row in rows),
            None,
        )
    assert told == {name: case[1] for name, case in CASES.items()}


def test_offsets_are_answered_where_their_group_is_there(
    found: Found,
) -> None:
    """Seen of a 4.1.2 broker: compaction had taken the first records of the group's next life."""
    outlived = {
        name: number in found["committed_offsets"]
        for name, number in NUMBERS.items()
        if name.startswith("offsets outlive")
    }
    assert list(outlived.values()) == [False, True, True]


def group_named(found: Found, name: str) -> SimpleNamespace:
    (row,) = found["groups"][NUMBERS[name]]
    return row


def test_a_classic_group_in_full(found: Found) -> None:
    row = group_named(found, "classic")
    assert (row.protocol_type, row.protocol, row.leader) == ("consumer", "range", "m")
    assert row.state_timestamp is not None
    assert (row.record_offset, row.leader_epoch) == (0, 2)
    there = found["members"][NUMBERS["classic"]][0]
    assert (there.client_id, there.client_host, there.rack_id) == ("client-m", "/host", "rack")
    assert (there.rebalance_timeout_ms, there.session_timeout_ms) == (45_000, 45_000)
    assert (there.subscribed_topics, there.is_classic, there.state) == (["t"], True, None)


@pytest.mark.parametrize(
    ("name", "protocol"), [("consumer", "uniform"), ("share", "simple"), ("streams", None)]
)
def test_the_assignor_where_members_name_none(
    found: Found, name: str, protocol: str | None
) -> None:
    row = group_named(found, name)
    assert (row.protocol_type, row.protocol, row.leader) == (name, protocol, None)


def test_a_group_is_incomplete_where_records_before_its_own_are_lost(
    found: Found,
) -> None:
    row = group_named(found, "consumer")
    assert not row.complete
    assert f"{TOPIC}-{NUMBERS['consumer']} lacks offset 0" in row.missing


def test_a_classic_value_is_the_whole_group_whatever_was_lost_before_it(
    found: Found,
) -> None:
    row = group_named(found, "classic")
    assert (row.complete, row.missing) == (True, None)


def test_a_group_known_by_its_members_alone_says_so(
    found: Found,
) -> None:
    row = group_named(found, "members without their group's record")
    assert (row.complete, row.missing) == (False, "the group's own record is not in the dump")


def test_assignments_are_one_row_a_partition_or_task() -> None:
    given = {
        "assigned_partitions": [{"topic_id": ID, "partitions": [0, 1]}],
        "partitions_pending_revocation": [{"topic_id": OTHER_ID, "partitions": [4]}],
    }
    tasks = {
        "active_tasks": [{"subtopology_id": "0", "partitions": [0]}],
        "warmup_tasks": [{"subtopology_id": "1", "partitions": [2]}],
    }
    cases = [
        [classic("m")],
        [member("m"), epoch(4), assigned(4), target("m", ID, [0]), current("m", 3, 1, **given)],
        [epoch(3, "streams"), member("m", "streams"), current("m", 3, 1, "streams", **tasks)],
    ]
    state = state_of(frames_of(rows_of(cases), TABLES))
    topics = pl.DataFrame({"topic": ["t"], "topic_id": [ID]})
    frame = assignments(state, topics, pl.DataFrame(schema=contract_schema("groups")))
    assert frame.columns == [column.name for column in table("assignments").columns]
    assert frame["complete"].all()
    rows = sorted(frame.drop("member_id", "complete", "missing").rows(), key=str)
    assert rows == [
        ("g0", "classic", 5, "current", None, None, "t", None, 0),
        ("g0", "classic", 5, "current", None, None, "t", None, 2),
        ("g1", "consumer", 3, "current", None, None, "t", ID, 0),
        ("g1", "consumer", 3, "current", None, None, "t", ID, 1),
        ("g1", "consumer", 3, "pending_revocation", None, None, None, OTHER_ID, 4),
        ("g1", "consumer", 4, "target", None, None, "t", ID, 0),
        ("g2", "streams", 3, "current", "active", "0", None, None, 0),
        ("g2", "streams", 3, "current", "warmup", "1", None, None, 2),
    ]


def test_what_a_list_repeats_is_one_partition_or_task_as_brokers_keep_sets() -> None:
    tasks = {"warmup_tasks": [{"subtopology_id": "1", "partitions": [2, 2]}] * 2}
    twice = {"assigned_partitions": [{"topic_id": ID, "partitions": [0, 1, 0]}]}
    cases = [
        [epoch(3, "streams"), member("m", "streams"), current("m", 3, 1, "streams", **tasks)],
        [member("m"), epoch(4), assigned(4), target("m", ID, [0, 0]), current("m", 3, 1, **twice)],
        [member("m"), epoch(4), assigned(4), current("m", 3, 1, **twice)],
    ]
    state = state_of(frames_of(rows_of(cases), TABLES))

    topics = pl.DataFrame({"topic": ["t"], "topic_id": [ID]})
    rows = assignments(state, topics, pl.DataFrame(schema=contract_schema("groups")))

    kept = rows.select("group_id", "kind", "role", "partition").rows()
    assert sorted(kept, key=str) == [
        ("g0", "current", "warmup", 2),
        ("g1", "current", None, 0),
        ("g1", "current", None, 1),
        ("g1", "target", None, 0),
        ("g2", "current", None, 0),
        ("g2", "current", None, 1),
    ]
