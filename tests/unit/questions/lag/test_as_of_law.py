"""What is asked of a cut equals what was asked then, and the parts of a lag make it up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.lag.table import Lag, LagQuestion, evaluate_lag
from analytics.replayed.end_offset_samples import SAMPLES, EndOffsetSamples
from tests.unit.questions.lag.commits import HISTORY, at, history
from tests.unit.questions.lag.test_partition_lag import asked

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 2),  # which partition
        st.sampled_from(["commit", "commit", "commit", "sample", "delete"]),
        st.integers(0, 40),  # an offset, or where the log ends
        st.integers(1, 200_000),  # milliseconds since the event before
    ),
    max_size=60,
)


def question_at(samples: list[dict[str, Any]], commits: pa.Table, now_ms: int) -> LagQuestion:
    """Ask at a time: state is what the last commit of each partition left."""
    in_force = {row["partition"]: row["committed_offset"] for row in commits.to_pylist()}
    committed = [
        {"topic": "t", "partition": place, "committed_offset": offset}
        for place, offset in in_force.items()
        if offset is not None
    ]
    ends = {row["partition"]: row["log_end_offset"] for row in samples}
    found = asked(committed=committed, ends={("t", place): (0, end) for place, end in ends.items()})
    sampled = EndOffsetSamples.of(pa.Table.from_pylist(samples, SAMPLES))
    return replace(found, as_of=at(now_ms), samples=sampled)


def found_at(events: list[tuple[int, str, int, int]], until_ms: int) -> Lag:
    """Evaluate what had happened until a time."""
    now, samples, commits = 0, [], []
    for place, what, offset, wait in events:
        now += wait
        if now > until_ms:
            break
        if what == "sample":
            samples.append(
                {"topic": "t", "partition": place, "timestamp": at(now), "log_end_offset": offset}
            )
        else:
            commits.append(
                {"partition": place, "committed_offset": None if what == "delete" else offset}
                | {"event": what, "effective_timestamp": at(now)}
            )
    rows = history(commits) if commits else HISTORY.empty_table()
    return evaluate_lag(question_at(samples, rows, until_ms), [rows])


@given(events=EVENTS, cut=st.integers(0, 60))
def test_what_is_asked_of_a_cut_is_what_was_asked_then(
    events: list[tuple[int, str, int, int]], cut: int
) -> None:
    then_ms = sum(wait for *_, wait in events[:cut])
    end_ms = sum(wait for *_, wait in events) + 1
    then, later = found_at(events, then_ms), found_at(events, end_ms)

    limit = pa.scalar(at(then_ms), pa.timestamp("us", "UTC"))
    begun = later.statuses.filter(pc.less_equal(later.statuses["from_timestamp"], limit))
    names = ("group_id", "topic", "partition", "status", "from_timestamp", "committed_offset")
    key = [(name, "ascending") for name in ("partition", "from_timestamp")]
    assert (
        begun.select(names).sort_by(key).to_pylist()
        == then.statuses.select(names).sort_by(key).to_pylist()
    )
    moved = later.moves.filter(pc.less_equal(later.moves["effective_timestamp"], limit))
    assert moved.to_pylist() == then.moves.to_pylist()


@given(events=EVENTS, cut=st.integers(0, 60))
def test_the_parts_of_every_lag_make_it_up(
    events: list[tuple[int, str, int, int]], cut: int
) -> None:
    for row in found_at(events, sum(wait for *_, wait in events[:cut])).rows.to_pylist():
        if row["lag"] is None:
            assert row["log_end_offset"] is None
            continue
        parts = row["offsets_below_start"] + row["records_to_read"] - row["offsets_beyond_end"]
        assert row["lag"] == parts
        assert (row["lag"] < 0) == (row["committed_offset"] > row["log_end_offset"])
        assert (row["verdict"] == "beyond_end") == (row["lag"] < 0)
        assert (row["drain_ms"] == 0) == (row["lag"] <= 0)
        assert row["time_lag_bound"] != "exact" or row["time_lag_ms"] >= 0
        assert row["unchanged_commits"] + row["rewinds"] <= row["commits"]
