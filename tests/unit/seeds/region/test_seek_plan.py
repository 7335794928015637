"""Where members read on after a reset: to a checkpoint, to initial offsets, or to the start."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.seeds.region.contributions import Matched, Member, Owned, OwnersThen, matched
from analytics.seeds.region.merge import (
    Checkpoint,
    Committed,
    Log,
    Present,
    Seek,
    latest_complete,
    seek_plan,
)
from analytics.seeds.region.table import of_members, of_plan
from tests.unit.seeds.region.contributed import checkpoint, contribution

A, B = Member("A-1", "A"), Member("B-1", "B")
OPERATORS = {"A-1": "A", "B-1": "B"}
T0, T1 = ("t", 0), ("t", 1)
LATEST = checkpoint(
    contribution("A", {"t-0": 10}, names=("A", "B"), at=1000),
    contribution("B", {"t-1": 20}, names=("A", "B"), at=2000),
)


def planned(latest: Checkpoint | None = LATEST, **present: Any) -> dict[tuple[str, int], Seek]:
    given = {"owners": {T0: A, T1: B}, "matched": Matched(operators=OPERATORS)} | present
    return {each.partition: each for each in seek_plan(latest, Present(**given))}


def words(plan: dict[tuple[str, int], Seek]) -> list[str]:
    return [each.word for each in of_plan(LATEST.key, plan.values(), has_latest=True)]


# --- Reset processing to a previous state, Partition assignment --------------------------------


def test_partitions_are_sought_to_the_merged_checkpoint_whoever_has_them_now() -> None:
    plan = planned(owners={T0: B, T1: B})
    assert [(each.offset, each.basis, each.moved) for each in plan.values()] == [
        (10, "checkpoint", True),
        (20, "checkpoint", False),
    ]


def test_a_partition_that_nobody_has_is_in_the_plan_too() -> None:
    plan = planned(owners={})
    assert [each.owner for each in plan.values()] == [None, None]


def test_the_latest_that_is_merged_is_restored() -> None:
    later = checkpoint(contribution("A", {"t-0": 99}, names=("A", "B"), sequence_id=8))
    assert latest_complete([LATEST, later]) is LATEST
    assert latest_complete([later]) is None


def test_a_partition_that_is_not_covered_is_sought_to_its_initial_offset() -> None:
    new = ("t", 2)
    owners = {T0: A, T1: B, new: B}
    plan = planned(owners=owners, initial={new: 5, T0: 1})
    assert (plan[new].offset, plan[new].basis) == (5, "initial")
    assert plan[T0].offset == 10, "a checkpoint goes before an initial offset"
    assert words(plan) == ["not_covered"]


@pytest.mark.parametrize(
    ("position", "offset"), [("beginning", 3), ("end", 90), ("committed", 40), (None, None)]
)
def test_without_either_the_start_position_counts(position: str | None, offset: int | None) -> None:
    plan = planned(
        None,
        owners={T0: A},
        logs={T0: Log(3, 90)},
        committed={T0: Committed(40)},
        start_position=position,
    )
    assert plan[T0].offset == offset
    assert plan[T0].basis == ("unknown" if position is None else "start_position")
    assert (plan[T0].missing is None) == (offset is not None)


@pytest.mark.parametrize(
    ("position", "more"),
    [
        ("beginning", {}),
        ("end", {}),
        ("committed", {}),
        ("committed", {"committed": {T0: Committed(40, is_of_other_topic=True)}}),
        ("committed", {"committed": {T0: Committed(None, missing="records are missing")}}),
    ],
)
def test_a_start_position_that_the_dump_does_not_tell_is_not_guessed(
    position: str, more: dict[str, Any]
) -> None:
    plan = planned(None, owners={T0: A}, start_position=position, **more)
    assert (plan[T0].offset, plan[T0].basis) == (None, "unknown")
    assert plan[T0].missing is not None


def test_an_offset_that_operators_contradict_is_not_replaced_by_another() -> None:
    torn = checkpoint(
        contribution("A", {"t-0": 10}, names=("A", "B")),
        contribution("B", {"t-0": 11}, names=("A", "B")),
    )
    plan = planned(
        torn, owners={T0: A}, initial={T0: 1}, start_position="end", logs={T0: Log(0, 9)}
    )
    assert (plan[T0].offset, plan[T0].basis) == (None, "unknown")
    assert plan[T0].missing == "operators name different offsets: A: 10, B: 11"


# --- The committed offset, and the log ---------------------------------------------------------


@pytest.mark.parametrize(
    ("committed", "word", "ahead_by", "finding"),
    [
        (Committed(10), "equal", 0, []),
        (Committed(15), "ahead", 5, ["committed_ahead"]),
        (Committed(4), "behind", -6, ["committed_behind"]),
        (Committed(10, is_of_other_topic=True), "other_topic", None, ["commit_of_another_topic"]),
        (Committed(None, missing="why"), "cannot_tell", None, []),
        (None, "no_commit", None, []),
    ],
)
def test_the_committed_offset_is_held_against_the_checkpoint(
    committed: Committed | None, word: str, ahead_by: int | None, finding: list[str]
) -> None:
    plan = planned(owners={T0: A, T1: B}, committed={} if committed is None else {T0: committed})
    assert (plan[T0].commit_is, plan[T0].ahead_by) == (word, ahead_by)
    assert words(plan) == finding


def test_no_commit_is_not_said_where_one_may_be_lost() -> None:
    assert planned(gap="records are missing")[T0].commit_is == "cannot_tell"


@pytest.mark.parametrize(
    ("log", "word", "finding"),
    [
        (Log(0, 90), "readable", []),
        (Log(10, 10), "readable", []),
        (Log(11, 90), "deleted", ["records_deleted"]),
        (Log(0, 9), "beyond_end", ["beyond_log_end"]),
        (Log(None, 90), None, []),
        (Log(), None, []),
        (Log(0, 90, created_at=2001), "other_topic", ["checkpoint_of_another_topic"]),
        (Log(0, 90, created_at=2000), "readable", []),
    ],
)
def test_the_log_is_held_against_the_offset_sought(
    log: Log, word: str | None, finding: list[str]
) -> None:
    plan = planned(logs={T0: log})
    assert plan[T0].log_is == word
    assert words(plan) == finding


def test_a_topic_that_is_gone_is_told() -> None:
    plan = planned(deleted_topics={"t"})
    assert [each.log_is for each in plan.values()] == ["no_topic", "no_topic"]
    assert words(plan) == ["topic_gone", "topic_gone"]
    assert planned()[T0].log_is is None


# --- Assumptions and restrictions --------------------------------------------------------------


def test_members_outside_of_the_region_are_told() -> None:
    who = matched([A, Member("x", "cron-job")], ["A", "B"])
    found = of_members(LATEST, Present(matched=who))
    assert [each.word for each in found] == ["member_outside_region", "operator_without_member"]


@pytest.mark.parametrize(
    ("member", "operator"),
    [
        (Member("m", "A"), "A"),
        (Member("m", "whatever", "A"), "A"),
        (Member("m", "C-J7-A"), "A"),
        (Member("m", "C-J7-A-1"), "A-1"),
        (Member("m", "AB"), None),
        (Member("m"), None),
    ],
)
def test_a_member_is_the_operator_it_is_called_after(member: Member, operator: str | None) -> None:
    who = matched([member, Member("b", "B")], ["A", "A-1", "B"])
    assert who.operators.get("m") == operator


def test_where_no_name_fits_nothing_is_said_of_who_is_who() -> None:
    who = matched([Member("m", "x"), Member("n", "y")], ["A", "B"])
    assert who.why_unknown == "no member has the name of an operator as client id or static name"
    assert not list(of_members(LATEST, Present(matched=who)))


def test_two_members_of_one_name_are_not_one_operator() -> None:
    assert (
        matched([A, Member("A-2", "A")], ["A", "B"]).why_unknown
        == "several members have the name of A"
    )


@pytest.mark.parametrize(
    ("start", "end", "owner"),
    [(500, None, "B"), (500, 1001, "B"), (500, 1000, None), (1001, None, None), (None, None, None)],
)
def test_who_had_a_partition_when_a_checkpoint_was_made(
    start: int | None, end: int | None, owner: str | None
) -> None:
    owned = {("group", T0): [Owned(("B",), start, end)]}
    asked = OwnersThen(owned, {LATEST.key: 1000})
    assert asked(LATEST.key, T0, ["A", "B"]) == owner
    assert asked(LATEST.key, T1, ["A", "B"]) is None
