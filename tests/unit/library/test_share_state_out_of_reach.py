"""State of share groups that lies where a number of partitions put it that is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from analytics.questions.timeline.share_losses import out_of_reach_in
from analytics.replay.log.topic_homes import Era, TopicHomes, home_of
from analytics.replay.share_fold import RECORDS, SNAPSHOT, TOMBSTONE

TOPIC_ID = "M9BDTMoTQz6coFqm6mxtGw"
START = datetime(2026, 11, 25, tzinfo=UTC)
RESTARTED = START + timedelta(minutes=1)
HOMES = TopicHomes(60, before=(Era(50, None, START),), since=RESTARTED)


def records(*kinds: int, partition: int, here: int) -> pa.Table:
    rows = [
        {
            "coordinator_partition": here,
            "group_id": "workers",
            "topic_id": TOPIC_ID,
            "partition": partition,
            "record_offset": offset,
            "kind": kind,
            "is_early_layout": False,
            **(
                {"snapshot_epoch": offset, "start_offset": 100 + offset} if kind == SNAPSHOT else {}
            ),
        }
        for offset, kind in enumerate(kinds)
    ]
    return pa.Table.from_pylist(rows, RECORDS)


def verdicts(number: int, written: pa.Table) -> list[dict[str, object]]:
    topics = {TOPIC_ID: "jobs"}
    found = out_of_reach_in(written, number, HOMES.before[0], HOMES, RESTARTED, topics)
    return [dict(each) for each in found]


def homes_of(partition: int) -> tuple[int, int]:
    old, new = (home_of(f"workers:{TOPIC_ID}:{partition}", each) for each in (50, 60))
    return old, new


MOVED = next(each for each in range(99) if len({*homes_of(each)}) == 2)
STAYED = next(each for each in range(99) if len({*homes_of(each)}) == 1)


def test_a_start_offset_in_the_partition_of_the_old_number_is_lost_since_the_new_one() -> None:
    old, _ = homes_of(MOVED)
    (lost,) = verdicts(old, records(SNAPSHOT, SNAPSHOT, partition=MOVED, here=old))
    assert (lost["group_id"], lost["topic"], lost["partition"]) == ("workers", "jobs", MOVED)
    assert lost["verdict"] == "lost_by_partition_count"
    assert (lost["was"], lost["became"], lost["at"]) == (101, None, RESTARTED)
    assert (lost["not_before"], lost["record"]) == (START, f"__share_group_state-{old}@1")


def test_what_was_removed_before_is_not_lost() -> None:
    old, _ = homes_of(MOVED)
    assert verdicts(old, records(SNAPSHOT, TOMBSTONE, partition=MOVED, here=old)) == []


def test_state_that_stayed_at_home_and_a_copy_elsewhere_are_not_lost() -> None:
    home, _ = homes_of(STAYED)
    assert verdicts(home, records(SNAPSHOT, partition=STAYED, here=home)) == []
    elsewhere = next(each for each in range(50) if each not in homes_of(MOVED))
    assert verdicts(elsewhere, records(SNAPSHOT, partition=MOVED, here=elsewhere)) == []
