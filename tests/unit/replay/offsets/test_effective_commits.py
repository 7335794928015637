"""When commits take effect: short logs with what they come to, and random ones told one by one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl
import pytest

from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.commit_rows import COMMITS, MARKERS
from analytics.replay.offsets.effective_commits import (
    ENDED,
    PLACED_EVENTS,
    ended_commits,
    offset_events,
    pending_spans,
)
from tests.support.commit_frames import ended_rows
from tests.support.reference_offset_history import Log, random_log

LOGS, ACTS = 500, 40
_WORDS = {"commit": "commit", "transaction_commit": "commit", "delete": "tombstone"}


def rows_of(logs: list[Log]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for log in logs:
        for name, told in log.rows.items():
            rows[name] += told
    return rows


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_what_takes_effect_equals_the_reference(release: str) -> None:
    logs = [random_log(each, ACTS, clears_pending=release == "4.3") for each in range(LOGS)]
    events = offset_events(ended_rows(rows_of(logs), release), replay_rules(release))
    found = events.select(
        *("coordinator_partition", "position", "partition", "record_offset"),
        *("event", "committed_offset", "removed_committed_offset"),
    )
    expected = [
        (
            *(log.number, each.effective_offset, each.partition, each.record_offset),
            *(_WORDS[each.event], each.committed_offset, each.previous_offset),
        )
        for log in logs
        for each in log.changes
        if each.event in _WORDS
    ]
    assert sorted(found.rows(), key=str) == sorted(expected, key=str)


def spans(log: Log, release: str) -> list[tuple[Any, ...]]:
    ended = ended_rows(rows_of([log]), release)
    told = pending_spans(ended, replay_rules(release)).sort("record_offset")
    return told.select("record_offset", "until_position", "outcome").rows()


def test_a_transaction_is_pending_until_the_first_marker_of_its_producer() -> None:
    log = Log(0, clears_pending=True)
    for partition, producer in ((0, 7), (1, 7), (0, 8)):
        log.commit(partition, 5, producer)
    log.marker(7, commits=False)
    log.commit(0, 6, 7)
    log.marker(7, commits=True)
    expected = [(0, 3, "ABORT"), (1, 3, "ABORT"), (2, None, None), (4, 5, "COMMIT")]
    assert spans(log, "4.3") == spans(log, "3.9") == expected


def test_a_tombstone_ends_what_is_pending_since_4_0() -> None:
    log = Log(0, clears_pending=True)
    log.commit(0, 5, 7)
    log.tombstone(1)
    log.tombstone(0)
    log.tombstone(0)
    log.marker(7, commits=True)
    assert spans(log, "3.9") == [(0, 4, "COMMIT")]
    assert spans(log, "4.3") == [(0, 2, "tombstone")]


def test_every_event_names_the_place_of_the_next_one_of_its_offset() -> None:
    log = Log(0, clears_pending=True)
    for partition in (0, 1, 0):
        log.commit(partition, 5)
    log.tombstone(0)
    events = offset_events(ended_rows(rows_of([log]), "4.3"), replay_rules("4.3"))
    assert events.select("position", "next_position").rows() == [
        (0, 2),
        (2, 3),
        (3, None),
        (1, None),
    ]


def test_no_commits_are_no_events() -> None:
    rules = replay_rules("4.3")
    ended = ended_commits(COMMITS.to_frame(), MARKERS.to_frame(), rules)
    assert ended.schema == ENDED
    assert offset_events(ended, rules).schema == PLACED_EVENTS
    assert pending_spans(ended, rules).is_empty()


def test_archived_rows_without_producers_wait_for_nothing() -> None:
    log = Log(0, clears_pending=True)
    log.commit(0, 5, 7)
    for row in log.rows["offset_commit"]:
        row["producer_id"] = row["is_transactional"] = None
    for release in ("3.9", "4.3"):
        ended = ended_rows(rows_of([log]), release)
        assert ended["waits"].to_list() == [False]
        assert offset_events(ended, replay_rules(release)).height == 1


def test_columns_are_those_of_their_schemas() -> None:
    log = random_log(1, ACTS, clears_pending=True)
    ended = ended_rows(rows_of([log]), "4.3")
    assert ended.schema == ENDED
    assert pl.Schema(offset_events(ended, replay_rules("4.3")).schema) == PLACED_EVENTS
