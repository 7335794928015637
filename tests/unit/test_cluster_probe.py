"""What one line says where executors are not set up as the driver is, or see other disks."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

from analytics import cluster_probe
from analytics.cluster_probe import ListedFile, check_executors, files_of, look_at
from analytics.dump.copies.plan import plan
from analytics.errors import ClusterUnfitError

DUMP = Path(__file__).parents[1] / "data" / "dumps" / "kafka-4.4.0-random" / "broker-1"


class Executors:
    """A session whose tasks run here, with what they report altered by each test.

    Attributes:
        altered: What a report has otherwise.
        fails: What Spark says where no task comes to its end.
    """

    def __init__(self, master: str = "spark://host:7077") -> None:
        self.conf = SimpleNamespace(get=lambda _name, _default: master)
        self.altered: dict[str, Any] = {}
        self.fails: str | None = None
        self.tasks = 0

    def reports(self, look: Any) -> list[str | None]:
        self.look = look
        if self.fails is not None:
            raise RuntimeError(self.fails)
        self.tasks += 1
        # Spark sends a function to each task.
        sent: Any = copied(look)
        first, second = sent(0), sent(1)
        assert second is None
        report = json.loads(first) | {"host": "worker-7"}
        report["versions"] |= self.altered.get("versions", {})
        return [json.dumps(report | self.altered.get("report", {})), second]


def copied(look: Any) -> Any:
    pickler: Any = cloudpickle
    return pickle.loads(pickler.dumps(look))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_probe, "_SECONDS", 0)
    monkeypatch.setattr(cluster_probe, "_called_in_tasks", Executors.reports)


def check(executors: Any, folder: Path, *files: ListedFile) -> None:
    check_executors(executors, files, str(folder))


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]"])
def test_on_one_machine_nothing_is_looked_at(master: str, tmp_path: Path) -> None:
    executors = Executors(master)
    check(executors, tmp_path / "out")
    assert executors.tasks == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "local-cluster[2,1,1024]", ""])
def test_where_all_is_well_nothing_is_said_and_nothing_stays(master: str, tmp_path: Path) -> None:
    executors = Executors(master)
    files = files_of(plan([str(DUMP)]), ())
    assert files
    check(executors, tmp_path, *files)
    assert executors.tasks == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "theirs", "words"),
    [
        ("groupscope", None, "worker-7, where executors run, groupscope is not installed"),
        ("groupscope", "0.0.1", "groupscope is 0.0.1; here it is"),
        ("pyarrow", "11.0.0", "pyarrow is 11.0.0; here it is"),
        ("polars", None, "polars is not installed"),
        ("numpy", "1.26.4", "numpy is 1.26.4"),
    ],
)
def test_another_version_is_named(
    name: str, theirs: str | None, words: str, tmp_path: Path
) -> None:
    executors = Executors()
    executors.altered["versions"] = {name: theirs}
    with pytest.raises(ClusterUnfitError, match=words):
        check(executors, tmp_path)
    assert not list(tmp_path.iterdir())


def test_all_that_executors_lack_is_one_line(tmp_path: Path) -> None:
    executors = Executors()
    executors.altered["versions"] = dict.fromkeys(("groupscope", "polars", "numba"))
    with pytest.raises(ClusterUnfitError, match="groupscope, polars and numba are not ins") as told:
        check(executors, tmp_path)
    assert "the packages of requirements/worker.txt; ship_packages(spark)" in str(told.value)
    executors.altered["versions"] = {"msgspec": None}
    with pytest.raises(ClusterUnfitError, match="msgspec is not installed") as told:
        check(executors, tmp_path)
    assert "ship_packages" not in str(told.value)


def test_what_some_tasks_need_besides_is_looked_for_where_it_is_asked_for(tmp_path: Path) -> None:
    executors: Any = Executors()
    further = {"kafka-python": "requirements/worker-snapshot.txt"}
    check_executors(executors, (), str(tmp_path), further)
    executors.altered["versions"] = {"kafka-python": None}
    with pytest.raises(
        ClusterUnfitError,
        match=r"worker-7, .*kafka-python is not .* packages of requirements/worker-snapshot\.txt$",
    ):
        check_executors(executors, (), str(tmp_path), further)
    executors.altered["versions"] |= {"polars": None}
    with pytest.raises(ClusterUnfitError, match=r"worker\.txt and requirements/worker-snapshot"):
        check_executors(executors, (), str(tmp_path), further)


def test_an_input_that_is_not_there_or_older_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"123")
    gone = ListedFile(str(tmp_path / "gone.log"), 3)
    with pytest.raises(ClusterUnfitError, match=r"/gone\.log is not there \(on worker-7, "):
        check(Executors(), tmp_path / "out", gone)
    with pytest.raises(ClusterUnfitError, match=r"a\.log has 3 bytes there, 4 here \(on worker-7"):
        check(Executors(), tmp_path / "out", ListedFile(str(tmp_path / "a.log"), 4))
    # A log that a broker still writes to has grown meanwhile.
    check(Executors(), tmp_path / "out", ListedFile(str(tmp_path / "a.log"), 2))


def test_of_many_files_some_are_looked_at_from_the_first_to_the_last_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def look(files: list[tuple[str, int]], _folder: str, _name: str) -> dict[str, str]:
        seen.extend(path for path, _ in files)
        return {"input": "none of them"}

    monkeypatch.setattr(cluster_probe, "look_at", look)
    files = [ListedFile(f"/{number}", 0) for number in range(1_000)]
    with pytest.raises(ClusterUnfitError):
        check(Executors(), tmp_path, *files)
    assert 32 <= len(seen) <= 64
    assert int(seen[-1][1:]) > 900


def test_a_folder_that_one_side_does_not_see_is_named(tmp_path: Path) -> None:
    result = look_at([], str(tmp_path), ".probe-of-the-driver")
    assert result == {"folder": f"{tmp_path}: what is written here is not seen there"}
    executors = Executors()
    executors.altered["report"] = {"written": ".probe-elsewhere"}
    with pytest.raises(ClusterUnfitError, match=f"{tmp_path}: what executors write there on work"):
        check(executors, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        (
            (
                "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python "
                "in worker has different version: 3.9 than that in driver: 3.11."
            ),
            r"executors have another Python .* 3\.9",
        ),
        ("ModuleNotFoundError: No module named 'py4j'", "executors lack the Python package py4j"),
        ('java.io.IOException: Cannot run program "python3": error=2', "executors have no python3"),
    ],
)
def test_executors_without_our_python_are_told(fails: str, words: str, tmp_path: Path) -> None:
    executors = Executors()
    executors.fails = fails
    with pytest.raises(ClusterUnfitError, match=words):
        check(executors, tmp_path)


def test_what_else_goes_wrong_stays_what_it_is(tmp_path: Path) -> None:
    executors = Executors()
    executors.fails = "Job aborted"
    with pytest.raises(RuntimeError, match="Job aborted"):
        check(executors, tmp_path)


def test_the_look_is_sent_by_its_code_and_needs_nothing_of_this_program(tmp_path: Path) -> None:
    """An executor without groupscope says so, where a name in a module would not even load."""
    executors = Executors()
    check(executors, tmp_path)
    pickler: Any = cloudpickle
    (tmp_path / "look").write_bytes(pickler.dumps(executors.look))
    program = (
        "import pickle, sys, importlib.abc\n"
        "class None_(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.split('.')[0] in ('analytics', 'jobs'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, None_())\n"
        f"look = pickle.load(open({str(tmp_path / 'look')!r}, 'rb'))\n"
        "print(look(0))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["versions"]["groupscope"] is None
    assert report["versions"]["polars"]
