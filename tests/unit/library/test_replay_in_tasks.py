"""A replay bucket after bucket is the replay of everything in one go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analytics.contracts import polars_rows
from analytics.dump.inspection.found_losses import with_archived_losses
from analytics.engine import record_layout
from analytics.engine.cut_tables import buckets_of, cut_of, timeless_partitions
from analytics.engine.record_layout import Run, run_task
from analytics.engine.replay_tasks import replay_here, replay_in_tasks, sorted_rows
from analytics.engine.replay_work import ReplayWork
from analytics.replay.dump.choices import moment
from analytics.replay.dump.coverage import coverage_of, log_starts, topics_beside
from analytics.replay.dump.followed_lines import followed_lines
from analytics.replay.log.log_times import AsOf
from analytics.replay.log.rules import replay_rules
from analytics.replay.state import replay_given
from analytics.tables.buckets import GroupBucket
from tests.support.decoded_here import decoded_here

if TYPE_CHECKING:
    from analytics.workspace import Workspace

FEW = 300
BEFORE_THE_ELECTION = 1795252710000


@pytest.fixture(scope="module")
def decoded(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return decoded_here([str(failover_dump)], tmp_path_factory.mktemp("decoded"))


@pytest.fixture(scope="module")
def without_times(failover_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return the same of tombstones without a time, as message format 0 wrote them."""
    space = decoded_here([str(failover_dump)], tmp_path_factory.mktemp("decoded"))
    tombstones, told = 0, Path(space.location, "manifest.json")
    manifest = json.loads(told.read_text())
    for path in Path(space.location).glob("decoded/offset_commit/*.parquet"):
        rows = pq.read_table(path, partitioning=None)
        time, is_tombstone = rows["timestamp"], rows["is_tombstone"]
        without = pc.if_else(is_tombstone, pa.scalar(None, time.type), time)
        tombstones += pc.sum(is_tombstone).as_py() or 0
        place = rows.column_names.index("timestamp")
        pq.write_table(rows.set_column(place, "timestamp", without), path)
        manifest["files"][str(path.relative_to(space.location))] = path.stat().st_size
    told.write_text(json.dumps(manifest))
    assert tombstones
    return space


def _one_by_one(place: str, count: int) -> list[Any]:
    return [run_task(place, number) for number in reversed(range(count))]


def _tried_twice(place: str, count: int) -> list[Any]:
    """As Spark does where a worker is slow, or lost: one of the attempts counts."""
    return [[run_task(place, number) for _ in range(2)][number % 2] for number in range(count)]


@pytest.mark.parametrize(
    ("time_ms", "run", "most_parts"),
    [
        (None, _tried_twice, 3),
        (BEFORE_THE_ELECTION, _one_by_one, 256),
        pytest.param(None, _tried_twice, 256, marks=pytest.mark.long),
        pytest.param(None, _one_by_one, 3, marks=pytest.mark.long),
    ],
)
def test_buckets_tell_what_all_records_at_once_tell(
    decoded: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    time_ms: int | None,
    run: Run,
    most_parts: int,
) -> None:
    monkeypatch.setattr(record_layout, "MOST_PARTS", most_parts)
    _assert_same(decoded, tmp_path, time_ms, run)


def test_what_bounds_a_time_is_told_by_groups_of_other_buckets(
    without_times: Workspace, tmp_path: Path
) -> None:
    _assert_same(without_times, tmp_path, None, _tried_twice)


def _assert_same(decoded: Workspace, tmp_path: Path, time_ms: int | None, run: Run) -> None:
    manifest = with_archived_losses(decoded.manifest(), is_whole=False)
    instant = AsOf({}, time_ms)
    lines = followed_lines(manifest, None if time_ms is None else moment(time_ms))
    work = ReplayWork(instant, "4.3", (), {}, None, lines)
    reader = work.reader(decoded)
    cut = cut_of(reader, instant, log_starts(manifest) if instant.is_end else {})
    coverage = coverage_of(manifest, instant, decoded, lines)
    beside = [topics_beside(manifest, ())]
    at_once: dict[str, list[pl.DataFrame]] = {}
    replay_here(
        work.steps,
        replay_given(replay_rules("4.3"), coverage, beside),
        cut,
        lambda name, rows: at_once.setdefault(name, []).append(rows),
    )
    in_parts: dict[str, list[pl.DataFrame]] = {}
    laid = buckets_of(reader, FEW)
    assert any(bucket.parts > 1 for bucket in laid)
    parts = replay_in_tasks(
        run,
        work.steps,
        replay_given(replay_rules("4.3"), coverage, beside, timeless_partitions(reader)),
        cut,
        laid,
        str(tmp_path),
        lambda name, rows: in_parts.setdefault(name, []).append(rows),
    )
    says_so: set[str] = set()
    for part in parts:
        name = part.table.rpartition("/")[2]
        written = polars_rows(pq.read_table(part.path, partitioning=None))
        in_parts.setdefault(name, []).append(written)
        groups = GroupBucket.of_file(pq.read_metadata(part.path).metadata)
        if groups is not None and "group_id" in written.columns:
            says_so.add(name)
            assert written.select(groups.has(pl.col("group_id")).all()).item(), name
    assert {"groups", "members", "committed_offsets", "offset_history", "group_events"} <= says_so
    assert len(at_once) > 15
    for name, rows in at_once.items():
        expected, found = _in_order(rows, name), _in_order(in_parts.get(name, []), name)
        assert found == expected, name


def _in_order(rows: list[pl.DataFrame], name: str) -> list[dict[str, Any]]:
    if not rows:
        return []
    told: list[dict[str, Any]] = sorted_rows(rows, name).to_pylist()
    return sorted(told, key=str)
