"""What fills the internal topics, against Spark merely counting the decoded commits by group.

The table is `offset_commit` as `groupscope decode` leaves it: fifty million commits of 500 groups,
that read twenty partitions each, in ten partitions of the offsets topic. What is timed on our side
is all that `usage` does: every key, live and dead, what a pass of the cleaner would leave, who
commits. What Spark counts ends in its noop sink. Memory is the highest of a process that does
nothing else, with a quarter of the commits and with all of them.

    python -m benchmarks.usage FOLDER      evaluate one, and print the highest memory
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from analytics.decode.tables import decoded_schema, label
from analytics.decode.tasks import PartWriter, empty_parts
from analytics.questions.usage.cleaner import LogSettings
from analytics.questions.usage.tables import Usage, usage_tables
from analytics.time_columns import TIMESTAMP
from analytics.version import SCHEMA_VERSION
from analytics.workspace import Part, Workspace
from benchmarks.beside_counting import COUNTING, beside_counting, highest_memory
from benchmarks.measure import Contestant, ratio
from benchmarks.report import Figure, Report
from schemas import record_type
from schemas.usage_rules import usage_rules

if TYPE_CHECKING:
    from benchmarks.data import Data
    from schemas.manifest import Manifest, PartitionEntry

COMMITS = 50_000_000
COMMITS_IF_QUICK = 200_000
_TOPIC = "__consumer_offsets"
_GROUPS, _PARTITIONS, _TOPICS, _FILES = 500, 20, 100, 10
_ROWS = 1 << 17
_START_MS, _RECORD_BYTES, _BATCH = 1_780_000_000_000, 110, 6
_QUARTER = 4


def run(data: Data) -> list[Report]:
    """Measure."""
    commits = COMMITS_IF_QUICK if data.rounds == 1 else COMMITS
    counts = (commits // _QUARTER, commits)
    folders = [data.folder / f"usage-{each}" for each in counts]
    for folder, count in zip(folders, counts, strict=True):
        write_commits(folder, count)
    report = Report(f"usage of {commits:,} commits")
    ours = Contestant("usage", lambda: evaluate(folders[-1]))
    table = folders[-1] / "decoded" / "offset_commit"
    taken = beside_counting(ours, table, "key.group", data.rounds)
    one, other = taken[ours.name], taken[COUNTING]
    report.figures = [
        Figure("of the time of Spark's count", ratio(one.wall, other.wall), at_most=3),
        Figure("the same in processor time", ratio(one.cpu, other.cpu)),
        *highest_memory("benchmarks.usage", folders),
    ]
    report.add_times(taken, commits)
    return [report]


def evaluate(folder: Path | str) -> Usage:
    """Make the tables of a workspace that has commits alone."""
    found = usage_tables(Workspace(str(folder)), _manifest(folder), LogSettings(usage_rules()))
    assert len(found.tables["committers"]) == _GROUPS
    return found


def write_commits(folder: Path, commits: int) -> None:
    """Write commits of all groups, a tenth of which change nothing."""
    random = np.random.default_rng(7)
    for file in range(_FILES):
        staged = folder / f"staged-{file}"
        with PartWriter(str(staged)) as writer:
            left, offset = commits // _FILES, 0
            while left > 0:
                rows = min(left, _ROWS)
                writer.write("decoded/offset_commit", _commits(random, file, offset, rows))
                left, offset = left - rows, offset + rows
            (part,) = writer.finish()
        _publish(folder, part, file)
    for part in empty_parts(str(folder / "staged"), "decoded", {"decoded/offset_commit"}):
        _publish(folder, part, 0)


def _publish(folder: Path, part: Part, number: int) -> None:
    target = folder / part.table / f"part-{number:05d}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    Path(part.path).rename(target)


def _commits(random: np.random.Generator, file: int, first: int, rows: int) -> pa.RecordBatch:
    groups_a_file = _GROUPS // _FILES
    keys = random.integers(0, groups_a_file * _PARTITIONS, rows)
    groups, partitions = keys // _PARTITIONS + file * groups_a_file, keys % _PARTITIONS
    offsets = first + np.arange(rows)
    schema = decoded_schema(record_type("offset_commit"))
    times = pa.array((_START_MS + offsets) * 1000).view(TIMESTAMP)
    value_type = schema.field("value").type
    said: dict[str, Any] = {
        "offset": pa.array(offsets // 10 * 9),
        "leader_epoch": _same(0, rows, pa.int32()),
        "metadata": _named("", np.zeros(rows, np.int64), 1),
        "commit_timestamp": pa.array(_START_MS + offsets),
    }
    columns: dict[str, pa.Array] = {
        "topic": label(_TOPIC, rows),
        "partition": _same(file, rows, pa.int32()),
        "offset": pa.array(offsets),
        "timestamp": times,
        "leader_epoch": _same(0, rows, pa.int32()),
        "producer_id": _same(-1, rows, pa.int64()),
        "producer_epoch": _same(-1, rows, pa.int16()),
        "is_transactional": pa.array(np.zeros(rows, np.bool_)),
        "record_type": _same(1, rows, pa.int16()),
        "value_version": _same(3, rows, pa.int16()),
        "is_tombstone": pa.array(np.zeros(rows, np.bool_)),
        "batch_offset": pa.array(offsets // _BATCH * _BATCH),
        "batch_position": pa.array(offsets // _BATCH * _BATCH * _RECORD_BYTES),
        "record_bytes": _same(_RECORD_BYTES, rows, pa.int32()),
        "copy": label("broker-1", rows),
        "segment": label(f"{_TOPIC}-{file}/00000000000000000000.log", rows),
        "key": pa.StructArray.from_arrays(
            [
                _named("service-{:04d}-consumer", groups, _GROUPS),
                _named("topic-{:03d}.events", groups % _TOPICS, _TOPICS),
                pa.array(partitions.astype(np.int32)),
            ],
            fields=list(schema.field("key").type),
        ),
        "value": pa.StructArray.from_arrays(
            [_or_none(said, each, rows) for each in value_type], fields=list(value_type)
        ),
    }
    arrays = [_or_none(columns, each, rows) for each in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _or_none(columns: dict[str, pa.Array], field: pa.Field, rows: int) -> pa.Array:
    found = columns.get(field.name)
    return pa.nulls(rows, field.type) if found is None else found.cast(field.type)


def _same(value: int, rows: int, type_: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, type_), rows)


def _named(pattern: str, numbers: np.ndarray, count: int) -> pa.Array:
    names = pa.array([pattern.format(each) for each in range(count)])
    codes = pa.array(numbers.astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, names).cast(pa.string())


def _manifest(folder: Path | str) -> Manifest:
    """Return what a decode run would have said of such a log, as far as it is asked for."""
    paths = (Path(folder) / "decoded" / "offset_commit").glob("*.parquet")
    records = sum(parquet.read_metadata(path).num_rows for path in paths) // _FILES
    partitions: list[PartitionEntry] = [
        {
            "topic": _TOPIC,
            "partition": file,
            "copy": "broker-1",
            "files": [],
            "first_offset": 0,
            "end_offset": COMMITS,
            "last_timestamp": "2026-12-01T00:00:00.000Z",
            "complete_from": 0,
            "records": records,
        }
        for file in range(_FILES)
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "created_from": [str(folder)],
        "options": {},
        "kafka_version": {},
        "record_types": [],
        "partitions": partitions,
        "reconciliation": [],
        "absent_partitions": {},
        "copies": [{"name": "broker-1", "node_id": 1, "cluster_id": None}],
    }


if __name__ == "__main__":
    evaluate(sys.argv[1])
    # What a process is told of itself by getrusage may be its parent's.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    print(int(status.partition("VmHWM:")[2].split()[0]) / 1000)
