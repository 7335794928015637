"""The history of a large group is made slice by slice: it equals that of the whole group."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import polars as pl

from analytics.replay.log.coverage import WHOLE
from analytics.replay.log.rules import replay_rules
from analytics.replay.offsets.commit_groups import _SLICES, _history, _one_by_one
from analytics.replay.offsets.commit_rows import commit_rows, marker_rows
from tests.support.commit_frames import NO_TOPICS, REMOVALS, decoded_rows, group_frames
from tests.support.reference_offset_history import random_log


def sliced(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of one offset belong to one slice, all others to each."""
    if "topic" in frame.columns:
        return frame.with_columns((pl.col("partition") + 3).alias("slice"))
    every = pl.DataFrame({"slice": range(_SLICES)}, {"slice": pl.Int32})
    return frame.join(every, how="cross")


def test_slices_together_are_the_whole() -> None:
    logs = [random_log(each, 60, clears_pending=True) for each in range(100)]
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for log in logs:
        for name, told in log.rows.items():
            rows[name] += told
    moments, owners = group_frames(logs)
    frames = {
        "commits": commit_rows(decoded_rows("offset_commit", rows["offset_commit"])),
        "markers": marker_rows(decoded_rows("control_markers", rows["control_markers"])),
        "moments": moments,
        "owners": owners,
        "removals": pl.DataFrame(schema=REMOVALS),
    }
    make = partial(_history, topics=NO_TOPICS, rules=replay_rules("4.3"), coverage=WHOLE)
    whole = make(frames)
    parts = _one_by_one({name: sliced(frame) for name, frame in frames.items()}, make)
    assert whole["offset_history"].height > 1_000
    for name, expected in whole.items():
        assert parts[name].sort(pl.all()).equals(expected.sort(pl.all()))
