"""A dump as it was earlier: every internal log without the batches of after an instant."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.brokers.batches import batches_of
from tests.brokers.truncation import forget, truncate


def dump_as_of(dump: Path, copy: Path, time_ms: int) -> None:
    """Copy a dump, and cut its internal logs.

    Args:
        dump: Log directories of brokers; it is left as it is.
        copy: Is made.
        time_ms: Batches with a newer record go, and all behind the first of them.
    """
    shutil.copytree(dump, copy)
    for partition in sorted(copy.glob("*/__*-*")):
        forget(partition.parent)
        newer = [each for each in batches_of(partition) if each.max_timestamp > time_ms]
        if newer:
            truncate(partition, newer[0].base_offset)
