"""What a cluster makes of disks that not all of its machines have.

The Workers are real ones; one has empty folders where the others have a dump, or a workspace.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster
from tests.cluster.runs import run
from tests.cluster.workspace_rows import decoded_here, decoded_in, rows_of
from tests.conftest import COMMAND

DUMP = Path(__file__).parents[1] / "data" / "dumps" / "kafka-4.4.0-random" / "broker-1"
UNPROBED = Path(__file__).with_name("decode_unprobed.py")


@pytest.mark.long
def test_a_dump_on_one_machines_disk_is_told_before_any_work(cluster: Cluster) -> None:
    source, out = cluster.blind / "dump", cluster.shared / "out"
    shutil.copytree(DUMP, source)
    result = run(cluster, COMMAND, "decode", source, "--out", out, *cluster.settings)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert f"{source}/" in result.stderr
    assert "is not there (on " in result.stderr
    assert "every machine has to see it" in result.stderr
    assert not (out / "manifest.json").exists()
    assert not list(out.glob(".staging*"))


def test_a_dump_that_all_see_is_decoded_as_in_one_process(cluster: Cluster, tmp_path: Path) -> None:
    out = cluster.shared / "whole"
    result = run(cluster, COMMAND, "decode", DUMP, "--out", out, *cluster.settings)
    assert result.returncode == 0, result.stderr
    assert decoded_in(out) == decoded_here(DUMP, tmp_path)


@pytest.mark.long
def test_a_workspace_that_executors_do_not_share_is_told_before_any_work(cluster: Cluster) -> None:
    out = cluster.blind / "workspace"
    result = run(cluster, COMMAND, "decode", DUMP, "--out", out, *cluster.settings)
    assert result.returncode == 2, result.stderr
    assert "what is written here is not seen there (on " in result.stderr
    assert "give a folder that all machines share" in result.stderr
    assert not (out / "manifest.json").exists()


@pytest.mark.long
def test_a_task_that_cannot_open_its_file_is_tried_elsewhere(
    cluster: Cluster, tmp_path: Path
) -> None:
    source = cluster.blind / "unprobed"
    shutil.copytree(DUMP, source)
    out = cluster.shared / "unprobed"
    result = run(cluster, sys.executable, UNPROBED, cluster.master, source, out)
    assert result.returncode == 0, result.stderr
    assert "ReadFailedError" in cluster.words_of_the_blind()
    assert rows_of(json.loads(result.stdout)) == decoded_here(source, tmp_path)


@pytest.mark.long
def test_a_file_that_no_machine_can_open_is_one_error_and_no_gap(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The driver lists it where neither executor has it: in a mount of the driver's own."""
    source = tmp_path / "own"
    source.mkdir()
    script = f'mount --bind {DUMP} {source} && exec "$@"'
    python = ["unshare", "-m", "sh", "-c", script, "sh", sys.executable]
    result = run(cluster, *python, UNPROBED, cluster.master, source, cluster.shared / "none")
    assert result.returncode == 1
    assert "ReadFailedError: " in result.stderr.splitlines()[-1]
    assert "No such file or directory" in result.stderr.splitlines()[-1]
    assert "nothing is concluded from it" in result.stderr.splitlines()[-1]
