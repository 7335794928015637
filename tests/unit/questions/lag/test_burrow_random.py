"""The fold over commits says what a slow Burrow says, at every instant of random histories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.lag.burrow import status_history
from analytics.questions.lag.movement import in_order
from analytics.questions.lag.pace import log_ends
from analytics.replayed.end_offsets import SAMPLES
from schemas.evaluation_rules import BurrowRules
from tests.support.reference_burrow import ReferenceBurrow
from tests.unit.questions.lag.commits import commits_of

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = round(EPOCH.timestamp() * 1000)
FIRST_POLL = -1

STEPS = st.lists(
    st.tuples(
        st.integers(0, 4),  # which partition
        st.sampled_from(["commit", "commit", "commit", "poll", "poll", "delete", "wait"]),
        st.integers(0, 30),  # an offset
        st.integers(1, 2500),  # milliseconds since the step before
        st.integers(-1500, 300),  # how far the client's clock is off
    ),
    max_size=60,
)


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


@given(
    steps=STEPS,
    intervals=st.integers(2, 5),
    min_distance=st.sampled_from([0, 1]),
    allowed_lag=st.integers(0, 3),
)
def test_every_change_of_status_is_burrows(
    steps: list[tuple[int, str, int, int, int]],
    intervals: int,
    min_distance: int,
    allowed_lag: int,
) -> None:
    rules = BurrowRules(intervals, min_distance, allowed_lag, 604_800)
    burrows = [ReferenceBurrow(intervals, min_distance * 1000, allowed_lag) for _ in range(5)]
    samples = [("t", number, at(FIRST_POLL), 0, 10) for number in range(5)]
    for each in burrows:
        each.poll(10)
    commits: list[tuple[int, int | None, int, int]] = []
    expected: list[tuple[int, int, str]] = []  # asked when, of which partition, answer
    now = 0
    for number, what, offset, wait, skew in steps:
        for quiet in range(-(-(now + 1) // 1000) * 1000, now + wait, 1000):
            expected += [(quiet, place, each.status(quiet)) for place, each in enumerate(burrows)]
        now += wait
        if what == "commit":
            commits.append((number, offset, now + skew, now))
            burrows[number].commit(offset, now + skew)
        elif what == "poll":
            samples.append(("t", number, at(now), 0, offset))
            burrows[number].poll(offset)
        elif what == "delete":
            commits.append((number, None, 0, now))
            burrows[number].delete()
        expected += [(now, place, each.status(now)) for place, each in enumerate(burrows)]
    columns = zip(*samples, strict=True)
    table = pa.table(
        [pa.array(list(each), one.type) for each, one in zip(columns, SAMPLES, strict=True)],
        schema=SAMPLES,
    )
    keys, rows = in_order(commits_of(commits, EPOCH))
    changes = status_history(keys, rows, log_ends(table), rules, EPOCH_MS + now).to_dicts()

    for when, place, status in expected:
        of_key = [
            each
            for each in changes
            if each["partition"] == place and each["from_timestamp"] <= at(when)
        ]
        found = of_key[-1]["status"] if of_key else "NOT_EVALUABLE"
        assert found == status, (when, place)
