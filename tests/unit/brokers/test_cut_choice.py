"""Cuts of a log directory: always between two batches, and loaded from a copy that ends there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.brokers.batches import batches_of
from tests.brokers.cut_choice import boundaries, choose_cuts
from tests.brokers.truncation import log_starts, truncate, truncated_copy
from tests.support.log_dirs import LogDir, written


@pytest.fixture
def log_dir(tmp_path: Path) -> LogDir:
    """Two partitions: one of two segments with a hole between them, one that is empty."""
    made = LogDir.create(tmp_path / "log")
    segments = {
        0: [written(0, 3, at=100), written(3, at=200), written(4, 2, at=300)],
        10: [written(11, 1, at=400, epoch=1), written(12, 4, at=500, epoch=1)],
    }
    made.partition("__consumer_offsets-0", segments, epochs=[(0, 0), (1, 11)])
    made.partition("__consumer_offsets-1", {0: []})
    return made


def test_batches_are_found_with_their_offsets_and_times(log_dir: LogDir) -> None:
    found = batches_of(log_dir.path / "__consumer_offsets-0")
    assert [(each.base_offset, each.last_offset, each.max_timestamp) for each in found] == [
        (0, 2, 100),
        (3, 3, 200),
        (4, 5, 300),
        (11, 11, 400),
        (12, 15, 500),
    ]
    assert {each.start for each in found if each.base_offset in {0, 11}} == {0}


def test_a_batch_that_was_being_written_is_none(log_dir: LogDir) -> None:
    segment = log_dir.path / "__consumer_offsets-0" / f"{10:020}.log"
    segment.write_bytes(segment.read_bytes()[:-1])
    assert batches_of(segment.parent)[-1].last_offset == 11


def test_a_log_may_end_where_it_begins_and_after_each_batch(log_dir: LogDir) -> None:
    batches = batches_of(log_dir.path / "__consumer_offsets-0")
    assert boundaries(batches, 0) == [0, 3, 4, 6, 12, 16]
    assert boundaries(batches, 4) == [4, 6, 12, 16]
    assert boundaries([], 7) == [7]


def test_cuts_lie_on_boundaries_and_the_first_is_everything(log_dir: LogDir) -> None:
    logs = {path.name: batches_of(path) for path in log_dir.path.glob("__consumer_offsets-*")}
    whole, *others = choose_cuts(logs, {}, 40, random.Random(3))
    assert (whole.kind, whole.end_offsets) == (
        "whole",
        {"__consumer_offsets-0": 16, "__consumer_offsets-1": 0},
    )
    assert {each.kind for each in others} == {"instant", "offsets"}
    at_instant = {100: 3, 200: 4, 300: 6, 400: 12, 500: 16}
    for each in others:
        assert each.end_offsets["__consumer_offsets-0"] in {0, 3, 4, 6, 12, 16}
        assert each.end_offsets["__consumer_offsets-1"] == 0
        if each.as_of_ms is not None:
            assert each.end_offsets["__consumer_offsets-0"] == at_instant[each.as_of_ms]


def test_the_same_seed_cuts_in_the_same_places(log_dir: LogDir) -> None:
    logs = {"__consumer_offsets-0": batches_of(log_dir.path / "__consumer_offsets-0")}
    once, again = (choose_cuts(logs, {}, 9, random.Random(5)) for _ in range(2))
    assert [each.told() for each in once] == [each.told() for each in again]


@pytest.mark.parametrize("end", [0, 3, 4, 6, 12, 16])
def test_a_truncated_partition_holds_the_batches_below_the_cut(log_dir: LogDir, end: int) -> None:
    partition = log_dir.path / "__consumer_offsets-0"
    (partition / f"{16:020}.snapshot").touch()
    whole = [each.last_offset for each in batches_of(partition)]
    truncate(partition, end)
    assert [each.last_offset for each in batches_of(partition)] == [
        last for last in whole if last < end
    ]
    assert (partition / f"{0:020}.log").exists()
    assert not list(partition.glob("*.snapshot"))
    epochs = (partition / "leader-epoch-checkpoint").read_text().splitlines()
    assert epochs[2:] == [line for line in ("0 0", "1 11") if int(line.split()[1]) < end]


def test_a_copy_is_cut_and_the_original_is_not(log_dir: LogDir, tmp_path: Path) -> None:
    log_dir.checkpoint("recovery-point-offset-checkpoint", {"__consumer_offsets-0": 16})
    log_dir.checkpoint("log-start-offset-checkpoint", {"__consumer_offsets-0": 3})
    copy = tmp_path / "copy"
    truncated_copy(log_dir.path, copy, {"__consumer_offsets-0": 4, "__share_group_state-0": 0})
    assert batches_of(copy / "__consumer_offsets-0")[-1].last_offset == 3
    assert batches_of(log_dir.path / "__consumer_offsets-0")[-1].last_offset == 15
    assert not (copy / "recovery-point-offset-checkpoint").exists()
    assert (log_starts(log_dir.path), log_starts(copy)) == ({"__consumer_offsets-0": 3}, {})
