"""Whether an offset in force was committed for the topic that is there now."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.questions.timeline.topic_lives import TopicLives
from analytics.questions.timeline.words import RECREATED, TOPIC_DELETED
from tests.support.offset_changes import frame, verdicts_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
OLD, NEW = "CR5CrWzdSPKR1lSAstXFdw", "vIB_tJT3R_6WKBINnepBgQ"


def minute(after_noon: int) -> datetime:
    return NOON + timedelta(minutes=after_noon)


def life(
    topic_id: str, created: int | None = None, deleted: int | None = None, source: str = ""
) -> dict[str, Any]:
    return {
        "topic": "orders",
        "topic_id": topic_id,
        "created_at": None if created is None else minute(created),
        "deleted_at": None if deleted is None else minute(deleted),
        "source": source or "metadata_log",
    }


def commit(topic_id: str | None, at: int = 5) -> dict[str, Any]:
    return {
        "group_id": "billing",
        "topic": "orders",
        "partition": 0,
        "topic_id": topic_id,
        "committed_offset": 100,
        "commit_timestamp": minute(at),
        "coordinator_partition": 0,
    }


def not_known(topics: TopicLives) -> str | None:
    reason: str | None = pl.select(topics.not_known(pl.lit("orders"))).item()
    return reason


def since(topic_id: str | None, *lives: dict[str, Any], **known: Any) -> dict[str, Any]:
    return TopicLives({"orders": lives}, **known).since(commit(topic_id)) or {}


@pytest.mark.parametrize(
    ("topic_id", "lives", "verdict", "at", "confidence"),
    [
        (OLD, [life(OLD, 0, 10), life(NEW, 12)], RECREATED, minute(12), "high"),
        (OLD, [life(OLD, 0, 10)], TOPIC_DELETED, minute(10), "high"),
        (OLD, [life(NEW, 12)], RECREATED, minute(12), "high"),
        (None, [life(OLD, 0, 10), life(NEW, 12)], RECREATED, minute(12), "medium"),
        (None, [life(OLD, None, 10), life(NEW, 12)], RECREATED, minute(12), "medium"),
        (None, [life(OLD, 0, 10)], TOPIC_DELETED, minute(10), "medium"),
        (NEW, [life(OLD, 0, 2), life(NEW, 3)], None, None, None),
        (None, [life(OLD, 0, 2), life(NEW, 3)], None, None, None),
        # One that moved to a metadata log has its first record there when it moved.
        (None, [life(OLD, 12)], None, None, None),
    ],
)
def test_a_metadata_log_tells_which_topic_was_committed_for(
    topic_id: str | None,
    lives: list[dict[str, Any]],
    verdict: str | None,
    at: datetime | None,
    confidence: str | None,
) -> None:
    found = since(topic_id, *lives)
    assert (found.get("verdict"), found.get("at"), found.get("confidence")) == (
        *(verdict, at, confidence),
    )


def test_an_id_that_a_metadata_log_does_not_know_may_be_a_later_one() -> None:
    found = since(NEW, life(OLD, 0))
    assert "verdict" not in found
    assert found["reason"].startswith("cannot tell which is the later")


def test_without_a_metadata_log_the_directories_tell_of_the_end_of_the_dump() -> None:
    here, records = life(NEW, source="partition_metadata"), life(OLD, source="record")
    assert since(OLD, here, records)["verdict"] == RECREATED
    assert since(NEW, here, records) == {}
    assert "verdict" not in since(OLD, here, records, is_end=False)


def test_commits_of_any_group_tell_which_id_is_the_later() -> None:
    lives = life(OLD, source="record"), life(NEW, source="record")
    one_after_the_other = {
        ("orders", OLD): (minute(0), minute(5)),
        ("orders", NEW): (minute(6), minute(9)),
    }
    assert since(OLD, *lives, commits=one_after_the_other)["verdict"] == RECREATED
    assert since(NEW, *lives, commits=one_after_the_other) == {}


def test_an_id_that_no_commit_names_may_be_any() -> None:
    found = since(OLD, life(OLD, source="record"), life(NEW, source="record"))
    assert set(found) == {"reason"}
    assert "cannot tell whether" in found["reason"]


def test_a_commit_without_an_id_is_not_judged_by_ids() -> None:
    assert since(None, life(OLD, source="record"), life(NEW, source="record")) == {}


def test_a_topic_that_a_metadata_log_lacks_may_be_gone() -> None:
    elsewhere = {**life(NEW), "topic": "payments"}
    rows = {"orders": [life(OLD, source="record")], "payments": [elsewhere]}
    found = TopicLives(rows).since(commit(OLD)) or {}
    assert set(found) == {"reason"}
    assert "deleted before that log begins, or made after it ends" in found["reason"]
    rows["orders"] = [life(OLD, source="partition_metadata")]
    assert TopicLives(rows).since(commit(OLD)) is None


def test_an_offset_of_a_former_topic_is_not_held_against_the_log_of_the_next() -> None:
    topics = TopicLives({"orders": [life(OLD, 0, 10), life(NEW, 12)]})
    (row,) = verdicts_of((), [commit(OLD)], log_starts={("orders", 0): 500}, topics=topics)
    assert (row["verdict"], row["at"], row["was"]) == (RECREATED, minute(12), 100)
    assert row["reason"] == f"committed for id {OLD}, and is {NEW}"


@pytest.mark.parametrize(
    ("sources", "is_known"),
    [
        (["record"], False),
        (["record", "metadata_log"], True),
        (["partition_metadata"], True),
    ],
)
def test_without_metadata_log_and_directories_nobody_knows_what_became_of_a_topic(
    sources: list[str], is_known: bool
) -> None:
    topics = TopicLives({"orders": [life(OLD, source=each) for each in sources]})
    assert (not_known(topics) is None) == is_known


def test_directories_of_internal_topics_say_nothing_of_others() -> None:
    inside = life(NEW, source="partition_metadata")
    reason = not_known(TopicLives({"__consumer_offsets": [inside]})) or ""
    assert reason.startswith("cannot tell whether topic orders was deleted or re-created")


SOURCES = ("metadata_log", "partition_metadata", "record")


def some_lives(topic: str, drawn: random.Random) -> list[dict[str, Any]]:
    lives = []
    for _ in range(drawn.randint(0, 3)):
        begun, ended = (drawn.choice([None, *range(9)]) for _ in range(2))
        made = life(drawn.choice([OLD, NEW]), begun, ended, drawn.choice(SOURCES))
        lives.append(made | {"topic": topic, "topic_id": drawn.choice([made["topic_id"], None])})
    return lives


@pytest.mark.parametrize("number", range(20))
def test_all_commits_together_are_told_what_each_is(number: int) -> None:
    drawn = random.Random(number)
    rows = {topic: some_lives(topic, drawn) for topic in ("orders", "payments", "refunds")}
    spans = {
        (topic, each): (minute(first), minute(first + drawn.randint(0, 4)))
        for topic in rows
        for each in (OLD, NEW)
        if (first := drawn.randint(-9, 9)) >= 0
    }
    topics = TopicLives(rows, number % 2 == 0, spans)
    commits = [
        {**commit(drawn.choice([OLD, NEW, None]), drawn.randint(-2, 11)), "topic": topic}
        for topic in [*rows, "unknown"]
        for _ in range(30)
    ]
    found = topics.with_found(frame(commits)).to_dicts()
    names = ("verdict", "at", "confidence", "reason")
    assert [{name: each[f"topic_{name}"] for name in names} for each in found] == [
        dict.fromkeys(names) | (topics.since(each) or {}) for each in commits
    ]


def test_a_cluster_that_was_asked_knows_which_topic_of_the_name_there_is() -> None:
    lives = life(OLD, source="record"), life(NEW, source="snapshot")
    found = since(OLD, *lives)
    assert (found["verdict"], found["at"], found["confidence"]) == (RECREATED, None, "medium")
    assert found["reason"].endswith(f"and the cluster has {NEW}")
    assert since(NEW, *lives) == {}
    # It was asked at the end of the dump, and not before.
    assert "verdict" not in since(OLD, *lives, is_end=False)
    assert not_known(TopicLives({"orders": [lives[1]]})) is None
