"""`snapshot --master` on a Standalone cluster, of whose Workers one lacks a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster
from tests.cluster.runs import run
from tests.conftest import COMMAND
from tests.support.recorded_cluster import RECORDING, recorded_cluster

pytestmark = pytest.mark.long


def segments_of(out: Path) -> dict[str, bytes]:
    return {str(each.relative_to(out)): each.read_bytes() for each in out.rglob("*.log")}


def test_it_is_that_of_one_process(cluster: Cluster) -> None:
    here, there = cluster.shared / "here", cluster.shared / "there"
    for out, settings in ((here, []), (there, cluster.settings)):
        with recorded_cluster(RECORDING) as address:
            server = ("--bootstrap-server", address)
            result = run(cluster, COMMAND, "snapshot", *server, "--out", out, *settings)
        assert result.returncode == 0, result.stderr
    assert segments_of(there) == segments_of(here) != {}


def test_a_folder_that_not_all_machines_share_is_named_before_any_work(cluster: Cluster) -> None:
    out = cluster.blind / "dump"
    with recorded_cluster(RECORDING) as address:
        server = ("--bootstrap-server", address)
        result = run(cluster, COMMAND, "snapshot", *server, "--out", out, *cluster.settings)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert "what is written here is not seen there" in line
    assert [*cluster.blind.iterdir()] == []
