"""Where groups lie, what a coordinator has to load, and how logs grow: worked by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from analytics.contracts import polars_rows, table_of
from analytics.questions.usage.accounts import (
    Placed,
    coordinator_load,
    log_sums,
    placed,
)
from analytics.questions.usage.cleaner import LogSettings
from analytics.questions.usage.question import not_in_both, outlooks, usage_growth
from analytics.replay.log.topic_homes import home_of
from schemas import table
from schemas.usage_rules import usage_rules

RULES = usage_rules()
TOPIC = "__consumer_offsets"
NO_USAGE = log_sums(polars_rows(table_of("topic_usage", [])))
# Java's "tx".hashCode() is 3716, of "a" to "e" 97 to 101.
LETTERS = [(letter, ord(letter) % 50) for letter in "abcdefgh"]


def placed_in(groups: list[tuple[str, int]], partitions: int | None) -> Placed:
    types = {"group_id": pl.String, "partition": pl.Int32}
    return placed(pl.DataFrame(groups, types, orient="row"), partitions)


def test_groups_belong_where_their_hash_says() -> None:
    assert placed_in([("tx", 3716 % 50)], 50).misplaced == ()
    found = placed_in([*LETTERS, ("tx", 3)], 50)
    assert found.misplaced == (("tx", 3, 16),)
    assert found.fits is None  # no number of partitions puts all of them where they are


def test_a_number_of_partitions_that_all_groups_fit_is_inferred() -> None:
    names = [f"group-{number}" for number in range(200)]
    groups = [(name, home_of(name, 12)) for name in names]
    assert placed_in(groups, 12).misplaced == ()
    wrong = placed_in(groups, 50)
    assert wrong.fits == 12
    assert wrong.misplaced_groups > 100
    assert len(wrong.misplaced) == 5
    assert placed_in(groups, None) == placed_in(groups, None)
    assert placed_in(groups, None).fits == 12
    assert placed_in(groups[:3], None).fits is None  # three names prove nothing


def partition_row(number: int, size: int, **more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(each.name for each in table("partition_usage").columns)
    said = {"topic": TOPIC, "partition": number, "copy": "b", "is_leading": True}
    return {**nothing, **said, "files": 1, "file_bytes": size, "records": 1, **more}


def test_a_partition_is_hot_above_three_times_the_mean_and_ten_megabytes() -> None:
    sizes = [100_000_000, *[1_000_000] * 9]
    partitions = table_of("partition_usage", [partition_row(n, s) for n, s in enumerate(sizes)])
    nothing = dict.fromkeys(each.name for each in table("partition_leaders").columns)
    leaders = table_of(
        "partition_leaders", [{**nothing, "topic": TOPIC, "partition": 0, "leader": 3}]
    )
    rows = coordinator_load(NO_USAGE, partitions, leaders, placed_in([], 10), RULES).to_pylist()

    assert [row["partition"] for row in rows if row["is_hot"]] == [0]
    assert rows[0]["times_mean"] == pytest.approx(100 / 10.9)
    assert rows[0]["leader"] == 3
    assert rows[0]["load_ms"] == 5000  # 100 MB at the rules' 20 MB a second
    small = table_of("partition_usage", [partition_row(n, s // 100) for n, s in enumerate(sizes)])
    none = NO_USAGE, small, table_of("partition_leaders", [])
    rows = coordinator_load(*none, placed_in([], 10), RULES)
    assert not any(rows["is_hot"].to_pylist())


def manifest(
    time: str, sizes: dict[int, int], ends: dict[int, int], began: dict[int, str] | None = None
) -> dict[str, Any]:
    return {
        "copies": [{"name": "b", "node_id": 1, "cluster_id": "c"}],
        "options": {},
        "partitions": [
            {
                "copy": "b",
                "topic": TOPIC,
                "partition": number,
                "files": [{"name": f"{number}/0.log", "size": size, "kind": "log"}],
                "first_timestamp": (began or {}).get(number, "2026-11-01T00:00:00.000Z"),
                "last_timestamp": time,
                "log_start_offset": 0,
                "complete_from": 0,
                "end_offset": ends[number],
            }
            for number, size in sizes.items()
        ],
    }


EARLIER = manifest("2026-11-20T00:00:00.000Z", {0: 1000, 1: 5000}, {0: 10, 1: 70})
BEGAN = {2: "2026-11-21T00:00:00.000Z"}
NOW = manifest("2026-11-22T00:00:00.000Z", {0: 3000, 1: 4000, 2: 600}, {0: 50, 1: 90, 2: 6}, BEGAN)


def test_growth_is_bytes_and_records_a_day() -> None:
    rows = {row["partition"]: row for row in usage_growth(EARLIER, NOW).to_pylist()}

    assert (rows[0]["bytes_per_day"], rows[0]["appended_per_day"]) == (1000, 20)
    # Compaction took more bytes than came; records came all the same.
    assert (rows[1]["bytes_per_day"], rows[1]["appended_records"]) == (-500, 20)
    # What was not there then began at nothing.
    assert (rows[2]["earlier_bytes"], rows[2]["bytes_per_day"]) == (0, 300)


def test_a_log_that_ends_before_where_it_ended_tells_no_records() -> None:
    back = manifest("2026-11-22T00:00:00.000Z", {0: 500}, {0: 5})
    (row,) = usage_growth(EARLIER, back).to_pylist()
    assert row["appended_records"] is None
    assert row["bytes_per_day"] == -250


def test_a_dump_that_is_no_earlier_tells_nothing() -> None:
    assert usage_growth(NOW, EARLIER).num_rows == 0


def test_the_room_is_full_when_growth_has_taken_what_is_left() -> None:
    growth = usage_growth(EARLIER, NOW)  # 7,600 bytes, 800 more a day
    (outlook,) = outlooks(growth, 9_200)
    assert (outlook.file_bytes, outlook.bytes_per_day) == (7_600, 800)
    assert outlook.full_at_ms == 1_795_305_600_000 + 2 * 86_400_000  # 2026-11-24
    assert outlooks(growth, 7_600)[0].is_full
    shrinking = usage_growth(NOW | {}, manifest("2026-11-23T00:00:00.000Z", {0: 10}, {0: 50}))
    assert outlooks(shrinking, 9_200)[0].full_at_ms is None


@pytest.mark.parametrize(
    ("configs", "brokers", "given", "value"),
    [
        ({}, {}, {}, ("0.5", "default")),
        ({}, {1: {"log.cleaner.min.cleanable.ratio": "0.4"}}, {}, ("0.4", "broker_config")),
        ({}, {2: {"log.cleaner.min.cleanable.ratio": "0.4"}}, {}, ("0.5", "default")),
        (
            {("broker", "", "log.cleaner.min.cleanable.ratio"): "0.3"},
            {1: {"log.cleaner.min.cleanable.ratio": "0.4"}},
            {},
            ("0.3", "metadata_log"),
        ),
        (
            {
                ("broker", "", "log.cleaner.min.cleanable.ratio"): "0.3",
                ("broker", "1", "log.cleaner.min.cleanable.ratio"): "0.2",
            },
            {},
            {},
            ("0.2", "metadata_log"),
        ),
        (
            {
                ("topic", TOPIC, "min.cleanable.dirty.ratio"): "0.1",
                ("broker", "1", "log.cleaner.min.cleanable.ratio"): "0.2",
            },
            {},
            {},
            ("0.1", "metadata_log"),
        ),
        (
            {("topic", TOPIC, "min.cleanable.dirty.ratio"): "0.1"},
            {},
            {"log.cleaner.min.cleanable.ratio": "0.9"},
            ("0.1", "metadata_log"),
        ),
        (
            {("broker", "1", "log.cleaner.min.cleanable.ratio"): "0.2"},
            {1: {"log.cleaner.min.cleanable.ratio": "0.4"}},
            {"log.cleaner.min.cleanable.ratio": "0.9"},
            ("0.9", "config"),
        ),
    ],
)
def test_the_topic_goes_before_all_brokers_and_a_person_before_what_brokers_say(
    configs: dict[tuple[str, str, str], str],
    brokers: dict[int | None, dict[str, str]],
    given: dict[str, str],
    value: tuple[str, str],
) -> None:
    rows = [
        {"resource_type": kind, "resource": resource, "name": name, "value": said}
        for (kind, resource, name), said in configs.items()
    ]
    settings = LogSettings.of(RULES, rows, brokers, given)
    assert tuple(settings.in_force("min.cleanable.dirty.ratio", TOPIC, 1)) == value


def test_what_a_cluster_answered_counts_where_no_file_says_it() -> None:
    names = ("resource_type", "resource", "name", "value")
    answers = [
        ("broker", "", "log.cleaner.min.cleanable.ratio", "0.3"),
        ("broker", "2", "log.cleaner.min.cleanable.ratio", "0.2"),
        ("topic", TOPIC, "cleanup.policy", "delete"),
    ]
    rows = [{**dict(zip(names, each, strict=True)), "source": "snapshot"} for each in answers]
    settings = LogSettings.of(RULES, rows)
    ratio = "min.cleanable.dirty.ratio"
    assert tuple(settings.in_force(ratio, TOPIC, None)) == ("0.3", "snapshot")
    assert tuple(settings.in_force(ratio, TOPIC, 2)) == ("0.2", "snapshot")
    assert not settings.is_compacted(TOPIC)
    brokers: dict[int | None, dict[str, str]] = {1: {"log.cleaner.min.cleanable.ratio": "0.4"}}
    given = LogSettings.of(RULES, rows, brokers)
    assert tuple(given.in_force(ratio, TOPIC, 1)) == ("0.4", "broker_config")


def test_a_partition_that_the_earlier_dump_lacks_is_new_only_where_its_records_are() -> None:
    """Else that dump was taken without it, and nobody can tell how it grew."""
    lacking = {**EARLIER, "partitions": EARLIER["partitions"][:1]}
    assert {row["partition"] for row in usage_growth(lacking, NOW).to_pylist()} == {0, 2}
    assert not_in_both(lacking, NOW) == ["__consumer_offsets-1"]
    assert not_in_both(EARLIER, NOW) == []


@pytest.mark.parametrize("options", [{"partitions": [0]}, {"topics": [TOPIC]}])
def test_of_some_partitions_nothing_tells_when_a_dump_ends(options: dict[str, Any]) -> None:
    """The last record of those that were read may be much earlier: a rate would be another one."""
    limited = {**EARLIER, "partitions": EARLIER["partitions"][:1], "options": options}

    (row,) = usage_growth(limited, NOW).to_pylist()

    assert (row["earlier_bytes"], row["file_bytes"], row["appended_records"]) == (1000, 3000, 40)
    rates = ("from_timestamp", "to_timestamp", "bytes_per_day", "appended_per_day")
    assert {row[name] for name in rates} == {None}
    # What the filter left out is not new, though its records are later than what was read.
    assert not_in_both(limited, NOW) == ["__consumer_offsets-1", "__consumer_offsets-2"]
    now = {**NOW, "partitions": NOW["partitions"][:1], "options": options}
    (row,) = usage_growth(EARLIER, now).to_pylist()
    assert {row[name] for name in rates} == {None}
    assert usage_growth(NOW, {**EARLIER, "options": options}).num_rows == 0


def test_a_time_that_is_not_believed_is_no_end_of_a_dump() -> None:
    times = [
        {"first_offset": 0, "end_offset": 40, "first_ms": 1_795_132_800_000, "batches": 40}
        | {"last_ms": 1_795_305_600_000},
        {"first_offset": 40, "end_offset": 41, "first_ms": 2_147_483_000_000, "batches": 1}
        | {"last_ms": 2_147_483_000_000},
        {"first_offset": 41, "end_offset": 50, "first_ms": 1_795_305_600_000, "batches": 9}
        | {"last_ms": 1_795_305_600_000},
    ]
    ahead = manifest("2026-11-22T00:00:00.000Z", {0: 3000}, {0: 50})
    ahead["partitions"][0] |= {"last_timestamp": "2038-01-19T03:03:20.000Z", "stretches": times}

    (row,) = usage_growth(EARLIER, ahead).to_pylist()

    assert row["bytes_per_day"] == 1000
