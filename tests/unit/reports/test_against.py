"""A saved output held against rows of ours: what counts as equal, and what cannot be compared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reports.describe.against import compare, render_comparison
from reports.describe.tool_output import (
    CONSUMER,
    MEMBERS,
    OFFSETS,
    STATE,
    STREAMS,
    View,
    read_saved_output,
)

OFFSETS_HEAD = (
    "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
    "CONSUMER-ID     HOST            CLIENT-ID"
)


def offsets(*lines: str) -> str:
    return "\n".join(["", OFFSETS_HEAD, *lines, ""])


def row(**changed: Any) -> dict[str, Any]:
    return {
        "group": "billing",
        "topic": "orders",
        "partition": 0,
        "current_offset": 90,
        "log_end_offset": 100,
        "lag": 10,
        "consumer_id": None,
        "host": None,
        "client_id": None,
        "group_type": "simple",
        **changed,
    }


LINE = f"{'billing':16}{'orders':16}{'0':11}{'90':16}{'100':16}{'10':16}{'-':16}{'-':16}-"


def test_equal_rows_are_equal_in_any_order() -> None:
    other = LINE.replace("0          90", "1          90")
    result = compare(
        read_saved_output(offsets(other, LINE)), View(CONSUMER, OFFSETS), [row(), row(partition=1)]
    )
    assert result.is_equal
    assert render_comparison(result, "text", {}) == "2 of 2 rows equal"


def test_a_cell_that_differs_is_shown_beside_kafkas() -> None:
    result = compare(
        read_saved_output(offsets(LINE)), View(CONSUMER, OFFSETS), [row(current_offset=89)]
    )
    assert (result.equal, result.total) == (0, 1)
    assert result.differing == [("billing orders 0 -", "CURRENT-OFFSET", "90", 89)]
    assert "0 of 1 rows equal" in render_comparison(result, "text", {})


def test_rows_of_one_side_alone_differ() -> None:
    saved = read_saved_output(offsets(LINE))
    missing = compare(saved, View(CONSUMER, OFFSETS), [])
    assert missing.differing == [("billing orders 0 -", None, "a row", "no row")]
    added = compare(saved, View(CONSUMER, OFFSETS), [row(), row(topic="returns")])
    assert added.differing == [("billing returns 0 -", None, "no row", "a row")]
    assert (added.equal, added.total) == (1, 2)


def test_ends_that_are_not_known_at_the_instant_are_not_compared_but_counted() -> None:
    result = compare(
        read_saved_output(offsets(LINE)),
        View(CONSUMER, OFFSETS),
        [row(log_end_offset=None, lag=None)],
    )
    assert result.is_equal
    assert dict(result.not_compared) == {"LOG-END-OFFSET": 1, "LAG": 1}
    assert "not compared: LOG-END-OFFSET 1, LAG 1" in render_comparison(result, "text", {})


def test_programs_get_the_counts_and_every_difference() -> None:
    saved = read_saved_output(offsets(LINE))
    result = compare(saved, View(CONSUMER, OFFSETS), [row(current_offset=89)])
    answer = json.loads("".join(render_comparison(result, "json", {"as_of": None})))
    assert (answer["equal"], answer["total"], answer["not_compared"]) == (0, 1, {})
    assert answer["rows"] == [
        {"row": "billing orders 0 -", "column": "CURRENT-OFFSET", "kafka": "90", "here": "89"}
    ]


def test_an_end_that_only_we_know_differs() -> None:
    line = LINE.replace("100", "-  ").replace("10 ", "-  ")
    result = compare(read_saved_output(offsets(line)), View(CONSUMER, OFFSETS), [row()])
    assert {column for _, column, _, _ in result.differing} == {"LOG-END-OFFSET", "LAG"}


STATE_HEAD = (
    "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS"
)


def state_line(state: str, strategy: str = "-") -> str:
    return f"{'billing':16}{'kafka:9092  (1)':26}{strategy:21}{state:21}1"


@pytest.mark.parametrize(
    ("group_type", "is_equal"), [("classic", True), ("consumer", False), ("simple", False)]
)
def test_a_rebalance_of_a_classic_group_leaves_no_record(group_type: str, is_equal: bool) -> None:
    saved = read_saved_output(f"{STATE_HEAD}\n{state_line('PreparingRebalance')}\n")
    ours = {
        "group": "billing",
        "coordinator": "kafka:9092 (1)",
        "assignment_strategy": "range",
        "state": "Stable",
        "members": 1,
        "group_type": group_type,
    }
    assert compare(saved, View(CONSUMER, STATE), [ours]).is_equal is is_equal


def test_the_order_of_what_a_member_owns_means_nothing() -> None:
    text = (
        "GROUP   CONSUMER-ID HOST       CLIENT-ID ASSIGNMENT\n"
        "packing member-1    /127.0.0.1 pack-1    orders:3,returns:1,orders:12\n"
    )
    ours = {
        "group": "packing",
        "consumer_id": "member-1",
        "host": "/127.0.0.1",
        "client_id": "pack-1",
        "group_type": "share",
    }
    view = View("share", MEMBERS)
    equal = compare(
        read_saved_output(text), view, [{**ours, "assignment": "orders:3,orders:12,returns:1"}]
    )
    assert equal.is_equal
    other = compare(read_saved_output(text), view, [{**ours, "assignment": "orders:3,returns:1"}])
    assert not other.is_equal


@pytest.mark.parametrize(
    ("assignment", "is_equal"),
    [
        ("orders(0,1,2,10), returns(0)", True),
        ("orders(0,1,2), returns(0)", False),
        ("orders(0,1,2,10)", False),
    ],
)
def test_3_8_and_3_9_print_partitions_without_their_topic(assignment: str, is_equal: bool) -> None:
    text = (
        "GROUP   CONSUMER-ID HOST       CLIENT-ID #PARTITIONS ASSIGNMENT\n"
        "billing member-1    /127.0.0.1 b-1       5           (0), (0,1,10,2)\n"
    )
    ours = {
        "group": "billing",
        "consumer_id": "member-1",
        "host": "/127.0.0.1",
        "client_id": "b-1",
        "partitions": 5,
        "assignment": assignment,
        "group_type": "classic",
    }
    result = compare(read_saved_output(text), View(CONSUMER, MEMBERS), [ours])
    assert result.is_equal is is_equal


@pytest.mark.parametrize(
    ("theirs", "ours", "is_equal"),
    [
        ("7:0,1;gamma.1:2,10", "7(0,1), gamma.1(2,10)", True),
        ("7:0,1;gamma.1:2,10", "7(0,1), gamma.1(2)", False),
        ("7:0,1;gamma.1:2,10", "7(0), gamma.1(1,2,10)", False),
        ("orders:3,12;7:1", "orders:3,orders:12,7:1", True),
        ("orders:3,12;7:1", "orders:3,7:12,7:1", False),
    ],
)
def test_a_tool_of_one_release_may_have_asked_a_broker_of_another(
    theirs: str, ours: str, is_equal: bool
) -> None:
    text = (
        f"GROUP   CONSUMER-ID CURRENT-ASSIGNMENT{' ' * len(theirs)} TARGET-ASSIGNMENT\n"
        f"billing member-1    {theirs:{18 + len(theirs)}} -\n"
    )
    row = {"group": "billing", "consumer_id": "member-1", "group_type": "classic"}
    row |= {"current_assignment": ours, "target_assignment": None}
    result = compare(read_saved_output(text), View(CONSUMER, MEMBERS), [row])
    assert result.is_equal is is_equal


def test_tasks_are_compared_as_sets() -> None:
    text = (
        "GROUP  MEMBER PROCESS CLIENT-ID ASSIGNMENTS\n"
        "words  m-1    p-1     c-1       ACTIVE: 1:[1,2]; 0:[2]; STANDBY: 0:[0]; \n"
    )
    ours = {"group": "words", "member": "m-1", "process": "p-1", "client_id": "c-1"}
    for assignments, is_equal in (
        ("ACTIVE: 0:[2]; 1:[1,2]; STANDBY: 0:[0];", True),
        ("ACTIVE: 0:[2]; 1:[1]; STANDBY: 0:[0];", False),
    ):
        rows = [{**ours, "assignments": assignments, "group_type": "streams"}]
        result = compare(read_saved_output(text), View(STREAMS, MEMBERS), rows)
        assert result.is_equal is is_equal
