"""The ways to bring groupscope to a cluster, on executors whose Python does not have it.

They have the packages of `requirements/worker.txt`, and nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.cluster.conftest import SPARK_HOME, Cluster
from tests.cluster.runs import run
from tests.cluster.workspace_rows import decoded_in, tables_in
from tests.conftest import COMMAND
from tests.support.built_wheel import built_wheel
from tests.support.worker_environments import pins_of, python_with

ROOT = Path(__file__).resolve().parents[2]
DUMP = ROOT / "examples" / "kafka-4.3.1-failover"
SUBMIT = SPARK_HOME / "bin" / "spark-submit"
EXECUTORS = [f"--conf={each}" for each in ("spark.executor.memory=512m", "spark.ui.enabled=false")]
LIBRARIES = set(pins_of(ROOT / "requirements" / "worker.txt"))
FOUND = 1
"""What an audit of this dump ends with."""
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python as executors are to have it."""
    python = python_with(tmp_path_factory.mktemp("worker") / "environment", LIBRARIES)
    imported = [str(python), "-c", "import groupscope"]
    ran = subprocess.run(imported, cwd=python.parent, capture_output=True, text=True, check=False)
    assert "No module named 'groupscope'" in ran.stderr
    return python


@pytest.fixture(scope="module")
def decoded(cluster: Cluster) -> Path:
    """The dump as one machine decodes it."""
    out = cluster.shared / "here"
    result = run(cluster, COMMAND, "decode", DUMP, "--out", out, "--master", "local[2]")
    assert result.returncode == 0, result.stderr
    return out


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, worker: Path) -> Path:
    """A folder with the examples, and with what `make zip worker` leaves in `dist`."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("kafka*"))
    (folder / "dist").mkdir()
    built = built_wheel(ROOT, tmp_path_factory.mktemp("built"))
    shutil.copyfile(built, folder / "dist" / "groupscope.zip")
    (folder / "dist" / "worker").symlink_to(worker.parents[1])
    with tarfile.open(folder / "dist" / "worker.tar.gz", "w:gz") as archive:
        archive.add(worker.parents[1], ".")
    return folder


def test_a_command_sends_itself_to_executors_that_lack_it(
    cluster: Cluster, worker: Path, decoded: Path
) -> None:
    out = cluster.shared / "decoded"
    command = [COMMAND, "decode", DUMP, "--out", out, *cluster.settings]
    result = run(cluster, *command, env={"PYSPARK_PYTHON": str(worker)})
    assert (result.returncode, result.stderr.count("Traceback")) == (0, 0), result.stderr
    assert decoded_in(out) == decoded_in(decoded)


def test_what_the_list_of_workers_has_is_all_that_tasks_of_an_audit_need(
    cluster: Cluster, worker: Path
) -> None:
    workspaces = {}
    for name, options in {"there": cluster.settings, "here": ["--master", "local[2]"]}.items():
        out = cluster.shared / f"audited-{name}"
        audit = ["audit", DUMP, "--out", out, *options]
        python = {"there": worker, "here": sys.executable}[name]
        large = [sys.executable, "-m", "tests.cluster.as_for_large", *audit]
        env = {"PYSPARK_PYTHON": str(python), "PYTHONPATH": str(ROOT)}
        result = run(cluster, *large, env=env)
        assert result.returncode == FOUND, result.stderr
        workspaces[name] = tables_in(out)
    assert list(workspaces["there"]) == list(workspaces["here"])
    assert workspaces["there"] == workspaces["here"]


@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        ({"polars"}, "polars is not installed"),
        ({"msgspec", "pyarrow", "numba"}, "pyarrow, msgspec and numba are not installed"),
    ],
)
def test_libraries_that_executors_lack_are_one_line(
    lacks: set[str], words: str, cluster: Cluster, tmp_path: Path
) -> None:
    python = python_with(tmp_path / "environment", LIBRARIES - lacks)
    out = cluster.shared / "-".join(("lacks", *sorted(lacks)))
    command = [COMMAND, "decode", DUMP, "--out", out, *cluster.settings]
    result = run(cluster, *command, env={"PYSPARK_PYTHON": str(python)})
    assert result.returncode == 2, result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert f", where executors run, {words}: give executors the packages of " in result.stderr


@pytest.mark.parametrize("section", ["From the virtual environment", "spark-submit"])
def test_the_page_says_how(
    section: str, cluster: Cluster, checkout: Path, worker: Path, decoded: Path
) -> None:
    out = cluster.shared / section.split(maxsplit=1)[0]
    settings = " ".join(EXECUTORS)
    places = {
        # What it makes is there.
        "make zip worker\n": "",
        "/opt/worker/bin/python": str(worker),
        ".venv/bin/groupscope": str(COMMAND),
        "--master spark://host:7077": f"--master {cluster.master} {settings}",
        "/dumps/incident": str(DUMP),
        "/audits/incident": str(out),
    }
    page = (ROOT / "docs" / "cluster.md").read_text("utf-8")
    (script,) = re.findall(rf"### {section}\n\n```\n(.*?)```", page, re.DOTALL)
    for there, here in places.items():
        script = script.replace(there, here)
    assert cluster.master in script
    path = f"{SUBMIT.parent}:{os.environ['PATH']}"
    env = {"PATH": path, "SPARK_HOME": str(SPARK_HOME)}
    result = run(cluster, "bash", "-c", script, env=env, cwd=checkout)
    # The exit code is that of the command.
    assert result.returncode == FOUND, result.stderr
    assert (out / "summary.json").exists()
    assert decoded_in(out) == decoded_in(decoded)


def test_the_script_for_yarn_audits(
    cluster: Cluster, checkout: Path, on_loopback: Callable[[], Path]
) -> None:
    tools = on_loopback()
    out = cluster.shared / "yarn"
    path = {"PATH": f"{tools}:{os.environ['PATH']}", "SPARK_HOME": str(SPARK_HOME)}
    script = checkout / "examples" / "yarn" / "submit.sh"
    result = run(cluster, script, DUMP, out, "--quiet", env=path)
    assert result.returncode == FOUND, result.stderr
    assert (out / "summary.json").exists()


@pytest.mark.parametrize("name", ["job", "cronjob"])
def test_the_containers_for_kubernetes_audit(
    name: str, cluster: Cluster, checkout: Path, on_loopback: Callable[[], Path]
) -> None:
    tools = on_loopback()
    out = cluster.shared / name
    out.mkdir()
    places = {
        "/opt/spark/bin": str(tools),
        "/opt/groupscope/groupscope.zip": str(checkout / "dist" / "groupscope.zip"),
        "/opt/groupscope/submit.py": str(checkout / "examples" / "submit.py"),
        "/etc/groupscope": str(checkout / "examples"),
        "/dumps/last-night": str(DUMP),
        "s3://dumps/incident": str(DUMP),
        "s3://audits": str(out),
        "/audits": str(out),
        "$(POD_IP)": "127.0.0.1",
        "--master=local[*]": "--master=local[2]",
    }
    words = container_of(checkout / "examples" / "kubernetes" / f"{name}.yaml")
    for there, here in places.items():
        words = [each.replace(there, here) for each in words]
    result = run(cluster, *words, env={"SPARK_HOME": str(SPARK_HOME)})
    assert result.returncode == FOUND, result.stderr
    assert len(list(out.glob("*/summary.json"))) == 1


@pytest.fixture
def on_loopback(cluster: Cluster, worker: Path, tmp_path: Path) -> Callable[[], Path]:
    """Make tools whose `spark-submit` takes this cluster for every other one."""

    def tools() -> Path:
        written = {
            "hadoop": "#!/bin/sh\necho /opt/hadoop/a.jar:/opt/hadoop/b.jar\n",
            "spark-submit": f"""#!/usr/bin/env {sys.executable}
import os, sys
words = []
for each in sys.argv[1:]:
    if each.startswith("--master=k8s:"):
        each = "--master={cluster.master}"
    if each.startswith("--conf=spark.executor.memory"):
        each = "--conf=spark.executor.cores=1"
    words.append({{"yarn": "{cluster.master}", "cluster": "client"}}.get(each, each))
os.environ.setdefault("PYSPARK_PYTHON", "{worker}")
os.environ["PYSPARK_DRIVER_PYTHON"] = "{worker}"
settings = ["--conf", "spark.pyspark.driver.python={worker}", *{EXECUTORS!r}]
os.execv("{SUBMIT}", ["{SUBMIT}", *settings, *words])
""",
        }
        for name, text in written.items():
            (tmp_path / name).write_text(text, "utf-8")
            (tmp_path / name).chmod(stat.S_IRWXU)
        return tmp_path

    return tools


def container_of(file: Path) -> list[str]:
    """The words of the only container of a Job or a CronJob."""
    *_, document = YAML(typ="safe").load_all(file.read_text("utf-8"))
    spec = document["spec"]
    pod = spec.get("jobTemplate", {"spec": spec})["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return [*container["command"], *container["args"]]
