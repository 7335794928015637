"""One internal topic as `inspect` prints it: a line for each partition, with what is not plain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reports.columns import columns
from reports.quantities import count, ranges, size_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

_WIDEST = 30
"""Of a list of copies."""

OTHER_TOPIC = "topic_id"
"""Shows a line to be of another topic of the same name."""


def topic_lines(topic: str, rows: Sequence[Row], manifest: Row) -> list[str]:
    """Return a topic's partitions, one line each, and what copies that do not lead have to say."""
    present = {row["partition"] for row in rows}
    absent = manifest["absent_partitions"].get(topic, [])
    size = sum(row["size"] for row in rows)
    copies = len({row["copy"] for row in rows})
    title = (
        f"{topic}: {count(len(present), 'partition')}"
        f"{f', {ranges(absent)} absent' if absent else ''}"
        f", {count(copies, 'copy', 'copies')}, {size_of(size)}"
    )
    leading = [row for row in rows if row["is_leading"]]
    filled = [row for row in leading if row["batches"] or _remarks(row)]
    empty = sorted(row["partition"] for row in leading if not (row["batches"] or _remarks(row)))
    heads = (
        *("PARTITION", "COPIES", "FIRST", "END", "COMPLETE-FROM", "RECORDS", "SIZE"),
        *("FROM", "TO", "REMARKS"),
    )
    lines = [title]
    if filled:
        lines += columns(heads, [_partition(row, rows, manifest) for row in filled])
    lines += _others(rows)
    if empty:
        lines.append(f"Empty: {ranges(empty)}")
    return lines


def _partition(row: Row, rows: Sequence[Row], manifest: Row) -> tuple[object, ...]:
    copies = [each for each in rows if each["partition"] == row["partition"]]
    names = [row["copy"], *(each["copy"] for each in copies if not each["is_leading"])]
    lines = [
        each
        for each in manifest["divergences"]
        if (each["topic"], each["partition"]) == (row["topic"], row["partition"])
    ]
    of_others = [each for each in lines if each.get("shown_by") == OTHER_TOPIC]
    lost = sum(each["lost_records"] for each in lines if each not in of_others)
    remarks = [*([f"DIVERGED, {count(lost, 'record')} lost"] if lost else []), *_remarks(row)]
    if of_others:
        remarks.insert(0, f"{count(len(of_others), 'COPY', 'COPIES')} OF ANOTHER TOPIC")
    if row["changed_while_read"]:
        remarks.insert(0, "CHANGED WHILE IT WAS READ")
    return (
        row["partition"],
        _copies(names),
        row["first_offset"],
        row["end_offset"],
        "cannot tell" if row["complete_from"] is None else f"{row['complete_from']:,}",
        f">= {row['records']:,}" if row["uncounted_batches"] else row["records"],
        size_of(row["size"]),
        row["first_timestamp"],
        row["last_timestamp"],
        "; ".join(remarks),
    )


def _copies(names: Sequence[str]) -> str:
    """Return the copies of a partition, the leading one first; of many how many more there are."""
    together = " ".join(names)
    return together if len(together) <= _WIDEST else f"{names[0]} and {len(names) - 1} more"


def _remarks(row: Row) -> list[str]:
    """Return what is not plain about one copy of a partition."""
    remarks = _beginning(row)
    if row["gap_counts"].get("compaction"):
        remarks.append("compacted")
    if lost_gaps(row):
        remarks.append(f"{count(lost_gaps(row), 'GAP')} not from compaction")
    if row["bytes_damaged"]:
        remarks.append(f"DAMAGED, {size_of(row['bytes_damaged'])}")
    if row["truncated_tail"]:
        remarks.append(f"last batch cut off ({size_of(row['truncated_tail'])})")
    if row["preallocated_tail"]:
        remarks.append(f"{size_of(row['preallocated_tail'])} of zeros at the end")
    if row["records_above_high_watermark"]:
        remarks.append(f"{row['records_above_high_watermark']:,} above the high watermark")
    if row["uncounted_batches"]:
        remarks.append(f"{row['uncounted_batches']:,} compressed batches of an old format")
    if row["ignored"]:
        remarks.append(f"{count(len(row['ignored']), 'file')} not read")
    return remarks


def _beginning(row: Row) -> list[str]:
    """Return what is not plain about where a log begins."""
    start = row["log_start_offset"]
    if row["deleted_below"]:
        return [f"RECORDS BELOW {row['deleted_below']:,} DELETED, not compacted"]
    if start is not None and row["first_offset"] is not None and start > row["first_offset"]:
        return [f"log starts at {start:,}"]
    return []


def lost_gaps(row: Row) -> int:
    """Return the number of gaps that compaction does not account for."""
    return sum(row["gap_counts"].get(kind, 0) for kind in ("missing_segment", "unknown"))


def _others(rows: Sequence[Row]) -> list[str]:
    """Return a line for each copy that does not lead and has something to say."""
    ends = {row["partition"]: row["end_offset"] for row in rows if row["is_leading"]}
    lines = []
    for row in rows:
        remarks = [each for each in _remarks(row) if each != "compacted"]
        if row["is_leading"]:
            continue
        if row["changed_while_read"]:
            remarks.insert(0, "CHANGED WHILE IT WAS READ")
        behind = ends[row["partition"]] - row["end_offset"]
        if behind > 0:
            remarks.insert(0, f"ends at {row['end_offset']:,}")
        if remarks:
            lines.append(f"  {row['partition']} on {row['copy']}: {'; '.join(remarks)}")
    return lines
