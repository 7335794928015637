"""The files of a release, made of the last commit: the same commit gives the same bytes.

Nothing else is in them: neither what lies in the checkout without being committed, nor the time,
the machine, the umask or the order of a folder. Times are that of the commit (SOURCE_DATE_EPOCH).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

_PINS: Final = Path("requirements") / "runtime.txt"
_SUMS: Final = "SHA256SUMS"
_NAME: Final = "groupscope"
"""With which the names of all files of a release begin, but for that of the sums."""


class ReleaseRefusedError(Exception):
    """There is nothing that could be released, or no place for it; one line says why."""


def write_release(checkout: Path, folder: Path) -> list[Path]:
    """Write wheel, source archive, zip, pins, bill of materials and SHA256SUMS.

    Args:
        checkout: A checkout; what is not committed is left out.
        folder: A new one, or one that an earlier release wrote, whose files go.

    Returns:
        The files, `SHA256SUMS` last.

    Raises:
        ReleaseRefusedError: The checkout has no commit, the folder has files of others, or a tool
            failed.
    """
    if folder.exists() and not _is_replaceable(folder):
        raise ReleaseRefusedError(f"{folder} has files that no release wrote: name another folder")
    epoch = _output(["git", "log", "-1", "--format=%ct"], checkout).strip()
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch) / "source", Path(scratch) / "made"
        _export(checkout, source)
        _build(source, made, epoch)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path in made.iterdir():
            shutil.copyfile(path, folder / path.name)
    names = sorted(each.name for each in folder.iterdir())
    sums = [f"{hashlib.sha256((folder / each).read_bytes()).hexdigest()}  {each}" for each in names]
    (folder / _SUMS).write_text("\n".join(sums) + "\n", "utf-8")
    return [folder / each for each in (*names, _SUMS)]


def _is_replaceable(folder: Path) -> bool:
    """Return whether a folder has nothing but what an earlier release wrote: its sums name it."""
    if not folder.is_dir():
        return False
    there = {each.name for each in folder.iterdir()}
    if not there:
        return True
    if _SUMS not in there:
        return False
    lines = (folder / _SUMS).read_text("utf-8", "replace").splitlines()
    released = {line.partition("  ")[2] for line in lines}
    return there <= {*released, _SUMS} and all(each.startswith(_NAME) for each in released)


def _build(source: Path, made: Path, epoch: str) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    # The source archive is made first, and the wheel of what is in that.
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(made), str(source)]
    _output(build, source, environment)
    (wheel,), (archive,) = made.glob("*.whl"), made.glob("*.tar.gz")
    name = archive.name.removesuffix(".tar.gz")
    _normalize(archive, int(epoch))
    shutil.copyfile(wheel, made / "groupscope.zip")
    shutil.copyfile(source / _PINS, made / f"{name}-requirements.txt")
    bom = _bill_of_materials(source, name.rpartition("-")[2], environment)
    (made / f"{name}.cdx.json").write_text(bom, "utf-8")


def _bill_of_materials(source: Path, version: str, environment: dict[str, str]) -> str:
    """Return a CycloneDX document of the pins, each with the hashes that pip insists on."""
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", str(source / _PINS)]
    command += ["--pyproject", str(source / "pyproject.toml"), "--mc-type", "application"]
    document: dict[str, Any] = json.loads(
        _output([*command, "--output-reproducible", "--of", "JSON"], source, environment)
    )
    # The version is dynamic, which the tool passes over.
    document["metadata"]["component"]["version"] = version
    for component in document["components"]:
        # The tool repeats the line, all of its hashes included.
        component.pop("description", None)
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _export(checkout: Path, source: Path) -> None:
    archive = _bytes(["git", "-c", "tar.umask=0022", "archive", "--format=tar", "HEAD"], checkout)
    with tarfile.open(fileobj=io.BytesIO(archive)) as committed:
        committed.extractall(source, filter="data")


def _normalize(archive: Path, epoch: int) -> None:
    """Write a source archive anew: in order, of nobody, of the time of the commit."""
    with tarfile.open(archive) as packed:
        entries = sorted(packed.getmembers(), key=lambda each: each.name)
        contents = {each.name: each.isfile() and packed.extractfile(each) for each in entries}
        bare = io.BytesIO()
        with tarfile.open(fileobj=bare, mode="w", format=tarfile.PAX_FORMAT) as written:
            for entry in entries:
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                entry.mtime, entry.pax_headers = epoch, {}
                entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
                written.addfile(entry, contents[entry.name] or None)
    with archive.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=epoch) as packer:
        packer.write(bare.getvalue())


def _output(command: Sequence[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    return _bytes(command, folder, environment).decode()


def _bytes(
    command: Sequence[str], folder: Path, environment: dict[str, str] | None = None
) -> bytes:
    ran = subprocess.run(  # noqa: S603 - git and Python's own tools
        command, cwd=folder, env=environment, capture_output=True, check=False, umask=0o022
    )
    if ran.returncode:
        words = ran.stderr.decode(errors="replace").strip().splitlines()
        raise ReleaseRefusedError(f"{Path(command[0]).name}: {words[-1] if words else 'failed'}")
    return ran.stdout
