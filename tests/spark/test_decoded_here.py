"""A small dump is decoded by the same tasks in the process that asks: every table is the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.cli.console import Console
from jobs.workspaces.decoding import decode_into

_OF_A_RUN = ("created_at", "options", "files", "groupscope_version")


def test_tables_and_manifest_are_those_of_spark(failover_dump: Path, tmp_path: Path) -> None:
    made = {}
    for name, may_be_here in (("spark", False), ("here", True)):
        out = tmp_path / name
        done = decode_into(
            str(out), Console(quiet=True), inputs=[str(failover_dump)], may_be_here=may_be_here
        )
        manifest = {key: each for key, each in done.manifest.items() if key not in _OF_A_RUN}
        made[name] = (manifest, _tables(out))
    (here, its_tables), (spark, of_spark) = made["here"], made["spark"]
    assert here == spark
    assert its_tables.keys() == of_spark.keys()
    for name, rows in its_tables.items():
        assert rows.equals(of_spark[name]), name
    assert sum(rows.num_rows for rows in its_tables.values()) > 2000


def _tables(out: Path) -> dict[str, pa.Table]:
    folders = {path.parent for path in out.rglob("*.parquet")}
    return {
        str(folder.relative_to(out)): pq.read_table(sorted(folder.glob("*.parquet")))
        for folder in folders
    }
