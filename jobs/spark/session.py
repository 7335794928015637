"""The Spark session of a command: local and quiet by default; what spark-submit gives wins.

How far Spark's work is: one line on a terminal, from what Spark's own tracker says.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.errors import EnvironmentUnfitError
from analytics.libraries_later import release_libraries
from analytics.package_archive import are_in_archive, ship_packages
from analytics.spark_tasks import OWN, tasks_run_here
from jobs.cli.allocation import OF_WORKER
from jobs.cli.console import Console
from jobs.spark.java import java_problem

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession


# The JVM that a command on one machine starts, works in and ends: its options and its memory.
#
# A JVM ends by itself once Python's end of a pipe is closed. One that is just starting does not: it
# cannot tell Python where to connect to, since the folder for that is gone, and waits for ever. So
# one whose start is interrupted is ended here: nothing else ends it.

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


DEFAULT_MASTER = "local[*]"

ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    # Spark's default, INT96, cannot be filtered by statistics and is read by few others.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.showConsoleProgress": "false",
    # Where in our code a column was made is of no use to the person, and is looked up for each.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""What the tables rely on, wherever Spark runs."""

LOCALLY = {
    f"spark.executorEnv.{OWN}": "1",
    # There is a worker for each core.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    **{f"spark.executorEnv.{name}": value for name, value in OF_WORKER.items()},
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""What suits one process on one machine: no port for others."""

ON_A_CLUSTER = {
    # What cannot read a file fails at once and is free again: it would be given every next try.
    "spark.excludeOnFailure.enabled": "true",
    # Each core has a worker, which would else start a thread for each core of its machine.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
}
"""What suits several machines, of which one may lack a disk."""

PAGES = {True: "1m", False: "16m"}
"""What each operator of each task takes, and zeroes, before it has seen a row; 64 MB by default.
Of logs, which need no query, it is little."""

PLAIN_PLANS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"}
"""Of handing out numbers there is nothing to compile, nor to plan anew."""

CLASS_ARCHIVE = Path(sys.prefix) / "share" / "groupscope" / "spark-classes.jsa"
"""Where `class_archive` keeps Spark's classes; a JVM that it does not suit leaves it alone."""

_BESIDE = re.compile(r"\s+(at|\.\.\.) |\[[\d.]+s\]\[warning\]|WARNING: ")
"""A line of a stack trace, where in the JVM's code something went wrong, or a warning: not what."""
_ACCUMULATORS = "_accumulatorServer"
_LAST_WORDS = 3
"""Lines that a JVM says about why it ends."""

_LONGEST_SOCKET_PATH = 100
"""What every system takes; the smallest limit is 104 bytes with one for the end."""


@contextmanager
def spark_session(
    console: Console,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    small: bool = False,
) -> Iterator[SparkSession]:
    """Start Spark, hand over the session, and stop it again.

    Within `one_session` a session that is set up alike is handed over again, and stopped there.

    Args:
        console: Where its start is told; `verbose` lets Spark's own words through.
        master: Spark master; None for `local[*]`. Under spark-submit what it gave wins.
        conf: Settings of the person who called, stronger than ours.
        small: Spark only hands out tasks; on one machine it is set up for that.

    Raises:
        EnvironmentUnfitError: No Java that Spark runs on, or Spark did not start.
    """
    kept = _KEPT_SESSION.get()
    if kept is None:
        with _session(console, master, conf or {}, small=small) as session:
            yield session
        return
    try:
        yield kept.session(console, master, conf or {}, small=small)
    except BaseException:
        # Nothing may still write where what was half written is about to be removed.
        kept.stop()
        raise


def is_local(master: str | None) -> bool:
    """Return whether Spark's tasks run on this machine alone."""
    return not _is_submitted() and (master or DEFAULT_MASTER).startswith("local")


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def one_session() -> Iterator[None]:
    """Let all that is done within share a session: the first who needs it starts it."""
    if _KEPT_SESSION.get() is not None:
        yield
        return
    kept = _KeptSession()
    token = _KEPT_SESSION.set(kept)
    try:
        yield
    finally:
        _KEPT_SESSION.reset(token)
        kept.stop()


class _KeptSession:
    """The session of a command, and how it was set up."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: tuple[object, SparkSession] | None = None

    def session(
        self, console: Console, master: str | None, conf: Mapping[str, str], *, small: bool
    ) -> SparkSession:
        """Return the session that runs, or another where it is set up in another way.

        What is small can be done on any.
        """
        asked = (master, dict(conf), small)
        if self._running is None or self._running[0] not in (asked, (master, dict(conf), False)):
            self.stop()
            session = self._stack.enter_context(_session(console, master, conf, small=small))
            self._running = asked, session
        return self._running[1]

    def stop(self) -> None:
        """Stop what runs."""
        self._running = None
        self._stack.close()


_KEPT_SESSION: ContextVar[_KeptSession | None] = ContextVar("kept session", default=None)


@contextmanager
def _session(
    console: Console, master: str | None, conf: Mapping[str, str], *, small: bool
) -> Iterator[SparkSession]:
    submitted = _is_submitted()
    if not submitted and (problem := java_problem()):
        raise EnvironmentUnfitError(problem)
    if not console.verbose:
        # The bridge to the JVM logs a traceback of its own when a signal interrupts it; a root
        # logger without a handler would print it.
        logging.getLogger().addHandler(logging.NullHandler())
    console.detail("starting Spark...")
    release_libraries()
    with ExitStack() as stack:
        settings = _settings(
            master or DEFAULT_MASTER,
            conf,
            submitted=submitted,
            small=small,
            stack=stack,
            console=console,
        )
        session = _started(settings, submitted=submitted, stack=stack, console=console)
        stack.callback(_stop, session)
        # An archive that spark-submit was given is with the executors already.
        if not tasks_run_here(session) and not (submitted and are_in_archive()):
            ship_packages(session)
        yield session


def _settings(
    master: str,
    conf: Mapping[str, str],
    *,
    submitted: bool,
    small: bool,
    stack: ExitStack,
    console: Console,
) -> dict[str, str]:
    """Return every setting asked for, weakest first: ours, the machine's, the person's."""
    settings = {"spark.app.name": "groupscope", "spark.master": master, **ALWAYS}
    jvm = []
    if not submitted and master.startswith("local"):
        settings["spark.buffer.pageSize"] = PAGES[small]
        if small:
            settings |= PLAIN_PLANS
        # Workers would take the first python3 of PATH, which need not have groupscope in it.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        settings |= LOCALLY | _sockets()
        settings["spark.driver.memory"] = f"{heap_megabytes()}m"
        jvm += jvm_options(small=small)
        if CLASS_ARCHIVE.exists():
            jvm.append(f'"-XX:SharedArchiveFile={CLASS_ARCHIVE}"')
    if submitted or not (master == "local" or master.startswith("local[")):
        settings |= ON_A_CLUSTER
    if not submitted:
        settings["spark.log.level"] = "WARN" if console.verbose else "ERROR"
    if not submitted and not console.verbose:
        log4j = stack.enter_context(
            resources.as_file(resources.files(__package__) / "log4j2.properties")
        )
        jvm.append(f"-Dlog4j2.configurationFile={log4j.as_uri()}")
    if jvm:
        settings["spark.driver.extraJavaOptions"] = " ".join(jvm)
    return settings | dict(conf)


@cache
def _sockets() -> dict[str, str]:
    """Return settings for sockets between the JVM and Python, in a folder of their own.

    Over TCP a task's small messages wait 40 ms for the ones before to be acknowledged. The JVM, and
    with it the folder, outlives a session.
    """
    folder = tempfile.mkdtemp(prefix="groupscope-sockets-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if len(f"{folder}/.{uuid.uuid4()}.sock") > _LONGEST_SOCKET_PATH:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": folder,
    }


def _started(
    settings: Mapping[str, str], *, submitted: bool, stack: ExitStack, console: Console
) -> SparkSession:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - heavy: only where Spark runs
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    words = stack.enter_context(
        tempfile.NamedTemporaryFile(prefix="groupscope-spark-")  # noqa: SIM115 - the stack closes it
    )
    try:
        with _jvm_output_into(2 if console.verbose else words.fileno()), ended_with_its_start():
            if submitted:
                SparkContext._ensure_initialized()  # noqa: SLF001 - the JVM is there, and knows
            spark_conf = SparkConf()
            for key, value in settings.items():
                if not submitted or not spark_conf.contains(key):
                    spark_conf.set(key, value)
            return SparkSession.builder.config(conf=spark_conf).getOrCreate()
    except Py4JJavaError as error:
        reason = str(error.java_exception.getMessage()).partition("\n")[0]
        raise EnvironmentUnfitError(f"Spark did not start: {reason}") from error
    except PySparkException as error:
        text = Path(words.name).read_text(encoding="utf-8", errors="replace")
        said = [line for line in text.splitlines() if line.strip() and not _BESIDE.match(line)]
        reason = " ".join(said[-_LAST_WORDS:]) or str(error)
        raise EnvironmentUnfitError(f"Spark did not start: {reason}") from error


def _stop(session: SparkSession) -> None:
    """Stop Spark, and leave behind what PySpark would wait a second for.

    The thread that takes accumulators from workers, of which there are no more, looks once a second
    whether it is to end.
    """
    context = session.sparkContext
    # Nothing public ends without it; where it has another name by now, that second is waited.
    server = getattr(context, _ACCUMULATORS, None)
    if server is not None:
        setattr(context, _ACCUMULATORS, None)
    session.stop()
    if server is not None:
        threading.Thread(target=server.shutdown, daemon=True).start()


@contextmanager
def _jvm_output_into(target: int) -> Iterator[None]:
    """Let a JVM that starts meanwhile write to `target`, for as long as it lives.

    A JVM says things no logging setting silences (incubator modules, its options), and what
    workers print comes out of it too; stdout is for results.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(stream, os.dup(stream)) for stream in (1, 2)]
    for stream, _ in kept:
        os.dup2(target, stream)
    try:
        yield
    finally:
        for stream, copy in kept:
            os.dup2(copy, stream)
            os.close(copy)


SECONDS_BETWEEN_LOOKS = 0.2
_TO_END_OF_LINE = "\x1b[K"


@contextmanager
def progress(spark: SparkSession, console: Console, label: str) -> Iterator[None]:
    """Show how many tasks of the work done inside are finished; nothing where none is wanted."""
    if not console.draws_progress:
        yield
        return
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    watcher = threading.Thread(target=_watch, args=(tracker, label, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(tracker: StatusTracker, label: str, done: threading.Event) -> None:
    """Rewrite one line until the work is done, and take it away.

    Spark finds out on the way how many tasks there are: nobody knows how much is still to come.
    """
    stages: set[int] = set()
    began = time.monotonic()
    is_done = False
    while not is_done:
        is_done = done.wait(SECONDS_BETWEEN_LOOKS)
        stages.update(tracker.getActiveStageIds())
        finished, running = _counts(tracker, stages)
        line = line_of(label, finished, running, time.monotonic() - began)
        _rewrite(line)
    _rewrite("")


def _rewrite(line: str) -> None:
    sys.stderr.write(f"\r{line}{_TO_END_OF_LINE}")
    sys.stderr.flush()


def line_of(label: str, finished: int, running: int, seconds: float) -> str:
    """Return what is known: tasks that are done, those under way, and the time it took so far."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{label}: {finished:,} tasks done, {running:,} running  {minutes}:{rest:02d}"


def _counts(tracker: StatusTracker, stages: set[int]) -> tuple[int, int]:
    """Return how many tasks of the stages are finished, and how many are under way."""
    infos = [info for info in map(tracker.getStageInfo, stages) if info is not None]
    return sum(info.numCompletedTasks for info in infos), sum(info.numActiveTasks for info in infos)
