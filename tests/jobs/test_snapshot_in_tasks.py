"""`snapshot --master`: logs are read in tasks on Spark, and are what one process reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.recorded_cluster import (
    RECORDING,
    document,
    recorded_cluster,
    snapshot_of_recording,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess

    from pyspark.sql import SparkSession

    from schemas.snapshot import Log
    from tests.conftest import Groupscope

IN_TASKS = ("--master", "local[2]")


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, groupscope: Groupscope) -> Path:
    """The recorded cluster's snapshot, taken in one process."""
    return snapshot_of_recording(groupscope, tmp_path_factory.mktemp("snapshot") / "dump")


def logs_of(out: Path) -> dict[str, bytes]:
    """All that is in the folders of partitions, by name."""
    return {
        str(each.relative_to(out)): each.read_bytes()
        for each in out.rglob("*")
        if each.is_file() and each.parent != out
    }


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
