"""A thinned log is one that a broker could have: what stays is what it was, at its offset."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from analytics.dump.records.segment_reader import read_segment
from tests.brokers.batches import batches_of
from tests.brokers.thinning import thin
from tests.support.batches import Header, batch, record, sound_batch
from tests.support.plain_batches import read_plain_batch

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.segments import Record

COMMIT = batch(Header(9, 0, 1, codec=0x30, producer_id=7), record(0, b"\0\0\0\1", b"\0" * 6))
PAIRS = [(b"a", b"1"), (b"b", b"1"), (b"a", None), (b"c", b"1"), (b"a", b"2"), (b"b", None)]


def records_of(partition: Path) -> list[Record]:
    return [one for each in batches_of(partition) for one in read_plain_batch(each.read())]


def log(folder: Path) -> Path:
    """A log of two segments with a marker between two batches."""
    folder.mkdir()
    first = sound_batch(0, PAIRS) + COMMIT
    (folder / f"{0:020}.log").write_bytes(first)
    (folder / f"{10:020}.log").write_bytes(sound_batch(10, PAIRS))
    (folder / f"{10:020}.index").write_bytes(b"")
    return folder


def test_what_stays_is_what_it_was_and_only_logs_without_index_stay(tmp_path: Path) -> None:
    whole = records_of(log(tmp_path / "whole"))
    seen = set()
    for seed in range(40):
        thinned = log(tmp_path / str(seed))
        thin(thinned, random.Random(seed))
        assert [path.name for path in thinned.iterdir()] == [f"{0:020}.log"]
        left = records_of(thinned)
        assert [each for each in whole if each in left] == left
        assert whole[len(PAIRS)] in left, "a marker stays"
        chunks = list(read_segment(thinned / f"{0:020}.log"))
        assert not any(chunk.damages for chunk in chunks), "checksums are right"
        assert sum(len(chunk.records) for chunk in chunks) == len(left)
        seen.add(len(left))
    assert len(seen) > 3
