"""A small dump is opened, replayed and asked without Spark; a large one says that it needs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from analytics import State, open_dump
from analytics.decode import workload
from analytics.errors import EnvironmentUnfitError

PROGRAM = """
import sys
from analytics import State, open_dump
with open_dump(sys.argv[1]) as dump:
    state = dump.replay()
    answer = state.ask("lag", by="group")
    assert answer.lag.height > 30 and answer.cannot_tell == (), answer
    assert state.groups.filter(group_id="parcel-router").height == 1
    assert "pyspark" not in sys.modules
"""


def test_neither_a_session_nor_pyspark_is_needed(failover_dump: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(failover_dump)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.fixture(scope="module")
def state(failover_dump: Path) -> Iterator[State]:
    with open_dump(str(failover_dump)) as dump:
        yield dump.replay(as_of="2026-11-21T09:18:30Z")


def test_tables_are_frames_of_polars(state: State) -> None:
    offsets = state.committed_offsets
    assert isinstance(offsets, pl.DataFrame)
    assert offsets.height > 50


def test_groups_are_listed_and_described(state: State) -> None:
    listed = state.list().figures["groups"]
    described = state.describe(what="members", group_type="share")
    generation = state.describe(epoch=1)
    assert listed.num_rows == state.groups.height > 5
    assert set(described.figures["groups"]["group_type"].to_pylist()) == {"share"}
    assert described.figures["members"].num_rows > 0
    assert generation.summary == {"epoch": 1}
    assert set(generation.figures["groups"]["epoch"].to_pylist()) == {1}


def test_a_large_dump_asks_for_a_session(
    failover_dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "SMALL_BYTES", 1000)
    with open_dump(str(failover_dump)) as dump, pytest.raises(EnvironmentUnfitError, match="large"):
        dump.replay()
