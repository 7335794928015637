"""Where a snapshot is written: one broker's log directory, under another name until it is whole.

Batches go into segments as a broker would write them: ``TOPIC-N/<base offset>.log``. Of a broker's
other files only those are there that say what the cluster answered: the cluster's id, topics' ids,
where logs start, and the high watermarks up to which they were read.

An earlier snapshot that a new one goes on from: what it has of each log, if its files are whole.

It is read only; its segments get a second name in the new snapshot's folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Final, Self

from analytics.dump.files.segments import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    SNAPSHOT,
    UNFINISHED_SNAPSHOT,
)
from analytics.errors import InputNotRecognizedError, OutputRefusedError, WorkspaceError
from analytics.snapshot.log_extents import HeldLog, LastBatch
from analytics.workspace_lock import sole_writer
from schemas.reading import SchemaError
from schemas.snapshot import read_snapshot

if TYPE_CHECKING:
    from schemas.snapshot import Log, Snapshot, Topic


END_OFFSETS_FILE: Final = "end-offsets.csv"

_PRIVATE: Final = 0o700
"""Names of groups and topics, clients' hosts and settings are in a snapshot."""
_SEGMENT_BYTES: Final = 1 << 30
"""As ``log.segment.bytes`` by default."""
_MOST_OFFSETS: Final = 2**31 - 1
"""Offsets in a segment's index are relative to its base, in 31 bits (``LogSegment``)."""

_NEW_FOLDER: Final = "choose an --out that is not there yet, such as a folder in it"

TopicPartition = tuple[str, int]


@contextmanager
def staged_folder(out: Path) -> Iterator[Path]:
    """Hand over a folder to write into, which becomes `out` when all within has ended well.

    Until then its name is another one, and a file in it says that it is not whole: no command
    takes it for a dump. Where this ends by an error, or by an interruption, it is removed. What a
    killed run left is removed by the next one.

    Raises:
        OutputRefusedError: There is something at `out` already, or what takes its place there
            cannot.
        WorkspaceError: It cannot be written, or another run writes there.
    """
    check_out(out)
    staging = out.parent / f".{out.name}.unfinished"
    try:
        staging.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"{out} cannot be written: {error.strerror}") from error
    marker = staging / UNFINISHED_SNAPSHOT
    with sole_writer(str(out), marker):
        _remove_others(staging, marker)
        try:
            _make_room(out)
            yield staging
        except OSError as error:
            shutil.rmtree(staging, ignore_errors=True)
            raise WorkspaceError(f"{out} cannot be written: {error.strerror or error}") from error
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        _publish(staging, marker, out)


def check_out(out: Path) -> None:
    """Check that a snapshot may be written there.

    Raises:
        OutputRefusedError: There is a file, or a folder that is not empty or that people are in.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise OutputRefusedError(f"{out} is there already and no folder; choose another --out")
    if out.is_dir() and any(out.iterdir()):
        raise OutputRefusedError(
            f"{out} is not empty: a snapshot needs a folder of its own; choose another --out"
        )
    if out.is_dir() and out.samefile(Path.cwd()):
        raise OutputRefusedError(f"{out} is the working directory; {_NEW_FOLDER}")


def _make_room(out: Path) -> None:
    """Remove the empty folder whose place is taken at the end, before anything is read.

    Raises:
        OutputRefusedError: It stays: it is where a file system is mounted, or somebody else's.
    """
    try:
        out.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputRefusedError(
            f"{out} cannot be replaced ({error.strerror}); {_NEW_FOLDER}"
        ) from error


def _remove_others(folder: Path, marker: Path) -> None:
    for each in folder.iterdir():
        if each == marker:
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


def _publish(staging: Path, marker: Path, out: Path) -> None:
    """Give the folder its name: before that it is no dump, after that it is a whole one."""
    try:
        with suppress(FileNotFoundError):
            out.rmdir()
        marker.unlink()
        staging.rename(out)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise WorkspaceError(f"{out} cannot be written: {error.strerror}") from error


class LogWriter:
    """Writes one partition's segments, batch after batch as they come."""

    def __init__(self, folder: Path, topic: str, partition: int) -> None:
        self.folder = folder / f"{topic}-{partition}"
        self.size = 0
        self._file: BinaryIO | None = None
        self._base = self._file_size = 0
        self._kept: Sequence[Path] = ()

    def __enter__(self) -> Self:
        self.folder.mkdir(mode=_PRIVATE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def keep(self, segments: Sequence[Path]) -> None:
        """Take segments of an earlier snapshot, behind which others will follow.

        They are the same files under a second name where the file system has such, else copies:
        nothing writes into a segment that is there.

        Args:
            segments: In order of their offsets. Those without a batch are taken at the end, where
                nothing follows.
        """
        self._kept = segments
        for each in segments:
            size = each.stat().st_size
            if size:
                _link(each, self.folder / each.name)
                self.size += size

    def append(self, batches: memoryview, base: int, last: int) -> None:
        """Write batches behind those before.

        Args:
            batches: Whole ones.
            base: No more than the first one's base offset, and more than the last offset before:
                what a segment is named that begins here.
            last: Their last offset.
        """
        is_full = self._file_size + len(batches) > _SEGMENT_BYTES and self._file_size > 0
        if self._file is None or is_full or last - self._base > _MOST_OFFSETS:
            self._begin(base)
        assert self._file is not None
        self._file.write(batches)
        self._file_size += len(batches)
        self.size += len(batches)

    def end(self, start: int, end: int, next_offset: int) -> None:
        """Say where the log ends, by an empty segment where no batch does.

        A broker has such a segment too: its active one, where the cleaner left nothing behind it.
        """
        if self._file is None and self._kept:
            for each in self._kept:
                if not each.stat().st_size:
                    _link(each, self.folder / each.name)
            return
        if self._file is None:
            self._begin(start)
        if next_offset < end and end != self._base:
            self._begin(end)

    def clear(self) -> None:
        """Take back what was written: the log is read again from its start."""
        self._close()
        for each in self.folder.iterdir():
            each.unlink()
        self.size = 0
        self._kept = ()

    def _begin(self, base: int) -> None:
        self._close()
        self._file = (self.folder / f"{base:020d}.log").open("xb")
        self._base, self._file_size = base, 0

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        # Another file system, or one without second names.
        shutil.copyfile(source, target)


def write_root_files(
    folder: Path,
    cluster_id: str | None,
    log_starts: Mapping[TopicPartition, int],
    high_watermarks: Mapping[TopicPartition, int],
) -> None:
    """Write what a log directory's root says of its cluster and its partitions' logs."""
    of_cluster = f"cluster.id={cluster_id}\n" if cluster_id is not None else ""
    (folder / META_PROPERTIES).write_text(of_cluster, encoding="utf-8")
    for name, offsets in ((LOG_STARTS, log_starts), (HIGH_WATERMARKS, high_watermarks)):
        lines = [f"{topic} {number} {offset}" for (topic, number), offset in offsets.items()]
        text = "\n".join(["0", str(len(lines)), *lines, ""])
        (folder / name).write_text(text, encoding="utf-8")


def write_topic_id(folder: Path, partitions: Sequence[TopicPartition], topic_id: str) -> None:
    """Write a topic's id beside the segments of its partitions (``partition.metadata``)."""
    for topic, number in partitions:
        path = folder / f"{topic}-{number}" / PARTITION_METADATA
        path.write_text(f"version: 0\ntopic_id: {topic_id}\n", encoding="utf-8")


def sync(folder: Path) -> None:
    """Have the system write to its disk what lies in a folder."""
    for each in sorted(folder.rglob("*")):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class EarlierSnapshot:
    """A snapshot that is whole.

    Attributes:
        folder: Where it lies.
        document: Its `snapshot.json`.
    """

    folder: Path
    document: Snapshot

    def check_cluster(self, cluster_id: str | None) -> None:
        """Check that it is of the cluster that is asked.

        Raises:
            InputNotRecognizedError: It is of another one.
        """
        if self.document.cluster_id != cluster_id:
            raise InputNotRecognizedError(
                f"{self.folder} is a snapshot of cluster {self.document.cluster_id or 'without id'}"
                f", and {cluster_id or 'one without id'} answers; take a new one, without --resume"
            )

    def check_out(self, out: Path) -> None:
        """Check that a new snapshot may be written there: this one stays as it is.

        Raises:
            OutputRefusedError: It lies in this one.
        """
        if out.resolve().is_relative_to(self.folder.resolve()):
            raise OutputRefusedError(
                f"{out} lies in {self.folder}, which stays as it is; choose another --out"
            )

    def held(self, topic: Topic, partition: int) -> HeldLog | str | None:
        """Return what it has of a log; why that is of no use; null where it has nothing of it."""
        log = self._log(topic.topic, partition)
        if log is None or log.log_start_offset is None or not log.bytes:
            return None
        topics = {each.topic: each for each in self.document.topics}
        before = topics.get(topic.topic)
        if before is None:
            return "the earlier snapshot does not say which topic it is of"
        if before.topic_id != topic.topic_id:
            return "the topic was created again"
        if log.failure is not None:
            return f"the earlier snapshot does not have it to its end ({log.failure})"
        if log.last_batch_offset is None or not log.last_batch_bytes or log.next_offset is None:
            return "the earlier snapshot does not say where its last batch is"
        return self._held_files(log, log.log_start_offset, log.next_offset)

    def _held_files(self, log: Log, start: int, next_offset: int) -> HeldLog | str:
        folder = self.folder / f"{log.topic}-{log.partition}"
        assert log.last_batch_offset is not None
        assert log.last_batch_bytes is not None
        try:
            segments = sorted(folder.glob("*.log"))
            sizes = [each.stat().st_size for each in segments]
            if sum(sizes) != log.bytes:
                return "files of the earlier snapshot are not as they were written"
            last = [each for each, size in zip(segments, sizes, strict=True) if size][-1]
            with last.open("rb") as file:
                file.seek(-log.last_batch_bytes, 2)
                content = file.read()
        except OSError as error:
            return f"files of the earlier snapshot cannot be read: {error.strerror or error}"
        batch = LastBatch(log.last_batch_offset, log.last_batch_bytes)
        return HeldLog(start, next_offset, log.has_gaps, batch, content, tuple(segments))

    def _log(self, topic: str, partition: int) -> Log | None:
        wanted = topic, partition
        return next(
            (each for each in self.document.logs if (each.topic, each.partition) == wanted), None
        )


def earlier_snapshot(folder: Path) -> EarlierSnapshot:
    """Return a snapshot to go on from.

    Raises:
        InputNotRecognizedError: There is none, or one that never came to its end.
    """
    if (folder / UNFINISHED_SNAPSHOT).exists():
        raise InputNotRecognizedError(
            f"{folder} is a snapshot that never came to its end: take a new one, without --resume"
        )
    try:
        content = (folder / SNAPSHOT).read_bytes()
        return EarlierSnapshot(folder, read_snapshot(content, str(folder / SNAPSHOT)))
    except OSError as error:
        raise InputNotRecognizedError(
            f"{folder} is no snapshot that can be gone on from: {SNAPSHOT}: {error.strerror}"
        ) from error
    except SchemaError as error:
        raise InputNotRecognizedError(str(error)) from error
