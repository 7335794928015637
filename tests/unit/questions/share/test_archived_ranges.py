"""What was given up or rejected: which of both, as far as it is told."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.questions.share.backlog import evaluate_share
from analytics.questions.share.settings import ALWAYS, DELIVERY_LIMIT, Setting, ShareSettings
from tests.support.broker_state import CutBatch
from tests.support.reference_share_coordinator import ShareRecord, Snapshot, Update
from tests.unit.questions.share.backlog import SETTINGS, question, time_of

KEY = ("g", "topic", 0)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def snapshot(offset: int, number: int, *batches: CutBatch) -> ShareRecord:
    return ShareRecord(0, offset, KEY, Snapshot(number, 0, 0, 10, 0, 1, 1, batches))


def update(offset: int, *batches: CutBatch, start: int = 10) -> ShareRecord:
    return ShareRecord(0, offset, KEY, Update(0, 0, start, 0, batches))


def archived(
    *records: ShareRecord, limit: int = 5, source: str = "dynamic"
) -> list[dict[str, Any]]:
    settings = ShareSettings({**SETTINGS.otherwise, DELIVERY_LIMIT: Setting(limit, source)})
    found: list[dict[str, Any]] = evaluate_share(
        question(records, settings=settings)
    ).archived.to_dicts()
    return found


@pytest.mark.parametrize(
    ("count", "limit", "source", "cause"),
    [
        # Brokers take no limit below two: what was delivered once was not given up.
        (1, 5, "default_assumed", "rejected_or_gap"),
        (2, 5, "default_assumed", "cannot_tell"),
        (5, 5, "default_assumed", "cannot_tell"),
        (1, 2, "dynamic", "rejected_or_gap"),
        (2, 3, "dynamic", "rejected_or_gap"),
        (3, 3, "broker_config", "at_limit"),
        (4, 3, "broker_config", "at_limit"),
    ],
)
def test_the_cause_is_told_by_the_limit(count: int, limit: int, source: str, cause: str) -> None:
    records = snapshot(0, 0), update(1, CutBatch(10, 10, ARCHIVED, count))
    (found,) = archived(*records, limit=limit, source=source)
    assert (found["cause"], found["delivery_count"]) == (cause, count)


def test_a_limit_says_nothing_of_what_was_archived_before_it_was_set() -> None:
    since = Setting(5, "dynamic", round(time_of(2).timestamp() * 1000))
    settings = ShareSettings({**SETTINGS.otherwise, DELIVERY_LIMIT: since})
    records = (
        snapshot(0, 0),
        update(1, CutBatch(10, 10, ARCHIVED, 3), CutBatch(11, 11, ARCHIVED, 1)),
        update(2, CutBatch(12, 12, ARCHIVED, 3), CutBatch(13, 13, ARCHIVED, 5)),
    )
    found = evaluate_share(question(records, settings=settings)).archived
    assert found["cause"].to_list() == [
        "cannot_tell",
        "rejected_or_gap",
        "rejected_or_gap",
        "at_limit",
    ]


def test_nor_of_what_may_have_been_archived_before_the_log_begins() -> None:
    records = [snapshot(9, 4, CutBatch(10, 10, ARCHIVED, 3), CutBatch(11, 11, ARCHIVED, 1))]
    for since_ms, cause in ((0, "cannot_tell"), (ALWAYS, "at_limit")):
        limit = Setting(3, "dynamic", since_ms)
        settings = ShareSettings({**SETTINGS.otherwise, DELIVERY_LIMIT: limit})
        found = evaluate_share(question(records, settings=settings)).archived
        assert found["cause"].to_list() == [cause, "rejected_or_gap"]


def test_what_is_available_again_shows_that_the_limit_is_higher() -> None:
    records = (
        snapshot(0, 0),
        update(1, CutBatch(10, 10, ARCHIVED, 2), CutBatch(11, 11, ARCHIVED, 3)),
        update(2, CutBatch(12, 12, AVAILABLE, 2)),
    )
    found = archived(*records, source="default_assumed")
    assert [each["cause"] for each in found] == ["rejected_or_gap", "cannot_tell"]


def test_it_was_archived_by_the_first_record_that_says_so() -> None:
    records = (
        snapshot(0, 0),
        update(1, CutBatch(10, 12, ARCHIVED, 1)),
        update(2, CutBatch(12, 14, ARCHIVED, 1)),
        snapshot(3, 1, CutBatch(10, 15, ARCHIVED, 1)),
    )
    found = archived(*records)
    assert [
        (each["first_offset"], each["last_offset"], each["record_offset"]) for each in found
    ] == [
        (10, 12, 1),
        (13, 14, 2),
        (15, 15, 3),
    ]
    assert [each["archived_at"] for each in found] == [time_of(1), time_of(2), time_of(3)]


def test_what_the_first_record_of_a_log_says_may_have_been_so_before() -> None:
    (found,) = archived(snapshot(40, 7, CutBatch(10, 12, ARCHIVED, 1)))
    assert (found["archived_bound"], found["archived_at"]) == ("at_latest", time_of(40))


def test_what_was_set_anew_since_is_not_archived_any_more() -> None:
    renewed = ShareRecord(0, 2, KEY, Snapshot(1, 1, 0, 0, 0, 1, 1, ()))
    assert archived(snapshot(0, 0), update(1, CutBatch(10, 12, ARCHIVED, 1)), renewed) == []


def test_what_the_start_offset_has_passed_is_still_told() -> None:
    records = (
        snapshot(0, 0),
        update(1, CutBatch(10, 12, ARCHIVED, 1)),
        update(2, start=13),
        update(3, CutBatch(14, 14, ARCHIVED, 1), start=13),
    )
    assert [each["is_passed"] for each in archived(*records)] == [True, False]
