"""`lag --history` over generated commits, against Spark counting the same table by group.

The commits are a table `offset_history` as a replay leaves it: 500 groups that read twenty
partitions each, 50 million commits, and a hundred samples of where each log ended. Ours walks
through all of it: Burrow's windows, every change of status, every step back. Memory is the highest
of a process that does nothing else, with a quarter of the commits and with all of them.

    python -m benchmarks.lag_history FOLDER      walk through one, and print the highest memory
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.contracts import contract_schema
from analytics.questions.lag.movement import HISTORY
from analytics.questions.lag.offsets import GroupTables
from analytics.questions.lag.pace import log_ends
from analytics.questions.lag.table import LagQuestion, evaluate_lag
from analytics.replayed.end_offsets import SAMPLES
from analytics.replayed.whole_groups import stored_parts
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from benchmarks.beside_counting import COUNTING, beside_counting, highest_memory
from benchmarks.measure import Contestant, ratio
from benchmarks.report import Figure, Report
from schemas.evaluation_rules import lag_rules

if TYPE_CHECKING:
    from benchmarks.data import Data

COMMITS = 50_000_000
COMMITS_IF_QUICK = 200_000
_GROUPS, _PARTITIONS, _TOPICS, _MEMBERS, _SAMPLES = 500, 20, 100, 4, 100
_FILES, _ROW_GROUP = 10, 1 << 20
_START_US, _STEP_US = 1_780_000_000_000_000, 1000
_TEXT, _LONG, _TIME = pa.string(), pa.int64(), pa.timestamp("us", "UTC")
_QUARTER = 4
_AT_ONCE = 2_000_000


def run(data: Data) -> list[Report]:
    """Measure."""
    commits = COMMITS_IF_QUICK if data.rounds == 1 else COMMITS
    folders = [data.folder / f"lag-{each}" for each in (commits // _QUARTER, commits)]
    for folder, count in zip(folders, (commits // _QUARTER, commits), strict=True):
        write_history(folder, count)
    report = Report(f"lag --history of {commits:,} commits")
    ours = Contestant("lag --history", lambda: walk(folders[-1]))
    table = folders[-1] / "history" / "offset_history"
    taken = beside_counting(ours, table, "group_id", data.rounds)
    times = ratio(taken[ours.name].wall, taken[COUNTING].wall)
    report.figures.append(Figure("of the time of Spark's count", times, at_most=3))
    report.figures += highest_memory("benchmarks.lag_history", folders)
    report.add_times(taken, commits)
    return [report]


def walk(folder: Path | str) -> int:
    """Evaluate all commits of a workspace that has nothing else; return how many rows it gives."""
    nothing = GroupTables(*map(_nothing, ("groups", "members", "assignments", "committed_offsets")))
    ends = pl.DataFrame(SAMPLES.empty_table()).drop("timestamp")
    now = datetime.fromtimestamp(_START_US / 1e6 + 86_400, UTC)
    asked = LagQuestion(_nothing("topics"), ends, _samples(), now, lag_rules())
    stored = StoredTables(Workspace(str(folder)))
    with stored_parts(stored, {"offset_history": HISTORY}, _AT_ONCE) as parts:
        found = (evaluate_lag(asked, nothing, each.read()["offset_history"]) for each in parts)
        return sum(each.rows.height + each.statuses.height + each.moves.height for each in found)


def _nothing(name: str) -> pl.DataFrame:
    return pl.DataFrame(schema=contract_schema(name))


def write_history(folder: Path, commits: int) -> None:
    """Write commits of all groups, some of which change nothing or go back."""
    out = folder / "history" / "offset_history"
    out.mkdir(parents=True)
    random = np.random.default_rng(7)
    in_force = np.zeros(_GROUPS * _PARTITIONS, np.int64)
    keys_a_file = len(in_force) // _FILES
    for file in range(_FILES):
        with pq.ParquetWriter(out / f"part-{file:05d}.parquet", _HISTORY) as writer:
            left = commits // _FILES
            at = 0
            while left > 0:
                rows = min(left, _ROW_GROUP)
                keys = random.integers(0, keys_a_file, rows) + file * keys_a_file
                writer.write_table(_commits(random, keys, in_force, at), row_group_size=_ROW_GROUP)
                left, at = left - rows, at + rows


def _commits(
    random: np.random.Generator, keys: np.ndarray, in_force: np.ndarray, first: int
) -> pa.Table:
    rows = len(keys)
    advance = random.integers(-1, 50, rows) * (random.random(rows) < 0.9)
    order = np.argsort(keys, kind="stable")
    sorted_keys, total = keys[order], np.cumsum(advance[order])
    begins = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
    lengths = np.diff(np.r_[begins, rows])
    before = np.repeat(total[begins] - advance[order][begins], lengths)
    offsets = np.empty(rows, np.int64)
    offsets[order] = in_force[sorted_keys] + total - before
    in_force[sorted_keys[begins]] += total[begins + lengths - 1] - before[begins]
    groups, partitions = keys // _PARTITIONS, keys % _PARTITIONS
    members = groups * _MEMBERS + partitions % _MEMBERS
    times = pa.array(_START_US + (first + np.arange(rows)) * _STEP_US).cast(_TIME)
    same = np.zeros(rows, np.int64)
    columns = {
        "group_id": _named("service-{:04d}-consumer", groups, _GROUPS),
        "topic": _named("topic-{:03d}.events", groups % _TOPICS, _TOPICS),
        "partition": pa.array(partitions.astype(np.int32)),
        "event": _named("commit", same, 1),
        "committed_offset": pa.array(offsets),
        "previous_offset": pa.array(offsets - advance),
        "advance": pa.array(advance),
        "commit_timestamp": times,
        "effective_timestamp": times,
        "epoch": pa.array(same.astype(np.int32)),
        "member_id": _named("consumer-{:05d}-3f2b8c1e-9d4a-4f6e", members, _GROUPS * _MEMBERS),
        "origin": _named("member", same, 1),
        **dict.fromkeys(("topic_id", "cause"), pa.nulls(rows, _TEXT)),
        "complete": pa.repeat(pa.scalar(value=True), rows),
    }
    return pa.table([columns[name] for name in _HISTORY.names], schema=_HISTORY)


def _named(pattern: str, numbers: np.ndarray, count: int) -> pa.Array:
    names = pa.array([pattern.format(each) for each in range(count)])
    return pc.cast(pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), names), _TEXT)


def _samples() -> pl.DataFrame:
    """Return where logs ended: now and then, and growing."""
    places = np.arange(_TOPICS * _PARTITIONS * _SAMPLES)
    number = places % _SAMPLES
    columns = {
        "topic": _named("topic-{:03d}.events", places // (_PARTITIONS * _SAMPLES), _TOPICS),
        "partition": pa.array((places // _SAMPLES % _PARTITIONS).astype(np.int32)),
        "timestamp": pa.array(_START_US + number * 60_000_000).cast(_TIME),
        "log_start_offset": pa.nulls(len(places), _LONG),
        "log_end_offset": pa.array(number * 1000),
    }
    return log_ends(pa.table([columns[name] for name in SAMPLES.names], schema=SAMPLES))


_HISTORY = pa.schema(
    [
        *((name, _TEXT) for name in ("group_id", "topic", "event", "member_id", "origin")),
        *((name, _TEXT) for name in ("topic_id", "cause")),
        ("complete", pa.bool_()),
        *((name, pa.int32()) for name in ("partition", "epoch")),
        *((name, _LONG) for name in ("committed_offset", "previous_offset", "advance")),
        *((name, _TIME) for name in ("commit_timestamp", "effective_timestamp")),
    ]
)


if __name__ == "__main__":
    walk(sys.argv[1])
    # What a process is told of itself by getrusage may be its parent's.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    print(int(status.partition("VmHWM:")[2].split()[0]) / 1000)
