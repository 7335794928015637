"""Runs are put in order by cluster and instant, and compared only where that tells something."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from analytics.questions.question import Answer
from analytics.questions.trend.question import TrendSettings, trend
from reports.answers.trend import lines_of
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
    "other rules": ({"choices": ("--kafka-version 3.0",)}, "trend_choices_differ"),
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


def usage(size: int, copy: str = "broker-1", **more: Any) -> dict[str, Any]:
    return {
        "topic": "__consumer_offsets",
        "partition": 0,
        "copy": copy,
        "is_leading": True,
        "file_bytes": size,
        **more,
    }


def of_sizes(before: int, now: int, **given_now: Any) -> tuple[Audit, Audit]:
    return (
        Audit(1, tables={"partition_usage": [usage(before)]}),
        Audit(2, tables={"partition_usage": [usage(now)]}, given=given_now),
    )


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        (500, 500, "does not grow"),
        (500, 400, "does not grow"),
        (500, 501, "not fill it within a hundred years"),
    ],
)
def test_of_a_disk_whose_part_in_the_dump_does_not_fill_it_nothing_is_promised(
    before: int, now: int, why: str
) -> None:
    """What else lies on it may fill it tomorrow."""
    found = answer(*of_sizes(before, now), disk_bytes=10**9)
    (disk,) = rows(found, "trend_disks")
    assert (disk["full_at"], disk["full_bound"]) == (None, "unknown")
    assert disk["bytes_per_day"] == now - before
    assert why in disk["reason"]
    assert "what else lies on the disk is not in the dump" in disk["reason"]


@pytest.mark.parametrize("before", [900, 1100])
def test_a_disk_that_is_full_is_full_now_at_whatever_rate(before: int) -> None:
    found = answer(*of_sizes(before, 1000), disk_bytes=1000)
    (disk,) = rows(found, "trend_disks")
    assert (disk["full_at"], disk["full_bound"]) == (disk["as_of"], "at_latest")
    (lines,) = lines_of(found.long_tables, found.figures)
    (line,) = lines.limits[:1]
    assert line.text == (
        "the disk of broker-1 (1.0 kB) is full, or larger than --disk-size: "
        "1.0 kB of it are in the dump"
    )


def test_a_disk_grows_by_the_partitions_that_both_runs_have() -> None:
    def segments(**sizes: int) -> list[dict[str, Any]]:
        return [
            {"topic": topic, "partition": 0, "copy": "broker-1", "size_bytes": size}
            for topic, size in sizes.items()
        ]

    before, now = of_sizes(100, 110)
    audits = (
        replace(before, tables={**before.tables, "data_segments": segments(a=50, moved=700)}),
        replace(now, tables={**now.tables, "data_segments": segments(a=70, new=20)}),
    )
    (disk,) = rows(answer(*audits, disk_bytes=500), "trend_disks")
    assert (disk["file_bytes"], disk["bytes_per_day"]) == (200, 30)
    assert disk["full_at"] - disk["as_of"] == timedelta(days=10)


NODES = {
    "the same broker in a folder of another name": ("b-2", {"b-1": 1}, {"b-2": 1}, 100),
    "another broker in a folder of the same name": ("b-1", {"b-1": 1}, {"b-1": 2}, None),
    "no broker is known, and the folder has another name": ("b-2", {}, {}, None),
    "no broker is known of one of both": ("b-1", {"b-1": 1}, {}, 100),
}


@pytest.mark.parametrize("case", NODES)
def test_copies_are_of_one_broker_where_their_node_ids_say_so(case: str) -> None:
    name, before, now, rate = NODES[case]
    found = answer(
        Audit(1, tables={"partition_usage": [usage(100, "b-1")]}, given={"nodes": before}),
        Audit(2, tables={"partition_usage": [usage(200, name)]}, given={"nodes": now}),
        disk_bytes=1000,
    )
    assert rows(found, "trend_runs")[-1]["bytes_per_day"] == rate
    (disk,) = rows(found, "trend_disks")
    assert (disk["copy"], disk["bytes_per_day"]) == (name, rate)
    if rate is None:
        assert disk["reason"] == "the run before has no copy of that broker"


@pytest.mark.parametrize("keeps", [True, None])
@pytest.mark.parametrize("turned", [False, True], ids=["then", "now"])
def test_a_snapshot_that_goes_on_from_an_earlier_one_shows_no_growth_of_logs(
    keeps: bool | None, turned: bool
) -> None:
    """It keeps what the cleaner has removed: it grows though the log does not."""
    given = [{"snapshot_copies": frozenset({"broker-1"})} for _ in range(2)]
    given[turned]["keeps_cleaned"] = keeps  # type: ignore[assignment]
    found = answer(
        *(
            Audit(day, tables={"partition_usage": [usage(100 * day)]}, given=of_run)
            for day, of_run in enumerate(given, 1)
        )
    )
    last = rows(found, "trend_runs")[-1]
    assert (last["file_bytes"], last["bytes_per_day"]) == (200, None)
    assert "goes on from an earlier one" in last["reason"]


def test_of_several_snapshots_of_a_partition_one_is_counted() -> None:
    copies = frozenset({"monday", "tuesday"})
    both = [usage(100, "monday", is_leading=False), usage(150, "tuesday")]
    audits = [
        Audit(day, tables={"partition_usage": both}, given={"snapshot_copies": copies})
        for day in (1, 2)
    ]
    assert rows(answer(*audits), "trend_runs")[-1]["bytes_per_day"] == 0


def test_a_broker_in_a_folder_called_snapshot_is_no_snapshot() -> None:
    audits = [
        Audit(day, tables={"partition_usage": [usage(100 * day, "snapshot")]}) for day in (1, 2)
    ]
    (disk,) = rows(answer(*audits, disk_bytes=1000), "trend_disks")
    assert (disk["bytes_per_day"], disk["full_bound"]) == (100, "at_latest")


def test_runs_that_are_less_than_a_minute_apart_have_no_rates() -> None:
    tables = {
        "groups": [GROUP],
        "audited_groups": [{"group_id": "g", "lag": 5, "lag_not_told": 0, "complete": True}],
        "lag": [
            {
                "group_id": "g",
                "topic": "t",
                "partition": 0,
                "lag": 5,
                "loss_in_ms": 50_000,
                "loss_in_bound": "exact",
            }
        ],
        "partition_usage": [usage(100)],
    }
    later = {
        **tables,
        "audited_groups": [{"group_id": "g", "lag": 7, "lag_not_told": 0, "complete": True}],
        "lag": [{**tables["lag"][0], "lag": 7, "loss_in_ms": 40_000}],
        "partition_usage": [usage(120)],
    }
    close, apart = 59 / 86_400, 60 / 86_400
    for days, is_rate in ((close, False), (apart, True)):
        found = answer(Audit(0, tables=tables), Audit(days, tables=later), disk_bytes=1000)
        last, lag = rows(found, "trend_runs")[-1], rows(found, "trend_lag")[-1]
        (disk,) = rows(found, "trend_disks")
        rates = last["lag_per_day"], last["bytes_per_day"], lag["grown_per_day"]
        rates = *rates, disk["bytes_per_day"], disk["full_at"]
        assert [each is not None for each in rates] == [is_rate] * len(rates)
        assert lag["grown"] == 2
        assert bool(rows(found, "trend_retention")) == is_rate
        assert codes(found) == (set() if is_rate else {"trend_too_close"})
        if not is_rate:
            why = "both runs are less than a minute apart"
            assert all(why in each["reason"] for each in (last, lag, disk))


def test_without_any_run_there_is_nothing() -> None:
    found = answer()
    assert rows(found, "trend_runs") == []
