"""The data that everything is measured on: generated, in a temporary folder, removed at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.contestants import Segment
from benchmarks.generate import KINDS, Options, write_dump
from benchmarks.templates import BATCH_HEADER

_SHARED_MEMORY = Path("/dev/shm")
_SEGMENTS = 4


@dataclass(frozen=True)
class Data:
    """Where the data is, and how large.

    Attributes:
        folder: A temporary folder; nothing is read from or written to anywhere else.
        segment_bytes: Of a segment of `__consumer_offsets`.
        whole_bytes: Of the segment on which every column is compared.
        large_bytes: Of the large dump.
        rounds: How often everything is measured.
    """

    folder: Path
    segment_bytes: int = 100_000_000
    whole_bytes: int = 10_000_000
    large_bytes: int = 4_000_000_000
    rounds: int = 5

    @cached_property
    def dump(self) -> Path:
        """A log directory with four partitions of one segment each."""
        folder = self.folder / "dump"
        write_dump(folder, Options(size=self.segment_bytes), _SEGMENTS)
        return folder

    @cached_property
    def offsets(self) -> Segment:
        """A segment of `__consumer_offsets`."""
        return _segment(self.dump, "offsets")

    @cached_property
    def offsets_whole(self) -> Segment:
        """A smaller one."""
        folder = self.folder / "small"
        write_dump(folder, Options(size=self.whole_bytes), 1)
        return _segment(folder, "offsets")

    @cached_property
    def share(self) -> Segment:
        """A segment of `__share_group_state`."""
        folder = self.folder / "share"
        write_dump(folder, Options(kind="share", size=self.segment_bytes), 1)
        return _segment(folder, "share")

    @cached_property
    def share_whole(self) -> Segment:
        """A smaller one."""
        folder = self.folder / "small-share"
        write_dump(folder, Options(kind="share", size=self.whole_bytes), 1)
        return _segment(folder, "share")

    @contextmanager
    def multiplied(self, times: int) -> Iterator[Path]:
        """Make a dump of the same segments, `times` as many, for as long as it is needed."""
        folder = self.folder / f"times-{times}"
        sources = [segment_of(self.dump, number) for number in range(_SEGMENTS)]
        for source in sources:
            _chain(source, folder / source.parent.name, times)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    @property
    def large_times(self) -> int:
        """How many times the dump the large one is."""
        return max(1, round(self.large_bytes / (_SEGMENTS * self.segment_bytes)))


def segment_of(dump: Path, partition: int, kind: str = "offsets") -> Path:
    """Return the first segment of a partition."""
    return dump / f"{KINDS[kind]}-{partition}" / f"{0:020d}.log"


def segments_in(dump: Path) -> list[Path]:
    """Return all segments of a log directory, or of a folder of brokers."""
    return sorted(dump.rglob("*.log"))


def size_of(dump: Path) -> int:
    """Return the bytes of all segments."""
    return sum(each.stat().st_size for each in segments_in(dump))


def room_for(size: int) -> Path:
    """Return where a temporary folder for so many bytes is made: in memory where there is room."""
    if _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK):
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if min(available, shutil.disk_usage(_SHARED_MEMORY).free) > 2 * size:
            return _SHARED_MEMORY
    return Path(tempfile.gettempdir())


def _segment(dump: Path, kind: str) -> Segment:
    return Segment(segment_of(dump, 0, kind), KINDS[kind])


def _chain(source: Path, folder: Path, times: int) -> None:
    """Repeat a segment as the segments of one log.

    Only base offsets differ, which a batch's checksum does not cover: making gigabytes this way
    costs no more than writing them.
    """
    folder.mkdir(parents=True)
    content = bytearray(source.read_bytes())
    starts = _batch_starts(content)
    offsets = np.ndarray((len(content) - 7,), "V8", content, strides=(1,))
    base = offsets[starts].view(">i8").astype(np.int64)
    last = int(starts[-1])
    after = int(base[-1]) + int.from_bytes(content[last + 23 : last + 27]) + 1
    for number in range(times):
        offsets[starts] = (base + number * after).astype(">i8").view("V8")
        (folder / f"{number * after:020d}.log").write_bytes(content)


def _batch_starts(content: bytearray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    starts, position = [], 0
    while position + BATCH_HEADER <= len(content):
        starts.append(position)
        position += int.from_bytes(content[position + 8 : position + 12]) + 12
    return np.array(starts, np.int64)
