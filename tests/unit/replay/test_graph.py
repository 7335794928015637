"""Steps run once each, after what they are made of."""

from __future__ import annotations

import threading

import pytest

from analytics.replay.graph import TableStep, needed_for, passes, resolve


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_step_takes_what_others_made_in_whatever_order_they_are_named(at_once: int) -> None:
    steps = [
        TableStep("sum", lambda doubled, one: doubled + one, ("doubled", "one")),
        TableStep("doubled", lambda one: one * 2, ("one",)),
    ]
    assert resolve(steps, {"one": 1}, at_once=at_once) == {"doubled": 2, "sum": 3}


def test_every_step_runs_once() -> None:
    runs: list[str] = []
    steps = [TableStep(name, lambda name=name: runs.append(name), ()) for name in "abc"]
    resolve(steps, {}, at_once=2)
    assert sorted(runs) == ["a", "b", "c"]


def test_steps_that_do_not_need_each_other_run_side_by_side() -> None:
    both_there = threading.Barrier(2, timeout=30)
    steps = [TableStep(name, both_there.wait, ()) for name in "ab"]
    assert sorted(resolve(steps, {}, at_once=2).values()) == [0, 1]


def test_an_error_of_a_step_is_that_of_the_whole() -> None:
    def fails() -> None:
        raise LookupError("no such table")

    with pytest.raises(LookupError, match="no such table"):
        resolve([TableStep("a", fails, ()), TableStep("b", lambda a: a, ("a",))], {}, at_once=2)


def test_what_nothing_makes_is_named() -> None:
    with pytest.raises(ValueError, match="nothing makes nowhere"):
        resolve(
            [TableStep("a", lambda: 1, ()), TableStep("b", lambda nowhere: nowhere, ("nowhere",))],
            {},
        )


def test_only_what_a_name_is_made_of_is_needed_for_it() -> None:
    of = {"a": (), "b": ("a", "given"), "c": ("b",), "d": ("a",)}
    steps = [TableStep(name, lambda *_: None, each) for name, each in of.items()]
    assert [step.output for step in needed_for(steps, ["c"])] == ["a", "b", "c"]
    assert [step.output for step in needed_for(steps, ["d", "nobody"])] == ["a", "d"]


def _laid(*steps: TableStep) -> list[tuple[list[str], set[str], set[str], list[str]]]:
    return [
        (
            [step.output for step in each.of_buckets],
            set(each.gathered),
            set(each.tables),
            [step.output for step in each.once],
        )
        for each in passes(steps)
    ]


def test_without_anything_made_once_there_is_one_pass() -> None:
    log = TableStep("log", len, ("cut",))
    members = TableStep("members", len, ("log",))
    assert _laid(log, members) == [
        ([], set(), set(), []),
        (["log", "members"], set(), {"members"}, []),
    ]


def test_what_needs_no_bucket_is_made_before_the_first_pass() -> None:
    metadata = TableStep("metadata", len, ("whole",), once=True)
    members = TableStep("members", len, ("cut", "metadata"))
    assert _laid(metadata, members) == [
        ([], set(), set(), ["metadata"]),
        (["members"], set(), {"members"}, []),
    ]


def test_what_is_made_of_all_buckets_is_there_for_the_next_pass() -> None:
    named = TableStep("named", len, ("cut",))
    topics = TableStep("topics", len, ("named",), once=True)
    log = TableStep("log", len, ("cut",))
    assigned = TableStep("assignments", len, ("log", "topics"))
    members = TableStep("members", len, ("log",))
    assert _laid(named, topics, log, assigned, members)[1:] == [
        (["named"], {"named"}, set(), ["topics"]),
        # The other table waits for the pass that makes the log anyway.
        (["log", "assignments", "members"], set(), {"assignments", "members"}, []),
    ]


def test_rows_of_one_table_may_be_made_by_several_steps() -> None:
    seen = TableStep("seen", len, ("cut",), part_of="group_events")
    later = TableStep("later", len, ("seen",), once=True, part_of="group_events")
    (_, of_buckets) = _laid(seen, later)
    assert of_buckets == (["seen"], {"seen"}, {"seen"}, ["later"])
    assert needed_for([seen, later], ["group_events"]) == [seen, later]


def test_what_is_kept_of_a_bucket_is_made_once() -> None:
    gone = TableStep("gone", len, ("cut",))
    removed = TableStep("removed", len, ("gone",), is_kept=True)
    named = TableStep("named", len, ("cut",))
    topics = TableStep("topics", len, ("named",), once=True)
    purges = TableStep("purges_here", len, ("removed", "topics"))
    first = TableStep("purges", len, ("purges_here",), once=True)
    history = TableStep("offset_history", len, ("cut", "removed", "purges"))
    bounds = TableStep("bounds", len, ("removed",), once=True, by_partition=True)
    steps = [gone, removed, named, topics, purges, first, history, bounds]
    found = [
        ([step.output for step in each.of_buckets], set(each.keeps), set(each.reads))
        for each in passes(steps)[1:]
    ]
    assert found == [
        (["gone", "removed", "named"], {"removed"}, set()),
        (["purges_here"], set(), {"removed"}),
        (["offset_history"], set(), {"removed"}),
    ]
