"""Who commits, whose names look generated, what is near a limit: worked by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from analytics.contracts import table_of
from analytics.questions.usage.accounts import untabled_usage
from analytics.questions.usage.bucket_answers import size_limits
from analytics.questions.usage.cleaner import LogSettings
from analytics.questions.usage.deletions import one_shot_groups, pattern_of
from analytics.questions.usage.key_usage import (
    commit_rows,
    committers,
    ordered,
    topic_usage,
    usage_rows,
)
from analytics.questions.usage.records import COMMITS, records_of
from schemas import table
from schemas.usage_rules import usage_rules
from tests.support.reference_cleaner import Entry
from tests.unit.questions.usage.made_logs import TOPIC, commits, known_logs, ordered_rows

RULES = usage_rules()
SECOND = 1000


def row_of(log: list[Entry], complete_from: int | None, end_s: int, **more: Any) -> dict[str, Any]:
    """A record at offset n is of second n."""
    interval_ms = more.get("interval_ms", round(RULES.interval_seconds * SECOND))
    known = known_logs(log, complete_from=complete_from, now_ms=end_s * SECOND)
    made = commit_rows(ordered_rows(log, known), known, interval_ms)
    (row,) = committers(made, RULES, interval_ms, lacks_bytes=False).to_pylist()
    return dict(row)


def test_rates_are_of_the_time_behind_compaction_up_to_the_end() -> None:
    # Two partitions, one commit every ten seconds each, from second 1000 on; before that compacted.
    log = [Entry(3, "a", 5, 100), Entry(500, "b", 5, 100)]
    log += [Entry(at, "a", at, 100) for at in range(1000, 1100, 10)]
    log += [Entry(at, "b", 7, 100) for at in range(1005, 1105, 10)]
    log.sort(key=lambda each: each.offset)

    row = row_of(log, 1000, 1200)

    assert (row["commits"], row["offsets"], row["bytes"]) == (20, 2, 2000)
    assert row["observed_ms"] == 200 * SECOND
    assert row["commits_per_second"] == pytest.approx(0.1)
    assert row["bytes_per_day"] == 2000 * 86_400 // 200
    assert row["interval_ms"] == 20 * SECOND
    # Of "b" the first commit differs from that of offset 500, nine do not from the one before.
    assert row["unchanged_commits"] == 9
    assert row["unchanged_share"] == pytest.approx(9 / 22)


def test_a_longer_interval_saves_what_is_above_one_commit_an_interval_and_partition() -> None:
    log = [Entry(at, "a", at, 100) for at in range(0, 600, 10)]  # 60 commits
    log.append(Entry(601, "b", 1, 100))
    row = row_of(log, 0, 600, interval_ms=60 * SECOND)

    # Ten minutes have at most eleven commits a minute apart; "b" has one and spares none.
    assert row["saved_commits"] == 60 - 11
    assert row["saved_bytes_per_day"] == 49 * 100 * 86_400 // 600
    assert row_of(log, 0, 600, interval_ms=1 * SECOND)["saved_commits"] == 0


def test_without_a_time_of_which_all_is_there_no_rate_is_told() -> None:
    log = [Entry(at, "a", at, 100) for at in range(5)]
    for complete_from in (None, 100):
        row = row_of(log, complete_from, 600)
        assert row["commits"] == 0
        assert row["commits_per_second"] is row["bytes_per_day"] is row["interval_ms"] is None
    # Five seconds are too short for a rate.
    assert row_of(log, 0, 5)["commits_per_second"] is None


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("console-consumer-83241", "console-consumer-<number>"),
        ("etl-2f1e4c5a-0b7d-4e0e-9f65-0a3b2c1d4e5f", "etl-<uuid>"),
        ("job.20261123", "job.<number>"),
        ("ci-run-3fa9c21b", "ci-run-<hex>"),
        ("worker-7", "worker-<number>"),
        ("billing", None),
        ("facade-added", None),
        ("v2", None),
    ],
)
def test_what_of_a_name_looks_generated(name: str, pattern: str | None) -> None:
    assert pattern_of(name, RULES.patterns) == pattern


def usage_row(group: str, **more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(each.name for each in table("topic_usage").columns)
    row = {"topic": TOPIC, "partition": 0, "group_id": group, "record_type": "offset_commit"}
    counts = {"records": 2, "bytes": 200, "live_records": 1, "live_bytes": 100}
    return {**nothing, **row, **counts, **more}


def group_row(group: str, members: int = 0, **more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(each.name for each in table("groups").columns)
    said = {"group_id": group, "group_type": "classic", "state": "Empty", "complete": True}
    return {**nothing, **said, "member_count": members, "coordinator_partition": 0, **more}


def test_three_groups_of_one_pattern_are_a_cluster_and_those_without_members_may_go() -> None:
    names = ["run-1001", "run-1002", "it's-1003", "run-1004", "run-1005"]
    usage = table_of("topic_usage", [usage_row(each) for each in names])
    groups = table_of(
        "groups",
        [
            group_row("run-1001"),
            group_row("run-1002", members=1),
            group_row("run-1004", complete=False),
            group_row("it's-1003"),
        ],
    )
    clusters, deletions = one_shot_groups(usage, groups, RULES)

    (row,) = clusters.to_pylist()
    # run-1005 is gone: it has records, and no state.
    assert (row["pattern"], row["groups"], row["deletable_groups"]) == ("run-<number>", 3, 1)
    assert (row["records"], row["bytes"], row["live_records"]) == (8, 800, 4)
    assert deletions["group_id"].to_pylist() == ["run-1001"]
    assert deletions["command"].to_pylist() == [
        'kafka-consumer-groups.sh --bootstrap-server "$BOOTSTRAP_SERVER" --delete --group run-1001'
    ]


def test_names_are_quoted_for_the_shell_and_each_type_has_its_tool() -> None:
    names = [f"it's {number}" for number in range(1001, 1004)]
    kinds = ("share", "streams", "simple")
    groups = table_of(
        "groups",
        [group_row(n, group_type=kind) for n, kind in zip(names, kinds, strict=True)],
    )
    _, deletions = one_shot_groups(table_of("topic_usage", []), groups, RULES)

    commands = deletions["command"].to_pylist()
    assert [each.split()[0] for each in commands] == [
        *("kafka-share-groups.sh", "kafka-streams-groups.sh", "kafka-consumer-groups.sh")
    ]
    assert commands[0].endswith("--group 'it'\"'\"'s 1001'")


def test_limits_are_of_the_batch_and_of_the_metadata() -> None:
    usage = table_of(
        "topic_usage",
        [
            usage_row("g", record_type="group_metadata", max_record_bytes=900_000),
            usage_row("g", max_record_bytes=100, max_metadata_bytes=4096),
            usage_row("h", max_record_bytes=100, max_metadata_bytes=0),
        ],
    )
    settings = LogSettings.of(RULES, given={"message.max.bytes": "1000000"})
    rows = size_limits(usage, settings).to_pylist()

    near = [(row["group_id"], row["setting"], row["largest_bytes"]) for row in rows[:2]]
    assert near == [
        ("g", "offset.metadata.max.bytes", 4096),
        ("g", "max.message.bytes", 900_061),
    ]
    assert [row["is_near"] for row in rows] == [True, True, False, False]
    assert [row["limit_source"] for row in rows[:2]] == ["default", "config"]


def test_a_default_that_brokers_did_not_keep_to_is_not_the_limit() -> None:
    usage = table_of("topic_usage", [usage_row("g", max_record_bytes=9, max_metadata_bytes=20_000)])
    row = size_limits(usage, LogSettings.of(RULES)).to_pylist()[-1]
    assert (row["setting"], row["largest_bytes"]) == ("offset.metadata.max.bytes", 20_000)
    assert row["limit_bytes"] is row["share"] is None
    assert not row["is_near"]
    said = LogSettings.of(RULES, brokers={None: {"offset.metadata.max.bytes": "16384"}})
    row = size_limits(usage, said).to_pylist()[0]
    assert (row["limit_bytes"], row["is_near"]) == (16_384, True)


def test_archived_rows_have_no_bytes() -> None:
    log = [Entry(at, "a", at, 100) for at in range(5)]
    rows = commits(log)
    place = rows.schema.get_field_index("record_bytes")
    rows = rows.set_column(place, "record_bytes", pa.nulls(5, pa.int32()))
    known = known_logs(log, complete_from=0, now_ms=600 * SECOND)
    ordered_ones = ordered(records_of(TOPIC, COMMITS, rows), known)
    made = usage_rows(ordered_ones)
    (usage,) = topic_usage(made, untabled_usage([])).to_pylist()
    assert usage["records"] == usage["live_records"] + usage["superseded_records"] == 5
    assert usage["bytes"] is usage["live_bytes"] is usage["max_record_bytes"] is None
    commits_made = commit_rows(ordered_ones, known, SECOND)
    (row,) = committers(commits_made, RULES, SECOND, lacks_bytes=True).to_pylist()
    assert row["commits"] == 5
    assert row["bytes"] is row["bytes_per_day"] is row["saved_bytes_per_day"] is None


@pytest.mark.parametrize("column", ["record_bytes", "key", "value"])
def test_a_column_that_is_not_there_is_an_error_and_no_zero(column: str) -> None:
    rows = commits([Entry(0, "a", 1)])

    with pytest.raises(KeyError, match=column):
        records_of(TOPIC, COMMITS, rows.drop_columns([column]))


def test_a_field_that_commits_lack_is_an_error_and_no_zero() -> None:
    rows = commits([Entry(0, "a", 1)])
    types = [("offset", pa.int64()), ("commit_timestamp", pa.int64())]
    value = pa.array([{"offset": 1, "commit_timestamp": 1}], pa.struct(types))
    rows = rows.set_column(rows.schema.get_field_index("value"), "value", value)

    with pytest.raises(KeyError, match=r"offset_commit lacks value\.metadata"):
        records_of(TOPIC, COMMITS, rows)
