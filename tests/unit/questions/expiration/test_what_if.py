"""What a retention is said to cost: only what was observed, and safe only where that was enough."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics.dump.inspection.found_losses import OPEN_END, Loss
from analytics.questions.expiration.offset_expiration import offset_expiration
from analytics.questions.expiration.offset_log import (
    CLOCK_SET_BACK,
    ObservedHistory,
    shown_since,
)
from analytics.questions.expiration.retention_settings import OPTION, Retention, Setting
from analytics.questions.expiration.retention_what_if import (
    offsets_now,
    retention_costs,
    retention_what_if,
)
from analytics.replay.log.log_times import LogClock
from analytics.replay.log.losses import Coverage
from tests.support.expiration_logs import committed_in, log_of, rows_of, state_of
from tests.support.reference_expiration import Coordinator

START = 1_700_000_000_000
MINUTE = 60_000
YEARS = 10 * 365 * 24 * 60 * MINUTE
LAST = 30
"""Minutes of log; the instant is their end."""

TOO_SHORT = "the period observed is shorter than the retention"
NOTHING_KEEPS = "nothing keeps its offsets at present but the retention"
CUT_OFF = "__consumer_offsets-7 lacks all from offset 20 on (cut off)"
# Of each group: when its member joins and leaves, from when on it commits every minute, and when
# the coordinator's clock is years ahead.
STORIES: dict[str, dict[str, Any]] = {
    "live": {"joins": [0], "commits": range(LAST)},
    "born-late": {"joins": [28], "commits": range(28, LAST)},
    "abandoned": {"joins": [0], "leaves": [27], "commits": range(27)},
    "gone": {"joins": [0], "leaves": [10], "commits": range(10)},
    "nightly": {"joins": [0, 12, 20], "leaves": [2, 13], "commits": [1, 12, *range(20, LAST)]},
    "simple": {"commits": range(LAST)},
    "compacted": {"joins": [0], "commits": range(LAST)},
    "cut-off": {"joins": [0], "commits": range(LAST)},
    "half-known": {"joins": [0], "commits": range(LAST)},
    "set-back": {"joins": [0, 12], "leaves": [2], "commits": [1, 12, *range(20, LAST)]},
    "ahead": {"commits": range(LAST), "ahead": 10},
}
NAMES = list(STORIES)
SET_BACK = ("__consumer_offsets", NAMES.index("set-back"))
COMPACTED_UNTIL = 15
"""Offset in the partition of `compacted`: its commit of minute 14."""


def told(name: str) -> Coordinator:
    story = STORIES[name]
    coordinator = Coordinator(NAMES.index(name), "current", 0, START)
    for minute in range(LAST):
        coordinator.now = START + minute * MINUTE + YEARS * (minute == story.get("ahead"))
        if minute in story.get("joins", ()):
            coordinator.join(name, "consumer", "m", ["a"])
        if minute in story["commits"]:
            coordinator.commit((name, "a", 0))
        if minute in story.get("leaves", ()):
            coordinator.leave(name, "m")
    return coordinator


@pytest.fixture(scope="module")
def found() -> dict[tuple[int, str], Any]:
    """Rows of the what-if by retention and group: each group is a partition of its own."""
    rows: dict[str, list[dict[str, object]]] = defaultdict(list)
    for name in NAMES:
        for kind, records in told(name).rows.items():
            rows[kind] += records
    log = log_of(rows, "4.3", "current")
    cut = ("__consumer_offsets", NAMES.index("cut-off"))
    loss = Loss(20, OPEN_END, "cut off")
    coverage = Coverage(
        {cut: OPEN_END}, losses={cut: [loss]}, clocks={SET_BACK: LogClock(((7, 7),))}
    )
    committed = committed_in(log, {NAMES.index("cut-off"): loss})
    groups, retention = (
        state_of("groups", groups_of()),
        Retention(Setting(7 * MINUTE, OPTION, MINUTE)),
    )
    instant = START + LAST * MINUTE
    observed = ObservedHistory(instant, {}, {NAMES.index("compacted"): COMPACTED_UNTIL}, coverage)
    minutes = [5, 15, 60]
    expiration = offset_expiration(committed, log, retention, instant, groups=groups)
    none = state_of("offset_removals", ())
    costs = retention_costs(log, expiration, none, observed, retention=retention, minutes=minutes)
    times = observed.group_times(log.records.commits)
    periods = observed.periods(times, shown_since(times))
    answered = retention_what_if(
        offsets_now(expiration), costs, periods, groups, replay=log.replay, minutes=minutes
    )
    rows_told = rows_of("retention_what_if", answered)
    return {(row.retention_minutes, row.group_id): row for row in rows_told}


def groups_of() -> list[dict[str, Any]]:
    found = [{"group_id": name, "group_type": "classic", "complete": True} for name in NAMES]
    found[NAMES.index("half-known")] |= {"complete": False, "missing": "a record"}
    return found


def minute(number: int) -> datetime:
    return datetime.fromtimestamp(START / 1000, UTC) + timedelta(minutes=number)


UNBELIEVED = "the time of a record that ended an idle stretch is not believed"
VERDICTS = {
    # From minute 9 on it went without a commit of a time that is believed: for how long, not known.
    (5, "ahead"): ("cannot_tell", UNBELIEVED),
    (15, "ahead"): ("cannot_tell", UNBELIEVED),
    (60, "ahead"): ("not_lost_in_period", TOO_SHORT),
    (5, "live"): ("safe", None),
    (60, "live"): ("not_lost_in_period", TOO_SHORT),
    (5, "born-late"): ("not_lost_in_period", TOO_SHORT),
    (5, "abandoned"): ("not_lost_in_period", NOTHING_KEEPS),
    (15, "abandoned"): ("not_lost_in_period", NOTHING_KEEPS),
    (60, "abandoned"): ("not_lost_in_period", TOO_SHORT),
    (15, "gone"): ("would_lose_now", None),
    (60, "gone"): ("not_lost_in_period", TOO_SHORT),
    (5, "nightly"): ("would_have_lost", None),
    (15, "nightly"): ("safe", None),
    (5, "simple"): ("not_lost_in_period", NOTHING_KEEPS),
    (15, "compacted"): ("not_lost_in_period", "history before that was compacted"),
    (60, "compacted"): (
        "not_lost_in_period",
        f"{TOO_SHORT}: history before that was compacted",
    ),
    (5, "cut-off"): (
        "cannot_tell",
        f"a lost record may have changed it: {CUT_OFF}",
    ),
    (5, "half-known"): ("cannot_tell", "a record"),
    # Idle for longer than five minutes as nightly was, by a clock that measured nothing.
    (5, "set-back"): ("cannot_tell", CLOCK_SET_BACK),
}


@pytest.mark.parametrize("case", VERDICTS, ids=lambda case: f"{case[1]} in {case[0]} min")
def test_a_what_if_speaks_for_the_time_observed(
    found: dict[tuple[int, str], Any], case: tuple[int, str]
) -> None:
    row = found[case]
    assert (row.verdict, row.reason) == VERDICTS[case]


def test_the_time_observed_begins_with_the_group_or_behind_what_was_compacted(
    found: dict[tuple[int, str], Any],
) -> None:
    begins = {name: found[5, name].observed_from.astimezone(UTC) for name in NAMES}
    assert begins["live"] == minute(0)
    assert begins["born-late"] == minute(28)
    assert begins["compacted"] == minute(COMPACTED_UNTIL - 1)
    ends = {row.observed_to.astimezone(UTC) for row in found.values()}
    assert ends == {minute(LAST)}


def test_when_the_next_offset_would_expire_is_said_where_nothing_keeps_it(
    found: dict[tuple[int, str], Any],
) -> None:
    assert found[5, "abandoned"].next_expires_at.astimezone(UTC) == minute(32)
    assert found[60, "abandoned"].next_expires_at.astimezone(UTC) == minute(87)
    assert found[5, "live"].next_expires_at is None
