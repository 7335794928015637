"""When retention overtakes what is left to read: by hand, and against a broker that deletes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analytics.dump.files.data_log_times import SEGMENTS
from analytics.questions.lag.loss import (
    AT_LEAST,
    AT_MOST,
    ESTIMATED,
    EXACT,
    NEVER,
    NO_GROWTH,
    NO_SEGMENTS,
    NO_TIMES,
    NOT_LOCAL,
    UNKNOWN,
    LogFiles,
    TopicRetention,
    files_of,
    loss_of,
)
from tests.support.reference_retention import Segment, is_there

NOW = 1_700_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR


def log(*files: tuple[int, int, int], unsure: tuple[int, ...] = ()) -> LogFiles:
    """Return files of a base offset, a size, and a newest record so many hours before now."""
    bases, sizes, ages = zip(*files, strict=True)
    newest = [NOW - age * HOUR if age >= 0 else -1 for age in ages]
    sure = [place not in unsure for place in range(len(files))]
    return LogFiles(np.array(bases), np.array(sizes), np.array(newest), np.array(sure))


def found(position: int, of: LogFiles | None, ms: int | None = DAY, size: int | None = None) -> Any:
    loss = loss_of(position, of, TopicRetention(ms, size, "said"), NOW)
    hours = None if loss.at_ms is None else (loss.at_ms - NOW) / HOUR
    return loss.bound, hours, loss.by


THREE = log((0, 100, 20), (50, 100, 10), (90, 100, 0))


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        # The newest record of its segment is 20 hours old: in four it is a day.
        (0, (EXACT, 4, "time")),
        (49, (EXACT, 4, "time")),
        (50, (EXACT, 14, "time")),
        # The segment that is written may get newer ones.
        (90, (AT_LEAST, 24, "time")),
        (500, (AT_LEAST, 24, "time")),
    ],
)
def test_a_segment_goes_once_its_newest_record_is_too_old(position: int, expected: Any) -> None:
    assert found(position, THREE) == expected


def test_a_segment_waits_for_those_before_it() -> None:
    assert found(50, log((0, 100, 3), (50, 100, 10), (90, 100, 0))) == (EXACT, 21, "time")


def test_a_record_that_may_be_newer_makes_it_a_bound() -> None:
    assert found(50, log((0, 1, 20), (50, 1, 10), (90, 1, 0), unsure=(0,)))[0] == AT_LEAST


def test_files_that_the_dump_lacks_go_first() -> None:
    of = log((10, 100, 20), (50, 100, 10), (90, 100, 0))
    kept = TopicRetention(DAY)

    assert loss_of(10, of, kept, NOW, 10).bound == EXACT
    assert loss_of(10, of, kept, NOW, 3).bound == AT_LEAST
    assert loss_of(10, of, kept, NOW, None).bound == AT_LEAST


def test_by_size_what_lies_after_a_segment_counts() -> None:
    # 200 bytes lie after the first one: it is due.
    assert found(0, THREE, None, 200) == (EXACT, 0, "size")
    # The log grew by 200 bytes in 20 hours; 100 more are needed.
    assert found(0, THREE, None, 300) == (ESTIMATED, 10, "size")
    assert found(50, THREE, None, 200) == (ESTIMATED, 10, "size")
    assert found(0, log((0, 100, 0)), None, 300) == (UNKNOWN, None, None)


def test_what_comes_first_counts() -> None:
    assert found(0, THREE, DAY, 200) == (EXACT, 0, "size")
    assert found(50, THREE, DAY, 200) == (ESTIMATED, 10, "size")
    # By size only later, at today's growth; nobody knows tomorrow's.
    assert found(0, THREE, DAY, 300) == (AT_MOST, 4, "time")


@pytest.mark.parametrize(
    ("of", "position", "kept", "bound", "basis"),
    [
        (THREE, 0, TopicRetention(said="compacted"), NEVER, "compacted"),
        (THREE, 0, TopicRetention(why_unknown="why"), UNKNOWN, "why"),
        (None, 0, TopicRetention(DAY), UNKNOWN, NO_SEGMENTS),
        (log((10, 1, 1)), 5, TopicRetention(DAY), UNKNOWN, NOT_LOCAL),
        (log((0, 1, -1), (9, 1, 1)), 3, TopicRetention(DAY), UNKNOWN, NO_TIMES),
        (log((0, 1, 1)), 3, TopicRetention(size=9), UNKNOWN, NO_GROWTH),
    ],
)
def test_what_is_not_known_is_said(
    of: LogFiles | None, position: int, kept: TopicRetention, bound: str, basis: str
) -> None:
    loss = loss_of(position, of, kept, NOW)
    assert (loss.bound, loss.at_ms, loss.basis) == (bound, None, basis)


FILES = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 50), st.integers(0, 100)), min_size=1, max_size=6
)


@given(
    files=FILES,
    position=st.integers(0, 200),
    ms=st.one_of(st.none(), st.integers(0, 120)),
    size=st.one_of(st.none(), st.integers(0, 150)),
    now=st.integers(0, 120),
)
def test_a_broker_that_is_written_no_more_deletes_no_earlier_than_said(
    files: list[tuple[int, int, int]],
    position: int,
    ms: int | None,
    size: int | None,
    now: int,
) -> None:
    segments, base = [], 0
    for length, bytes_, newest in files:
        segments.append(Segment(base, bytes_, newest))
        base += length
    assume(position < base)
    assume(is_there(position, segments, now, ms, None))
    of = LogFiles(
        *(
            np.array([getattr(each, name) for each in segments])
            for name in ("base", "size", "newest")
        ),
        np.ones(len(segments), np.bool_),
    )
    loss = loss_of(position, of, TopicRetention(ms, size), now)
    is_due = not is_there(position, segments, now, ms, size)
    gone = next(
        (at for at in range(now, 400) if not is_there(position, segments, at, ms, size)), None
    )
    if loss.bound == NEVER:
        assert gone is None
    elif loss.bound == EXACT and loss.by == "size":
        assert is_due
    elif loss.bound in {EXACT, AT_MOST}:
        assert loss.at_ms is not None
        # A record is too old a millisecond after it is as old as retention allows.
        assert gone is not None
        assert gone <= loss.at_ms + 1
        assert loss.bound == AT_MOST or gone == loss.at_ms + 1
    elif loss.bound == AT_LEAST and not is_due:
        assert loss.at_ms is not None
        assert gone is None or gone >= loss.at_ms
    if is_due and size is not None and size > 0:
        assert loss.bound == EXACT


def test_files_of_a_log_are_those_of_its_partition_in_order() -> None:
    rows = [
        {"topic": topic, "partition": 0, "copy": "b", "base_offset": base}
        | {"size_bytes": base, "is_largest": True}
        for topic, base in (("b", 9), ("a", 5), ("b", 0), ("a", 0))
    ]
    files = files_of(pa.Table.from_pylist(rows, SEGMENTS))

    assert {key: each.bases.tolist() for key, each in files.items()} == {
        ("a", 0): [0, 5],
        ("b", 0): [0, 9],
    }
    assert files["a", 0].newest_ms.tolist() == [-1, -1]
