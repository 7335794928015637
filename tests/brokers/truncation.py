"""A log directory in which internal partitions end early, as a broker may start on it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.brokers.batches import batches_of

LOG_STARTS = "log-start-offset-checkpoint"
_CONTRADICTING = (
    "cleaner-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    LOG_STARTS,
    ".kafka_cleanshutdown",
)
"""Checkpoints that may lie behind a cut: without them the broker looks at the logs themselves. What
is below the log start of the end was not at the cut, and replay takes it so too."""


def truncated_copy(log_dir: Path, copy: Path, end_offsets: Mapping[str, int]) -> None:
    """Copy a log directory and cut partitions.

    Args:
        log_dir: Where the broker was stopped; it is left as it is.
        copy: Is made.
        end_offsets: By ``topic-partition``, each between two batches.
    """
    shutil.copytree(log_dir, copy)
    forget(copy)
    for name, end in end_offsets.items():
        if (copy / name).is_dir():
            truncate(copy / name, end)


def forget(log_dir: Path) -> None:
    """Remove the checkpoints that say what is in the logs."""
    for name in _CONTRADICTING:
        (log_dir / name).unlink(missing_ok=True)


def truncate(partition: Path, end: int) -> None:
    """Leave the batches below an offset, and nothing that was made from those above."""
    beyond = [each for each in batches_of(partition) if each.base_offset >= end]
    if beyond:
        with beyond[0].segment.open("r+b") as file:
            file.truncate(beyond[0].start)
    first, *others = sorted(partition.glob("*.log"))
    for segment in others:
        # An emptied one goes, unless the log begins there.
        if int(segment.stem) >= end:
            segment.unlink()
    for suffix in ("index", "timeindex", "txnindex", "snapshot"):
        for made in partition.glob(f"*.{suffix}"):
            made.unlink()
    assert int(first.stem) <= end
    _trim_epochs(partition / "leader-epoch-checkpoint", end)


def _trim_epochs(checkpoint: Path, end: int) -> None:
    if checkpoint.exists():
        version, _, *entries = checkpoint.read_text().splitlines()
        kept = [each for each in entries if int(each.split()[1]) < end]
        checkpoint.write_text("\n".join([version, str(len(kept)), *kept]) + "\n")


def log_starts(log_dir: Path) -> dict[str, int]:
    """Return the checkpointed log starts by ``topic-partition``."""
    path = log_dir / LOG_STARTS
    if not path.exists():
        return {}
    rows = [line.rsplit(" ", 2) for line in path.read_text().splitlines()[2:]]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in rows}
