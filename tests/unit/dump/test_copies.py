"""Several brokers, one truth: the surviving line, and every line that an election threw away."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from analytics.dump.batches.walks import walk_copy
from analytics.dump.copies.plan import PlanOptions, next_offset, plan
from analytics.dump.copies.surviving_lines import Lines, find_lines
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.files.model import Divergence, Plan
from analytics.errors import InputNotRecognizedError
from tests.support.batches import GZIP, entry
from tests.support.log_dirs import EPOCH_0, LogDir, written
from tests.support.planned_records import read_plan

OFFSETS = "__consumer_offsets"
FOLDER = f"{OFFSETS}-0"


@pytest.fixture(scope="module")
def failover(repository: Path) -> Path:
    return repository / "tests" / "data" / "dumps" / "kafka-4.3.1-failover"


@pytest.fixture(scope="module")
def planned(failover: Path) -> Plan:
    return plan([str(failover)])


@pytest.fixture(scope="module")
def told(failover: Path) -> list[dict[str, Any]]:
    """What is known of each partition: where the dead line leaves the surviving one."""
    told: list[dict[str, Any]] = json.loads((failover / "tools" / "divergence.json").read_text())
    return told


def test_the_lost_lines_of_a_real_failover_are_found(
    planned: Plan, told: list[dict[str, Any]]
) -> None:
    expected = {
        each["partition"]: (each["diverges_at"], each["dead_copy_records_lost"], each["dead_end"])
        for each in told
        if each.get("dead_copy_records_lost") and each["partition"].startswith("__")
    }
    found = {
        f"{each.topic}-{each.partition}": (each.diverges_at, each.lost_records, each.end_offset)
        for each in planned.divergences
    }
    assert found == expected
    assert {each.copy for each in planned.divergences} == {"broker-1"}


def test_a_real_failover_lost_404_records_of_consumer_offsets(planned: Plan) -> None:
    lost = [each for each in planned.divergences if each.topic == OFFSETS]
    assert len(lost) == 5
    assert sum(each.lost_records for each in lost) == 404


def test_the_epochs_of_a_real_failover(planned: Plan, told: list[dict[str, Any]]) -> None:
    by_partition = {f"{each.topic}-{each.partition}": each for each in planned.divergences}
    for each in told:
        found = by_partition.get(each["partition"])
        if found is not None:
            assert found.lost_leader_epoch == each["dead_epoch"]
            if each["survivor_epoch"] is None:
                assert found.elected_at is None
            else:
                assert found.surviving_leader_epoch == each["survivor_epoch"]
                assert found.elected_at is not None


def test_every_record_of_a_real_failover_is_kept_once_or_left_out_by_name(planned: Plan) -> None:
    records = read_plan(planned)
    assert records.twice == []
    kept = sum(len(line) for line in records.lines.values())
    assert kept + records.left_out.total() == records.read.total()
    assert set(records.left_out) == {"duplicate_copy"}
    assert records.offsets("", OFFSETS, 9) == list(range(453))
    assert records.offsets("broker-1", OFFSETS, 9) == list(range(245, 445))
    assert records.offsets("", OFFSETS, 0) == [0, 1]
    assert records.offsets("broker-1", OFFSETS, 0) == list(range(2, 26))


def test_the_dead_line_is_decoded_when_it_is_preferred(failover: Path, planned: Plan) -> None:
    preferred = plan([str(failover)], PlanOptions(prefer_copy="broker-1"))
    records = read_plan(preferred)
    assert records.offsets("", OFFSETS, 9) == list(range(445))
    assert records.offsets("broker-2", OFFSETS, 9) == list(range(245, 453))
    assert records.offsets("", OFFSETS, 7) == list(range(152))
    assert records.twice == []
    # What was lost stays what was lost.
    assert preferred.divergences == planned.divergences


def test_a_copy_that_is_not_there_cannot_be_preferred(failover: Path) -> None:
    with pytest.raises(InputNotRecognizedError, match="there are broker-1, broker-2, broker-3"):
        plan([str(failover)], PlanOptions(prefer_copy="broker-9"))


def test_the_metadata_log_is_kept_once(planned: Plan) -> None:
    records = read_plan(planned)
    assert records.offsets("", "__cluster_metadata", 0) == list(range(469))
    assert planned.leading["__cluster_metadata", 0] == "controller-100"


# --- made by hand -------------------------------------------------------------------------------


class Cluster:
    """Copies of one partition on brokers named a, b, c."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def copy(
        self,
        name: str,
        batches: list[bytes],
        epochs: list[tuple[int, int]] | None = None,
        topic_id: str | None = None,
    ) -> None:
        disk = LogDir.create(self.root / name, node=ord(name[0]))
        disk.partition(FOLDER, {0: batches}, epochs, topic_id)

    def plan(self, **options: Any) -> Plan:
        return plan([str(self.root)], PlanOptions(**options))

    def lines(self) -> Lines:
        copies = read_copies(recognize([str(self.root)]).disks, next_offset, [])
        return find_lines([walk_copy(copy.partitions[0]) for copy in copies])


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def only(divergences: tuple[Divergence, ...]) -> Divergence:
    (divergence,) = divergences
    return divergence


def test_a_lagging_follower_is_no_divergence(cluster: Cluster) -> None:
    cluster.copy("a", [written(0, 5), written(5, 5)])
    cluster.copy("b", [written(0, 5)])
    found = cluster.plan()
    assert found.divergences == ()
    assert read_plan(found).offsets() == list(range(10))
    assert found.leading[OFFSETS, 0] == "a"


def test_the_line_with_the_newer_epoch_survives_however_short(cluster: Cluster) -> None:
    cluster.copy("a", [written(0, 5), written(5, 50, word="lost")], [(0, 0)])
    cluster.copy("b", [written(0, 5), written(5, 1, epoch=2)], [(0, 0), (2, 5)])
    found = cluster.plan()
    row = only(found.divergences)
    assert (row.copy, row.diverges_at, row.lost_records) == ("a", 5, 50)
    assert (row.lost_leader_epoch, row.surviving_leader_epoch) == (0, 2)
    assert row.surviving_copy == "b"
    assert row.elected_at == EPOCH_0 + 5000
    records = read_plan(found)
    assert records.offsets() == [0, 1, 2, 3, 4, 5]
    assert records.offsets("a") == list(range(5, 55))


def test_an_election_after_which_nothing_was_written_still_decides(cluster: Cluster) -> None:
    cluster.copy("a", [written(0, 5), written(5, 3)], [(0, 0)])
    cluster.copy("b", [written(0, 5)], [(0, 0), (2, 5)])
    row = only(cluster.plan().divergences)
    assert (row.copy, row.diverges_at, row.lost_records) == ("a", 5, 3)
    assert (row.surviving_leader_epoch, row.elected_at) == (2, None)


def test_the_last_common_epoch_may_go_on_beyond_the_parting(cluster: Cluster) -> None:
    # The broker that died led in epoch 1 already: its lost batches carry it too.
    cluster.copy("a", [written(0, 5, epoch=1), written(5, 5, epoch=1, word="lost")], [(1, 0)])
    cluster.copy("b", [written(0, 5, epoch=1), written(5, 5, epoch=3)], [(1, 0), (3, 5)])
    row = only(cluster.plan().divergences)
    assert (row.diverges_at, row.lost_leader_epoch) == (5, 1)


def test_without_checkpoints_the_batches_epochs_decide(cluster: Cluster) -> None:
    cluster.copy("a", [written(0, 5), written(5, 9, word="lost")])
    cluster.copy("b", [written(0, 5), written(5, 2, epoch=4)])
    row = only(cluster.plan().divergences)
    assert (row.copy, row.diverges_at, row.lost_records) == ("a", 5, 9)


def test_where_epochs_show_nothing_the_bytes_do(cluster: Cluster) -> None:
    cluster.copy("a", [written(0, 2), written(2, 2), written(4, 2, word="other")], [(0, 0)])
    cluster.copy("b", [written(0, 2), written(2, 2), written(4, 2), written(6)], [(0, 0)])
    row = only(cluster.plan().divergences)
    assert (row.copy, row.diverges_at, row.lost_records, row.how) == ("a", 4, 2, "record")


def test_an_epoch_that_differs_at_the_same_offset_parts_the_lines(cluster: Cluster) -> None:
    lost = [written(2, 2, epoch=3, word="lost"), written(4, 2, epoch=3, word="lost")]
    cluster.copy("a", [written(0, 2), *lost])
    cluster.copy("b", [written(0, 2), written(2, 2, epoch=1), written(4, 2, epoch=5)])
    row = only(cluster.plan().divergences)
    assert (row.copy, row.diverges_at) == ("a", 2)


def test_a_line_lost_on_two_brokers_is_kept_once(cluster: Cluster) -> None:
    lost = [written(5, 5, word="lost")]
    cluster.copy("a", [written(0, 5), *lost, written(10, 2, word="lost")], [(0, 0)])
    cluster.copy("b", [written(0, 5), *lost], [(0, 0)])
    cluster.copy("c", [written(0, 5), written(5, 1, epoch=2)], [(0, 0), (2, 5)])
    found = cluster.plan()
    row = only(found.divergences)
    assert (row.copy, row.lost_records) == ("a", 7)
    records = read_plan(found)
    assert records.offsets("a") == list(range(5, 12))
    assert records.offsets("b") == []
    assert records.twice == []


def test_two_lines_lost_one_after_the_other_are_two(cluster: Cluster) -> None:
    start = written(0, 5)
    cluster.copy("a", [start, written(5, 5, word="first")], [(0, 0)])
    cluster.copy("b", [start, written(5, 3, epoch=2, word="second")], [(0, 0), (2, 5)])
    cluster.copy("c", [start, written(5, 1, epoch=4)], [(0, 0), (4, 5)])
    found = cluster.plan()
    assert {(r.copy, r.diverges_at, r.lost_records) for r in found.divergences} == {
        ("a", 5, 5),
        ("b", 5, 3),
    }
    records = read_plan(found)
    assert records.values("a")[5] == "first5"
    assert records.values("b")[5] == "second5"
    assert records.values()[5] == "v5"


def test_a_topic_born_again_is_another_topic(cluster: Cluster) -> None:
    cluster.copy("a", [written(0, 9, epoch=7, at=EPOCH_0)], [(7, 0)], "A" * 22)
    cluster.copy("b", [written(0, 3, at=EPOCH_0 + 99)], [(0, 0)], "B" * 22)
    found = cluster.plan()
    row = only(found.divergences)
    assert (row.copy, row.diverges_at, row.how) == ("a", 0, "topic_id")
    assert read_plan(found).offsets("a") == list(range(9))


def test_old_formats_know_no_epochs_and_are_compared_by_their_bytes(cluster: Cluster) -> None:
    same = entry(0, b"k", b"v", magic=1)
    inner = b"".join(entry(delta, b"k", b"v", magic=1) for delta in range(3))
    wrapper = entry(3, None, gzip.compress(inner, mtime=0), magic=1, codec=GZIP)
    cluster.copy("a", [same, wrapper, entry(4, b"k", b"lost", magic=1)])
    cluster.copy("b", [same, wrapper, entry(4, b"k", b"kept", magic=1), entry(5, b"k", b"v")])
    found = cluster.plan()
    row = only(found.divergences)
    assert (row.copy, row.diverges_at, row.lost_records, row.lost_leader_epoch) == ("a", 4, 1, None)
    assert read_plan(found).offsets() == [0, 1, 2, 3, 4, 5]


def test_damage_in_one_copy_is_no_divergence(cluster: Cluster) -> None:
    batches = [written(0, 5), written(5, 5), written(10, 5)]
    rotten = bytearray(batches[1])
    rotten[-3] ^= 0x40
    cluster.copy("a", [batches[0], bytes(rotten), batches[2]], [(0, 0)])
    cluster.copy("b", batches[:2], [(0, 0)])
    found = cluster.plan()
    assert found.divergences == ()
    records = read_plan(found)
    assert records.offsets() == list(range(15))
    assert {records.lines["", OFFSETS, 0][offset].copy for offset in range(5, 10)} == {"b"}


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("checkpoints", [True, False])
def test_an_epoch_whose_bit_flipped_is_no_election(
    cluster: Cluster, which: int, checkpoints: bool
) -> None:
    batches = [written(0, 5), written(5, 5), written(10, 5)]
    flipped = [*batches]
    flipped[which] = written(which * 5, 5, epoch=1 << 20)
    cluster.copy("a", [*batches, written(15, 2)], [(0, 0)] if checkpoints else None)
    cluster.copy("b", flipped, [(0, 0)] if checkpoints else None)
    found = cluster.plan()
    records = read_plan(found)
    assert records.offsets()[:15] == list(range(15))
    assert records.twice == []
    if checkpoints or which < 2:
        assert found.divergences == ()
        assert records.offsets() == list(range(17))


def test_a_batch_that_one_copy_had_cleaned_is_the_same_batch(cluster: Cluster) -> None:
    cluster.copy("a", [written(0, 5, kept=[1, 4]), written(5, 2)], [(0, 0)])
    cluster.copy("b", [written(0, 5)], [(0, 0)])
    assert cluster.plan().divergences == ()


def test_what_is_not_compared_is_said(cluster: Cluster) -> None:
    cluster.copy("a", [written(0, 5, kept=[1, 4]), written(5, 2)], [(0, 0)])
    cluster.copy("b", [written(0, 5)], [(0, 0)])
    copies = read_copies(recognize([str(cluster.root)]).disks, next_offset, [])
    logs = [walk_copy(copy.partitions[0]) for copy in copies]
    lines = find_lines(logs, max_compared_bytes=0)
    assert "not every batch" in lines.notes[0].what
    assert find_lines(logs).notes == ()
