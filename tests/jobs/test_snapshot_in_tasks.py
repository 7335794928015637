"""`snapshot --master`: logs are read in tasks on Spark, and are what one process reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.recorded_cluster import (
    RECORDING,
    document,
    files_of,
    recorded_cluster,
    snapshot_of_recording,
)

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from schemas.snapshot import Log
    from tests.conftest import Groupscope

IN_TASKS = ("--master", "local[2]")


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, groupscope: Groupscope) -> Path:
    """The recorded cluster's snapshot, taken in one process."""
    return snapshot_of_recording(groupscope, tmp_path_factory.mktemp("snapshot") / "dump")


def logs_of(out: Path) -> dict[str, bytes]:
    """All that is in the folders of partitions, by name."""
    return {name: content for name, content in files_of(out).items() if "/" in name}


def readings_of(out: Path) -> list[dict[str, object]]:
    """What the document says of each log but when it was read."""

    def reading(log: Log) -> dict[str, object]:
        return {name: getattr(log, name) for name in log.__struct_fields__ if name != "read_until"}

    return [reading(each) for each in document(out).logs]


def snapshot(run: Groupscope, out: Path, *options: str | Path) -> CompletedProcess[str]:
    with recorded_cluster(RECORDING) as address:
        return run("snapshot", "--bootstrap-server", address, "--out", out, *options)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("parallel", ["1", "4", "32"])
def test_files_and_what_is_said_of_them_are_those_of_one_process(
    groupscope: Groupscope, taken: Path, tmp_path: Path, parallel: str
) -> None:
    out = tmp_path / "out"
    ran = snapshot(groupscope, out, *IN_TASKS, "--parallel", parallel)
    assert ran.returncode == 0, ran.stderr
    assert logs_of(out) == logs_of(taken)
    assert {each.name for each in out.iterdir()} == {each.name for each in taken.iterdir()}
    assert readings_of(out) == readings_of(taken)
    both = [document(each) for each in (out, taken)]
    assert both[0].unread == both[1].unread == []
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("spark")
def test_it_goes_on_from_an_earlier_snapshot(
    groupscope: Groupscope, taken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(taken.parent)
    out = tmp_path / "out"
    ran = snapshot(groupscope, out, *IN_TASKS, "--resume", taken.name)
    assert ran.returncode == 0, ran.stderr
    assert logs_of(out) == logs_of(taken)
    assert all(each.fetched_from == each.next_offset for each in document(out).logs if each.bytes)
    segments = [each for each in out.glob("*/*.log") if each.stat().st_size]
    assert all(each.samefile(taken / each.relative_to(out)) for each in segments)


# --- what goes wrong --------------------------------------------------------------------------

FAILS_ONCE = """
import os, pathlib
real = pathlib.Path.mkdir
def mkdir(path, *arguments, **options):
    real(path, *arguments, **options)
    if path.parent.name == ".attempts":
        try:
            os.close(os.open({marker!r}, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        (path / "half").write_bytes(b"half of a segment")
        raise OSError(28, "No space left on device")
pathlib.Path.mkdir = mkdir
"""
WITHOUT_CLIENT = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "kafka":
            raise ModuleNotFoundError(name)
if any("pyspark" in each for each in sys.orig_argv):
    sys.meta_path.insert(0, Absent())
"""


def with_start(folder: Path, program: str) -> dict[str, str]:
    """An environment in which each Python, a worker's, too, begins with a program."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(program, "utf-8")
    return {"PYTHONPATH": str(folder)}


def in_process(installed: Groupscope, env: dict[str, str]) -> Groupscope:
    return lambda *arguments: installed(*arguments, env=env)


@pytest.mark.long
def test_a_task_that_fails_once_is_tried_again(
    installed: Groupscope, taken: Path, tmp_path: Path
) -> None:
    marker, out = tmp_path / "failed", tmp_path / "out"
    env = with_start(tmp_path / "start", FAILS_ONCE.format(marker=str(marker)))
    # Two tasks at a time, two tries for each.
    ran = snapshot(in_process(installed, env), out, "--master", "local[2,2]", "--no-check")
    assert ran.returncode == 0, ran.stderr
    assert marker.exists()
    assert logs_of(out) == logs_of(taken)
    assert readings_of(out) == readings_of(taken)


@pytest.mark.long
def test_what_fails_for_good_is_one_line_and_leaves_nothing(
    installed: Groupscope, tmp_path: Path
) -> None:
    env = with_start(tmp_path / "start", FAILS_ONCE.format(marker=str(tmp_path / "failed")))
    out = tmp_path / "runs" / "out"
    ran = snapshot(in_process(installed, env), out, *IN_TASKS)
    assert (ran.returncode, ran.stdout) == (3, "")
    (line,) = ran.stderr.splitlines()
    assert "cannot be written: No space left on device (on " in line
    assert [*out.parent.iterdir()] == []


@pytest.mark.long
def test_a_worker_without_the_client_library_is_one_line(
    installed: Groupscope, tmp_path: Path
) -> None:
    env = with_start(tmp_path / "start", WITHOUT_CLIENT)
    ran = snapshot(in_process(installed, env), tmp_path / "out", *IN_TASKS)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert "where executors run, kafka-python 3 is not installed" in line
    assert "requirements/worker-snapshot.txt" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_master_that_is_none_is_one_line(installed: Groupscope, tmp_path: Path) -> None:
    ran = snapshot(installed, tmp_path / "out", "--master", "spork://nobody:7077")
    assert (ran.returncode, ran.stdout) == (3, "")
    (line,) = ran.stderr.splitlines()
    assert "Spark did not start" in line
    assert "Master must either be yarn or start with spark" in line
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--master", "local[2]", "--max-bytes", "100"), "--max-bytes is not for --master"),
        (("--conf", "spark.executor.cores=1"), "--conf is for --master"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(
    groupscope: Groupscope, tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    ran = groupscope("snapshot", "--bootstrap-server", "b:1", "--out", tmp_path / "out", *options)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert why in line
