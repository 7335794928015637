"""`from analytics import open_dump`: what commands do, on the caller's session."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from analytics import Dump, State, open_dump
from analytics.engine import replay_work
from analytics.errors import CannotTellError, InputNotRecognizedError
from analytics.library import dump as library
from schemas import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

BEFORE = "2026-11-21T09:18:30Z"
FEW = 300
"""Records of a bucket, so that there are many."""
WANTED = ("committed_offsets", "groups", "members", "assignments", "group_epochs")


@pytest.fixture(scope="module")
def dump(failover_dump: Path) -> Iterator[Dump]:
    with open_dump(str(failover_dump)) as opened:
        yield opened


@pytest.fixture(scope="module")
def state(dump: Dump, spark: SparkSession) -> State:
    """As of the end, from a session that lives in another time zone."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        return dump.replay(spark, tables=WANTED)
    finally:
        assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("name", WANTED)
def test_its_tables_are_those_of_the_command(
    state: State, failover_workspace: Path, name: str
) -> None:
    (folder,) = (each for each in failover_workspace.glob(f"*/{name}") if each.is_dir())
    key = [(each, "ascending") for each in table(name).key]
    theirs = pq.read_table(folder).sort_by(key).to_pylist()
    assert state.table(name).toArrow().sort_by(key).to_pylist() == theirs


def test_what_is_large_is_replayed_in_tasks_on_spark(
    dump: Dump, spark: SparkSession, failover_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "is_small_workspace", lambda _: False)
    monkeypatch.setattr(replay_work, "MOST_ROWS", FEW)
    large = dump.replay(spark)
    for folder in sorted(failover_workspace.glob("state/*")) + sorted(
        failover_workspace.glob("history/*")
    ):
        columns = [each.name for each in table(folder.name).columns]
        theirs = pq.read_table(folder).select(columns).to_pylist()
        ours = large.table(folder.name).toArrow().select(columns).to_pylist()
        assert sorted(map(str, ours)) == sorted(map(str, theirs)), folder.name


def test_its_tables_are_attributes(state: State) -> None:
    assert set(WANTED) <= set(dir(state))
    assert state.groups.count() == state.table("groups").count() > 0
    with pytest.raises(KeyError, match="no table of this replay"):
        state.table("topics_of_nobody")
    with pytest.raises(AttributeError):
        _ = state.topics_of_nobody


def test_an_instant_is_a_time_however_it_is_written(dump: Dump, spark: SparkSession) -> None:
    moments = [BEFORE, datetime(2026, 11, 21, 9, 18, 30, tzinfo=UTC)]
    found = [
        dump.replay(spark, as_of=each, tables=["committed_offsets"]).committed_offsets.where(
            "group_id = 'parcel-router' and partition = 2"
        )
        for each in moments
    ]
    assert [[row.committed_offset for row in each.collect()] for each in found] == [[180], [180]]


def test_before_the_first_record_nothing_is_known(dump: Dump, spark: SparkSession) -> None:
    with pytest.raises(CannotTellError, match="nothing is known"):
        dump.replay(spark, as_of="2020-01-01T00:00:00Z")


def test_a_workspace_is_asked_as_a_dump_is(
    failover_workspace: Path, spark: SparkSession, state: State
) -> None:
    with open_dump(str(failover_workspace)) as opened:
        again = opened.replay(spark, tables=["groups"])
        assert again.groups.count() == state.groups.count()
    with pytest.raises(InputNotRecognizedError, match="only input"):
        open_dump(str(failover_workspace), str(failover_workspace))


def test_what_the_dump_lacks_is_never_silently_complete(
    failover_dump: Path, spark: SparkSession, state: State, tmp_path: Path
) -> None:
    home = state.groups.where("group_id = 'parcel-router'").first().coordinator_partition
    harmed = tmp_path / "dump"
    shutil.copytree(failover_dump, harmed)
    for log in harmed.glob(f"*/__consumer_offsets-{home}/*.log"):
        # The second half is lost; the index and the checkpoints still tell of it.
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    with open_dump(str(harmed)) as opened:
        found = opened.replay(spark, tables=["committed_offsets"])
        rows = found.committed_offsets.where(f"coordinator_partition = {home}").collect()
        assert any(f"__consumer_offsets-{home}" in each for each in found.lacks)
        assert rows
        assert {row.complete for row in rows} == {False}
    assert state.lacks == ()


def test_the_session_goes_on(state: State, spark: SparkSession) -> None:
    assert state.manifest["replay"]["as_of"] == {"time": None, "offsets": {}}
    assert spark.range(3).count() == 3


def test_what_was_written_goes_when_the_dump_is_closed(
    failover_dump: Path, tmp_path: Path, spark: SparkSession
) -> None:
    with open_dump(str(failover_dump), work=str(tmp_path)) as opened:
        opened.replay(spark, tables=["groups"])
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
