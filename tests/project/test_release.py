"""A release is made of a commit alone: twice the same bytes, whoever makes it, when and where."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from analytics.version import DOOR, VERSION
from release.artifacts import ReleaseRefusedError, write_release
from tests.support.released import COMMITTED_AT, committed_checkout, released
from tests.support.worker_environments import pins_of

NAME = f"groupscope-{VERSION}"
FILES = [
    f"{NAME}-py3-none-any.whl",
    f"{NAME}-requirements.txt",
    f"{NAME}.cdx.json",
    f"{NAME}.tar.gz",
    "groupscope.zip",
]


@pytest.fixture(scope="module")
def checkout(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return committed_checkout(repository, tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def release(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(checkout, tmp_path_factory.mktemp("dist") / "release")


@pytest.mark.long
def test_the_same_commit_is_the_same_bytes(release: Path, checkout: Path, tmp_path: Path) -> None:
    clone = tmp_path / "a clone elsewhere"
    subprocess.run(["git", "clone", "-q", str(checkout), str(clone)], check=True)
    elsewhere = {"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    ran = subprocess.run(
        [sys.executable, "-m", "release", "again"],
        cwd=clone,
        env={**os.environ, **elsewhere},
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [f"again/{each}" for each in (*FILES, "SHA256SUMS")]
    sums = (release / "SHA256SUMS").read_text("utf-8")
    assert (clone / "again" / "SHA256SUMS").read_text("utf-8") == sums


@pytest.mark.long
def test_the_sums_are_of_all_files(release: Path) -> None:
    assert sorted(each.name for each in release.iterdir()) == sorted([*FILES, "SHA256SUMS"])
    sums = dict(
        reversed(line.split("  "))
        for line in (release / "SHA256SUMS").read_text("utf-8").splitlines()
    )
    assert sums == {
        each: hashlib.sha256((release / each).read_bytes()).hexdigest() for each in FILES
    }
    assert sums["groupscope.zip"] == sums[f"{NAME}-py3-none-any.whl"]


@pytest.mark.long
def test_what_is_not_committed_is_not_in_it(release: Path) -> None:
    with zipfile.ZipFile(release / "groupscope.zip") as archive:
        shipped = {name for name in archive.namelist() if name.startswith(f"{DOOR}/")}
    with tarfile.open(release / f"{NAME}.tar.gz") as archive:
        sources = {each.removeprefix(f"{NAME}/") for each in archive.getnames()}
        assert {each.mtime for each in archive.getmembers()} == {COMMITTED_AT}
        assert {each.uname or each.uid for each in archive.getmembers()} == {0}
    assert not [each for each in shipped | sources if "not_committed" in each]
    # The wheel is made of the source archive, so nothing that it needs is missing there.
    below = {each.removeprefix(f"{DOOR}/") for each in shipped}
    assert below - {"__init__.py", "__main__.py", "py.typed"} <= sources
    assert "release/one_package.py" in sources


@pytest.mark.long
def test_the_bill_of_materials_has_what_the_program_runs_with(
    release: Path, repository: Path
) -> None:
    document = json.loads((release / f"{NAME}.cdx.json").read_text("utf-8"))
    assert document["bomFormat"] == "CycloneDX"
    component = document["metadata"]["component"]
    assert (component["name"], component["version"]) == (DOOR, VERSION)
    pins = pins_of(release / f"{NAME}-requirements.txt")
    # Some have another version for another Python.
    listed = {(each["name"], each["version"]) for each in document["components"]}
    assert pins.items() <= listed
    tested = pins_of(repository / "requirements" / "setup.txt")
    assert ("pyspark", tested["pyspark"]) in listed
    assert ("pytest", tested["pytest"]) not in listed
    for each in document["components"]:
        assert each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}"
        (distribution,) = each["externalReferences"]
        assert distribution["hashes"]


def test_a_folder_with_files_of_others_is_left_alone(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("the only copy", "utf-8")
    with pytest.raises(ReleaseRefusedError, match="files that no release wrote"):
        write_release(repository, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_whose_sums_are_of_other_files_is_left_alone(
    repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "debian.iso").write_text("an image", "utf-8")
    (tmp_path / "SHA256SUMS").write_text("0  debian.iso\n", "utf-8")
    with pytest.raises(ReleaseRefusedError, match="files that no release wrote"):
        write_release(repository, tmp_path)
    (tmp_path / "SHA256SUMS").write_text("0  groupscope.zip\n", "utf-8")
    with pytest.raises(ReleaseRefusedError, match="files that no release wrote"):
        write_release(repository, tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["SHA256SUMS", "debian.iso"]


def test_a_folder_without_a_commit_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ReleaseRefusedError, match=r"^git: fatal: not a git repository"):
        write_release(tmp_path, tmp_path / "release")
    assert not (tmp_path / "release").exists()
