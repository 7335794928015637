"""What is sent to executors is what runs here, under a name that another content never has."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, cast

import pytest

from analytics import package_archive, ship_packages
from analytics.package_archive import are_in_archive, ship_packages_as_to, write_package_archive
from analytics.version import DOOR, PACKAGES, VERSION
from tests.support.checkout import files_of


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_package_archive(tmp_path_factory.mktemp("packages"))


def test_it_has_every_file_of_the_packages(archive: Path, repository: Path) -> None:
    ours = {str(path) for path in files_of(repository) if path.parts[0] in {DOOR, *PACKAGES}}
    with zipfile.ZipFile(archive) as packed:
        assert set(packed.namelist()) == ours
        name = "analytics/package_archive.py"
        assert packed.read(name) == (repository / name).read_bytes()


def test_the_same_packages_are_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    again = write_package_archive(tmp_path)
    assert again.name == archive.name
    assert again.read_bytes() == archive.read_bytes()
    assert archive.name.startswith(f"groupscope-{VERSION}-")
    assert list(tmp_path.iterdir()) == [again]


def test_other_packages_have_another_name(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_archive, "PACKAGES", PACKAGES[1:])
    assert write_package_archive(tmp_path).name != archive.name


def test_an_archive_can_be_made_of_an_archive(archive: Path, tmp_path: Path) -> None:
    """As a driver does that runs from the zip of spark-submit."""
    program = (
        "import pathlib, sys\n"
        "from analytics.package_archive import are_in_archive, write_package_archive\n"
        "print(are_in_archive(), write_package_archive(pathlib.Path(sys.argv[1])).name)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["True", archive.name]
    assert not are_in_archive()


def test_a_session_is_given_one_archive_and_this_process_keeps_its_path() -> None:
    given: list[str] = []

    class Session:
        def addArtifacts(self, path: str, *, pyfile: bool) -> None:  # noqa: N802 - Spark's name
            assert pyfile
            given.append(path)
            sys.path.insert(1, path)

    session: Any = Session()
    before = list(sys.path)
    ship_packages(session)
    ship_packages(session)
    assert sys.path == before
    assert len(set(given)) == 1
    assert zipfile.is_zipfile(given[0])


def test_a_session_beside_another_is_given_what_that_was_given() -> None:
    class Session:
        def __init__(self) -> None:
            self.given: list[str] = []

        def addArtifacts(self, path: str, *, pyfile: bool) -> None:  # noqa: N802 - Spark's name
            assert pyfile
            self.given.append(path)

    first, beside, other = Session(), Session(), Session()
    ship_packages_as_to(cast("Any", first), cast("Any", other))
    assert other.given == []
    ship_packages(cast("Any", first))
    ship_packages_as_to(cast("Any", first), cast("Any", beside))
    assert beside.given == first.given
    assert len(beside.given) == 1
