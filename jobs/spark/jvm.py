"""The JVM that a command on one machine starts, works in and ends: its options and its memory.

A JVM ends by itself once Python's end of a pipe is closed. One that is just starting does not: it
cannot tell Python where to connect to, since the folder for that is gone, and waits for ever. So
one whose start is interrupted is ended here: nothing else ends it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROOM_FOR_CLASSES = "-XX:MetaspaceSize=384m"
"""Loading classes is no reason to collect garbage."""

# With one compiler the JVM makes room for little code, and is busy throwing some out.
QUICK_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""For work that is done in seconds, sooner than the other compiler would be of use."""
TRUSTED_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Arrow in the JVM need not look at the bounds of what a worker sends once more for each value."""
_ENVIRONMENT = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_ANY_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_LEAST_MEGABYTES = 1024
_MOST_MEGABYTES = 8192
_WORKER_MEGABYTES = 700
"""What one Python worker needs at most; there is one for each core."""

_PATIENCE: Final = 5.0
"""Seconds that a JVM has to remove its temporary files."""


def jvm_options(*, small: bool, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the options; a JVM that is told of two collectors does not start."""
    chosen = any(_ANY_COLLECTOR.search(environment.get(name, "")) for name in _ENVIRONMENT)
    options = [ROOM_FOR_CLASSES, TRUSTED_ARROW]
    if small:
        options.append(QUICK_COMPILER)
    if not chosen:
        # Nobody waits for the JVM between two pauses, so no work is done to make them short.
        options.append("-XX:+UseSerialGC" if small else "-XX:+UseParallelGC")
    return options


def heap_megabytes() -> int:
    """Return the JVM's heap in MiB: half of what the Python workers and the system leave."""
    cores = os.cpu_count() or 1
    left = memory_megabytes() - cores * _WORKER_MEGABYTES - 1024
    return max(_LEAST_MEGABYTES, min(_MOST_MEGABYTES, left // 2))


def memory_megabytes(cgroup_limit: Path = _CGROUP_LIMIT) -> int:
    """Return the memory in MiB: the machine's, or the container's where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(cgroup_limit.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no cgroup, or "max"
        limit = machine
    return min(machine, limit) // (1024 * 1024)


@contextmanager
def ended_with_its_start() -> Iterator[None]:
    """End the JVM that PySpark starts within, where anything interrupts that."""
    from pyspark import SparkContext, java_gateway  # noqa: PLC0415 - heavy: only where Spark runs

    started: list[subprocess.Popen[Any]] = []

    class StartedProcess(subprocess.Popen[Any]):
        """A process that is known before it runs."""

        def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
            started.append(self)
            super().__init__(*arguments, **options)

    kept: Any = java_gateway
    before = kept.Popen
    kept.Popen = StartedProcess
    try:
        yield
    except Exception:
        # Spark refused to start: its JVM can still say why, and ends with this process.
        raise
    except BaseException:
        for process in started:
            _end(process)
        if started:
            # What it was connected by leads nowhere.
            context: Any = SparkContext
            context._gateway = context._jvm = None  # noqa: SLF001
        raise
    finally:
        kept.Popen = before


def _end(process: subprocess.Popen[Any]) -> None:
    if getattr(process, "pid", None) is None:
        return
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
