"""The rows of the tables of a workspace, whatever parts they lie in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from analytics.decode.tasks import Settings, decode_here
from analytics.dump.copies.plan import plan

Rows = dict[str, list[str]]


def rows_of(parts: dict[str, list[str]]) -> Rows:
    """The rows of each table, sorted: which part one is in depends on the tasks."""

    def rows(path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return found

    return {
        table: sorted(repr(sorted(row.items())) for path in paths for row in rows(path))
        for table, paths in parts.items()
    }


def decoded_in(workspace: Path) -> Rows:
    """The rows that a workspace has of each table that is not empty."""
    tables = {
        f"decoded/{folder.name}": [str(each) for each in folder.glob("*.parquet")]
        for folder in (workspace / "decoded").iterdir()
    }
    return {name: rows for name, rows in rows_of(tables).items() if rows}


def decoded_here(source: Path, out: Path) -> Rows:
    """The same of a dump that is decoded in this process."""
    parts: dict[str, list[str]] = {}
    for report in decode_here(plan([str(source)]).slices, Settings(str(out))):
        for part in report.parts:
            parts.setdefault(part.table, []).append(part.path)
    return rows_of(parts)


def tables_in(workspace: Path) -> Rows:
    """The rows of each table of a workspace, sorted: the files they lie in depend on tasks."""
    found = {}
    for folder in sorted(each for each in workspace.glob("*/*") if each.is_dir()):
        rows: pa.Table = ds.dataset(str(folder), format="parquet").to_table()
        if folder.parent.name in {"decoded", "state", "history", "evaluations"} and rows.num_rows:
            name = f"{folder.parent.name}/{folder.name}"
            found[name] = sorted(repr(sorted(row.items())) for row in rows.to_pylist())
    return found
