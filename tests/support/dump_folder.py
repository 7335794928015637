"""A dump as it lies on disk: log directories per copy, and the tools' outputs beside them.

``<dump>/<copy>/<topic>-<partition>/<segment>`` holds the bytes,
``<dump>/tools/dump-log/<copy>/<topic>-<partition>/<segment>.txt.gz`` what the tool printed.
Where ``tools/dump-log-4.3.1`` exists that newer tool is believed instead: the oldest ones leave
most of a record out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tests.support.dump_log import SegmentText, read_dump_log

TEXT_SUFFIXES = (".txt.gz", ".txt")


@dataclass(frozen=True)
class PrintedSegment:
    """What the tool printed for one segment of one copy, and where the bytes are."""

    copy: str
    topic: str
    partition: int
    segment: str
    path: Path
    text: SegmentText

    @cached_property
    def data(self) -> bytes:
        """The segment's bytes."""
        return self.path.read_bytes()


class DumpFolder:
    """One dump. ``copies`` are the names for which there is printed text."""

    def __init__(self, root: Path) -> None:
        self.root = root
        tools = root / "tools"
        newer = sorted(tools.glob("dump-log-*"), key=_release)
        self.texts = newer[-1] if newer else tools / "dump-log"
        self._read: dict[str, list[PrintedSegment]] = {}
        self.copies = sorted(folder.name for folder in self.texts.iterdir() if folder.is_dir())

    @staticmethod
    def is_dump(root: Path) -> bool:
        """Whether the folder holds printed text beside log directories."""
        return any((root / "tools").glob("dump-log*"))

    def segments(self, copy: str) -> list[PrintedSegment]:
        """Every printed segment of one copy, in the order of its names."""
        if copy not in self._read:
            self._read[copy] = self._segments(copy)
        return self._read[copy]

    def _segments(self, copy: str) -> list[PrintedSegment]:
        found = []
        for path in sorted((self.texts / copy).glob("*/*")):
            name = path.name
            for suffix in TEXT_SUFFIXES:
                name = name.removesuffix(suffix)
            topic, partition = path.parent.name.rsplit("-", 1)
            segment = f"{path.parent.name}/{name}"
            found.append(
                PrintedSegment(
                    copy=copy,
                    topic=topic,
                    partition=int(partition),
                    segment=segment,
                    path=self.root / copy / segment,
                    text=read_dump_log(path),
                )
            )
        return found

    def log_starts(self, copy: str) -> dict[tuple[str, int], int]:
        """The copy's ``log-start-offset-checkpoint``: offset per topic and partition."""
        return self._checkpoint(copy, "log-start-offset-checkpoint")

    def cleaned_until(self, copy: str) -> dict[tuple[str, int], int]:
        """The copy's ``cleaner-offset-checkpoint``: how far the cleaner has been."""
        return self._checkpoint(copy, "cleaner-offset-checkpoint")

    def _checkpoint(self, copy: str, name: str) -> dict[tuple[str, int], int]:
        path = self.root / copy / name
        if not path.exists():
            return {}
        lines = [line.rsplit(" ", 2) for line in path.read_text("utf-8").splitlines()[2:]]
        return {(topic, int(partition)): int(offset) for topic, partition, offset in lines}


def dumps_in(folder: Path) -> list[DumpFolder]:
    """The dump at ``folder``, or those in it."""
    if DumpFolder.is_dump(folder):
        return [DumpFolder(folder)]
    return [DumpFolder(each) for each in sorted(folder.iterdir()) if DumpFolder.is_dump(each)]


@cache
def bundled_dumps() -> tuple[DumpFolder, ...]:
    """The dumps of the tests; what their texts say is read once."""
    return tuple(dumps_in(Path(__file__).parents[1] / "data" / "dumps"))


def _release(folder: Path) -> list[int]:
    digits = folder.name.removeprefix("dump-log-").split(".")
    return [int(part) for part in digits if part.isdigit()]
