"""An earlier snapshot that a new one goes on from: what it has of each log, if its files are whole.

It is read only; its segments get a second name in the new snapshot's folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.dump.files.segments import SNAPSHOT, UNFINISHED_SNAPSHOT
from analytics.errors import InputNotRecognizedError, OutputRefusedError
from analytics.snapshot.log_extents import HeldLog, LastBatch
from schemas.reading import SchemaError
from schemas.snapshot import read_snapshot

if TYPE_CHECKING:
    from schemas.snapshot import Log, Snapshot, Topic


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
