"""A look, before any work, at whether the executors of a cluster can do it.

Executors read INPUT themselves and write into the workspace; where one machine lacks a folder or a
library, or has another version of it, that is told at once, in one line. What the look cannot see,
since an executor comes later, ends in a task that fails and is tried again on another one.
"""

from __future__ import annotations

import json
import platform
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyarrow import fs

from analytics.dump.files.storage import storage_of
from analytics.errors import ClusterUnfitError, GroupscopeError
from analytics.locations import is_uri, local_path, make_folder, open_location
from analytics.spark_tasks import tasks_run_here
from analytics.version import VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.dump.files.model import Plan
    from analytics.dump.records.raw_rows_files import RawRows

SAME: Final = ("pyarrow", "polars", "numpy")
"""Libraries of one version on both sides: tasks and the driver hand each other their values."""
NEEDED: Final = (
    *("cramjam", "crc32c", "fastavro", "great-expectations"),
    *("msgspec", "numba", "pandas"),
)
"""Libraries that tasks need besides."""
PACKAGES: Final = "requirements/worker.txt"
"""The list that has them all."""
NOTHING_FURTHER: Final[Mapping[str, str]] = MappingProxyType({})
_MOST_FILES: Final = 64
_SECONDS: Final = 0.3
"""A task waits so long: the next one goes to another core, and so to each executor there is."""
_FILE: Final = ".probe-"
_ROWS: Final = 1 << 12
_LACKS: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NO_PYTHON: Final = re.compile(r'Cannot run program "([^"]+)"')
_OTHER_PYTHON: Final = "PYTHON_VERSION_MISMATCH"


class ListedFile(NamedTuple):
    """A file that executors will read: the path, and its size as the driver sees it."""

    path: str
    size: int


def files_of(plan: Plan, archives: Iterable[RawRows]) -> list[ListedFile]:
    """Return files of a dump that the driver could open, some of each folder."""
    logs = {each.segment.path: each.segment.size for each in plan.slices if not each.unreadable}
    rows = {path: 0 for each in archives for path in each.files}
    found = []
    for path, size in (logs | rows).items():
        here = local_path(path)
        found.append(ListedFile(here if is_uri(here) else str(Path(here).absolute()), size))
    return found


def check_executors(
    spark: SparkSession,
    files: Sequence[ListedFile],
    folder: str,
    further: Mapping[str, str] = NOTHING_FURTHER,
) -> None:
    """Check that executors see what the driver sees, and the driver what they write.

    Nothing is looked at where tasks run on the driver's own machine.

    Args:
        spark: The session.
        files: What tasks read; of many some are looked at.
        folder: The location that tasks write into.
        further: Libraries that these tasks need besides, and the list that has them.

    Raises:
        ClusterUnfitError: One does not; names the machine.
    """
    if tasks_run_here(spark):
        return
    step = -(-len(files) // _MOST_FILES) or 1
    filesystem, root = open_location(folder)
    name = f"{_FILE}{uuid.uuid4().hex}"
    make_folder(filesystem, root)
    try:
        _write(filesystem, f"{root}/{name}")
        look = _look(files[::step], folder, name, further)
        for each in _reports(spark, look):
            _check_versions(each, further)
            _check(each, filesystem, root, folder)
    finally:
        for name_there in _names(filesystem, root):
            if name_there.startswith(name):
                filesystem.delete_file(f"{root}/{name_there}")


def _look(
    files: Sequence[ListedFile], folder: str, name: str, further: Mapping[str, str]
) -> Callable[[int], str | None]:
    """Return what looks around on an executor, once in each task."""
    seconds, versions, ours = _SECONDS, _version_reader(further), _own_versions()
    listed = [(each.path, each.size) for each in files]
    calls: list[int] = []

    # Is sent by its code, so it runs where groupscope is not: nothing of this module is used in it.
    def look(row: int) -> str | None:
        import json  # noqa: PLC0415
        import socket  # noqa: PLC0415
        import time  # noqa: PLC0415

        calls.append(row)
        if len(calls) > 1:
            # Each task has read this function anew: it has looked.
            return None
        time.sleep(seconds)
        theirs = versions()
        report = {"host": socket.gethostname(), "versions": theirs}
        if None not in theirs.values() and theirs.items() >= ours.items():
            from analytics.cluster_probe import look_at  # noqa: PLC0415

            report |= look_at(listed, folder, name)
        return json.dumps(report)

    return look


def _reports(spark: SparkSession, look: Callable[[int], str | None]) -> list[dict[str, Any]]:
    try:
        reports = _called_in_tasks(spark, look)
    except Exception as error:
        why = _why_not_even_python(str(error))
        if why is None:
            raise
        raise ClusterUnfitError(why) from error
    return [json.loads(each) for each in reports if each is not None]


def _called_in_tasks(
    spark: SparkSession, look: Callable[[int], str | None]
) -> Iterable[str | None]:
    """Return what a function gives for many rows, in as many tasks as there are cores.

    Without Arrow, which an executor may lack: its tasks would fail, and Spark would wait two
    minutes for another executor that does not.
    """
    from pyspark.sql.functions import udf  # noqa: PLC0415 - heavy

    looked = udf(look, "string", useArrow=False)
    rows = spark.range(_ROWS).select(looked("id").alias("report")).collect()
    return [row["report"] for row in rows]


def _own_versions() -> dict[str, str]:
    """Return the versions here that executors have to have, too."""
    return {"groupscope": VERSION, **{each: version(each) for each in SAME}}


def _version_reader(further: Iterable[str]) -> Callable[[], dict[str, str | None]]:
    """Return what reads the versions on an executor, None for what is not installed there.

    It is sent by its code, as all that is defined within a function.
    """
    libraries = (*SAME, *NEEDED, *further)

    def versions() -> dict[str, str | None]:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        theirs: dict[str, str | None] = {}
        try:
            from analytics.version import VERSION  # noqa: PLC0415

            theirs["groupscope"] = VERSION
        except ImportError:
            theirs["groupscope"] = None
        for each in libraries:
            try:
                theirs[each] = version(each)
            except PackageNotFoundError:
                theirs[each] = None
        return theirs

    return versions


def look_at(files: Sequence[tuple[str, int]], folder: str, name: str) -> dict[str, Any]:
    """Return what an executor sees, and where it wrote.

    Args:
        files: Paths and sizes.
        folder: The location for what tasks write.
        name: Of the file that the driver wrote there.
    """
    for path, size in files:
        try:
            entry = storage_of(path).entry(path)
        except GroupscopeError as error:
            return {"input": str(error)}
        if entry is None:
            return {"input": f"{path} is not there"}
        if entry.size < size:
            return {"input": f"{path} has {entry.size} bytes there, {size} here"}
    filesystem, root = open_location(folder)
    if name not in _names(filesystem, root):
        return {"folder": f"{folder}: what is written here is not seen there"}
    written = f"{name}-{uuid.uuid4().hex}"
    try:
        _write(filesystem, f"{root}/{written}")
    except OSError as error:
        return {"folder": f"{folder} cannot be written to there ({error.strerror or error})"}
    return {"written": written}


def _check(report: dict[str, Any], filesystem: fs.FileSystem, root: str, folder: str) -> None:
    """Raise what is wrong with an executor.

    Raises:
        ClusterUnfitError: Something is.
    """
    host = report["host"]
    if "input" in report:
        raise ClusterUnfitError(
            f"{report['input']} (on {host}, where executors run): they read INPUT themselves, so "
            "every machine has to see it: a shared folder, or a URI of a store"
        )
    if "folder" in report:
        raise ClusterUnfitError(
            f"{report['folder']} (on {host}, where executors run): give a folder that all machines "
            "share, or a URI of a store"
        )
    if report["written"] not in _names(filesystem, root):
        raise ClusterUnfitError(
            f"{folder}: what executors write there on {host} is not seen here: give a folder that "
            "all machines share, or a URI of a store"
        )


def _check_versions(report: dict[str, Any], further: Mapping[str, str]) -> None:
    """Raise what an executor lacks, or has in another version.

    Raises:
        ClusterUnfitError: There is something.
    """
    where = f"on {report['host']}, where executors run"
    missing = [name for name, theirs in report["versions"].items() if theirs is None]
    if missing:
        *others, last = missing
        names = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        # A session of somebody else: one of ours has sent it.
        shipped = "; ship_packages(spark) sends groupscope" if "groupscope" in missing else ""
        lists = dict.fromkeys(further.get(each, PACKAGES) for each in missing)
        raise ClusterUnfitError(
            f"{where}, {names} not installed: give executors the packages of "
            f"{' and '.join(lists)}{shipped}"
        )
    for name, ours in _own_versions().items():
        theirs = report["versions"][name]
        if theirs != ours:
            raise ClusterUnfitError(
                f"{where}, {name} is {theirs}; here it is {ours}: both sides have to have the same"
            )


def _why_not_even_python(words: str) -> str | None:
    """Return why no function of Python's ran on an executor, None where it is something else."""
    if _OTHER_PYTHON in words:
        line = next(each for each in words.splitlines() if _OTHER_PYTHON in each)
        return (
            f"executors have another Python than {platform.python_version()}: {line.strip():.300}"
        )
    if lacks := _LACKS.search(words):
        return f"executors lack the Python package {lacks[1]}: give them the same as here"
    if no_python := _NO_PYTHON.search(words):
        return f"executors have no {no_python[1]}: PYSPARK_PYTHON names the Python they start"
    return None


def _write(filesystem: fs.FileSystem, path: str) -> None:
    with filesystem.open_output_stream(path) as stream:
        stream.write(b"")


def _names(filesystem: fs.FileSystem, folder: str) -> set[str]:
    there = filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return {each.base_name for each in there}
