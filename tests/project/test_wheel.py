"""What is shipped: one package with the code and all its data, which disturbs no other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from analytics.version import DOOR, PACKAGES, VERSION
from tests.support.built_wheel import built_wheel
from tests.support.checkout import files_of
from tests.support.worker_environments import pins_of, python_with

PUBLIC = ("ComparedRuns", "Dump", "KafkaDump", "State", "open_dump", "open_runs", "ship_packages")
FOUND = 1
"""What an audit of this dump ends with."""


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(repository, tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def installed(repository: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel beside foreign packages.

    They have the names that ours have in a checkout, and must not be imported.
    """
    needed = set(pins_of(repository / "requirements" / "worker.txt")) | {"pyspark", "py4j"}
    python = python_with(tmp_path_factory.mktemp("installed") / "environment", needed)
    install = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    install += ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True)
    (libraries,) = python.parents[1].glob("lib/python*/site-packages")
    for package in PACKAGES:
        (libraries / package).mkdir()
        text = f"raise RuntimeError('a foreign {package} was imported')\n"
        (libraries / package / "__init__.py").write_text(text, "utf-8")
    return python.parent


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(each) for each in command],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def names_in(wheel: Path) -> set[PurePosixPath]:
    with zipfile.ZipFile(wheel) as archive:
        return {PurePosixPath(name) for name in archive.namelist() if not name.endswith("/")}


def test_it_holds_one_package_and_nothing_else(wheel: Path) -> None:
    tops = {name.parts[0] for name in names_in(wheel)}
    (info,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {DOOR, info}


def test_every_file_of_the_packages_is_in_it(wheel: Path, repository: Path) -> None:
    ours = {PurePosixPath(p) for p in files_of(repository) if p.parts[0] in {DOOR, *PACKAGES}}
    shipped = {name for name in names_in(wheel) if not name.parts[0].endswith(".dist-info")}
    assert shipped == {each if each.parts[0] == DOOR else DOOR / each for each in ours}


def test_it_works_as_an_archive_on_the_path(wheel: Path, tmp_path: Path) -> None:
    """As `spark-submit --py-files` uses it: schemas are read from inside the zip."""
    archive = tmp_path / "groupscope.zip"
    shutil.copyfile(wheel, archive)
    program = (
        "from pathlib import Path\n"
        "import groupscope.schemas\n"
        "from groupscope.analytics.package_archive import are_in_archive, write_package_archive\n"
        "from groupscope.jobs.cli.main import check_one_root\n"
        "check_one_root()\n"
        "print(groupscope.schemas.__file__)\n"
        "print(groupscope.schemas.record_type('OffsetCommit').table)\n"
        "print(are_in_archive(), write_package_archive(Path()))\n"
    )
    ran = run(sys.executable, "-c", program, cwd=tmp_path, PYTHONPATH=str(archive))
    assert ran.returncode == 0, ran.stderr
    file, table, sent = ran.stdout.splitlines()
    assert file == f"{archive}/groupscope/schemas/__init__.py"
    assert table == "offset_commit"
    # What a session would send to executors is what is here.
    in_archive, name = sent.split()
    assert in_archive == "True"
    assert {each for each in names_in(archive) if each.parts[0] == DOOR} == names_in(
        tmp_path / name
    )


@pytest.mark.long
def test_every_module_loads_beside_foreign_packages(installed: Path, tmp_path: Path) -> None:
    program = (
        "import importlib, pkgutil, sys\n"
        "import groupscope\n"
        "for each in pkgutil.walk_packages(groupscope.__path__, 'groupscope.'):\n"
        "    importlib.import_module(each.name)\n"
        f"print(sorted({set(PACKAGES)!r} & {{each.partition('.')[0] for each in sys.modules}}))\n"
        "print(len([each for each in sys.modules if each.startswith('groupscope.')]))\n"
    )
    # A file: Spark's own parts end a program of `-c`.
    (tmp_path / "program.py").write_text(program, "utf-8")
    ran = run(installed / "python", tmp_path / "program.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    foreign, count = ran.stdout.splitlines()[-2:]
    assert foreign == "[]"
    assert int(count) > 400


@pytest.mark.parametrize("place", ["checkout", "wheel"])
def test_what_others_import_comes_from_one_package(
    place: str, installed: Path, repository: Path, tmp_path: Path
) -> None:
    program = (
        f"from groupscope import {', '.join(PUBLIC)}, __version__\n"
        f"print({', '.join(PUBLIC)}, __version__)\n"
        "import groupscope\n"
        "print(sorted(dir(groupscope)) == sorted(groupscope.__all__))\n"
        "groupscope.open_dumps\n"
    )
    python = {"checkout": Path(sys.executable), "wheel": installed / "python"}[place]
    path = {"checkout": {"PYTHONPATH": str(repository)}, "wheel": {}}[place]
    ran = run(python, "-c", program, cwd=tmp_path, **path)
    first, names = ran.stdout.splitlines()
    assert all(each in first for each in PUBLIC)
    assert names == "True"
    assert ran.stderr.splitlines()[-1] == (
        "AttributeError: module 'groupscope' has no attribute 'open_dumps'. "
        "Did you mean: 'open_dump'?"
    )


def test_the_package_is_the_command(installed: Path, tmp_path: Path) -> None:
    ran = run(installed / "python", "-m", DOOR, "--version", cwd=tmp_path)
    assert ran.stdout == f"groupscope, version {VERSION}\n"
    assert run(installed / DOOR, "--version", cwd=tmp_path).stdout == ran.stdout


@pytest.mark.long
def test_the_installed_command_audits_and_starts_spark(
    installed: Path, failover_dump: Path, tmp_path: Path
) -> None:
    command, dump = installed / DOOR, failover_dump.resolve()
    audited = run(command, "audit", dump, "--out", "audited", "--quiet", cwd=tmp_path)
    assert audited.returncode == FOUND, audited.stderr
    assert (tmp_path / "audited" / "report" / "index.html").stat().st_size > 100_000
    spark = ("--master", "local[2]", "--quiet")
    decoded = run(command, "decode", dump, "--out", "decoded", *spark, cwd=tmp_path)
    assert decoded.returncode == 0, decoded.stderr
    assert (tmp_path / "decoded" / "manifest.json").exists()


@pytest.mark.long
def test_a_notebook_and_sparks_reader_work_with_the_installed_package(
    installed: Path, failover_dump: Path, tmp_path: Path
) -> None:
    program = (
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "from groupscope import KafkaDump, open_dump\n"
        "spark = SparkSession.builder.master('local[2]').getOrCreate()\n"
        "state = open_dump(sys.argv[1]).replay(spark)\n"
        "print(state.lag(by='group').group_capacity.count())\n"
        "spark.dataSource.register(KafkaDump)\n"
        "read = spark.read.format('kafka_dump').option('table', 'offset_commit')\n"
        "print(read.load(sys.argv[1]).count())\n"
    )
    (tmp_path / "program.py").write_text(program, "utf-8")
    python = installed / "python"
    ran = run(
        *(python, tmp_path / "program.py", failover_dump.resolve()),
        cwd=tmp_path,
        PYSPARK_PYTHON=str(python),
    )
    assert ran.returncode == 0, ran.stderr
    groups, commits = map(int, ran.stdout.split())
    assert groups > 5
    assert commits > 100
