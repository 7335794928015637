"""Share state replayed in buckets, against merely reading the same columns of the same tables.

Two logs of updates, four ranges to a record at most: one as brokers leave it, with a snapshot after
every 500 updates of a share partition, and one whose snapshots stopped at the beginning, so that
every update counts. Besides, how time grows from one to four times the data, in four times the
partitions: one that is too large for a bucket is read once for each part of it.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.decode.tables import table_schema
from analytics.replay.share_fold import BATCHES, share_states
from analytics.tables.buckets import buckets
from analytics.tables.record_reader import RecordReader
from analytics.workspace import DECODED, Workspace
from benchmarks.measure import Contestant, interleaved, ratio
from benchmarks.report import Figure, Report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from benchmarks.data import Data

TOPIC = "__share_group_state"
TABLES = ("share_snapshot", "share_update")
UPDATES = 1_000_000
UPDATES_IF_QUICK = 16_000
PARTITIONS = 8  # of the internal topic, and so files; four times as many of the larger log
UPDATES_PER_KEY = 1_000
UPDATES_PER_SNAPSHOT = 500  # share.coordinator.snapshot.update.records.per.snapshot
_START = 1_700_000_000_000
_WARM_UP = 2


def run(data: Data) -> list[Report]:
    """Measure."""
    updates = UPDATES_IF_QUICK if data.rounds == 1 else UPDATES
    usual = write_share_log(data.folder / "usual", updates, UPDATES_PER_SNAPSHOT)
    larger = write_share_log(
        data.folder / "larger", 4 * updates, UPDATES_PER_SNAPSHOT, 4 * PARTITIONS
    )
    endless = write_share_log(data.folder / "endless", updates, UPDATES_PER_KEY)
    return [
        _against_reading(usual, updates, data.rounds, "a snapshot every 500 updates"),
        _against_reading(endless, updates, data.rounds, "no snapshot but the first"),
        _growth(usual, larger, updates, data.rounds),
    ]


def _against_reading(log: Path, updates: int, rounds: int, what: str) -> Report:
    keys = updates // UPDATES_PER_KEY
    assert _replay(log) == keys, "every key has a state"
    ours = Contestant("replay of share state", lambda: _replay(log))
    read = Contestant("reading the same columns", lambda: sum(1 for _ in _decoded(log)))
    interleaved([ours, read], min(_WARM_UP, rounds))
    times = interleaved([ours, read], rounds)
    report = Report(f"Share state, {updates:,} updates, {keys:,} keys, {what}")
    report.figures = [
        Figure(
            "of the time of reading the same columns",
            ratio(times[ours.name].wall, times[read.name].wall),
            at_most=2.5,
        ),
        Figure("the same in processor time", ratio(times[ours.name].cpu, times[read.name].cpu)),
    ]
    report.add_times(times, updates)
    return report


def _growth(usual: Path, larger: Path, updates: int, rounds: int) -> Report:
    once = Contestant(f"{updates:,} updates", lambda: _replay(usual))
    four = Contestant(f"{4 * updates:,} updates", lambda: _replay(larger))
    times = interleaved([once, four], rounds)
    report = Report("Share state, from one to four times the data")
    grown = statistics.median(times[four.name].wall) / statistics.median(times[once.name].wall)
    report.figures = [Figure("times as long", grown, at_most=4.2)]
    report.add_times(times)
    return report


def _replay(log: Path) -> int:
    """Return how many states there are."""
    return sum(share_states(each).height for each in _decoded(log))


def _decoded(log: Path) -> Iterator[dict[str, pl.DataFrame]]:
    """Read bucket after bucket."""
    reader = RecordReader(Workspace(str(log)))
    for bucket in buckets(TOPIC, reader.counts(TABLES)):
        yield {table: reader.table(table, bucket) for table in TABLES}


def write_share_log(
    folder: Path, updates: int, updates_per_snapshot: int, partitions: int = PARTITIONS
) -> Path:
    """Write a workspace with a share log: one Parquet file a table and internal partition.

    Every key gets `UPDATES_PER_KEY` updates in turn. The start offset moves on by about three each
    time; ranges lie within some dozens of offsets of it, one to four a record.
    """
    keys = updates // UPDATES_PER_KEY // partitions
    for partition in range(partitions):
        random = np.random.default_rng(partition)
        turn, key = np.divmod(np.arange(keys * UPDATES_PER_KEY), keys)
        # A snapshot lies before every n-th update of a key.
        snapshot_at = np.flatnonzero(turn % updates_per_snapshot == 0)
        offset = np.arange(turn.size) + np.searchsorted(snapshot_at, np.arange(turn.size), "right")
        for table in TABLES:
            rows = snapshot_at if table == "share_snapshot" else np.arange(turn.size)
            at = offset[rows] - (table == "share_snapshot")
            epoch = turn[rows] // updates_per_snapshot
            part = _rows(table, partition, at, key[rows], turn[rows], epoch, random)
            (folder / DECODED / table).mkdir(parents=True, exist_ok=True)
            pq.write_table(part, folder / DECODED / table / f"part-{partition}.parquet")
    return folder


def _rows(
    table: str,
    partition: int,
    offset: NDArray[np.int64],
    key: NDArray[np.int64],
    turn: NDArray[np.int64],
    epoch: NDArray[np.int64],
    random: np.random.Generator,
) -> pa.Table:
    count, start = offset.size, turn * 3
    is_snapshot = table == "share_snapshot"
    value = {
        "snapshot_epoch": epoch,
        "state_epoch": np.ones(count, np.int64),
        "leader_epoch": np.zeros(count, np.int64) if is_snapshot else np.full(count, -1),
        "start_offset": start,
        "delivery_complete_count": random.integers(0, 30, count),
        "create_timestamp": _START + offset,
        "write_timestamp": _START + offset,
        "state_batches": _ranges(start, random),
    }
    schema = table_schema(table)
    columns = {
        "topic": pa.array([TOPIC]).take(pa.array(np.zeros(count, np.int32))),
        "partition": np.full(count, partition),
        "offset": offset,
        "is_tombstone": np.zeros(count, np.bool_),
        "value_layout": pa.array(["4.1+"]).take(pa.array(np.zeros(count, np.int32))),
        "key": {
            "group_id": pa.array([f"share-group-{partition}-{each}" for each in key]),
            "topic_id": pa.array([f"{each % 7:022d}" for each in key]),
            "partition": key % 12,
        },
        "value": value,
    }
    return pa.table(
        {field.name: _array(columns.get(field.name), field.type, count) for field in schema},
        schema=schema,
    )


def _array(given: object, type_: pa.DataType, count: int) -> pa.Array:
    if given is None:
        return pa.nulls(count, type_)
    if isinstance(given, dict):
        fields = list(type_)
        arrays = [_array(given[field.name], field.type, count) for field in fields]
        return pa.StructArray.from_arrays(arrays, fields=fields)
    return given.cast(type_) if isinstance(given, pa.Array) else pa.array(given, type_)


def _ranges(start: NDArray[np.int64], random: np.random.Generator) -> pa.Array:
    """One to four ranges a record, ascending from about its start offset."""
    lengths = random.integers(1, 5, start.size)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    first = np.repeat(start, lengths) + place * 12 + random.integers(0, 6, place.size)
    states = random.choice(np.array([0, 2, 2, 2, 4], np.int8), place.size)
    values = [
        pa.array(first),
        pa.array(first + random.integers(0, 6, place.size)),
        pa.array(states),
        pa.array(random.integers(1, 5, place.size).astype(np.int16)),
    ]
    structs = pa.StructArray.from_arrays(values, fields=list(BATCHES.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets), structs)
