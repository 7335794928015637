"""Decoded rows of a snapshot, to be held against those of brokers' disks or of another snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.brokers.releases import INTERNAL

OF_FILES = {"copy", "segment", "batch_position", "record_bytes"}
"""Columns that say in which file a record lies and how it is written there: snapshots have segments
of their own, and where the cleaner comes after one it writes times from the delete horizon on."""


def rows_below(
    workspace: Path, ends: dict[tuple[str, int], int]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Decoded rows of the internal topics, up to where the snapshot ends, by table and text."""
    found = {}
    for folder in sorted((workspace / "decoded").iterdir()):
        table = pq.read_table(folder)
        names = [each for each in table.column_names if each not in OF_FILES]
        rows: list[dict[str, Any]] = table.select(names).to_pylist()
        kept = [
            each
            for each in rows
            if each["topic"] in INTERNAL
            and each["offset"] < ends.get((each["topic"], each["partition"]), 0)
        ]
        found[folder.name] = {repr(each): each for each in kept}
    return found


def place_of(row: dict[str, Any]) -> tuple[str, int, int]:
    """Return where a record lies."""
    return row["topic"], row["partition"], row["offset"]


def may_be_cleaned(row: dict[str, Any], tables: dict[str, dict[str, dict[str, Any]]]) -> bool:
    """Whether a cleaner that came after the snapshot may have removed a record."""
    if "key" not in row or row["is_tombstone"] or is_aborted(row, tables["control_markers"]):
        return True
    place = row["topic"], row["partition"], row["key"]
    return any(
        (each["topic"], each["partition"], each["key"]) == place and each["offset"] > row["offset"]
        for rows in tables.values()
        for each in rows.values()
        if "key" in each
    )


def is_aborted(row: dict[str, Any], markers: dict[str, dict[str, Any]]) -> bool:
    """Whether a record is of a transaction that was aborted: the first marker after it says so."""
    whose = ("topic", "partition", "producer_id")
    after = [
        each
        for each in markers.values()
        if each["offset"] > row["offset"] and all(each[name] == row[name] for name in whose)
    ]
    first = min(after, key=lambda each: int(each["offset"]), default=None)
    return row["is_transactional"] and first is not None and first["control_type"] == "ABORT"
