"""Last stable offsets of data logs: against a plain walk of random histories; real snapshots."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.dump.copies.plan import next_offset
from analytics.dump.files import data_logs as subject
from analytics.dump.files.data_logs import (
    NO_BEGINNING,
    NOT_WHOLE,
    TOO_LONG,
    open_in_snapshot,
    stable_ends,
)
from analytics.dump.files.inputs import recognize
from analytics.dump.files.log_dirs import read_copies
from tests.support.batches import Header, batch, record
from tests.support.log_dirs import LogDir

TRANSACTIONAL, CONTROL = 0x10, 0x20
DATA, END, PLAIN = "data", "end", "plain"


def written(base: int, kind: str, producer: int, count: int = 1) -> bytes:
    attributes = {DATA: TRANSACTIONAL, END: TRANSACTIONAL | CONTROL, PLAIN: 0}[kind]
    count = 1 if kind == END else count
    key = struct.pack(">hh", 0, 1) if kind == END else b"k"
    records = b"".join(record(each, key, b"v") for each in range(count))
    return batch(Header(base, count - 1, count, codec=attributes, producer_id=producer), records)


def snapshot(open_: dict[int, int | None]) -> bytes:
    """As ``ProducerStateManager.writeSnapshot``: first offsets by producer, None where none."""
    rows = b"".join(
        struct.pack(">qhiqiqiq", producer, 0, 0, 9, 0, 1, 0, -1 if first is None else first)
        for producer, first in open_.items()
    )
    rest = struct.pack(">i", len(open_)) + rows
    return struct.pack(">hI", 1, crc32c.crc32c(rest)) + rest


@dataclass
class Log:
    """A log that is written batch by batch; what is open is remembered, not read."""

    end: int = 0
    open: dict[int, int | None] = field(default_factory=dict)
    segments: dict[int, list[bytes]] = field(default_factory=lambda: {0: []})
    snapshots: dict[int, bytes] = field(default_factory=dict)

    def act(self, act: str, producer: int, count: int) -> None:
        """Append a batch, begin a segment with its snapshot, or take a snapshot as on a stop."""
        if act in {"roll", "stop"}:
            self.snapshots[self.end] = snapshot(self.open)
            if act == "roll":
                self.segments.setdefault(self.end, [])
            return
        batches = self.segments[max(self.segments)]
        batches.append(written(self.end, act, producer, count))
        if act == DATA and self.open.get(producer) is None:
            self.open[producer] = self.end
        if act == END:
            self.open[producer] = None
        self.end += 1 if act == END else count

    @property
    def stable(self) -> int:
        return min((each for each in self.open.values() if each is not None), default=self.end)

    def put(self, disk: LogDir, *, keep: int = 0) -> Path:
        """Write it down, without the first segments."""
        kept = dict(sorted(self.segments.items())[keep:])
        folder = disk.partition("orders-0", kept)
        for offset, content in self.snapshots.items():
            (folder / f"{offset:020d}.snapshot").write_bytes(content)
        return folder


def row_of(disk: LogDir) -> dict[str, Any]:
    copies = read_copies(recognize([str(disk.path)]).disks, next_offset, [])
    (row,) = stable_ends(copies).to_pylist()
    return dict(row)


ACTS = st.tuples(
    st.sampled_from([DATA, DATA, END, PLAIN, "roll", "stop"]), st.integers(1, 4), st.integers(1, 3)
)


@given(st.lists(ACTS, max_size=25), st.booleans())
def test_random_histories_end_where_a_plain_walk_says(
    acts: list[tuple[str, int, int]],
    has_snapshots: bool,
) -> None:
    log = Log()
    for each in acts:
        log.act(*each)
    if not has_snapshots:
        log.snapshots = {}
    with TemporaryDirectory() as folder:
        disk = LogDir.create(Path(folder) / "b")
        log.put(disk)
        row = row_of(disk)
    open_ = [each for each in log.open.values() if each is not None]
    assert (row["last_stable_offset"], row["log_end_offset"]) == (log.stable, log.end)
    assert (row["open_transactions"], row["reason"]) == (len(open_), None)


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return LogDir.create(tmp_path / "b")


@pytest.fixture
def log() -> Log:
    """Producer 7 is open since offset 2; a segment begins at 4."""
    log = Log()
    for act in ((PLAIN, -1, 2), (DATA, 7, 2), ("roll", 0, 0), (PLAIN, -1, 3)):
        log.act(*act)
    return log


def test_what_began_in_a_segment_that_is_gone_a_snapshot_still_knows(
    disk: LogDir, log: Log
) -> None:
    log.put(disk, keep=1)
    row = row_of(disk)
    assert (row["last_stable_offset"], row["log_end_offset"], row["producer_id"]) == (2, 7, 7)


def test_without_its_beginning_and_without_a_snapshot_it_cannot_be_told(
    disk: LogDir, log: Log
) -> None:
    log.snapshots = {}
    log.put(disk, keep=1)
    row = row_of(disk)
    assert (row["last_stable_offset"], row["reason"]) == (None, NO_BEGINNING)


def test_a_snapshot_that_is_not_whole_or_lies_beyond_the_end_is_not_believed(
    disk: LogDir, log: Log
) -> None:
    sound = log.snapshots[4]
    folder = log.put(disk)
    (folder / f"{9:020d}.snapshot").write_bytes(snapshot({}))
    path = folder / f"{4:020d}.snapshot"
    for broken in (b"", sound[:-1], sound[:12] + b"\x01" + sound[13:], b"\x00\x02" + sound[2:]):
        path.write_bytes(broken)
        assert open_in_snapshot(str(path)) is None
        assert row_of(disk)["last_stable_offset"] == 2
    path.write_bytes(sound)
    assert open_in_snapshot(str(path)) == {7: 2}


def test_a_damaged_log_and_one_too_long_to_look_at_are_not_told(
    disk: LogDir, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = log.put(disk)
    monkeypatch.setattr(subject, "MOST_WALKED", 10)
    assert row_of(disk)["reason"] == TOO_LONG
    monkeypatch.undo()
    path = folder / f"{4:020d}.log"
    path.write_bytes(path.read_bytes()[:70])
    assert row_of(disk)["reason"] in {NOT_WHOLE, None}
    path.write_bytes(b"no batch at all, and longer than the header of one would be" * 3)
    assert row_of(disk)["reason"] == NOT_WHOLE


def test_snapshots_of_real_brokers_say_what_the_headers_before_them_do(
    failover_dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = read_copies(recognize([str(failover_dump)]).disks, next_offset, [])
    told = stable_ends(copies)
    monkeypatch.setattr(subject, "SUFFIX", ".nothing")
    walked = stable_ends(copies)

    assert told.num_rows == 66
    assert told["reason"].null_count == walked["reason"].null_count == 66
    assert told.equals(walked)
