"""What all tests share: one lazy Spark session a process, and the installed command."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

import hypothesis
import pytest
from filelock import FileLock

from jobs.cli.console import Console
from jobs.spark.session import spark_session
from tests.support.command_here import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
COMMAND = Path(sys.executable).with_name("groupscope")
ELECTION = "2026-11-21T09:20:36Z"
"""When a broker that lacked records became the leader, in the bundled dump."""

Groupscope = Callable[..., "subprocess.CompletedProcess[str]"]

# Every JVM of the tests lives for seconds: optimising its code would cost more than it gains.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Where processes share cores, more threads of each do no more work.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")

# Only packages of the tests bring it; jsonschema would load it, and it compiles 38 grammars first.
sys.modules.setdefault("rfc3987_syntax", cast("ModuleType", None))

# Text is as wide as the page that is not known, whatever terminal tests run in.
os.environ.pop("COLUMNS", None)

# Two busy cores make any deadline a lie; on CI the same examples every time, elsewhere new ones.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage neither while tests are collected nor among what was: all of it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they take, keep Spark out of the unit tests, put long ones first.

    Processes take a module at a time. Where the long ones come first, none is left alone with one
    at the end; of those that share a workspace the first makes it, and the others come last.
    """
    fixtures: dict[Path, set[str]] = {}
    for item in items:
        taken = set(getattr(item, "fixturenames", ()))
        fixtures.setdefault(item.path, set()).update(taken)
        if "spark" in taken:
            item.add_marker(pytest.mark.spark)
            if ROOT / "tests" / "unit" in item.path.parents:
                raise pytest.UsageError(f"{item.nodeid}: unit tests start no Spark")
        if "installed" in taken:
            item.add_marker(pytest.mark.installed)
    sharing = [path for path, taken in fixtures.items() if "failover_workspace" in taken]
    starting_a_jvm = {
        path for path, taken in fixtures.items() if {"spark", "groupscope", "installed"} & taken
    }
    order = [set(sharing[:1]), starting_a_jvm - set(sharing), set(sharing[1:]), set(fixtures)]
    items.sort(key=lambda item: [item.path in each for each in order].index(True))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of Spark's settings."""
    parser.addoption(
        "--as-for-large",
        action="store_true",
        help="set Spark up as commands do for a large dump: queries are compiled",
    )


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session commands build, on two cores; with one partition after each shuffle."""
    large = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.leafNodeDefaultParallelism": "2",
        "spark.sql.adaptive.enabled": "false",
    }
    is_small = not request.config.getoption("--as-for-large")
    settings = {"spark.driver.memory": "2g"} | ({} if is_small else large)
    with spark_session(Console(), master="local[2]", conf=settings, small=is_small) as session:
        yield session


@pytest.fixture(scope="session", autouse=True)
def _session_stays_open() -> Iterator[None]:
    """Let no command that runs in this process stop Spark: one session serves all its tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.spark.session._stop", lambda _: None)
        yield


@pytest.fixture(scope="session")
def groupscope() -> Groupscope:
    """Run a command as a person would, in this process: what it printed and its exit code.

    What depends on the environment, or on a process of its own, is run by `installed`.
    """

    def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return run_here([*map(str, arguments)], cwd=cwd)

    return run


@pytest.fixture(scope="session")
def installed() -> Groupscope:
    """Run the installed command in a process of its own: what it printed and its exit code."""

    def run(
        *arguments: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(COMMAND), *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def failover_dump(repository: Path) -> Path:
    """The bundled dump: three brokers, one of them dead, and a controller."""
    return repository / "examples" / "kafka-4.3.1-failover"


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all processes of a run see, for what one of them makes."""
    folder = tmp_path_factory.getbasetemp()
    return folder if worker_id == "master" else folder.parent


@pytest.fixture(scope="session")
def failover_workspace(groupscope: Groupscope, failover_dump: Path, shared_folder: Path) -> Path:
    """The bundled dump, replayed: what the first question with --out leaves. Not to be changed.

    It is the dearest of all fixtures, and made by one process for all.
    """
    out = shared_folder / "failover" / "workspace"
    with FileLock(shared_folder / "failover.lock"):
        if out.exists():
            return out
        out.parent.mkdir(exist_ok=True)
        result = groupscope("list", failover_dump, "--state", "--type", "--out", out)
    assert result.returncode == 0, result.stderr
    head, *lines = result.stdout.splitlines()
    assert head.split() == ["GROUP", "TYPE", "STATE"]
    assert ["fleet-telemetry", "Streams", "Stable"] in [line.split() for line in lines]
    return out


@pytest.fixture(scope="session")
def failover_audited(groupscope: Groupscope, failover_workspace: Path) -> Path:
    """The same audited, in a workspace of its own. Not to be changed.

    `said.json` beside it has what the command said.
    """
    return _made_once(groupscope, failover_workspace, "audit")


@pytest.fixture(scope="session")
def failover_incident(groupscope: Groupscope, failover_workspace: Path) -> Path:
    """The unclean election of the same, as `forensics` tells it. Not to be changed."""
    return _made_once(groupscope, failover_workspace, "forensics", "--around", ELECTION)


def _made_once(groupscope: Groupscope, workspace: Path, *command: str) -> Path:
    """Ask a workspace, by one process for all; return the folder of the answer."""
    folder = workspace.parent / command[0]
    with FileLock(f"{folder}.lock"):
        if not (said := folder / "said.json").exists():
            folder.mkdir()
            run = groupscope(command[0], workspace, *command[1:], "--out", folder / "out")
            told = {"code": run.returncode, "stdout": run.stdout, "stderr": run.stderr}
            said.write_text(json.dumps(told), encoding="utf-8")
    return folder / "out"
