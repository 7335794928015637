"""What headers and checkpoints show of a partition: extent, gaps and their kind, damage, tails."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.dump.batches.segment_stats import MOST_HOLES, SegmentStats, joined
from analytics.dump.batches.walks import log_senses, walk_segment
from analytics.dump.copies.plan import PlanOptions, next_offset
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.files.model import NOTHING_KNOWN, SegmentFile
from analytics.dump.inspection.study import Study, has_changed, study
from analytics.dump.inspection.survey import Gap, PartitionSurvey
from tests.support.batches import GZIP, entry
from tests.support.log_dirs import EPOCH_0, LogDir, written

OFFSETS = "__consumer_offsets-0"
SHARE = "__share_group_state-0"


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return LogDir.create(tmp_path / "b")


def studied(disk: LogDir, **options: bool) -> Study:
    copies = read_copies(recognize([str(disk.path)]).disks, next_offset, [])
    return study(copies, PlanOptions(), **options)


def surveyed(disk: LogDir, **options: bool) -> PartitionSurvey:
    (survey,) = studied(disk, **options).surveys
    return survey


def test_a_plain_log(disk: LogDir) -> None:
    disk.partition(OFFSETS, {0: [written(0, 5)], 5: [written(5, 5, epoch=2)]}, [(0, 0), (2, 5)])
    disk.checkpoint("cleaner-offset-checkpoint", {})
    disk.checkpoint("replication-offset-checkpoint", {OFFSETS: 8})
    found = surveyed(disk)
    assert (found.first_offset, found.end_offset) == (0, 10)
    assert (found.first_timestamp, found.last_timestamp) == (EPOCH_0, EPOCH_0 + 5000)
    assert (found.records, found.batches) == (10, 2)
    assert found.gaps == ()
    assert found.complete_from == 0
    assert found.records_above_high_watermark == 2
    assert found.leader_epochs == ((0, 0), (2, 5))
    assert found.counted("magics") == {2: 2}
    assert not found.changed_while_read


def test_holes_below_the_first_dirty_offset_are_compaction(disk: LogDir) -> None:
    disk.partition(OFFSETS, {0: [written(3, 2), written(9, 1)], 20: [written(20, 5)]})
    disk.checkpoint("cleaner-offset-checkpoint", {OFFSETS: 20})
    found = surveyed(disk)
    assert found.gaps == (
        Gap(0, 3, "compaction"),
        Gap(5, 9, "compaction"),
        Gap(10, 20, "compaction"),
    )
    assert found.complete_from == 20


@pytest.mark.parametrize("noted", [0, 6, 10])
def test_a_batch_that_lacks_records_was_cleaned_whatever_the_checkpoint_says(
    disk: LogDir, noted: int
) -> None:
    disk.partition(OFFSETS, {0: [written(0, 6, kept=[1, 4]), written(6, 5)]})
    disk.checkpoint("cleaner-offset-checkpoint", {OFFSETS: noted})
    found = surveyed(disk)
    assert found.gaps == ()
    assert found.complete_from == max(noted, 6)


def test_a_file_that_is_missing_and_a_hole_nothing_accounts_for(disk: LogDir) -> None:
    disk.partition(
        OFFSETS, {0: [written(0, 5)], 10: [written(10, 5), written(20, 5)], 25: [written(25, 1)]}
    )
    disk.checkpoint("cleaner-offset-checkpoint", {})
    found = surveyed(disk)
    assert found.gaps == (Gap(5, 10, "missing_segment"), Gap(15, 20, "unknown"))
    assert found.complete_from == 20
    assert found.gap_offsets == {"missing_segment": 5, "unknown": 5}


def test_nothing_is_cleaned_from_a_topic_that_is_not_compacted(disk: LogDir) -> None:
    disk.partition(SHARE, {0: [written(0, 5), written(7, 1)]})
    assert surveyed(disk).gaps == (Gap(5, 7, "unknown"),)


def test_without_the_cleaners_checkpoint_holes_stay_unknown(disk: LogDir) -> None:
    disk.partition(OFFSETS, {0: [written(0, 5), written(7, 3, kept=[8]), written(10, 5)]})
    found = surveyed(disk)
    assert found.gaps == (Gap(5, 7, "unknown"),)
    # From the last batch with holes in it on, every offset has its record.
    assert found.complete_from == 10


def test_a_log_that_ends_before_its_own_high_watermark_is_cut_off(disk: LogDir) -> None:
    disk.partition(OFFSETS, {0: [written(0, 5)]})
    disk.checkpoint("replication-offset-checkpoint", {OFFSETS: 9})
    found = surveyed(disk)
    assert found.gaps == (Gap(5, 9, "missing_segment"),)
    assert found.records_above_high_watermark == 0


def test_a_log_that_begins_after_its_log_start_lost_its_first_file(disk: LogDir) -> None:
    disk.partition(SHARE, {10: [written(10, 5)]})
    disk.checkpoint("log-start-offset-checkpoint", {SHARE: 4})
    assert surveyed(disk).gaps == (Gap(4, 10, "missing_segment"),)


def test_a_log_start_that_moved_since_its_checkpoint_was_written_lost_nothing(disk: LogDir) -> None:
    disk.partition(SHARE, {14: [written(14, 5)]}, [(2, 14)])
    disk.checkpoint("log-start-offset-checkpoint", {SHARE: 13})
    assert surveyed(disk).gaps == ()


def test_leader_epochs_older_than_the_first_file_tell_that_one_is_missing(disk: LogDir) -> None:
    disk.partition(OFFSETS, {24: [written(26, 5)]}, [(0, 0)])
    disk.checkpoint("cleaner-offset-checkpoint", {OFFSETS: 26})
    found = surveyed(disk)
    assert found.gaps == (Gap(0, 24, "missing_segment"), Gap(24, 26, "compaction"))
    assert found.complete_from == 26


def test_a_log_whose_epochs_begin_with_its_first_file_lacks_nothing(disk: LogDir) -> None:
    disk.partition(SHARE, {24: [written(24, 5)]}, [(3, 24)])
    assert surveyed(disk).gaps == ()


def test_gaps_below_the_log_start_are_nobodys(disk: LogDir) -> None:
    disk.partition(SHARE, {0: [written(0, 2), written(4, 6)]})
    disk.checkpoint("log-start-offset-checkpoint", {SHARE: 7})
    found = surveyed(disk)
    assert found.gaps == ()
    assert found.complete_from == 7


def test_a_compressed_entry_of_an_old_format_leaves_no_gap_before_it(disk: LogDir) -> None:
    wrapper = entry(9, None, b"compressed", magic=1, codec=GZIP)
    disk.partition(OFFSETS, {0: [entry(0, b"k", b"v", magic=1), wrapper]})
    disk.checkpoint("cleaner-offset-checkpoint", {})
    found = surveyed(disk)
    assert found.gaps == ()
    assert found.logs[0].uncounted_batches == 1


def test_damage_tails_and_zeros_are_counted_apart(disk: LogDir) -> None:
    garbage = b"\x7f" * 100
    disk.partition(
        OFFSETS,
        {0: [written(0, 2), garbage, written(2, 2)], 4: [written(4, 2), written(6, 2)[:50]]},
    )
    disk.partition(SHARE, {0: [written(0, 2), bytes(4096)]})
    offsets, share = studied(disk).surveys
    assert offsets.bytes_damaged == 100
    assert offsets.truncated_tail == 50
    assert offsets.preallocated_tail == 0
    assert offsets.gaps == ()
    assert (share.preallocated_tail, share.bytes_damaged) == (4096, 0)


def test_checksums_are_looked_at_when_asked(disk: LogDir) -> None:
    rotten = bytearray(written(2, 2))
    rotten[-1] ^= 1
    disk.partition(OFFSETS, {0: [written(0, 2), bytes(rotten), written(4, 2)]})
    assert surveyed(disk).crc_failures == 0
    found = surveyed(disk, check_crc=True)
    assert found.crc_failures == 1
    assert found.bytes_damaged == len(rotten)
    assert found.gaps == (Gap(2, 4, "unknown"),)


def test_an_empty_partition(disk: LogDir) -> None:
    disk.partition(OFFSETS, {0: []}, [])
    disk.checkpoint("cleaner-offset-checkpoint", {})
    found = surveyed(disk)
    assert (found.first_offset, found.end_offset, found.complete_from) == (None, 0, 0)
    assert found.records == 0


def test_a_segment_alone_cannot_tell_from_where_it_is_complete(disk: LogDir) -> None:
    folder = disk.partition(OFFSETS, {0: [written(0, 5)], 5: [written(5, 5)]})
    inputs = recognize([str(folder / f"{5:020d}.log")])
    (survey,) = study(read_copies(inputs.disks, next_offset, []), PlanOptions()).surveys
    assert survey.complete_from is None
    assert survey.gaps == ()


def test_record_types_are_those_of_a_sample(failover_dump: Path) -> None:
    copies = read_copies(recognize([str(failover_dump)]).disks, next_offset, [])
    sample = study(copies, PlanOptions()).findings.sample
    assert sample.metadata_levels == {30}
    seen = {(kind.topic, kind.record_type, kind.version) for kind in sample.kinds}
    assert ("__consumer_offsets", 1, 4) in seen
    assert ("__consumer_offsets", 1, -1) in seen
    assert ("__share_group_state", 0, 0) in seen
    assert ("__transaction_state", 0, 1) in seen
    assert ("__cluster_metadata", 2, 0) in seen


def test_processes_find_what_one_process_finds(
    failover_dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = read_copies(recognize([str(failover_dump)]).disks, next_offset, [])
    alone = study(copies, PlanOptions())
    monkeypatch.setattr("analytics.dump.inspection.study._FOR_PROCESSES", 0)
    monkeypatch.setattr("analytics.dump.inspection.study._processors", lambda: 2)
    shared = study(copies, PlanOptions())
    assert shared.surveys == alone.surveys
    assert shared.findings.divergences == alone.findings.divergences
    assert shared.findings.sample == alone.findings.sample


# --- what changes while it is read ---------------------------------------------------------------


@pytest.mark.parametrize("what", ["grows", "goes", "comes", "becomes a swap"])
def test_a_directory_that_changes_is_noticed(disk: LogDir, what: str) -> None:
    folder = disk.partition(OFFSETS, {0: [written(0, 5)], 5: [written(5, 5)]})
    (partition,) = read_copies(recognize([str(disk.path)]).disks, next_offset, [])[0].partitions
    assert not has_changed(partition)
    last = folder / f"{5:020d}.log"
    if what == "grows":
        last.write_bytes(last.read_bytes() + written(10))
    elif what == "goes":
        last.unlink()
    elif what == "comes":
        (folder / f"{10:020d}.log").write_bytes(written(10))
    else:
        (folder / f"{0:020d}.log.swap").write_bytes(written(0))
    assert has_changed(partition)


def test_a_file_that_grows_while_it_is_read_is_marked(disk: LogDir) -> None:
    folder = disk.partition(OFFSETS, {0: [written(0, 5)]})
    (partition,) = read_copies(recognize([str(disk.path)]).disks, next_offset, [])[0].partitions
    segment = folder / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes() + written(5))
    walk = walk_segment(partition.segments[0], log_senses(partition)[0])
    assert walk.changed


# --- stats of segments --------------------------------------------------------------------------


def stats_of(tmp_path: Path, *pieces: list[bytes]) -> list[SegmentStats]:
    found = []
    for number, piece in enumerate(pieces):
        path = tmp_path / f"{number}.log"
        path.write_bytes(b"".join(piece))
        segment = SegmentFile(str(path), path.name, 0, path.stat().st_size)
        stats = SegmentStats(segment)
        for part in walk_segment(segment, NOTHING_KNOWN).parts:
            stats.add(part)
        found.append(stats)
    return found


def test_pieces_of_a_file_joined_are_the_file(tmp_path: Path) -> None:
    batches = [
        written(0, 2),
        written(4, 2, kept=[5]),
        written(6, 1, epoch=3),
        written(9, 1, epoch=3),
    ]
    whole, one, two = (t.survey() for t in stats_of(tmp_path, batches, batches[:2], batches[2:]))
    both = joined([one, two])
    for name in (
        *("first_offset", "end_offset", "first_timestamp", "last_timestamp", "batches", "records"),
        *("magics", "codecs", "leader_epochs", "hole_count", "hole_offsets"),
        *("last_hole_end", "thinned_end"),
    ):
        assert getattr(both, name) == getattr(whole, name), name
    for survey in (whole, both):
        assert [hole[:2] for hole in survey.holes] == [(2, 4), (7, 9)]


def test_holes_beyond_counting_are_counted(tmp_path: Path) -> None:
    batches = [written(2 * number) for number in range(MOST_HOLES + 50)]
    (stats,) = stats_of(tmp_path, batches)
    found = stats.survey()
    assert len(found.holes) == MOST_HOLES
    assert found.hole_count == found.hole_offsets == MOST_HOLES + 49
