"""Runs saved as tables of Delta Lake and Iceberg, through a Spark that they have releases for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.saved_over_connect import TABLES
from tests.support.kafka_jars import JarsUnavailableError
from tests.support.lake_server import SCHEMAS, lake_server

pytestmark = pytest.mark.maven


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of Spark Connect."""
    with ExitStack() as stack:
        try:
            address = stack.enter_context(lake_server(tmp_path_factory.mktemp("lakes")))
        except JarsUnavailableError as error:
            pytest.skip(str(error))
        yield address


def ran(
    server: str, act: str, table_format: str, workspace: Path
) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run(
        [
            *(sys.executable, "-m", "tests.spark.saved_over_connect", server, act),
            *(SCHEMAS[table_format], table_format, str(workspace)),
        ],
        cwd=root,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )


def done(server: str, act: str, table_format: str, workspace: Path) -> Any:
    finished = ran(server, act, table_format, workspace)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout.splitlines()[-1])


def rows_in(workspace: Path) -> dict[str, int]:
    return {name: pq.read_table(workspace / "state" / name).num_rows for name in TABLES}


@pytest.mark.parametrize("table_format", SCHEMAS)
def test_a_run_is_there_once_and_whole_or_not_named(
    server: str, table_format: str, failover_workspace: Path
) -> None:
    rows = rows_in(failover_workspace)
    saved = {"runs": {"test": rows, "prod": rows}, "differ": []}
    twice = {name: 2 * count for name, count in rows.items()}
    of_run = done(server, "save", table_format, failover_workspace)
    assert done(server, "read", table_format, failover_workspace) == {**saved, "rows": twice}
    assert done(server, "save", table_format, failover_workspace) == of_run
    assert done(server, "read", table_format, failover_workspace) == {**saved, "rows": twice}
    killed = ran(server, "killed", table_format, failover_workspace)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    left = done(server, "read", table_format, failover_workspace)
    assert left["runs"] == {"test": rows}
    assert done(server, "save", table_format, failover_workspace) == of_run
    assert done(server, "read", table_format, failover_workspace) == {**saved, "rows": twice}
