"""What falls into the time around an incident, at its edges and where a time is only bounded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics.questions.forensics.incident import Window, happened, suffering

T = datetime(2026, 11, 21, 9, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WINDOW = Window(T - 2 * MINUTE, T + 2 * MINUTE)


def verdict(
    group: str, word: str, at: datetime | None, not_before: datetime | None = None
) -> dict[str, Any]:
    return {"group_id": group, "verdict": word, "at": at, "not_before": not_before}


@pytest.mark.parametrize(
    ("at", "not_before", "touches"),
    [
        (T, None, True),
        (T - 2 * MINUTE, None, True),
        (T + 2 * MINUTE, None, True),
        (T - 3 * MINUTE, None, False),
        (T + 3 * MINUTE, None, False),
        (T + 9 * MINUTE, T - 9 * MINUTE, True),
        (T + 9 * MINUTE, T + 2 * MINUTE, True),
        (T + 9 * MINUTE, T + 3 * MINUTE, False),
        (T - 3 * MINUTE, T - 9 * MINUTE, False),
        (None, None, True),
        (None, T + 3 * MINUTE, False),
    ],
)
def test_what_may_have_been_in_the_time_is_of_it(
    at: datetime | None, not_before: datetime | None, touches: bool
) -> None:
    assert WINDOW.touches(verdict("g", "expired", at, not_before)) is touches


def test_what_is_in_order_did_not_happen() -> None:
    rows = [
        verdict("a", "no_loss_found", T),
        verdict("b", "never_committed", None),
        verdict("c", "pending", T),
        verdict("d", "cannot_tell", None),
        verdict("e", "expired", T),
    ]
    assert [each["group_id"] for each in happened(rows, WINDOW)] == ["d", "e"]


def test_groups_that_surely_suffered_are_found_those_with_most_first() -> None:
    rows = [
        verdict("doubtful", "cannot_tell", T),
        verdict("one", "expired", T),
        *[verdict("two", "lost_by_election", T)] * 2,
        verdict("later", "expired", T + 3 * MINUTE),
    ]
    events = [
        {"group_id": "gone", "at": T, "event": "deleted"},
        {"group_id": "calm", "at": T, "event": "member_joined"},
        {"group_id": "early", "at": T - 3 * MINUTE, "event": "deleted"},
    ]
    assert suffering(rows, events, WINDOW) == ["two", "one", "gone"]
