"""The packages in an archive, for executors that do not have them.

What is sent is what runs here, so both sides have the same code, whatever is installed over there.
An archive that a session was given is served from where it lies, for as long as the session lives:
there is one for each process, removed when the process ends.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from analytics.version import DOOR, PACKAGES, VERSION

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pyspark.sql import SparkSession

_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the same packages are the same bytes, wherever they were installed."""
_READABLE: Final = 0o644 << 16
_SHIPPED_TO: Final[WeakSet[Any]] = WeakSet()
"""Sessions that have the packages."""


def ship_packages(spark: SparkSession) -> None:
    """Give the tasks of a session the packages as they run here; they precede installed ones.

    Once is enough; of a session that has them nothing changes. For sessions of Spark Connect, too.

    Args:
        spark: The session.
    """
    path = list(sys.path)
    try:
        spark.addArtifacts(str(_archive_of_process()), pyfile=True)
    finally:
        # Spark puts the archive on this process's path, too, which has the packages themselves.
        sys.path[:] = path
    _SHIPPED_TO.add(spark)


def ship_packages_as_to(spark: SparkSession, session: SparkSession) -> None:
    """Give another session the packages where a first one has been given them.

    Over Spark Connect each session has its own.
    """
    if spark in _SHIPPED_TO:
        ship_packages(session)


def are_in_archive() -> bool:
    """Return whether the packages run from an archive, as spark-submit hands them out."""
    return not isinstance(files(__package__), Path)


def write_package_archive(folder: Path) -> Path:
    """Write the packages into an archive.

    Args:
        folder: A folder that is there.

    Returns:
        `groupscope-VERSION-HASH.zip` in it; Spark takes no two archives of one name that differ.
    """
    import zipfile  # noqa: PLC0415 - only where there is a cluster

    written = folder / "packages.zip"
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        # In a checkout they lie beside the door, in a wheel below it.
        for top in dict.fromkeys(each.partition(".")[0] for each in (DOOR, *PACKAGES)):
            for name, file in _files_below(top, files(top)):
                entry = zipfile.ZipInfo(name, _EARLIEST)
                entry.external_attr = _READABLE
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    digest = hashlib.sha256(written.read_bytes()).hexdigest()[:12]
    return written.rename(folder / f"groupscope-{VERSION}-{digest}.zip")


@cache
def _archive_of_process() -> Path:
    folder = tempfile.mkdtemp(prefix="groupscope-packages-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return write_package_archive(Path(folder))


def _files_below(name: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    """Yield the files of a package, with their names in an archive, but for compiled ones."""
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _files_below(f"{name}/{each.name}", each)
        elif not each.name.endswith(".pyc"):
            yield f"{name}/{each.name}", each
