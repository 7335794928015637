"""Random logs of commits: the history of offsets equals what is told record by record."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl
import pytest

from analytics.contracts import contract_schema
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.offset_history import OfGroups, OfTopics, offset_history
from tests.support.commit_frames import NO_TOPICS, REMOVALS, ended_rows, group_frames
from tests.support.reference_offset_history import Change, Log, random_log

LOGS, ACTS = 500, 30


def told(
    logs: list[Log],
    release: str,
    topics: OfTopics = NO_TOPICS,
    removals: pl.DataFrame | None = None,
) -> pl.DataFrame:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for log in logs:
        for name, of_table in log.rows.items():
            rows[name] += of_table
    moments, owners = group_frames(logs)
    removed = pl.DataFrame(schema=REMOVALS) if removals is None else removals
    of_groups = OfGroups(ended_rows(rows, release), moments, owners, removed)
    return offset_history(of_groups, topics, replay_rules(release))


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_history_of_offsets_equals_the_reference(release: str) -> None:
    logs = [random_log(each, ACTS, clears_pending=release == "4.3") for each in range(LOGS)]
    made = told(logs, release)
    assert made.schema == contract_schema("offset_history")
    found = made.select("coordinator_partition", *Change._fields).rows()
    expected = [
        # Nobody but the coordinator deletes, and why is told by other records than these.
        (log.number, *each._replace(origin="unknown" if each.event == "delete" else each.origin))
        for log in logs
        for each in log.changes
    ]
    assert sorted(found, key=str) == sorted(expected, key=str)


def rewound(*, by_member: bool) -> Log:
    """A log of one offset that is committed at 10 ms and goes back at 60 seconds."""
    log = Log(0, clears_pending=True)
    log.snapshot({0: "ada"} if by_member else {})
    log.commit(0, 9)
    log.commit(0, 4)
    for row, at in zip(log.rows["offset_commit"], (10, 60_000), strict=True):
        row["value"]["commit_timestamp"] = at
    return log


def cause(
    log: Log, *, born_ms: int | None = None, elected_ms: int | None = None
) -> tuple[str, str]:
    births, losses = NO_TOPICS.births, NO_TOPICS.losses
    if born_ms is not None:
        births = pl.DataFrame({"topic": ["orders"], "born_at": [born_ms * 1000]}, births.schema)
    if elected_ms is not None:
        row = {"topic": ["orders"], "partition": [0], "elected_at": [elected_ms * 1000]}
        losses = pl.DataFrame(row, losses.schema)
    rows = told([log], "4.3", OfTopics(births, losses)).filter(pl.col("advance") < 0)
    ((why, confidence),) = rows.select("cause", "confidence").rows()
    return why, confidence


def test_a_member_or_whoever_commits_while_there_is_none_takes_an_offset_back() -> None:
    assert cause(rewound(by_member=True)) == ("rewound_by_member", "high")
    assert cause(rewound(by_member=False)) == ("committed_while_empty", "high")


def test_a_topic_that_was_created_between_the_two_commits_explains_it() -> None:
    log = rewound(by_member=True)
    for at in (11, 60_000):
        assert cause(log, born_ms=at) == ("topic_recreated", "medium")
    for at in (10, 60_001):
        assert cause(log, born_ms=at) == ("rewound_by_member", "high")


def test_another_id_of_the_topic_explains_it_for_sure() -> None:
    log = rewound(by_member=True)
    for row, letter in zip(log.rows["offset_commit"], "BC", strict=True):
        row["value"]["topic_id"] = letter * 22
    assert cause(log, elected_ms=30_000) == ("topic_recreated", "high")


def test_an_unclean_election_explains_it_up_to_a_minute_before_the_commit_that_was_lost() -> None:
    log = rewound(by_member=True)
    for at in (-59_989, 60_000):
        assert cause(log, elected_ms=at) == ("lost_by_election", "medium")
    for at in (-59_990, 60_001):
        assert cause(log, elected_ms=at) == ("rewound_by_member", "high")
    assert cause(rewound(by_member=False), elected_ms=30_000)[0] == "committed_while_empty"


@pytest.mark.parametrize(
    ("why", "origin"),
    [("group_deleted", "admin_or_simple"), ("expiration", "unknown")],
)
def test_a_tombstone_has_the_cause_of_its_removal(why: str, origin: str) -> None:
    log = Log(3, clears_pending=True)
    log.commit(0, 9)
    log.tombstone(0)
    row = {"coordinator_partition": 3, "record_offset": 1, "cause": why, "confidence": "high"}
    rows = told([log], "4.3", removals=pl.DataFrame([row], REMOVALS))
    assert rows.select("cause", "confidence", "origin").rows() == [
        (None, None, "admin_or_simple"),
        (why, "high", origin),
    ]
