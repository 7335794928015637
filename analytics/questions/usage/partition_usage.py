"""The table `partition_usage`: where every byte of the files of internal partitions is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from schemas import table

PARTS: Final = (
    *("header_bytes", "record_bytes", "control_bytes", "compressed_bytes"),
    *("damaged_bytes", "trailing_bytes", "unreadable_bytes", "unexplained_bytes"),
)
"""Columns that add up to `file_bytes`."""
_DECODED: Final = "decoded"
_IN_TABLES: Final = (_DECODED, "control_markers", "undecoded")
_DIVERGED: Final = "diverged"
_UNSELECTED: Final = "unselected_type:"
_TYPES: Final = {"string": pa.string(), "int": pa.int32(), "boolean": pa.bool_()}


def partition_usage(manifest: Mapping[str, Any]) -> pa.Table:
    """Return the table, from the accounts of a decode run.

    Bytes are null where the run did not say what they are: an older release decoded, or records
    are archived rows.
    """
    accounts = {_place(each): each for each in manifest["reconciliation"]}
    rows = [
        _row(each, accounts.get(_place(each)))
        for each in manifest["partitions"]
        if _place(each) in accounts or each["copy"] is not None
    ]
    contract = table("partition_usage").columns
    return pa.table(
        {
            each.name: pa.array([row[each.name] for row in rows], _TYPES.get(each.type, pa.int64()))
            for each in contract
        }
    ).sort_by([(name, "ascending") for name in ("topic", "partition", "copy")])


def _place(row: Mapping[str, Any]) -> tuple[str | None, str, int]:
    return row["copy"], row["topic"], row["partition"]


def _row(partition: Mapping[str, Any], account: Mapping[str, Any] | None) -> dict[str, Any]:
    account = account or {}
    is_archived = partition["copy"] is None
    use = account.get("bytes_of_batches")
    files = partition["files"]
    size = None if is_archived else sum(each["size"] for each in files)
    told: dict[str, Any] = dict.fromkeys((*PARTS, "uncompressed_bytes", "empty_batches"))
    if use is not None and not is_archived:
        told |= {
            "header_bytes": use["headers"],
            "record_bytes": use["plain"],
            "control_bytes": use["control"],
            "compressed_bytes": use["compressed"],
            "damaged_bytes": account["bytes_damaged"],
            "trailing_bytes": account["bytes_trailing"],
            "unreadable_bytes": account["bytes_unreadable"],
            "uncompressed_bytes": use["uncompressed"],
            "empty_batches": use["empty_batches"],
        }
        told["unexplained_bytes"] = size - sum(told[name] for name in PARTS[:-1])
    fates = None if is_archived else account.get("record_fates")
    return {
        "topic": partition["topic"],
        "partition": partition["partition"],
        "copy": partition["copy"],
        "is_leading": partition.get("is_leading", True),
        "files": len(files),
        "file_bytes": size,
        **told,
        "batches": partition.get("batches"),
        "records": account.get("records", partition["records"]),
        **_fates(fates),
    }


def _fates(fates: Mapping[str, Mapping[str, int]] | None) -> dict[str, int | None]:
    """Return bytes of records by where they went."""
    if fates is None:
        return dict.fromkeys(("told_bytes", "diverged_bytes", "left_out_bytes"))
    told = diverged = left_out = 0
    for fate, each in fates.items():
        if is_in_tables(fate):
            told += each["bytes"]
        elif fate == _DIVERGED:
            diverged += each["bytes"]
        else:
            left_out += each["bytes"]
    return {"told_bytes": told, "diverged_bytes": diverged, "left_out_bytes": left_out}


def is_in_tables(fate: str) -> bool:
    """Return whether records that went there are in `topic_usage`."""
    return fate in _IN_TABLES or fate.startswith(_UNSELECTED)


@dataclass(frozen=True)
class Identity:
    """Whether bytes come out even, and between what they do not.

    Attributes:
        file_bytes: Of all files, in all copies.
        unexplained: Bytes of files that nothing accounts for.
        uncounted: By place, bytes of records that files hold and `topic_usage` does not, or the
            other way round (below zero).
        unchecked: Partitions whose bytes nobody accounted for.
    """

    file_bytes: int
    unexplained: int
    uncounted: Mapping[tuple[str, int], int]
    unchecked: Sequence[str]

    @property
    def holds(self) -> bool:
        """Whether every byte is accounted for."""
        return not (self.unexplained or self.uncounted or self.unchecked)


def identity(partitions: pa.Table, usage: pa.Table) -> Identity:
    """Hold files, batches and records against each other.

    Args:
        partitions: The table `partition_usage`.
        usage: The table `topic_usage` of all groups.
    """
    has_files = partitions.filter(pc.is_valid(partitions["file_bytes"]))
    is_told = pc.and_(pc.is_valid(has_files["header_bytes"]), pc.is_valid(has_files["told_bytes"]))
    checked, unchecked = has_files.filter(is_told), has_files.filter(pc.invert(is_told))
    in_files = _summed(checked, "told_bytes")
    in_rows = _summed(usage.filter(pc.is_valid(usage["bytes"])), "bytes")
    uncounted = {
        place: in_files.get(place, 0) - in_rows.get(place, 0)
        for place in sorted(in_files)
        if in_files.get(place, 0) != in_rows.get(place, 0)
    }
    return Identity(
        pc.sum(has_files["file_bytes"]).as_py() or 0,
        pc.sum(pc.abs(checked["unexplained_bytes"])).as_py() or 0,
        uncounted,
        [f"{each['topic']}-{each['partition']}" for each in unchecked.to_pylist()],
    )


def _summed(rows: pa.Table, name: str) -> dict[tuple[str, int], int]:
    sums: dict[tuple[str, int], int] = {}
    columns = (rows[each].to_pylist() for each in ("topic", "partition", name))
    for topic, partition, size in zip(*columns, strict=True):
        sums[topic, partition] = sums.get((topic, partition), 0) + size
    return sums


def untabled_usage(manifest: Mapping[str, Any]) -> pa.Table:
    """Return rows of `topic_usage` for records that are in none of the decoded tables.

    Control records, those that could not be decoded, and those of types that are only counted.

    Args:
        manifest: Of a decode run.
    """
    sums: dict[tuple[str, int, str], list[int | None]] = {}
    for account in manifest["reconciliation"]:
        is_archived = account["copy"] is None
        if account["topic"] is None or account["partition"] is None:
            continue  # archived rows that do not say whose they are
        for fate, each in account.get("record_fates", {}).items():
            if is_in_tables(fate) and fate != _DECODED:
                key = (account["topic"], account["partition"], fate)
                records, size = sums.get(key, (0, 0))
                whole = None if is_archived or size is None else size + each["bytes"]
                sums[key] = [(records or 0) + each["records"], whole]
    topics, partitions, kinds = zip(*sums, strict=True) if sums else ((), (), ())
    return pa.table(
        {
            "topic": pa.array(topics, pa.string()),
            "partition": pa.array(partitions, pa.int32()),
            "record_type": pa.array(kinds, pa.string()),
            "records": pa.array([records for records, _ in sums.values()], pa.int64()),
            "bytes": pa.array([size for _, size in sums.values()], pa.int64()),
        }
    )
