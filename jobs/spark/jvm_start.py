"""A JVM whose start is interrupted is ended: nothing else ends it.

A JVM ends by itself once Python's end of a pipe is closed. One that is just starting does not: it
cannot tell Python where to connect to, since the folder for that is gone, and waits for ever.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_PATIENCE: Final = 5.0
"""Seconds that a JVM has to remove its temporary files."""


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
