"""Drain processing: an operator commits all of its offsets at once, before its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from analytics.seeds.region.contributions import Contribution
from analytics.seeds.region.drains import (
    HISTORY,
    Drain,
    Evidence,
    drains_of,
    left_out_reasons,
    requests_of,
    shown_since,
)
from analytics.seeds.region.merge import merged
from tests.unit.seeds.region.contributed import RULES, contribution, place

Commit = tuple[int, Mapping[str, int]]
A, B = {"t-0": 10, "t-1": 11}, {"t-2": 20}
NAMES = ("A", "B")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def history(commits: Sequence[Commit], **more: Any) -> list[pa.Table]:
    """Return `offset_history` of requests, each at its time and in a batch of its own."""
    rows: list[dict[str, Any]] = []
    for at, offsets in commits:
        batch = len(rows)
        for name, offset in offsets.items():
            topic, number = place(name)
            time = EPOCH + timedelta(milliseconds=at)
            row = {
                "group_id": "group",
                "topic": topic,
                "partition": number,
                "event": "commit",
                "committed_offset": offset,
                "commit_timestamp": time,
                "effective_timestamp": time,
                "member_id": None,
                "batch_offset": batch,
                "coordinator_partition": 3,
                "record_offset": len(rows),
            }
            rows.append(row | more)
    columns = {name: [row[name] for row in rows] for name in HISTORY}
    whole = pa.table(columns).cast(
        pa.schema(
            [
                *((name, pa.string()) for name in ("group_id", "topic")),
                ("partition", pa.int32()),
                ("event", pa.string()),
                ("committed_offset", pa.int64()),
                *(
                    (name, pa.timestamp("us", tz="UTC"))
                    for name in ("commit_timestamp", "effective_timestamp")
                ),
                ("member_id", pa.string()),
                ("batch_offset", pa.int64()),
                ("coordinator_partition", pa.int32()),
                ("record_offset", pa.int64()),
            ]
        )
    )
    return [whole.slice(0, 1), whole.slice(1)]


def judged(made: Sequence[Contribution], commits: Sequence[Commit], **evidence: Any) -> list[Drain]:
    wanted = {
        ("group", *partition, offset)
        for each in made
        for partition, offset in each.offsets
        if offset is not None
    }
    requests = requests_of(history(commits), wanted).get("group", [])
    shown = {"until": 10**9} | evidence
    return drains_of(
        merged(made, RULES.merge.timeout_ms),
        {"group": Evidence(requests, **shown)},
        RULES.drain.clock_difference_ms,
    )


def made(operator: str, offsets: Mapping[str, int], at: int, **more: Any) -> Contribution:
    return contribution(operator, offsets, names=NAMES, at=at, **more)


def test_one_commit_with_all_offsets_is_clean() -> None:
    found = judged([made("A", A, 100_000), made("B", B, 100_100)], [(99_000, A), (99_100, B)])
    assert [each.verdict for each in found] == ["clean", "clean"]
    assert [each.requests[0].committed_at for each in found] == [99_000, 99_100]


@pytest.mark.parametrize(
    ("commits", "said"),
    [
        ([(99_000, {"t-0": 10})], "t-1: 11 was not committed"),
        ([(99_000, {"t-0": 10, "t-1": 9})], "t-1: committed 9 instead of 11"),
        (
            [(98_000, {"t-1": 11}), (99_000, {"t-0": 10})],
            "t-1: 11 was committed at another instant",
        ),
    ],
)
def test_a_partial_drain_says_which_partitions(commits: list[Commit], said: str) -> None:
    (found,) = judged([made("A", A, 100_000)], commits)
    assert found.verdict == "partial"
    assert found.committed == (("t", 0),)
    assert left_out_reasons(found) == [said]


def test_no_commit_is_no_drain() -> None:
    (found,) = judged([made("A", A, 100_000)], [(99_000, {"t-0": 5, "t-1": 5})])
    assert (found.verdict, found.requests) == ("none", ())


def test_a_commit_of_the_checkpoint_before_is_not_taken_for_this_one() -> None:
    contributions = [made("A", A, 100_000), made("A", A, 200_000, sequence_id=8)]
    found = judged(contributions, [(99_000, A)])
    assert [each.verdict for each in found] == ["clean", "none"]


def test_a_commit_long_after_the_checkpoint_is_none_of_its_drain() -> None:
    (found,) = judged([made("A", A, 100_000)], [(105_001, A)])
    assert found.verdict == "none"


def test_of_several_commits_the_one_next_to_the_checkpoint_counts() -> None:
    (found,) = judged([made("A", A, 100_000)], [(50_000, A), (99_000, A), (103_000, A)])
    assert found.requests[0].committed_at == 99_000


def test_without_times_drains_come_in_the_order_of_the_checkpoints() -> None:
    contributions = [
        contribution("A", A, names=("A",)),
        contribution("A", A, names=("A",), sequence_id=8),
    ]
    found = judged(contributions, [(50_000, A), (99_000, A)])
    assert [each.requests[0].committed_at for each in found] == [50_000, 99_000]


def test_drain_time_is_from_its_beginning_to_the_commit() -> None:
    (found,) = judged([made("A", A, 100_000, drain_started_at=98_400)], [(99_000, A)])
    assert found.drain_ms == 600


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ({"gap": "records are missing"}, "records are missing"),
        ({"until": 99_000}, "the checkpoint is later than the instant asked about"),
        ({"shown_since": 99_500}, "compaction may have removed commits from before"),
        ({"never_shown": True}, "compaction may have removed its commits"),
    ],
)
def test_where_commits_may_be_hidden_nothing_is_called_missing(
    evidence: dict[str, Any], said: str
) -> None:
    (found,) = judged([made("A", A, 100_000)], [(98_000, {"t-0": 10})], **evidence)
    assert found.verdict == "cannot_tell"
    assert said in (found.missing or "")
    (whole,) = judged([made("A", A, 100_000)], [(98_000, A)], **evidence)
    assert whole.verdict == "clean", "what is shown is enough"


def test_what_compaction_took_before_the_drain_began_does_not_matter() -> None:
    late = made("A", A, 100_000, drain_started_at=98_000)
    (found,) = judged([late], [(98_500, {"t-0": 10})], shown_since=90_000)
    assert found.verdict == "partial"


def test_deletions_and_other_groups_are_no_commits() -> None:
    wanted = {("group", "t", 0, 10)}
    assert requests_of(history([(1, {"t-0": 10})], event="delete"), wanted) == {}
    assert requests_of(history([(1, {"t-0": 10})], group_id="other"), wanted) == {}


def test_requests_of_one_millisecond_in_two_batches_are_two() -> None:
    wanted = {("group", "t", 0, 10), ("group", "t", 2, 20)}
    found = requests_of(history([(5, {"t-0": 10}), (5, {"t-2": 20})]), wanted)
    assert [set(each.offsets) for each in found["group"]] == [{("t", 0)}, {("t", 2)}]


def test_every_commit_is_shown_since_the_first_record_behind_what_was_compacted() -> None:
    parts = history([(1000, {"t-0": 1}), (2000, {"t-0": 2}), (3000, {"t-0": 3})])
    assert shown_since(parts, {3: 1}) == {3: 2000}
    assert shown_since(parts, {3: 9}) == {}
