"""Brokers' log directories made by hand: batches at given offsets, checkpoints, broken or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.batches import Header, batch, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

CLUSTER = "test-cluster-0000000000"
EPOCH_0 = 1_700_000_000_000


def written(
    base: int,
    count: int = 1,
    *,
    epoch: int = 0,
    kept: Iterable[int] | None = None,
    at: int | None = None,
    word: str = "v",
) -> bytes:
    """A batch of ``count`` records from offset ``base`` on.

    Args:
        base: Base offset.
        count: Records that were written.
        epoch: Leader epoch.
        kept: Offsets that compaction has left; None = all.
        at: Timestamp; by default it grows with the offset.
        word: Goes into every value.
    """
    offsets = range(base, base + count) if kept is None else sorted(kept)
    records = b"".join(
        record(offset - base, f"k{offset}".encode(), f"{word}{offset}".encode())
        for offset in offsets
    )
    header = Header(
        base_offset=base,
        last_delta=count - 1,
        count=len(offsets),
        base_timestamp=EPOCH_0 + base * 1000 if at is None else at,
        leader_epoch=epoch,
    )
    return batch(header, records)


@dataclass(frozen=True)
class LogDir:
    """A log directory on disk that grows as a test wants it."""

    path: Path

    @classmethod
    def create(
        cls, path: Path, node: int = 1, cluster: str | None = CLUSTER, directory: str | None = None
    ) -> LogDir:
        """Make an empty one with its ``meta.properties``."""
        path.mkdir(parents=True)
        lines = ["#", "version=1", f"node.id={node}"]
        lines += [f"cluster.id={cluster}"] if cluster else []
        lines += [f"directory.id={directory}"] if directory else []
        (path / "meta.properties").write_text("\n".join(lines) + "\n")
        return cls(path)

    def partition(
        self,
        folder: str,
        segments: Mapping[int, Sequence[bytes]],
        epochs: Sequence[tuple[int, int]] | None = None,
        topic_id: str | None = None,
    ) -> Path:
        """Write a partition: batches by the base offset of their segment."""
        path = self.path / folder
        path.mkdir()
        for base, batches in segments.items():
            (path / f"{base:020d}.log").write_bytes(b"".join(batches))
        if epochs is not None:
            lines = ["0", str(len(epochs)), *(f"{epoch} {start}" for epoch, start in epochs)]
            (path / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n")
        if topic_id is not None:
            (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
        return path

    def checkpoint(self, name: str, entries: Mapping[str, int]) -> None:
        """Write an offset checkpoint; keys are ``topic-partition``."""
        rows = [
            f"{key.rpartition('-')[0]} {key.rpartition('-')[2]} {n}" for key, n in entries.items()
        ]
        (self.path / name).write_text("\n".join(["0", str(len(rows)), *rows]) + "\n")
