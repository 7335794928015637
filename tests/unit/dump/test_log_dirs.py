"""Log directories become copies: named, disks of a broker together, checkpoints beside logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.dump.copies.plan import next_offset
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.files.model import Copy, Note
from analytics.errors import InputNotRecognizedError
from jobs.cli.console import Console
from jobs.inspection import inspect_inputs
from tests.support.log_dirs import LogDir, written

OFFSETS = "__consumer_offsets"


def copies_of(*inputs: str | Path) -> list[Copy]:
    return read_copies(recognize([str(each) for each in inputs]).disks, next_offset, [])


def test_checkpoints_stand_beside_the_partitions_they_are_about(tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b", node=4)
    disk.partition(f"{OFFSETS}-3", {0: [written(0)]}, [(0, 0)], "A" * 22)
    disk.partition("orders-0", {0: [written(0)]})
    disk.checkpoint("replication-offset-checkpoint", {f"{OFFSETS}-3": 9})
    disk.checkpoint("log-start-offset-checkpoint", {f"{OFFSETS}-3": 1})
    disk.checkpoint("cleaner-offset-checkpoint", {f"{OFFSETS}-3": 5})
    (copy,) = copies_of(disk.path)
    (partition,) = copy.partitions
    assert (copy.name, copy.node_id, copy.clean_shutdown) == ("b", 4, False)
    assert partition.key == (OFFSETS, 3)
    assert partition.high_watermark == 9
    assert partition.log_start_offset == 1
    assert partition.first_dirty_offset == 5
    assert partition.leader_epochs == ((0, 0),)
    assert partition.topic_id == "A" * 22
    assert [each.topic for each in copy.data_partitions] == ["orders"]


def test_a_partition_that_the_cleaners_checkpoint_does_not_name_was_never_cleaned(
    tmp_path: Path,
) -> None:
    disk = LogDir.create(tmp_path / "b")
    disk.partition(f"{OFFSETS}-0", {0: [written(0)]})
    assert copies_of(disk.path)[0].partitions[0].first_dirty_offset is None
    disk.checkpoint("cleaner-offset-checkpoint", {})
    assert copies_of(disk.path)[0].partitions[0].first_dirty_offset == 0
    (disk.path / "cleaner-offset-checkpoint").write_text("0\n1\nbroken\n")
    assert copies_of(disk.path)[0].partitions[0].first_dirty_offset is None


def test_a_partition_directory_alone_still_finds_the_checkpoints_above_it(tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    disk.partition(f"{OFFSETS}-0", {0: [written(0)]})
    disk.checkpoint("log-start-offset-checkpoint", {f"{OFFSETS}-0": 1})
    (copy,) = copies_of(disk.path / f"{OFFSETS}-0")
    assert copy.name == "b"
    assert copy.clean_shutdown is None
    assert copy.partitions[0].log_start_offset == 1
    assert copy.partitions[0].whole


def test_a_segment_alone_is_not_the_whole_partition(tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    folder = disk.partition(f"{OFFSETS}-0", {0: [written(0)], 1: [written(1)]})
    (copy,) = copies_of(folder / f"{1:020d}.log")
    assert [s.base_offset for s in copy.partitions[0].segments] == [1]
    assert not copy.partitions[0].whole


def test_directories_on_their_way_out_are_not_read_and_said(tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    for state in ("delete", "future", "stray"):
        disk.partition(f"{OFFSETS}-0.{'a1' * 16}-{state}", {0: [written(0)]})
    (copy,) = copies_of(disk.path)
    assert copy.partitions == ()
    assert len(copy.ignored) == 3
    assert "deleting" in copy.ignored[0].why


def test_a_clean_shutdown_left_its_file(tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    (disk.path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')
    assert copies_of(disk.path)[0].clean_shutdown is True


def test_disks_of_one_broker_are_one_copy(tmp_path: Path) -> None:
    one = LogDir.create(tmp_path / "disk1", node=5, directory="d1")
    two = LogDir.create(tmp_path / "disk2", node=5, directory="d2")
    one.partition(f"{OFFSETS}-0", {0: [written(0)]})
    two.partition(f"{OFFSETS}-1", {0: [written(0)]})
    (copy,) = copies_of(tmp_path)
    assert copy.name == "broker-5"
    assert [each.partition for each in copy.partitions] == [0, 1]
    assert len(copy.log_dirs) == 2


def test_the_same_disk_copied_twice_is_two_copies(tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        disk = LogDir.create(tmp_path / day, node=5, directory="d1")
        disk.partition(f"{OFFSETS}-0", {0: [written(0)]})
    assert [copy.name for copy in copies_of(tmp_path)] == ["monday", "tuesday"]


@pytest.mark.parametrize(
    ("ids", "other", "words"),
    [
        ("AB", {0, 2}, "it does not start with both"),
        ("AB", {0}, "it does not start with both"),
        ("AA", {0, 2}, None),
        ((None, None), {0, 2}, "unless one is an older copy of the other, it does not start"),
        # An older release's disk, copied again after it lost a partition.
        ((None, None), {0}, None),
        ("AB", {2}, None),
    ],
)
def test_a_partition_on_two_disks_of_one_broker_is_named(
    ids: tuple[str | None, str | None], other: set[int], words: str | None, tmp_path: Path
) -> None:
    for name, directory, numbers in zip("ab", ids, ({0, 1}, other), strict=True):
        disk = LogDir.create(tmp_path / name, node=7, directory=directory)
        for number in numbers:
            disk.partition(f"{OFFSETS}-{number}", {0: [written(0)]})
    manifest = inspect_inputs(
        Console(quiet=True), inputs=[str(tmp_path / "a"), str(tmp_path / "b")]
    )
    found = [each["what"] for each in manifest["notes"] if "two log directories" in each["what"]]
    assert len(found) == (words is not None)
    for each in found:
        assert each.startswith(f"two log directories of broker 7 hold {OFFSETS}-0: {words}")
        assert "Duplicate log directories found" in each


def test_disks_given_one_name_are_one_copy(tmp_path: Path) -> None:
    for number in (0, 1):
        disk = LogDir.create(tmp_path / f"d{number}", cluster=None)
        disk.partition(f"{OFFSETS}-{number}", {0: [written(0)]})
    (copy,) = copies_of(f"a={tmp_path / 'd0'}", f"a={tmp_path / 'd1'}")
    assert copy.name == "a"
    assert len(copy.partitions) == 2


def test_folders_of_one_name_get_names_that_differ(tmp_path: Path) -> None:
    for node, place in enumerate(("east", "west")):
        LogDir.create(tmp_path / place / "kafka", node=node)
    names = [c.name for c in copies_of(tmp_path / "east" / "kafka", tmp_path / "west" / "kafka")]
    assert len(set(names)) == 2
    assert names == ["east-kafka", "west-kafka"]


def test_a_folder_with_a_strange_name_gives_a_name_that_can_stand_in_a_path(
    tmp_path: Path,
) -> None:
    disk = LogDir.create(tmp_path / "broker 1; rm")
    assert copies_of(disk.path)[0].name == "broker_1__rm"


def test_copies_of_several_clusters_are_refused(tmp_path: Path) -> None:
    LogDir.create(tmp_path / "a", cluster="one")
    LogDir.create(tmp_path / "b", cluster="two", node=2)
    with pytest.raises(InputNotRecognizedError, match="several clusters"):
        copies_of(tmp_path)


def test_a_finished_cleaning_is_read_in_place_of_what_it_replaces(tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    folder = disk.partition(
        f"{OFFSETS}-0", {0: [written(0, 10)], 10: [written(10, 10)], 20: [written(20)]}
    )
    (folder / f"{0:020d}.log.swap").write_bytes(written(0, 20, kept=[4, 19]))
    (partition,) = copies_of(disk.path)[0].partitions
    assert [(s.base_offset, s.state) for s in partition.segments] == [(0, "swap"), (20, "live")]
    assert len(partition.ignored) == 2


@pytest.mark.parametrize(("noted", "first_dirty"), [(0, 20), (10, 20), (21, 21), (None, None)])
def test_a_swap_file_proves_that_all_below_its_end_was_cleaned(
    tmp_path: Path, noted: int | None, first_dirty: int | None
) -> None:
    disk = LogDir.create(tmp_path / "broker")
    folder = disk.partition(f"{OFFSETS}-0", {0: [written(0, 10)], 10: [written(10, 10)]})
    (folder / f"{0:020d}.log.swap").write_bytes(written(0, 20, kept=[4, 19]))
    if noted is not None:
        text = f"0\n1\n{OFFSETS} 0 {noted}\n"
        (disk.path / "cleaner-offset-checkpoint").write_text(text)
    (partition,) = copies_of(disk.path)[0].partitions
    assert partition.first_dirty_offset == first_dirty


def test_one_copy_that_holds_a_partition_twice_is_noted(tmp_path: Path) -> None:
    for number in (0, 1):
        disk = LogDir.create(tmp_path / f"d{number}")
        disk.partition(f"{OFFSETS}-0", {0: [written(0)]})
    notes: list[Note] = []
    inputs = recognize([f"a={tmp_path / 'd0'}", f"a={tmp_path / 'd1'}"])
    read_copies(inputs.disks, next_offset, notes)
    assert "twice" in notes[0].what
