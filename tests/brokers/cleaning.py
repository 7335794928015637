"""What a real broker's cleaner leaves of a log, held against what `usage` says that it will.

The active segment is never cleaned: each log gets an empty one behind its end, so that all it
holds can be. A broker that cleans at once is started on the copy, and stopped when its checkpoint
has come to where we say that the cleaner may go.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analytics.dump.records.segment_reader import FileReader
from analytics.questions.usage.cleaner import LogSettings
from analytics.questions.usage.tables import usage_tables
from schemas.usage_rules import usage_rules
from tests.brokers.broker import Addresses, Broker, BrokerFailedError
from tests.brokers.programs import Programs
from tests.brokers.releases import loading_settings
from tests.support.decoded_here import decoded_here

GROUPS = "__consumer_offsets"
_CHECKPOINT = "cleaner-offset-checkpoint"
_SECONDS = 120
_BETWEEN = 0.5
_RE_ENCODED = 4
"""Bytes by which a record may differ whose batch was written anew: its time is told from another
one, which is days away where the batch got a delete horizon."""
_EAGER = {
    "log.cleaner.enable": "true",
    "log.cleaner.min.cleanable.ratio": "0.0001",
    "log.cleaner.backoff.ms": "500",
    "log.initial.task.delay.ms": "0",
    "log.segment.delete.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "20000000",
    "log.cleaner.delete.retention.ms": "86400000",
}

Say = Callable[[str], object]


@dataclass(frozen=True)
class Cleaned:
    """A copy of a log directory that a broker cleans."""

    settings: Mapping[str, str]
    programs: Programs
    folder: Path
    say: Say

    def differ(self, log_dir: Path) -> bool:
        """Let a broker clean, and tell where it left something else than we say; whether it did."""
        settings = loading_settings(dict(self.settings)) | _EAGER
        broker = Broker(self.programs, Addresses.free(), settings, self.folder / "cleaned")
        shutil.copytree(log_dir, broker.log_dir)
        _close_segments(broker.log_dir)
        expected = _we_say(broker.log_dir, self.folder / "cleaned-workspace")
        broker.start()
        try:
            _wait(broker.log_dir, expected)
        finally:
            broker.kill()
        differing = 0
        records = 0
        for partition, row in sorted(expected.items()):
            found, size = _left(broker.log_dir / f"{GROUPS}-{partition}", row)
            kept = row["left_bytes"]
            records += found
            if found != row["left_records"] or abs(size - kept) > _RE_ENCODED * found:
                differing += 1
                self.say(
                    f"{GROUPS}-{partition}: we say {row['left_records']} records in {kept} bytes, "
                    f"the cleaner left {found} in {size}"
                )
        self.say(f"{len(expected)} logs cleaned, {records} records left, {differing} differ")
        return differing > 0 or not expected


def _close_segments(log_dir: Path) -> None:
    """Put an empty segment behind each log of the offsets topic."""
    for folder in log_dir.glob(f"{GROUPS}-*"):
        last = max(folder.glob("*.log"), default=None)
        if last is None or not last.stat().st_size:
            continue
        end = 0
        for chunk in FileReader(last):
            end = int(chunk.records.batches.last_offset[-1]) + 1
        (folder / f"{end:020}.log").touch()


def _we_say(log_dir: Path, folder: Path) -> dict[int, dict[str, Any]]:
    """Return what a pass would leave, by partition, where there is something to clean."""
    space = decoded_here([str(log_dir)], folder)
    settings = LogSettings.of(usage_rules(), given=_EAGER)
    now = time.time_ns() // 1_000_000
    found = usage_tables(space, space.manifest(), settings, now_ms=now)
    return {
        row["partition"]: row
        for row in found.cleaning.to_pylist()
        if row["topic"] == GROUPS and row["cleanable_bytes"] and row["left_bytes"] is not None
    }


def _wait(log_dir: Path, expected: Mapping[int, Mapping[str, Any]]) -> None:
    """Wait until the cleaner has been everywhere; it takes one log after the other.

    Raises:
        BrokerFailedError: It did not come any further for a while.
    """
    before: dict[int, int] = {}
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        reached = _checkpoint(log_dir / _CHECKPOINT)
        if all(reached.get(each, 0) >= row["cleanable_to"] for each, row in expected.items()):
            return
        if reached != before:
            before, end = reached, time.monotonic() + _SECONDS
        time.sleep(_BETWEEN)
    late = {
        each: f"{before.get(each, 0)} of {row['cleanable_to']}"
        for each, row in expected.items()
        if before.get(each, 0) < row["cleanable_to"]
    }
    raise BrokerFailedError(f"the cleaner stood still for {_SECONDS} s, at offsets {late}")


def _checkpoint(path: Path) -> dict[int, int]:
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    parts = [line.rsplit(" ", 2) for line in lines]
    return {int(number): int(offset) for topic, number, offset in parts if topic == GROUPS}


def _left(folder: Path, row: Mapping[str, Any]) -> tuple[int, int]:
    """Return the data records, and bytes of batches, that lie where the cleaner was.

    Batches without records, kept for the last sequence of a producer, are not counted.
    """
    records = size = 0
    for path in folder.glob("*.log"):
        if int(path.stem) >= row["cleanable_to"]:
            continue
        for chunk in FileReader(path):
            batches = chunk.records.batches
            held = batches.count > 0
            records += int(np.count_nonzero(~batches.is_control[chunk.records.batch]))
            size += int(batches.size[held].sum())
    return records, size
