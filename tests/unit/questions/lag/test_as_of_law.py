"""What is asked of a cut equals what was asked then, and the parts of a lag make it up."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

from analytics.questions.lag.pace import log_ends
from analytics.questions.lag.table import Lag
from analytics.replayed.end_offsets import SAMPLES
from tests.support.examples import examples
from tests.unit.questions.lag.asked_lag import Asked, asked
from tests.unit.questions.lag.commits import at, history

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 2),  # which partition
        st.sampled_from(["commit", "commit", "commit", "sample", "delete"]),
        st.integers(0, 40),  # an offset, or where the log ends
        st.integers(1, 200_000),  # milliseconds since the event before
    ),
    max_size=60,
)


def question_at(samples: list[dict[str, Any]], commits: pl.DataFrame, now_ms: int) -> Asked:
    """Ask at a time: state is what the last commit of each partition left."""
    in_force = {row["partition"]: row["committed_offset"] for row in commits.to_dicts()}
    committed = [
        {"topic": "t", "partition": place, "committed_offset": offset}
        for place, offset in in_force.items()
        if offset is not None
    ]
    ends = {row["partition"]: row["log_end_offset"] for row in samples}
    found = asked(committed=committed, ends={("t", place): (0, end) for place, end in ends.items()})
    sampled = log_ends(pa.Table.from_pylist(samples, SAMPLES))
    return found.of(as_of=at(now_ms), samples=sampled)


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
    rows = history(commits)
    return question_at(samples, rows, until_ms).found(rows)


@examples(6, 30, events=EVENTS, cut=st.integers(0, 60))
def test_what_is_asked_of_a_cut_is_what_was_asked_then(
    events: list[tuple[int, str, int, int]], cut: int
) -> None:
    then_ms = sum(wait for *_, wait in events[:cut])
    end_ms = sum(wait for *_, wait in events) + 1
    then, later = found_at(events, then_ms), found_at(events, end_ms)

    begun = later.statuses.filter(pl.col("from_timestamp") <= at(then_ms))
    names = ("group_id", "topic", "partition", "status", "from_timestamp", "committed_offset")
    key = ("partition", "from_timestamp")
    assert (
        begun.select(names).sort(key).to_dicts() == then.statuses.select(names).sort(key).to_dicts()
    )
    moved = later.moves.filter(pl.col("effective_timestamp") <= at(then_ms))
    assert moved.to_dicts() == then.moves.to_dicts()


@examples(6, 30, events=EVENTS, cut=st.integers(0, 60))
def test_the_parts_of_every_lag_make_it_up(
    events: list[tuple[int, str, int, int]], cut: int
) -> None:
    for row in found_at(events, sum(wait for *_, wait in events[:cut])).rows.to_dicts():
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
