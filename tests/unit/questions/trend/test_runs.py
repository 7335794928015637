"""Runs are put in order by cluster and instant, and compared only where that tells something."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from analytics.questions.answer import Answer
from analytics.questions.trend.question import TrendSettings, trend
from tests.support.held_runs import Audit

GROUP = {
    "group_id": "g",
    "group_type": "classic",
    "state": "Empty",
    "coordinator_partition": 0,
    "complete": True,
}


def answer(*audits: Audit, disk_bytes: int | None = None) -> Answer:
    return trend([each.run() for each in audits], TrendSettings(disk_bytes))


def rows(found: Answer, name: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = found.rows(name).whole().to_pylist()
    return listed


def codes(found: Answer) -> set[str]:
    return {each.code for each in found.gaps}


@pytest.mark.parametrize("days", list(permutations((3, 1, 2))))
def test_runs_are_in_the_order_of_their_instants_however_they_are_given(
    days: tuple[int, ...],
) -> None:
    found = rows(answer(*(Audit(day) for day in days)), "trend_runs")
    assert [each["run"] for each in found] == [f"/audits/prod-{day}" for day in (1, 2, 3)]
    assert [each["previous_as_of"] for each in found] == [
        None,
        *(each["as_of"] for each in found[:-1]),
    ]


def test_a_run_that_is_given_twice_counts_once() -> None:
    once, twice = answer(Audit(1), Audit(2)), answer(Audit(1), Audit(2), Audit(1), Audit(2))
    assert rows(twice, "trend_runs") == rows(once, "trend_runs")
    assert twice.warnings == ()


def test_of_two_runs_of_one_instant_that_without_filters_counts_and_the_other_is_named() -> None:
    narrow = Audit(1, name="/narrow", given={"filters": ("groups=a*",)})
    found = answer(narrow, Audit(1, name="/whole"), Audit(2))
    assert [each["run"] for each in rows(found, "trend_runs")] == ["/whole", "/audits/prod-2"]
    assert found.warnings == ("/narrow is left out: /whole is of the same cluster and instant",)


def test_runs_of_different_clusters_are_never_compared() -> None:
    here = Audit(1, "east", tables={"groups": [GROUP]})
    found = answer(here, Audit(2, "west"))
    assert [each["previous_as_of"] for each in rows(found, "trend_runs")] == [None, None]
    assert rows(found, "trend_changed_groups") == []
    assert codes(found) == {"trend_of_one_run"}
    assert len(found.gaps) == 2


def test_a_run_of_no_known_cluster_is_compared_with_no_other() -> None:
    found = answer(Audit(1, None, "/a"), Audit(2, None, "/b"), Audit(3), Audit(4))
    assert [(each["cluster"], each["previous_as_of"]) for each in rows(found, "trend_runs")] == [
        ("/a", None),
        ("/b", None),
        ("prod", None),
        ("prod", rows(found, "trend_runs")[2]["as_of"]),
    ]
    assert codes(found) == {"trend_of_no_cluster"}


def test_a_run_without_a_time_is_left_out_and_named() -> None:
    timeless = replace(Audit(1, name="/timeless").run(), as_of=None)
    found = trend([timeless, Audit(1).run(), Audit(2).run()], TrendSettings())
    assert [each["run"] for each in rows(found, "trend_runs")] == [
        "/audits/prod-1",
        "/audits/prod-2",
    ]
    assert codes(found) == {"trend_run_without_time"}


UNLIKE = {
    "other filters": ({"filters": ("groups=a*",)}, "trend_filters_differ"),
    "a log less": ({"logs": frozenset({"__consumer_offsets-0"})}, "trend_coverage_differs"),
    "lost records": ({"lacks": frozenset({"__consumer_offsets-1"})}, "trend_coverage_differs"),
    "nothing tells which logs": ({"logs": None}, "trend_coverage_unknown"),
    "pseudonyms": ({"is_redacted": True}, "trend_names_differ"),
}


@pytest.mark.parametrize("unlike", UNLIKE)
@pytest.mark.parametrize("turned", [False, True], ids=["then", "now"])
def test_what_runs_that_are_unlike_do_not_share_is_neither_new_nor_gone(
    unlike: str, turned: bool
) -> None:
    given, code = UNLIKE[unlike]
    usage = {
        "topic": "__consumer_offsets",
        "partition": 0,
        "copy": "broker-1",
        "is_leading": True,
        "file_bytes": 100,
    }
    group = {"group_id": "g", "lag": 5, "lag_not_told": 0, "complete": True}
    full = {"groups": [GROUP], "partition_usage": [usage], "audited_groups": [group]}
    before = Audit(1, tables=full, given={} if turned else given)
    now = Audit(2, tables={**full, "groups": []}, given=given if turned else {})
    found = answer(before, now, disk_bytes=1000)

    assert codes(found) == {code}
    (changed,) = rows(found, "trend_changed_groups")
    assert (changed["change"], changed["group_id"]) == ("cannot_tell", "g")
    assert changed["reason"]
    last = rows(found, "trend_runs")[-1]
    assert (last["lag_per_day"], last["bytes_per_day"]) == (None, None)
    assert last["lag"] == 5
    (disk,) = rows(found, "trend_disks")
    assert (disk["full_at"], disk["full_bound"]) == (None, "unknown")
    assert disk["reason"]
    assert [each["grown"] for each in rows(found, "trend_lag")] == [None, None]


def test_pseudonyms_of_two_keys_are_not_compared() -> None:
    given = {"is_redacted": True}
    other = {**GROUP, "group_id": "h"}
    found = answer(
        Audit(1, tables={"groups": [GROUP]}, given=given),
        Audit(2, tables={"groups": [other]}, given=given),
    )
    assert {each["change"] for each in rows(found, "trend_changed_groups")} == {"cannot_tell"}
    assert codes(found) == {"trend_names_differ"}
    same = answer(
        Audit(1, tables={"groups": [GROUP]}, given=given),
        Audit(2, tables={"groups": [GROUP, other]}, given=given),
    )
    assert [each["change"] for each in rows(same, "trend_changed_groups")] == ["new"]


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("groups", ["groups"]),
        ("audited_groups", ["lag", "lag_unknown_partitions"]),
        ("partition_usage", ["file_bytes", "bytes_per_day"]),
        ("topic_usage", ["live_bytes"]),
        ("offset_removals", ["expired_offsets"]),
        ("offset_expiration", ["due_offsets"]),
        ("rebalances", ["rebalances"]),
        ("applied_rules", ["critical", "warning", "info"]),
        ("audit_incidents", ["incidents"]),
    ],
)
def test_what_a_run_has_no_table_of_is_not_known_and_never_zero(
    table: str, columns: list[str]
) -> None:
    found = answer(Audit(1), Audit(2, tables={table: None}))
    last = rows(found, "trend_runs")[-1]
    assert [last[each] for each in columns] == [None] * len(columns)
    assert f"there is no table {table}" in last["reason"]
    assert "trend_without_table" in codes(found)
    assert {each.parameters["table"] for each in found.gaps} == {table}


@pytest.mark.parametrize("is_snapshot", [False, True])
def test_snapshots_are_compared_though_each_is_named_after_its_folder(is_snapshot: bool) -> None:
    audits = [
        Audit(
            day,
            tables={
                "partition_usage": [
                    {
                        "topic": "__consumer_offsets",
                        "partition": 0,
                        "copy": f"2026-11-0{day}",
                        "is_leading": True,
                        "file_bytes": 100 * day,
                    }
                ]
            },
            given={"snapshot_copies": frozenset({f"2026-11-0{day}"} if is_snapshot else ())},
        )
        for day in (1, 3)
    ]
    found = answer(*audits, disk_bytes=1000)
    (disk,) = rows(found, "trend_disks")
    last = rows(found, "trend_runs")[-1]
    assert last["bytes_per_day"] == (100 if is_snapshot else None)
    # It is no disk of a broker's, whatever it takes.
    assert (disk["full_at"], disk["full_bound"]) == (None, "unknown")
    assert ("not of the disk of one broker" in disk["reason"]) == is_snapshot


def test_without_any_run_there_is_nothing() -> None:
    found = answer()
    assert rows(found, "trend_runs") == []
