"""What is shipped: the four packages and all their data, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from analytics.version import PACKAGES
from tests.support.built_wheel import built_wheel
from tests.support.checkout import files_of


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(repository, tmp_path_factory.mktemp("checkout"))


def names_in(wheel: Path) -> set[PurePosixPath]:
    with zipfile.ZipFile(wheel) as archive:
        return {PurePosixPath(name) for name in archive.namelist() if not name.endswith("/")}


def test_it_holds_the_four_packages_and_nothing_else(wheel: Path) -> None:
    tops = {name.parts[0] for name in names_in(wheel)}
    (info,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {*PACKAGES, info}


def test_every_file_of_the_packages_is_in_it(wheel: Path, repository: Path) -> None:
    ours = {PurePosixPath(p) for p in files_of(repository) if p.parts[0] in PACKAGES}
    shipped = {name for name in names_in(wheel) if not name.parts[0].endswith(".dist-info")}
    assert shipped == ours


def test_it_works_as_an_archive_on_the_path(wheel: Path, tmp_path: Path) -> None:
    """As `spark-submit --py-files` uses it: schemas are read from inside the zip."""
    archive = tmp_path / "groupscope.zip"
    shutil.copyfile(wheel, archive)
    program = (
        "import jobs.cli.main, schemas\n"
        "jobs.cli.main.check_one_root()\n"
        "print(schemas.__file__)\n"
        "print(schemas.record_type('OffsetCommit').table)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == [f"{archive}/schemas/__init__.py", "offset_commit"]
