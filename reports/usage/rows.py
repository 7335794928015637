"""Rows of the tables about what fills the internal topics, as they are shown."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.quantities import size_of
from reports.row_formats import Section

_KEY_HEADS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "group_id": "GROUP",
    "record_type": "RECORD-TYPE",
}
_SUM_HEADS: Final = {
    "records": "RECORDS",
    "bytes": "BYTES",
    "percent": "SHARE",
    "live_records": "LIVE",
    "live_bytes": "LIVE-BYTES",
    "expired_records": "EXPIRED",
    "dead_records": "DEAD",
    "dead_bytes": "DEAD-BYTES",
    "standing_tombstones": "TOMBSTONES",
    "open_records": "OPEN",
    "unchanged_commits": "UNCHANGED",
}
_SPARE: Final = ("open_records", "unchanged_commits", "standing_tombstones", "live_bytes")
_PARTITION_HEADS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "copy": "COPY",
    "file_bytes": "FILES",
    "header_bytes": "HEADERS",
    "record_bytes": "RECORDS",
    "control_bytes": "CONTROL",
    "compressed_bytes": "COMPRESSED",
    "neither_bytes": "NEITHER",
    "unexplained_bytes": "UNEXPLAINED",
}
_NEITHER: Final = ("damaged_bytes", "trailing_bytes", "unreadable_bytes")


def usage_section(rows: pa.Table, by: str) -> Section:
    """Return rows of `topic_usage`, added up."""
    percent = [
        None if share is None else f"{100 * share:.1f} %" for share in rows["share"].to_pylist()
    ]
    rows = rows.append_column("percent", pa.array(percent, pa.string()))
    heads = {name: head for name, head in _KEY_HEADS.items() if name in rows.column_names}
    if by in {"partition", "topic"}:
        heads["groups"] = "#GROUPS"
    heads |= _SUM_HEADS
    if rows["expired_records"].null_count == rows.num_rows:
        heads.pop("expired_records")
    also = [name for name in rows.column_names if name not in heads]
    title = "Records, uncompressed and without batch headers"
    return Section(rows, heads, also, name="usage", title=title, spare=_SPARE)


def partition_section(rows: pa.Table) -> Section:
    """Return the table `partition_usage`, the largest first."""
    neither = rows[_NEITHER[0]]
    for name in _NEITHER[1:]:
        neither = pc.add(neither, rows[name])
    wrong = pc.or_kleene(pc.greater(neither, 0), pc.not_equal(rows["unexplained_bytes"], 0))
    shown = (
        rows.append_column("neither_bytes", neither)
        .append_column("is_problem", pc.fill_null(wrong, fill_value=True))
        .sort_by([("file_bytes", "descending"), ("topic", "ascending"), ("partition", "ascending")])
    )
    also = [name for name in rows.column_names if name not in _PARTITION_HEADS]
    return Section(
        shown,
        _PARTITION_HEADS,
        also,
        name="partition_usage",
        key="partition_usage",
        title="Bytes of the files",
        problem="is_problem",
        spare=("unexplained_bytes",),
    )


def identity_text(rows: pa.Table, even: Any) -> str:  # noqa: ANN401 - of another layer
    """Return in words what all files hold, and whether that is all.

    Args:
        rows: The table `partition_usage`.
        even: Has `file_bytes` and `holds`.
    """
    parts = {
        "batch headers": "header_bytes",
        "records": "record_bytes",
        "control records": "control_bytes",
        "compressed records": "compressed_bytes",
        "damaged": "damaged_bytes",
        "behind the last batch": "trailing_bytes",
        "unreadable": "unreadable_bytes",
        "unexplained": "unexplained_bytes",
    }
    sums = {words: pc.sum(rows[name]).as_py() or 0 for words, name in parts.items()}
    told = " + ".join(f"{size:,} {words}" for words, size in sums.items() if size)
    packed = pc.sum(rows["uncompressed_bytes"]).as_py() or 0
    more = f" Compressed records are {packed:,} bytes uncompressed." if packed else ""
    copies = pc.count_distinct(rows["copy"]).as_py()
    verdict = (
        "Every byte is accounted for: "
        if even.holds
        else "Bytes do not come out even, or cannot be told: "
    )
    files = f"{even.file_bytes:,} bytes ({size_of(even.file_bytes)}) of files in {copies} copies"
    return f"{verdict}{files} = {told or 'nothing'}.{more}"
