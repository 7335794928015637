"""What falls into the time around an incident, at its edges and where a time is only bounded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from analytics.questions.forensics.incident import Window, happenings, suffering
from analytics.tables.parted_table import PartedTable

T = datetime(2026, 11, 21, 9, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WINDOW = Window(T - 2 * MINUTE, T + 2 * MINUTE)
TIME = pl.Datetime("us", "UTC")
VERDICTS = {"group_id": pl.String, "verdict": pl.String, "at": TIME, "not_before": TIME}
EVENTS = {"group_id": pl.String, "at": TIME, "event": pl.String}
Verdict = tuple[str, str, datetime | None, datetime | None]


def verdict(
    group: str, word: str, at: datetime | None, not_before: datetime | None = None
) -> Verdict:
    return group, word, at, not_before


def frame(verdicts: list[Verdict]) -> pl.DataFrame:
    return pl.DataFrame(verdicts, VERDICTS, orient="row")


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
    rows = frame([verdict("g", "expired", at, not_before)])
    assert rows.select(WINDOW.touches()).item() is touches


def test_what_is_in_order_did_not_happen() -> None:
    rows = [
        verdict("a", "no_loss_found", T),
        verdict("b", "never_committed", None),
        verdict("c", "pending", T),
        verdict("d", "cannot_tell", None),
        verdict("e", "expired", T),
    ]
    assert frame(rows).filter(WINDOW.happened())["group_id"].to_list() == ["d", "e"]


def test_groups_that_surely_suffered_are_found_those_with_most_first() -> None:
    rows = [
        verdict("doubtful", "cannot_tell", T),
        verdict("one", "expired", T),
        *[verdict("two", "lost_by_election", T)] * 2,
        verdict("later", "expired", T + 3 * MINUTE),
    ]
    events = pl.DataFrame(
        [
            ("gone", T, "deleted"),
            ("calm", T, "member_joined"),
            ("early", T - 3 * MINUTE, "deleted"),
            ("timeless", None, "deleted"),
        ],
        EVENTS,
        orient="row",
    )
    held = (PartedTable.held(each.to_arrow()) for each in (frame(rows), events))
    assert suffering(happenings(*held, WINDOW)) == ["two", "one", "gone"]
