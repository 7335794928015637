"""The rows of a decoded workspace, read back with pyarrow and found by where they came from."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from analytics.workspace import Part
    from schemas.manifest import Manifest

Place = tuple[str, str, int | None]


@dataclass(frozen=True)
class DecodedRow:
    """One row of one table. ``line`` is empty on the surviving line, else the diverged copy."""

    table: str
    line: str
    values: dict[str, Any]

    @property
    def place(self) -> Place:
        """Copy, segment and offset."""
        return self.values["copy"], self.values["segment"], self.values["offset"]


def by_place(rows: Iterable[DecodedRow]) -> dict[Place, list[DecodedRow]]:
    """Group rows by copy, segment and offset: one each where all is well."""
    found: dict[Place, list[DecodedRow]] = defaultdict(list)
    for row in rows:
        found[row.place].append(row)
    return found


def read_manifest(workspace: Path) -> Manifest:
    """Read the manifest of a finished workspace."""
    manifest: Manifest = json.loads((workspace / "manifest.json").read_text("utf-8"))
    return manifest


def read_rows(workspace: Path) -> list[DecodedRow]:
    """Read every decoded row of a workspace, also those under ``diverged/``."""
    return list(_rows(workspace))


def _rows(root: Path) -> Iterator[DecodedRow]:
    lines = [("", root / "decoded")]
    diverged = root / "diverged"
    if diverged.is_dir():
        lines += [(copy.name, copy / "decoded") for copy in sorted(diverged.iterdir())]
    for line, folder in lines:
        for table in sorted(folder.iterdir()) if folder.is_dir() else []:
            for part in sorted(table.glob("*.parquet")):
                for values in read_part(part).to_pylist():
                    yield DecodedRow(table.name, line, values)


def rows_of_part(part: Part) -> Iterator[DecodedRow]:
    """Read the rows of a part that no workspace was made of yet."""
    *line, table = part.table.split("/")
    for values in read_part(Path(part.path)).to_pylist():
        yield DecodedRow(table, line[1] if line[0] == "diverged" else "", values)


def read_part(part: Path) -> pa.Table:
    """One Parquet file with ``timestamp`` as milliseconds, the unit the tool prints."""
    # partitioning=None: the folder names are ours, not Hive's.
    table = pq.read_table(part, partitioning=None)
    index = table.schema.get_field_index("timestamp")
    column = table.column(index)
    if not pa.types.is_timestamp(column.type):
        raise AssertionError(f"{part}: timestamp is {column.type}")
    micros = pc.cast(column.cast(pa.timestamp("us")), pa.int64())
    return table.set_column(index, "timestamp", pc.divide(micros, 1000))
