"""What a copy has lost: whatever happens to its files, no lost record is taken for one never there.

An operator's copy of a log may lack a file, be cut off, be damaged or be unreadable. What the log
was is told by what lies beside it: checkpoints, leader epochs, names of snapshots and indexes.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.dump.batches.walks import log_senses, walk_segment
from analytics.dump.copies.plan import PlanOptions, next_offset
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.files.model import Filled
from analytics.dump.inspection.found_losses import (
    DELETED,
    OPEN_END,
    Loss,
    filled_up,
    inside,
    lacks,
    losses_of,
    merged,
)
from analytics.dump.inspection.manifest import Findings, partition_row
from analytics.dump.inspection.study import study
from analytics.dump.inspection.survey import PartitionSurvey
from tests.support.log_dirs import LogDir, written

NAME = "__consumer_offsets-0"
SEGMENT, BATCH, END = 10, 2, 30
HIGH_WATERMARK = "replication-offset-checkpoint"


def whole_log(path: Path, *, tells_end: bool = True) -> Path:
    """Write a log of three segments and return its directory."""
    disk = LogDir.create(path)
    segments = {
        base: [written(offset, BATCH) for offset in range(base, base + SEGMENT, BATCH)]
        for base in range(0, END, SEGMENT)
    }
    folder = disk.partition(NAME, segments)
    disk.checkpoint("cleaner-offset-checkpoint", {})
    if tells_end:
        disk.checkpoint(HIGH_WATERMARK, {NAME: END})
    return folder


def survey_of(disk: Path) -> PartitionSurvey:
    copies = read_copies(recognize([str(disk)]).disks, next_offset, [])
    (survey,) = study(copies, PlanOptions(), check_crc=True).surveys
    return survey


def file(folder: Path, base: int) -> Path:
    return folder / f"{base:020d}.log"


def size(folder: Path) -> int:
    return file(folder, 0).stat().st_size


def overwritten(folder: Path, base: int, start: float, end: float) -> None:
    data = bytearray(file(folder, base).read_bytes())
    first, last = int(len(data) * start), int(len(data) * end)
    data[first:last] = random.Random(1).randbytes(last - first)
    file(folder, base).write_bytes(data)


def flipped(folder: Path) -> None:
    data = bytearray(file(folder, 10).read_bytes())
    data[len(data) // 2] ^= 1
    file(folder, 10).write_bytes(data)


def cut(folder: Path, base: int, part: float) -> None:
    data = file(folder, base).read_bytes()
    file(folder, base).write_bytes(data[: int(len(data) * part)])


def remove_all(folder: Path) -> None:
    (folder / "partition.metadata").write_text("version: 0\n")
    for each in folder.glob("*.log"):
        each.unlink()


Lost = list[tuple[int, int]]
CASES: dict[str, tuple[Callable[[Path], object], Lost]] = {
    "nothing": (lambda _: None, []),
    "the first segment": (lambda log: file(log, 0).unlink(), [(0, 10)]),
    "a segment in the middle": (lambda log: file(log, 10).unlink(), [(10, 20)]),
    "the last segment": (lambda log: file(log, 20).unlink(), [(20, OPEN_END)]),
    "all segments": (remove_all, [(0, OPEN_END)]),
    "random bytes in the middle": (lambda log: overwritten(log, 10, 0, 1), [(10, 20)]),
    "random bytes at the end": (lambda log: overwritten(log, 20, 0, 1), [(20, OPEN_END)]),
    "the first half": (lambda log: overwritten(log, 0, 0, 0.5), [(0, 6)]),
    "the last half": (lambda log: overwritten(log, 20, 0.5, 1), [(24, OPEN_END)]),
    "one bit": (flipped, [(14, 16)]),
    "a file cut within a batch": (lambda log: cut(log, 20, 0.5), [(24, OPEN_END)]),
    "a file cut between batches": (lambda log: cut(log, 20, 0.4), [(24, OPEN_END)]),
    "an earlier file cut off": (lambda log: cut(log, 10, 0.5), [(14, 20)]),
    "an empty file": (lambda log: file(log, 20).write_bytes(b""), [(20, OPEN_END)]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_taken_away_is_lost(tmp_path: Path, name: str) -> None:
    harm, expected = CASES[name]
    folder = whole_log(tmp_path / "b")
    harm(folder)
    assert [(each.first, each.end) for each in losses_of(survey_of(tmp_path / "b"))] == expected


def epochs(folder: Path) -> None:
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 22\n")


TELLING: dict[str, Callable[[Path], object]] = {
    HIGH_WATERMARK: lambda log: LogDir(log.parent).checkpoint(HIGH_WATERMARK, {NAME: 22}),
    "recovery-point-offset-checkpoint": lambda log: LogDir(log.parent).checkpoint(
        "recovery-point-offset-checkpoint", {NAME: 22}
    ),
    "cleaner-offset-checkpoint": lambda log: LogDir(log.parent).checkpoint(
        "cleaner-offset-checkpoint", {NAME: 22}
    ),
    "leader-epoch-checkpoint": epochs,
    "00000000000000000022.snapshot": lambda log: (log / f"{22:020d}.snapshot").write_bytes(b""),
    "00000000000000000020.log is missing": lambda log: (log / f"{20:020d}.index").write_bytes(b""),
}


@pytest.mark.parametrize("source", TELLING)
def test_a_lost_end_is_noticed_wherever_something_tells_of_it(tmp_path: Path, source: str) -> None:
    folder = whole_log(tmp_path / "b", tells_end=False)
    file(folder, 20).unlink()
    assert losses_of(survey_of(tmp_path / "b")) == [], "nothing tells"
    TELLING[source](folder)
    (loss,) = losses_of(survey_of(tmp_path / "b"))
    assert (loss.first, loss.is_open) == (20, True)
    assert source in loss.why


def test_a_single_file_says_nothing_of_what_lies_around_it(tmp_path: Path) -> None:
    folder = whole_log(tmp_path / "b")
    found = losses_of(survey_of(file(folder, 10)))
    assert [(each.first, each.end) for each in found] == [(0, 10), (20, OPEN_END)]


def test_the_manifest_names_what_is_lost(tmp_path: Path) -> None:
    file(whole_log(tmp_path / "b"), 20).unlink()
    survey = survey_of(tmp_path / "b")
    row = partition_row(survey, Findings(copies=(), surveys=[survey], absent_partitions={}))
    assert row["losses"] == [
        {
            "first_offset": 20,
            "end_offset": None,
            "why": f"{HIGH_WATERMARK} says that the log reached offset 30",
        }
    ]
    assert row["lacks"].startswith(f"{NAME} lacks all from offset 20 on")


@pytest.mark.parametrize(("until", "left"), [(30, None), (26, (26, OPEN_END))])
def test_what_another_copy_gives_is_not_lost(
    tmp_path: Path, until: int, left: tuple[int, int] | None
) -> None:
    """The copy that leads lacks its end; another one has it, up to what is known or not so far."""
    file(whole_log(tmp_path / "b"), 20).unlink()
    survey = survey_of(tmp_path / "b")
    topic, partition = survey.partition.key
    given = Filled(topic, partition, "", "c", 20, until, "missing there")
    findings = Findings((), [survey], {}, filled=[given])
    found = partition_row(survey, findings)["losses"]
    assert [each["first_offset"] for each in found] == ([] if left is None else [left[0]])


@settings(max_examples=60)
@given(data=st.data())
def test_every_record_can_be_read_or_is_lost(data: st.DataObject) -> None:
    """Random harm to a log: what is neither read nor called lost was never there."""
    with tempfile.TemporaryDirectory() as name:
        folder = whole_log(Path(name) / "b")
        for _ in range(data.draw(st.integers(0, 3))):
            _harm(data, folder)
        survey = survey_of(Path(name) / "b")
        losses = losses_of(survey)
        partition = survey.partition
        read: set[int] = set()
        for segment, sense in zip(partition.logs, log_senses(partition), strict=True):
            headers = walk_segment(segment, sense, check_crc=True).headers
            pairs = zip(headers.base_offset.tolist(), headers.last_offset.tolist(), strict=True)
            read |= {offset for base, last in pairs for offset in range(base, last + 1)}
    unread = set(range(END)) - read
    assert {o for o in unread if not any(each.first <= o < each.end for each in losses)} == set()


def _harm(data: st.DataObject, folder: Path) -> None:
    there = sorted(folder.glob("*.log"))
    if len(there) < 2:
        return
    path = data.draw(st.sampled_from(there))
    content = bytearray(path.read_bytes())
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    kind = data.draw(st.sampled_from(["remove", "cut", "overwrite", "take out", "move"]))
    if kind == "remove":
        path.unlink()
    elif kind == "cut":
        path.write_bytes(content[:start])
    elif kind == "overwrite":
        content[start:end] = data.draw(st.binary(min_size=end - start, max_size=end - start))
        path.write_bytes(content)
    elif kind == "take out":
        path.write_bytes(content[:start] + content[end:])
    else:
        path.write_bytes(data.draw(st.sampled_from(there)).read_bytes())


LOSSES = [Loss(0, 4, "a"), Loss(10, OPEN_END, "b", 20)]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([(0, 4)], [(10, OPEN_END)]),
        ([(1, 3)], [(0, 1), (3, 4), (10, OPEN_END)]),
        ([(10, 20)], [(0, 4)]),
        ([(10, 15)], [(0, 4), (15, OPEN_END)]),
        ([(12, 20)], [(0, 4), (10, 12)]),
    ],
)
def test_losses_filled_up(given: list[tuple[int, int]], left: Lost) -> None:
    assert [(each.first, each.end) for each in filled_up(LOSSES, given)] == left


def test_losses_merged_and_cut() -> None:
    one = merged([Loss(5, 9, "b"), Loss(0, 6, "a"), Loss(2, 2, "nothing"), Loss(20, 21, "a")])
    assert [(each.first, each.end, each.why) for each in one] == [(0, 9, "a; b"), (20, 21, "a")]
    assert [(each.first, each.end) for each in inside(one, 3, 21)] == [(3, 9), (20, 21)]


def test_losses_in_words() -> None:
    many = [Loss(number, number + 1, "damaged bytes") for number in range(0, 12, 2)]
    assert lacks("t", 3, [Loss(1000, OPEN_END, "x")]) == "t-3 lacks all from offset 1,000 on (x)"
    assert lacks("t", 3, many).endswith("offset 4 (damaged bytes) and 3 more ranges")


def losses_beginning_at(tmp_path: Path, base: int, **beside: int) -> list[Loss]:
    """Return the losses of a log of one file, by what the files beside it say of its start."""
    disk = LogDir.create(tmp_path)
    batches = [written(offset, BATCH) for offset in range(base, base + SEGMENT, BATCH)]
    folder = disk.partition(NAME, {base: batches})
    disk.checkpoint("cleaner-offset-checkpoint", {})
    if "log_start" in beside:
        disk.checkpoint("log-start-offset-checkpoint", {NAME: beside["log_start"]})
    if "first_epoch" in beside:
        (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n3 {beside['first_epoch']}\n")
    return losses_of(survey_of(tmp_path))


def test_compaction_never_moves_the_log_start_so_what_lies_below_was_deleted(
    tmp_path: Path,
) -> None:
    assert losses_beginning_at(tmp_path / "a", 20, log_start=20) == [
        Loss(0, 20, DELETED, is_below_start=True)
    ]
    # Of a running broker: its checkpoint names a log start only within the first file.
    assert losses_beginning_at(tmp_path / "b", 20, first_epoch=20) == [
        Loss(0, 20, DELETED, is_below_start=True)
    ]
    assert losses_beginning_at(tmp_path / "c", 0, log_start=4) == [
        Loss(0, 4, DELETED, is_below_start=True)
    ]


def test_a_first_file_that_the_leader_epochs_precede_is_missing_and_not_deleted(
    tmp_path: Path,
) -> None:
    (loss,) = losses_beginning_at(tmp_path / "a", 20, first_epoch=0)
    assert (loss.first, loss.end) == (0, 20)
    assert DELETED not in loss.why
    assert losses_beginning_at(tmp_path / "b", 0, first_epoch=4) == []
