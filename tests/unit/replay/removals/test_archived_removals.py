"""Removals among archived rows: which commit one took is known where it names its topic's id."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.dump.inspection.found_losses import OPEN_END
from analytics.replay.log.log_times import LogClock
from analytics.replay.log.losses import Coverage
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS
from tests.support.archived_removals import (
    ARCHIVED,
    NAMED,
    NAMELESS,
    OF_THE_TOPIC,
    REMOVED,
    TOPICS,
    commit,
    records,
    row,
)
from tests.support.told_removals import told_removals


@pytest.fixture(scope="module")
def causes() -> dict[int, tuple[str, str]]:
    return told_removals(records(), "4.3", TOPICS, ARCHIVED)


def test_what_took_a_commit_that_may_never_have_been_is_not_known(
    causes: dict[int, tuple[str, str]],
) -> None:
    assert causes[NAMELESS] == ("unknown", "low")
    # Of a log the same rows tell: a minute was not over, so the cleanup left it alone.
    assert told_removals(records(), "4.3", TOPICS)[NAMELESS] == ("offsets_deleted", "high")


def test_what_names_its_topics_id_was_in_no_transaction(
    causes: dict[int, tuple[str, str]],
) -> None:
    assert causes[NAMED] == ("offsets_deleted", "high")


def test_what_went_with_its_topic_went_with_it_whatever_was_committed(
    causes: dict[int, tuple[str, str]],
) -> None:
    assert causes[OF_THE_TOPIC] == ("topic_deleted", "medium")


def test_where_a_clock_was_set_back_no_time_tells_what_took_an_offset() -> None:
    """From there on, or by a wrong one: it may have been due; its topic deleted before or after."""

    def told(topic: str, partition: int, offset: int) -> dict[int, tuple[str, str]]:
        set_back, wrong = (
            told_removals(records(), "4.3", TOPICS, Coverage(clocks={(topic, partition): each}))
            for each in (LogClock(((offset, offset),)), LogClock(wrong=((offset, OPEN_END),)))
        )
        assert set_back == wrong
        return set_back

    whole = told_removals(records(), "4.3", TOPICS)
    unknown = ("unknown", "low")
    home = 2
    assert told(CONSUMER_OFFSETS, home, 0) == dict.fromkeys(whole, unknown)
    assert told(CONSUMER_OFFSETS, home, max(whole) + 1) == whole
    assert told(CONSUMER_OFFSETS, home + 1, 0) == whole
    assert told(CLUSTER_METADATA, 0, 0) == {**whole, OF_THE_TOPIC: unknown}


def test_a_time_after_all_that_is_believed_does_not_tell_what_took_an_offset() -> None:
    whole = told_removals(records(), "4.3", TOPICS)
    within = Coverage(believed_until=REMOVED + timedelta(seconds=2))
    assert told_removals(records(), "4.3", TOPICS, within) == {
        **whole,
        OF_THE_TOPIC: ("unknown", "low"),
    }
    until_the_end = Coverage(believed_until=REMOVED + timedelta(seconds=4))
    assert told_removals(records(), "4.3", TOPICS, until_the_end) == whole


def test_nor_does_it_tell_what_took_a_commit_of_an_open_transaction() -> None:
    """The cleanup leaves it alone; the deletion of its topic and OffsetDelete both take it."""
    pending = {**commit(0, "open", "gone", None), "producer_id": 5, "producer_epoch": 0}
    tombstone = row(1, REMOVED + timedelta(seconds=40), "open", "gone", None)
    rows = {**records(), "offset_commit": [pending, {**tombstone, "producer_id": -1}]}
    unknown, deleted = ("unknown", "low"), ("offsets_deleted", "high")
    set_back = Coverage(clocks={(CONSUMER_OFFSETS, 2): LogClock(((0, 0),))})
    not_believed = Coverage(believed_until=REMOVED)
    there = [{"topic": "gone", "source": "metadata_log", "topic_id": "c2"}]

    assert told_removals(rows, "4.3", TOPICS) == {1: deleted}
    for coverage in (set_back, not_believed):
        assert told_removals(rows, "4.3", TOPICS, coverage) == {1: unknown}
        # Of a topic that is there it was not its deletion.
        assert told_removals(rows, "4.3", there, coverage) == {1: deleted}
