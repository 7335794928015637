"""How much of the machine the JVM of a local Spark may take."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")

LEAST_MEGABYTES = 1024
MOST_MEGABYTES = 8192
WORKER_MEGABYTES = 700
"""What one Python worker needs at most; there is one for each core."""


def heap_megabytes() -> int:
    """Return the JVM's heap in MiB: half of what the Python workers and the system leave."""
    cores = os.cpu_count() or 1
    left = memory_megabytes() - cores * WORKER_MEGABYTES - 1024
    return max(LEAST_MEGABYTES, min(MOST_MEGABYTES, left // 2))


def memory_megabytes(cgroup_limit: Path = CGROUP_LIMIT) -> int:
    """Return the memory in MiB: the machine's, or the container's where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(cgroup_limit.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no cgroup, or "max"
        limit = machine
    return min(machine, limit) // (1024 * 1024)
