"""Control batches in a data partition's own segments, written byte by byte, to chains and back."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.dump.batches.walks import walk_copy
from analytics.errors import InputNotRecognizedError
from analytics.seeds.checkpoint_delta.control_segments import ChainLog
from analytics.seeds.checkpoint_delta.inputs import chain_inputs
from tests.support.chain_histories import as_control_batch, as_rows, as_value, written
from tests.support.reference_chains import ChainRecord
from tests.support.segments import Made, batch, control_batch, records


def log_of(found: Sequence[ChainRecord], others: int = 0) -> list[Made]:
    """Batches from offset 0: the records, and data or markers wherever there is room."""
    made, at = [], 0
    for record in found:
        if at < record.offset:
            room = record.offset - at
            # Every other gap is of a transaction: control batches that are not of the dialect.
            made.append(
                control_batch(at, [at % 2] * room)
                if others and at % 2
                else batch(records(at, room))
            )
        made.append(as_control_batch(record))
        at = record.offset + 1
    return made


def write(folder: Path, made: Sequence[Made | bytes], base: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    data = b"".join(each if isinstance(each, bytes) else each.data for each in made)
    (folder / f"{base:020}.log").write_bytes(data)
    return folder


def read(*given_: Path) -> ChainLog:
    (found,) = chain_inputs([str(each) for each in given_])
    return found.read()


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_what_is_written_is_read_and_nothing_else(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = written(random.Random(seed))
    folder = tmp_path_factory.mktemp("log") / "orders-3"
    log = read(write(folder, [*log_of(found, others=1), batch(records(500, 2))]))
    assert (log.topic, log.partition) == ("orders", 3)
    assert log.records.equals(as_rows(found))
    # Between the last record and offset 500 there is nothing.
    assert [each.end_offset for each in log.lost] == [500]


def chain(count: int) -> list[ChainRecord]:
    first = ChainRecord(0, "G1", "checkpoint", 1, None, 0, 0)
    return [first, *(ChainRecord(at, "G1", "delta", 1, at - 1) for at in range(1, count))]


def test_a_log_without_harm_has_lost_nothing(tmp_path: Path) -> None:
    log = read(write(tmp_path / "orders-0", log_of(chain(5))))
    assert (log.records.num_rows, log.lost, log.log_end_offset) == (5, (), 5)


@pytest.mark.parametrize("where", range(5))
def test_a_batch_that_has_rotted_is_lost_wherever_it_lies(tmp_path: Path, where: int) -> None:
    made = [each.data for each in log_of(chain(5))]
    made[where] = made[where][:-1] + bytes([made[where][-1] ^ 1])
    log = read(write(tmp_path / "orders-0", made))
    assert log.records["offset"].to_pylist() == [at for at in range(5) if at != where]
    assert any(each.first_offset <= where < each.end_offset for each in log.lost)


def test_a_value_that_cannot_be_read_is_lost_alone(tmp_path: Path) -> None:
    whole = chain(4)
    made = [as_control_batch(each) for each in whole]
    made[1] = as_control_batch(whole[1], value=as_value(whole[1])[:-1])
    made[2] = as_control_batch(whole[2], value=b"\0\7" + as_value(whole[2])[2:])
    log = read(write(tmp_path / "orders-0", made))
    assert log.records["offset"].to_pylist() == [0, 3]
    assert [(each.first_offset, each.end_offset) for each in log.lost] == [(1, 2), (2, 3)]
    assert "version 7" in log.lost[1].why


@given(values=st.lists(st.binary(max_size=60), min_size=1, max_size=8))
@settings(max_examples=60)
def test_whatever_the_bytes_a_record_is_read_or_lost(
    values: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = [
        as_control_batch(ChainRecord(at, "", ("checkpoint", "delta")[at % 2], 0), value)
        for at, value in enumerate(values)
    ]
    log = read(write(tmp_path_factory.mktemp("any") / "orders-0", made))
    there = [*log.records["offset"].to_pylist(), *(each.first_offset for each in log.lost)]
    assert sorted(there) == list(range(len(values)))


def test_offsets_between_files_and_behind_the_end_are_lost(tmp_path: Path) -> None:
    whole = chain(9)
    folder = tmp_path / "disk" / "orders-0"
    write(folder, [as_control_batch(each) for each in whole[:3]])
    write(folder, [as_control_batch(each) for each in whole[5:]], base=5)
    (tmp_path / "disk" / "replication-offset-checkpoint").write_text("0\n1\norders 0 12\n", "utf-8")
    log = read(tmp_path / "disk")
    assert [(each.first_offset, each.end_offset) for each in log.lost] == [(3, 5), (9, 12)]


def test_what_lies_below_the_log_start_is_not_the_brokers(tmp_path: Path) -> None:
    write(tmp_path / "disk" / "orders-0", log_of(chain(6)))
    (tmp_path / "disk" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n", "utf-8")
    log = read(tmp_path / "disk")
    assert log.records["offset"].to_pylist() == [4, 5]
    assert log.lost == ()


def test_a_single_segment_is_not_the_log(tmp_path: Path) -> None:
    folder = write(tmp_path / "orders-0", log_of(chain(3)))
    log = read(folder / f"{0:020}.log")
    assert log.records.num_rows == 3
    assert [each.why for each in log.lost] == ["only some files of the log are given"]


def test_copies_fill_each_other(tmp_path: Path) -> None:
    made = [each.data for each in log_of(chain(6))]
    rotten = [*made[:2], made[2][:-1] + bytes([made[2][-1] ^ 1]), *made[3:]]
    write(tmp_path / "one" / "orders-0", rotten)
    write(tmp_path / "two" / "orders-0", made[:5])
    log = read(tmp_path / "one", tmp_path / "two")
    assert log.records["offset"].to_pylist() == list(range(6))
    assert (log.lost, log.log_end_offset) == ((), 6)


def test_copies_that_differ_are_believed_nowhere_they_do(tmp_path: Path) -> None:
    whole = chain(4)
    other = ChainRecord(2, "G1", "delta", 1, 0)
    write(tmp_path / "one" / "orders-0", log_of(whole))
    write(
        tmp_path / "two" / "orders-0",
        [*log_of(whole[:2]), as_control_batch(other), batch(records(3, 1))],
    )
    log = read(tmp_path / "one", tmp_path / "two")
    assert log.records["offset"].to_pylist() == [0, 1]
    assert [each.first_offset for each in log.lost] == [2, 3]


def test_internal_topics_alone_are_no_input(tmp_path: Path) -> None:
    write(tmp_path / "disk" / "__consumer_offsets-0", [batch(records(0, 2))])
    with pytest.raises(InputNotRecognizedError, match="no data partition"):
        chain_inputs([str(tmp_path / "disk")])


def as_data_partition(source: Path, folder: Path) -> ChainLog:
    """Read the files of an internal partition as if they were of a user topic."""
    shutil.copytree(source, folder / "orders-0")
    return read(folder / "orders-0")


def test_markers_of_real_brokers_are_no_share_state(repository: Path, tmp_path: Path) -> None:
    disk = repository / "examples" / "kafka-4.3.1-failover" / "broker-2"
    markers = 0
    for number in range(10):
        found = tmp_path / str(number)
        log = as_data_partition(disk / f"__consumer_offsets-{number}", found)
        assert log.records.num_rows == 0
        assert not any("control" in each.why for each in log.lost)
        (given_,) = chain_inputs([str(found / "orders-0")])
        markers += sum(int(walk_copy(each).headers.is_control.sum()) for each in given_.copies)
    assert markers > 0


def test_what_types_5_and_6_mean_today_is_not_taken_for_share_state(
    repository: Path, tmp_path: Path
) -> None:
    """KRAFT_VERSION and KRAFT_VOTERS of a real quorum: asked for, they do not decode."""
    disk = repository / "examples" / "kafka-4.3.1-failover" / "controller-100"
    log = as_data_partition(disk / "__cluster_metadata-0", tmp_path)
    assert log.records.num_rows == 0
