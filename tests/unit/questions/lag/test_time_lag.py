"""How old unread records are is what a slow look at every sample says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.lag.pace import AT_LEAST, EXACT, UNKNOWN, log_ends, with_time_lags
from analytics.replayed.end_offsets import SAMPLES

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = round(EPOCH.timestamp() * 1000)
Told = tuple[int, int, int]  # partition, milliseconds, end


def sampled(told: list[Told]) -> pl.DataFrame:
    rows = [
        {"topic": "t", "partition": place, "log_end_offset": end}
        | {"timestamp": EPOCH + timedelta(milliseconds=at)}
        for place, at, end in told
    ]
    return log_ends(pa.Table.from_pylist(rows, SAMPLES))


def slow(
    samples: list[tuple[int, int]], written: list[tuple[int, int]], offset: int, lag: int, now: int
) -> tuple[int | None, str, int | None]:
    if lag < 0:
        return None, UNKNOWN, None
    if lag == 0:
        return 0, EXACT, 0
    known = [each for each in sorted(samples, key=lambda each: each[0]) if each[0] <= now]
    back = [place for place, (_, end) in enumerate(known) if end <= offset]
    passed = back[-1] + 1 if back else 0
    ages = []
    if passed < len(known):
        if passed > 0:
            (begun, low), (ended, high) = known[passed - 1], known[passed]
            at = begun + round((offset - low) / (high - low) * (ended - begun))
            return now - at, EXACT, ended - begun
        ages.append(now - known[0][0])
    left = [at for at, end in written if end > offset]
    if left:
        ages.append(now - min(left))
    age = max(ages, default=0)
    return (age, AT_LEAST, None) if age > 0 else (None, UNKNOWN, None)


POINTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 30)),
    max_size=20,
    unique_by=lambda each: each[:2],
)


@given(
    samples=POINTS,
    written=POINTS,
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 35), st.integers(-2, 5))),
    now=st.integers(0, 45),
)
def test_every_age_and_bound_is_that_of_a_slow_look(
    samples: list[Told], written: list[Told], rows: list[Told], now: int
) -> None:
    question = pl.DataFrame(
        {
            "topic": pa.array(["t"] * len(rows), pa.string()),
            "partition": pa.array([place for place, _, _ in rows], pa.int32()),
            "committed_offset": pa.array([offset for _, offset, _ in rows], pa.int64()),
            "lag": pa.array([lag for _, _, lag in rows], pa.int64()),
        }
    )
    found = with_time_lags(question, sampled(samples), sampled(written), EPOCH_MS + now).to_dicts()

    for (place, offset, lag), row in zip(rows, found, strict=True):
        own, at_all = (
            [each[1:] for each in points if each[0] == place] for points in (samples, written)
        )
        told = tuple(row[f"time_lag_{name}"] for name in ("ms", "bound", "within_ms"))
        assert told == slow(own, at_all, offset, lag, now), (place, offset, lag)


def test_what_is_not_known_has_no_age() -> None:
    rows = pl.DataFrame(
        {
            "topic": ["t", "t"],
            "partition": pa.array([0, 0], pa.int32()),
            "committed_offset": pa.array([None, 3], pa.int64()),
            "lag": pa.array([4, None], pa.int64()),
        }
    )
    found = with_time_lags(rows, sampled([(0, 0, 0), (0, 9, 9)]), sampled([]), EPOCH_MS + 9)
    assert found["time_lag_bound"].to_list() == [UNKNOWN, UNKNOWN]
