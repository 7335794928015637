"""Records of groups folded to what coordinators keep of them, and how time grows with their number.

Ten million records of 3,200 groups in eight internal partitions, as `coordinator_log` tells them:
generations of classic groups with eight members each, epochs, members, targets and current
assignments of consumer, share and streams groups, one in twenty a tombstone. A partition is folded
on its own, as a bucket of a replay is. The records are made while they are folded, from one batch
whose offsets and epochs go on, which takes next to no time. Memory is the highest of a process that
does nothing else.

    python -m benchmarks.group_fold RECORDS      fold so many, and print the highest memory
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.groups.fold import AT_ONCE, group_state
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    CLASSIC,
    CURRENT,
    FAMILIES,
    GROUP,
    ITEMS,
    KINDS,
    MEMBER,
    MEMBER_DETAILS,
    MEMBER_ROLES,
    RECORDS,
    STREAMS,
    TARGET,
)
from analytics.replay.log.rules import NEWEST, replay_rules
from benchmarks.measure import Contestant, interleaved
from benchmarks.report import Figure, Report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from benchmarks.data import Data

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

RECORDS_AT_MOST = 10_000_000
RECORDS_IF_QUICK = 400_000
PARTITIONS = 8
_GROUPS = 100  # of each type, in each internal partition
_MEMBERS = 8  # of each group
_PARTITIONS_GIVEN = 4  # of each topic, to a member
_GROWTH = 4
_OFTEN = {CURRENT: 8, TARGET: 5, MEMBER: 2, GROUP: 2, ASSIGNMENT_EPOCH: 1}
_TOMBSTONES = 0.05
_WARM_UP = 1


def run(data: Data) -> list[Report]:
    """Measure."""
    records = RECORDS_IF_QUICK if data.rounds == 1 else RECORDS_AT_MOST
    template = batch_of_records()
    once, four = (
        Contestant(f"{each:,} records", partial(fold, template, each))
        for each in (records // _GROWTH, records)
    )
    interleaved([once], min(_WARM_UP, data.rounds))
    times = interleaved([once, four], data.rounds)
    of_one, of_four = times[once.name], times[four.name]
    report = Report(f"Records of groups folded, {records:,} of {PARTITIONS} internal partitions")
    rate = records / statistics.median(of_four.cpu)
    grown = statistics.median(of_four.cpu) / statistics.median(of_one.cpu)
    command = [sys.executable, "-m", "benchmarks.group_fold", str(records)]
    peak = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    report.figures = [
        Figure("records a second of processor time", rate, "", at_least=500_000),
        Figure("times the processor time for four times as many", grown, at_most=4.4),
        Figure("highest memory", float(peak), "MB", at_most=700),
    ]
    report.add_times({once.name: of_one}, records // _GROWTH)
    report.add_times({four.name: of_four}, records)
    return [report]


def fold(template: pa.RecordBatch, records: int) -> int:
    """Fold so many records, and return how many rows tell what is kept."""
    rules = replay_rules(NEWEST)
    each = records // template.num_rows
    a_partition = -(-RECORDS_AT_MOST // PARTITIONS // template.num_rows)
    return sum(
        rows.num_rows
        for partition, first in enumerate(range(0, each, a_partition))
        for rows in group_state(batches(template, partition, min(a_partition, each - first)), rules)
    )


def batches(template: pa.RecordBatch, partition: int, count: int) -> Iterator[pa.RecordBatch]:
    """Yield so many batches of an internal partition; each follows on the last."""
    at = _same(partition, template.num_rows).cast(pa.int32())
    for turn in range(count):
        columns = dict(zip(RECORDS.names, template.columns, strict=True))
        columns["coordinator_partition"] = at
        for name, step in (("offset", template.num_rows), ("epoch", 1), ("previous_epoch", 1)):
            column = template.column(name)
            columns[name] = pc.add(column, pa.scalar(turn * step, column.type))
        yield pa.record_batch(list(columns.values()), RECORDS)


def batch_of_records(rows: int = AT_ONCE) -> pa.RecordBatch:
    """Return records of all types of groups, in an order that chance makes."""
    random = np.random.default_rng(26)
    kinds = list(KINDS.values())
    often = np.array([_OFTEN.get(each.role, 0) for each in kinds], float)
    # A classic group has one kind of records, which tells all of its members at a time.
    often[0] = often.sum() / (4 * _MEMBERS)
    kind = random.choice(len(kinds), rows, p=often / often.sum())
    family = np.array([FAMILIES.index(each.family) for each in kinds])[kind]
    role = np.array([each.role for each in kinds])[kind]
    group = family * _GROUPS + random.integers(0, _GROUPS, rows)
    member = random.integers(0, _MEMBERS, rows)
    is_dead = random.random(rows) < _TOMBSTONES * np.where(np.isin(role, MEMBER_ROLES), 1, 0.01)
    is_classic = (family == FAMILIES.index(CLASSIC)) & ~is_dead
    about = np.where(is_classic, _MEMBERS, (role == MEMBER) & ~is_dead)
    given = np.where(is_classic, _MEMBERS, 2 * (np.isin(role, (CURRENT, TARGET)) & ~is_dead))
    columns = {
        "coordinator_partition": _same(0, rows),
        "group_id": _names("group-", group),
        "kind": kind,
        "member_id": _names("member-", member, ~np.isin(role, MEMBER_ROLES)),
        "offset": np.arange(rows),
        "is_tombstone": is_dead,
        "leader_epoch": _same(1, rows),
        "epoch": pa.array(np.arange(rows) // 1000, pa.int32(), mask=is_dead),
        "previous_epoch": pa.array(np.arange(rows) // 1000 - 1, pa.int32(), mask=is_dead),
        "member_state": pa.array((family == FAMILIES.index(STREAMS)) * 1, mask=role != CURRENT),
        "members": _lists(_details(about, is_classic), about),
        "items": _lists(_items(given, is_classic, role), given),
    }
    return pa.record_batch(
        [_cast(columns.get(each.name), each.type, rows) for each in RECORDS], RECORDS
    )


def _details(count: Numbers, is_classic: Flags) -> pa.StructArray:
    """Return members, those of a row one after the other."""
    row = np.repeat(np.arange(count.size), count)
    place = _places(count)
    told = {
        "member_id": _names("member-", place, ~is_classic[row]),
        "client_id": _names("client-", place),
        "client_host": _same("/10.0.0.1", row.size),
        "rebalance_timeout_ms": _same(300_000, row.size),
        "session_timeout_ms": _same(45_000, row.size),
        "is_classic": is_classic[row],
    }
    return _structs(told, MEMBER_DETAILS, row.size)


def _items(count: Numbers, is_classic: Flags, role: NDArray[np.str_]) -> pa.StructArray:
    """Return what members are given: partitions of two topics, of a classic group of one."""
    row, place = np.repeat(np.arange(count.size), count), _places(count)
    partitions = np.arange(row.size * _PARTITIONS_GIVEN) % (_MEMBERS * _PARTITIONS_GIVEN)
    told = {
        "member_id": _names("member-", place, ~is_classic[row]),
        "kind": pa.array(np.where(role[row] == TARGET, TARGET, CURRENT)),
        "topic": pa.array(np.full(row.size, "orders"), mask=~is_classic[row]),
        "topic_id": _names("EYAGe3ybSjSvj5d44sPkE", place, is_classic[row]),
        "partitions": _lists(pa.array(partitions), np.full(row.size, _PARTITIONS_GIVEN)),
    }
    return _structs(told, ITEMS, row.size)


def _places(count: Numbers) -> Numbers:
    """Return of each thing of a row its place there."""
    before = np.cumsum(count) - count
    return np.arange(count.sum()) - np.repeat(before, count)


def _lists(values: pa.Array, count: Numbers) -> pa.ListArray:
    ends = np.concatenate([[0], np.cumsum(count)])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def _structs(told: dict[str, object], kind: pa.StructType, rows: int) -> pa.StructArray:
    columns = [_cast(told.get(each.name), each.type, rows) for each in kind]
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def _names(prefix: str, number: Numbers, nobody: Flags | None = None) -> pa.Array:
    names = np.char.add(prefix, np.arange(number.max(initial=0) + 1).astype(str))
    return pa.array(names).take(pa.array(number, mask=nobody))


def _same(value: object, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), rows)


def _cast(given: object, kind: pa.DataType, rows: int) -> pa.Array:
    if given is None:
        return pa.nulls(rows, kind)
    return (given if isinstance(given, pa.Array) else pa.array(given)).cast(kind)


if __name__ == "__main__":
    fold(batch_of_records(), int(sys.argv[1]))
    # What a process is told of itself by getrusage may be its parent's.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    print(int(status.partition("VmHWM:")[2].split()[0]) / 1000)
