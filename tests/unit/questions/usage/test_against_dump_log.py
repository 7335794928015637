"""Bytes and live records are what Kafka's own `kafka-dump-log` printed for the same segments."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest

from analytics.engine.part_runs import PartRunner
from analytics.questions.usage import laid_records
from analytics.questions.usage.cleaner import LogSettings
from analytics.questions.usage.tables import Usage, UsageAsked, usage_tables
from analytics.workspace import Workspace
from schemas.usage_rules import usage_rules
from tests.support.decoded_here import decoded_here
from tests.support.dump_folder import bundled_dumps
from tests.support.dump_log_records import TABLES
from tests.support.plain_usage import plain_usage

if TYPE_CHECKING:
    from pathlib import Path

    from schemas.manifest import Manifest
    from tests.support.dump_folder import DumpFolder, PrintedSegment

DUMPS = bundled_dumps()
COPIES = [
    pytest.param(dump, copy, id=f"{dump.root.name}-{copy}")
    for dump in DUMPS
    for copy in dump.copies
]
_TAKE_LONG = ("kafka-4.3.1-story", "kafka-4.0.2-share", "kafka-4.3.1-foreign", "kafka-2.0.1-v1")
A_FEW_OF_THEM = [
    pytest.param(
        each,
        marks=pytest.mark.long if each.root.name in _TAKE_LONG else (),
        id=each.root.name,
    )
    for each in DUMPS
]
HEADER = 61
PARTITIONS = 10
"""Of __consumer_offsets in the failover, by its metadata log."""
FATES = {
    "live": "live_records",
    "standing": "standing_tombstones",
    "aborted": "aborted_records",
    "open": "open_records",
}


Decoded = Callable[..., Workspace]
UsageOf = Callable[..., Usage]


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Decoded:
    """Copies of a dump, decoded once."""

    @cache
    def of(dump: DumpFolder, *copies: str) -> Workspace:
        folder = tmp_path_factory.mktemp(dump.root.name)
        return decoded_here([f"{copy}={dump.root / copy}" for copy in copies], folder)

    return of


@pytest.fixture(scope="module")
def usage_of(decoded: Decoded) -> UsageOf:
    """What they use, told once."""

    @cache
    def of(dump: DumpFolder, *copies: str) -> Usage:
        return usage_tables(*asked_of(decoded(dump, *copies)))

    return of


def in_buckets(space: Workspace) -> UsageAsked:
    """Ask for some ten buckets, of 40 records at least: each costs as much as a large one."""
    records = sum(each["decoded"] for each in space.manifest()["reconciliation"])
    return UsageAsked(bucket_rows=max(40, records // 10))


def asked_of(space: Workspace) -> tuple[Workspace, Manifest, LogSettings]:
    return space, space.manifest(), LogSettings(usage_rules())


@pytest.mark.parametrize(("dump", "copy"), COPIES)
def test_bytes_are_those_that_kafka_printed(dump: DumpFolder, copy: str, usage_of: UsageOf) -> None:
    found = usage_of(dump, copy)

    assert found.even.holds
    printed = dump.segments(copy)
    rows = {(each["topic"], each["partition"]): each for each in found.partitions.to_pylist()}
    sizes: Counter[tuple[str, int]] = Counter()
    for each in printed:
        sizes[each.topic, each.partition] += len(each.data)
    assert {place: rows[place]["file_bytes"] for place in sizes} == dict(sizes)
    for place in sizes:
        batches = [
            batch
            for each in printed
            if (each.topic, each.partition) == place
            for batch in each.text.batches
        ]
        newest = [batch for batch in batches if batch.magic == 2]
        row = rows[place]
        told = row["header_bytes"] + row["record_bytes"] + row["control_bytes"]
        assert told + row["compressed_bytes"] == sum(batch.size for batch in batches)
        if len(newest) == len(batches):
            assert row["header_bytes"] == HEADER * len(batches)
        control = sum(batch.size - HEADER for batch in newest if batch.is_control)
        assert row["control_bytes"] == control
        assert row["empty_batches"] == sum(batch.count == 0 for batch in newest)


def live_keys(segments: list[PrintedSegment]) -> dict[str, set[int]]:
    """Return the offsets of live records, of standing tombstones, and of all the others.

    As slow and as simple as can be: every record of the log is put over the one of the same key.
    """
    batches = sorted(
        (batch for each in segments for batch in each.text.batches), key=lambda each: each.offset
    )
    ends = defaultdict(list)
    for batch in batches:
        if batch.is_control:
            for record in batch.records:
                if record.control is not None:
                    ends[batch.producer_id].append((record.offset, "ABORT" in str(record.control)))
    found: dict[str, set[int]] = {name: set() for name in ("aborted", "open", "live", "standing")}
    last: dict[str, tuple[int, bool]] = {}
    for batch in batches:
        for record in batch.records if not batch.is_control else []:
            fate = "counts"
            if batch.is_transactional:
                after = [aborts for at, aborts in ends[batch.producer_id] if at > record.offset]
                fate = "open" if not after else "aborted" if after[0] else "counts"
            if fate == "counts":
                last[repr(record.key)] = (record.offset, record.value_size < 0)
            else:
                found[fate].add(record.offset)
    for offset, is_tombstone in last.values():
        found["standing" if is_tombstone else "live"].add(offset)
    return found


@pytest.mark.parametrize(
    ("dump", "copy"), [each for each in COPIES if "controller" not in str(each.id)]
)
def test_live_records_are_the_last_of_the_keys_that_kafka_printed(
    dump: DumpFolder, copy: str, usage_of: UsageOf
) -> None:
    rows = usage_of(dump, copy).rows
    rows = rows.filter(pc.is_valid(rows["live_records"]))
    sums = {
        (each["topic"], each["partition"]): each
        for each in rows.group_by(["topic", "partition"])
        .aggregate([(name, "sum") for name in FATES.values()])
        .to_pylist()
    }
    by_place = defaultdict(list)
    for each in dump.segments(copy):
        if each.topic != "__cluster_metadata":
            by_place[each.topic, each.partition].append(each)
    starts = dump.log_starts(copy)
    compared = 0
    for place, segments in by_place.items():
        if starts.get(place):
            continue  # the tool prints what lies below the log start, too
        expected = live_keys(segments)
        row = sums.get(place)
        if row is None:
            assert not any(expected.values())
            continue
        found = {fate: row[f"{name}_sum"] for fate, name in FATES.items()}
        assert found == {name: len(offsets) for name, offsets in expected.items()}, place
        compared += sum(map(len, expected.values()))
    assert compared


@pytest.mark.parametrize(
    ("dump", "copy"), [each for each in COPIES if "controller" not in str(each.id)]
)
def test_every_number_is_that_of_a_plain_loop_over_what_kafka_printed(
    dump: DumpFolder, copy: str, usage_of: UsageOf
) -> None:
    found = {
        tuple(each[name] for name in ("topic", "partition", "group_id", "record_type")): each
        for each in usage_of(dump, copy).rows.to_pylist()
    }
    starts = dump.log_starts(copy)
    by_place = defaultdict(list)
    for each in dump.segments(copy):
        if each.topic in TABLES and not starts.get((each.topic, each.partition)):
            by_place[each.topic, each.partition].append(each)

    compared = 0
    for segments in by_place.values():
        for place, expected in plain_usage(segments).items():
            wanted = expected.row()
            row = {name: found[place][name] for name in wanted}
            for name in ("first_timestamp", "last_timestamp"):
                row[name] = row[name] and round(row[name].timestamp() * 1000)
            assert row == wanted, place
            compared += 1
    assert compared


@pytest.mark.parametrize("dump", A_FEW_OF_THEM)
def test_in_buckets_of_a_few_records_every_table_is_the_same(
    dump: DumpFolder, decoded: Decoded, usage_of: UsageOf
) -> None:
    whole = usage_of(dump, *dump.copies)
    space = decoded(dump, *dump.copies)
    divided = usage_tables(*asked_of(space), request=in_buckets(space))

    assert_same(divided, whole)


@pytest.mark.parametrize("dump", A_FEW_OF_THEM)
def test_tasks_that_read_a_file_each_tell_the_same(
    dump: DumpFolder,
    decoded: Decoded,
    usage_of: UsageOf,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = usage_of(dump, *dump.copies)
    space = decoded(dump, *dump.copies)
    monkeypatch.setattr(laid_records, "_TASK_BYTES", 1)
    counts: list[int] = []

    def tried_twice(count: int, run: Callable[[int], Any]) -> list[Any]:
        """As Spark does where a worker is slow, or lost: one of the attempts counts."""
        counts.append(count)
        sent = pickle.dumps(run)
        return [[pickle.loads(sent)(each) for _ in range(2)][each % 2] for each in range(count)]

    in_tasks = PartRunner(str(tmp_path / "beside"), tried_twice)
    divided = usage_tables(*asked_of(space), request=in_buckets(space), runner=in_tasks)

    assert counts[0] == counts[1] > 1, "commit times, and records, file by file"
    assert_same(divided, whole)


def assert_same(divided: Usage, whole: Usage) -> None:
    assert divided.tables.keys() == whole.tables.keys()
    for name, rows in whole.tables.items():
        assert divided.tables[name].equals(rows), name
    assert divided.even == whole.even
    assert divided.placed == whole.placed


def test_copies_of_one_partition_come_out_even_together(usage_of: UsageOf) -> None:
    (dump,) = (each for each in DUMPS if each.root.name == "kafka-4.3.1-failover")
    found = usage_of(dump, *dump.copies)

    assert found.even.holds
    files = [
        path.stat().st_size
        for copy in dump.copies
        for pattern in ("__*-*/*.log", "__*-*/*.checkpoint")
        for path in (dump.root / copy).glob(pattern)
        if path.name != "bootstrap.checkpoint"
    ]
    sizes = pc.sum(found.partitions["file_bytes"]).as_py()
    assert sizes == found.even.file_bytes
    assert sizes == sum(files)
    assert found.placed.fits == PARTITIONS
    diverged = pc.sum(found.partitions["diverged_bytes"]).as_py()
    assert diverged > 0
