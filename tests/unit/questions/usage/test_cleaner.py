"""Verdicts on the cleaner, worked by hand from ``LogCleanerManager``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analytics.questions.usage.cleaner import (
    CleanerSettings,
    Cleaning,
    LogFiles,
    Segment,
    cleaning_of,
    judged,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = 10 * DAY
SETTINGS = CleanerSettings()

# Four segments of 100, 100, 100 and 40 bytes, begun on days 1, 2, 3 and 4; the last is active.
LOG = LogFiles(
    segments=(
        Segment(0, 100, 1 * DAY, 2 * DAY),
        Segment(10, 100, 2 * DAY, 3 * DAY),
        Segment(20, 100, 3 * DAY, 4 * DAY),
        Segment(30, 40, 4 * DAY, NOW),
    ),
    first_dirty=20,
    start=0,
    end=35,
    last_stable=35,
)


def told(log: LogFiles, settings: CleanerSettings = SETTINGS, now: int = NOW) -> Cleaning:
    (found,) = judged([cleaning_of(log, settings, now)], now, late_minutes=60)
    return found


def test_the_ratio_leaves_the_active_segment_out() -> None:
    found = told(LOG)

    # 100 cleanable of 200 clean and 100 cleanable bytes.
    assert (found.clean_bytes, found.cleanable_bytes, found.active_bytes) == (200, 100, 40)
    assert found.dirty_ratio == pytest.approx(1 / 3)
    assert found.cleanable_to == 30
    assert found.verdict == "alive"
    assert found.oldest_dirty_ms == 3 * DAY


@pytest.mark.parametrize(
    ("first_dirty", "verdict", "due_since"),
    [
        # never cleaned: the first segment alone is all dirty, due as soon as the second began
        (0, "dead", 2 * DAY),
        # 100 clean, then 100 and 200 dirty: 0.5 is not above 0.5, 0.67 is, when the fourth began
        (10, "dead", 4 * DAY),
        (20, "alive", None),
        (30, "alive", None),
    ],
)
def test_due_is_since_the_segment_after_was_begun(
    first_dirty: int, verdict: str, due_since: int | None
) -> None:
    found = told(replace(LOG, first_dirty=first_dirty))
    assert (found.verdict, found.due_since_ms) == (verdict, due_since)


def test_a_ratio_must_be_above_the_setting() -> None:
    half = replace(LOG, segments=LOG.segments[1:], start=10)  # 100 clean, 100 dirty
    assert cleaning_of(half, SETTINGS, NOW).verdict == "alive"
    below = replace(SETTINGS, min_dirty_ratio=0.49)
    assert cleaning_of(half, below, NOW).verdict == "due"


@pytest.mark.parametrize(("waited", "verdict"), [(60 * MINUTE, "due"), (61 * MINUTE, "dead")])
def test_due_for_an_hour_is_not_late_yet(waited: int, verdict: str) -> None:
    assert told(replace(LOG, first_dirty=0), now=2 * DAY + waited).verdict == verdict


def test_a_checkpoint_that_is_not_in_the_log_counts_for_none() -> None:
    beyond = replace(LOG, first_dirty=36)
    assert beyond.dirty_from == 0
    below = replace(LOG, first_dirty=3, start=5)
    assert below.dirty_from == 5


def test_without_a_checkpoint_nothing_is_told_unless_there_is_nothing_to_clean() -> None:
    assert told(replace(LOG, first_dirty=None)).verdict == "cannot_tell"
    only = replace(LOG, first_dirty=None, segments=LOG.segments[-1:], start=30)
    assert told(only).verdict == "nothing_to_clean"
    assert told(replace(LOG, segments=())).verdict == "cannot_tell"


def test_the_cleaner_stops_before_the_segment_with_an_open_transaction() -> None:
    found = told(replace(LOG, last_stable=15, first_dirty=0))
    assert found.cleanable_to == 10
    assert found.cleanable_bytes == 100
    at_start = told(replace(LOG, last_stable=5, first_dirty=0))
    assert at_start.verdict == "nothing_to_clean"
    assert "open transaction" in at_start.evidence


def test_young_records_wait_for_min_compaction_lag() -> None:
    young = replace(SETTINGS, min_lag_ms=7.5 * DAY)  # later than day 2.5: from the second segment
    found = cleaning_of(replace(LOG, first_dirty=0), young, NOW)
    assert found.cleanable_to == 10


def test_max_compaction_lag_makes_a_log_due_below_the_ratio() -> None:
    lagging = replace(SETTINGS, max_lag_ms=2 * DAY)
    found = told(LOG, lagging)
    assert found.verdict == "dead"
    assert found.due_since_ms == 5 * DAY  # the first dirty record is of day 3
    assert "max.compaction.lag.ms" in found.evidence
    assert told(LOG, replace(SETTINGS, max_lag_ms=7 * DAY)).verdict == "alive"


def test_delete_horizons_say_when_the_cleaner_passed() -> None:
    passed = replace(LOG, horizons=((6 * DAY, 0, 10), (8 * DAY, 10, 20)))
    assert told(passed).passed_at_ms == 7 * DAY  # delete.retention.ms is a day


def test_one_that_shows_itself_elsewhere_is_alive_and_has_passed_this_log_over() -> None:
    late = cleaning_of(replace(LOG, first_dirty=0), SETTINGS, NOW)  # due since day 2
    before = Cleaning("alive", "", passed_at_ms=1 * DAY)
    after = Cleaning("alive", "", passed_at_ms=3 * DAY)
    assert judged([late, before], NOW, 60)[0].verdict == "dead"
    assert judged([late, after], NOW, 60)[0].verdict == "passed_over"


def test_settings_can_turn_it_off() -> None:
    assert told(LOG, replace(SETTINGS, is_on=False)).verdict == "disabled"
    assert told(LOG, replace(SETTINGS, is_compacted=False)).verdict == "not_compacted"


def test_a_log_that_was_never_cleaned_and_is_not_dirty_enough_is_not_due() -> None:
    found = told(replace(LOG, first_dirty=0), replace(SETTINGS, min_dirty_ratio=1))
    assert found.verdict == "not_due"
