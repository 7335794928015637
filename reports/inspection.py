"""What `inspect` prints: a manifest as text that a person on call can take in from the top.

Of an internal topic it has a line for each partition, with what is not plain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reports.plain_text import Aligned, Block, Bullet, cell, count, lines_of, ranges, size_of

if TYPE_CHECKING:
    from schemas.manifest import (
        AnyManifest,
        DivergenceEntry,
        KafkaVersion,
        Manifest,
        PartitionEntry,
    )

_MOST_LISTED = 20

_WIDEST = 30
"""Of a list of copies."""
_OTHER_TOPIC = "topic_id"
"""Shows a line to be of another topic of the same name."""


def render(manifest: AnyManifest, width: int) -> str:
    """Return the whole page in lines of so many columns; of a dialect its head alone."""
    if "dialect" in manifest:
        return "\n".join(_heading({}, []))
    head = _heading(manifest["kafka_version"], manifest["partitions"])
    sections: list[list[Block]] = [
        [*head, *_alarms(manifest)],
        _copies(manifest),
        *(_topic_lines(topic, rows, manifest) for topic, rows in _by_topic(manifest).items()),
        _archived(manifest),
        _divergences(manifest),
        _gaps(manifest),
        _unreadable(manifest),
        _damages(manifest),
        _record_types(manifest),
        _notes(manifest),
        _limitations(manifest),
    ]
    return "\n\n".join("\n".join(lines_of(section, width)) for section in sections if section)


def _heading(version: KafkaVersion, rows: Sequence[PartitionEntry]) -> list[str]:
    release = "Kafka release: cannot tell, no record seen shows it"
    if version.get("at_least"):
        shown_by = ", ".join(version["evidence"])
        release = f"Kafka {version['at_least']} or newer (shown by {shown_by})"
    times = [row["first_timestamp"] for row in rows if row["first_timestamp"]]
    ends = [row["last_timestamp"] for row in rows if row["last_timestamp"]]
    span = f"{min(times)} to {max(ends)}" if times and ends else "no record has a time"
    return [release, f"Records from {span}"]


def _alarms(manifest: Manifest) -> list[str]:
    """Return a line for each thing that should not be."""
    rows = _of_logs(manifest)
    lines = manifest.get("divergences", [])
    others = sum(each["lost_records"] for each in lines if each.get("shown_by") == _OTHER_TOPIC)
    lost = sum(each["lost_records"] for each in lines) - others
    gaps = sum(_lost_gaps(row) for row in rows)
    damaged = sum(row["bytes_damaged"] or 0 for row in rows)
    unread = len(manifest.get("unreadable", []))
    changed = sum(bool(row["changed_while_read"]) for row in rows)
    absent = sum(map(len, manifest.get("absent_partitions", {}).values()))
    later = sum(bool(row.get("absent_leaders")) for row in rows)
    alarms = [
        (later, f"{count(later, 'internal partition')} whose last leader's log is not in the dump"),
        (lost, f"{count(lost, 'record')} only on lines of history that did not survive"),
        (others, f"{count(others, 'record')} only in copies of another topic of the same name"),
        (gaps, f"{count(gaps, 'gap')} that compaction does not account for"),
        (damaged, f"{size_of(damaged)} damaged"),
        (unread, f"{count(unread, 'file')} could not be read"),
        (changed, f"{count(changed, 'partition copy', 'partition copies')} changed while read"),
        (absent, f"{count(absent, 'internal partition')} on no copy"),
    ]
    return [f"! {text}" for number, text in alarms if number]


def _copies(manifest: Manifest) -> list[Block]:
    if not manifest["copies"]:
        return []
    heads = ("COPY", "NODE", "CLUSTER", "ENDED", "INTERNAL", "DATA", "TOPICS", "NOT-READ")
    rows = [
        (
            copy["name"],
            "-" if copy["node_id"] is None else str(copy["node_id"]),
            copy["cluster_id"],
            {True: "in order", False: "killed or running", None: "cannot tell"}[
                copy["clean_shutdown"]
            ],
            copy["internal_partitions"],
            copy["data_partitions"],
            copy["data_topics"],
            len(copy["ignored"]),
        )
        for copy in manifest["copies"]
    ]
    return [Aligned(heads, rows)]


def _by_topic(manifest: Manifest) -> dict[str, list[PartitionEntry]]:
    topics: dict[str, list[PartitionEntry]] = defaultdict(list)
    for row in _of_logs(manifest):
        topics[row["topic"]].append(row)
    return topics


def _of_logs(manifest: Manifest) -> list[PartitionEntry]:
    """Return the partitions that copies of log directories hold; archived rows have no copy."""
    return [row for row in manifest["partitions"] if row["copy"] is not None]


def _archived(manifest: Manifest) -> list[Block]:
    heads = ("TOPIC", "PARTITION", "FIRST", "END", "RECORDS", "FROM", "TO")
    rows = [
        (
            row["topic"],
            row["partition"],
            row["first_offset"],
            row["end_offset"],
            row["records"],
            row["first_timestamp"],
            row["last_timestamp"],
        )
        for row in manifest["partitions"]
        if row["copy"] is None
    ]
    return ["Archived rows", Aligned(heads, rows)] if rows else []


def _divergences(manifest: Manifest) -> list[Block]:
    every = manifest.get("divergences", [])
    found = [each for each in every if each.get("shown_by") != _OTHER_TOPIC]
    others = _other_topics(manifest, [each for each in every if each not in found])
    if not found:
        return others
    heads = ("PARTITION", "LOST-ON", "DIVERGES-AT", "LOST", "LOST-FROM", "LOST-TO", "SURVIVES-ON")
    rows = [
        (
            f"{each['topic']}-{each['partition']}",
            each["copy"],
            each["diverges_at"],
            each["lost_records"],
            each["lost_from_timestamp"],
            each["lost_to_timestamp"],
            _survivor(each),
        )
        for each in found
    ]
    total = sum(each["lost_records"] for each in found)
    return [
        f"Lines of history that did not survive an election: {count(total, 'record')} lost",
        Aligned(heads, rows),
        *([""] if others else []),
        *others,
    ]


def _other_topics(manifest: Manifest, lines: Sequence[DivergenceEntry]) -> list[Block]:
    """Name copies of a topic that was deleted, and made again under another id."""
    if not lines:
        return []
    ids = {
        (row["topic"], row["partition"], row["copy"]): row.get("topic_id")
        for row in manifest["partitions"]
    }
    rows: list[tuple[object, ...]] = []
    for each in lines:
        place = each["topic"], each["partition"]
        rows.append(
            (
                f"{each['topic']}-{each['partition']}",
                each["copy"],
                ids.get((*place, each["copy"])) or "-",
                each["lost_records"],
                each["lost_from_timestamp"],
                each["lost_to_timestamp"],
                f"{each['surviving_copy']}, id {ids.get((*place, each['surviving_copy'])) or '-'}",
            )
        )
    heads = ("PARTITION", "COPY", "TOPIC-ID", "RECORDS", "FROM", "TO", "PRESENT")
    return [
        "Copies of different topics of one name (made again, or of another cluster)",
        Aligned(heads, rows),
    ]


def _survivor(divergence: DivergenceEntry) -> str:
    epochs = divergence["surviving_leader_epoch"], divergence["lost_leader_epoch"]
    elected = divergence["elected_at"]
    return (
        f"{divergence['surviving_copy']}, leader epoch {epochs[0]} instead of {epochs[1]}"
        f"{f', elected by {elected}' if elected else ''}"
    )


def _gaps(manifest: Manifest) -> list[Block]:
    rows = [
        (
            row["topic"],
            row["partition"],
            row["copy"],
            gap["first_offset"],
            gap["end_offset"],
            gap["kind"],
        )
        for row in _of_logs(manifest)
        for gap in row["gaps"]
        if gap["kind"] != "compaction"
    ]
    heads = ("TOPIC", "PARTITION", "COPY", "FIRST", "END", "KIND")
    return _table("Offsets that no batch holds, compaction apart", heads, rows)


def _unreadable(manifest: Manifest) -> list[Block]:
    rows = [(e["copy"], e["segment"], e["why"]) for e in manifest.get("unreadable", [])]
    return _table("Files that could not be read", ("COPY", "FILE", "WHY"), rows)


def _damages(manifest: Manifest) -> list[Block]:
    rows = [
        (row["copy"], each["file"], each["position"], each["size"], each["offset"], each["reason"])
        for row in _of_logs(manifest)
        for each in row["damages"]
    ]
    heads = ("COPY", "FILE", "POSITION", "BYTES", "OFFSET", "REASON")
    return _table("Bytes that are no readable batch", heads, rows)


def _record_types(manifest: Manifest) -> list[Block]:
    found: dict[tuple[str, int, str], dict[str, int]] = defaultdict(dict)
    for each in manifest["record_types"]:
        table = each["table"] or "unknown"
        version = "tombstone" if each["version"] is None else f"v{each['version']}"
        found[each["topic"], each["id"], table][version] = each["records"]
    rows = [
        (*kind, ", ".join(f"{version}: {count:,}" for version, count in versions.items()))
        for kind, versions in found.items()
    ]
    title = "Record types"
    if manifest.get("record_types_are_a_sample"):
        title += " among the first 64 KiB of each file: a sample"
    return [title, Aligned(("TOPIC", "ID", "TYPE", "VERSIONS"), rows)] if rows else []


def _notes(manifest: Manifest) -> list[Block]:
    rows = [f"{each['where']}: {each['what']}" for each in manifest.get("notes", [])]
    rows += [each["what"] for each in manifest.get("leader_clocks", [])]
    ignored = [
        f"{row['copy']}: {row['topic']}-{row['partition']}/{each['name']}: {each['why']}"
        for row in _of_logs(manifest)
        for each in row["ignored"]
    ]
    notes = [Bullet(cell(row)) for row in _most([*rows, *ignored])]
    return ["Notes", *notes] if notes else []


def _limitations(manifest: Manifest) -> list[Block]:
    sentences = [Bullet(each) for each in manifest.get("unanswerable", [])]
    return ["Cannot tell", *sentences] if sentences else []


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[Block]:
    if not rows:
        return []
    more = len(rows) - _MOST_LISTED
    tail = [f"and {more:,} more (--format json has them)"] if more > 0 else []
    return [title, Aligned(heads, rows[:_MOST_LISTED]), *tail]


def _most(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_LISTED
    tail = [f"and {more:,} more (--format json has them)"] if more > 0 else []
    return lines[:_MOST_LISTED] + tail


def _topic_lines(topic: str, rows: Sequence[PartitionEntry], manifest: Manifest) -> list[Block]:
    """Return a topic's partitions, one line each, and what copies that do not lead have to say."""
    present = {row["partition"] for row in rows}
    absent = manifest["absent_partitions"].get(topic, [])
    size = sum(row["size"] or 0 for row in rows)
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
    lines: list[Block] = [title]
    if filled:
        lines.append(Aligned(heads, [_partition(row, rows, manifest) for row in filled]))
    lines += _others(rows)
    if empty:
        lines.append(f"Empty: {ranges(empty)}")
    return lines


def _partition(
    row: PartitionEntry, rows: Sequence[PartitionEntry], manifest: Manifest
) -> tuple[object, ...]:
    copies = [each for each in rows if each["partition"] == row["partition"]]
    names = [row["copy"], *(each["copy"] for each in copies if not each["is_leading"])]
    lines = [
        each
        for each in manifest["divergences"]
        if (each["topic"], each["partition"]) == (row["topic"], row["partition"])
    ]
    of_others = [each for each in lines if each.get("shown_by") == _OTHER_TOPIC]
    lost = sum(each["lost_records"] for each in lines if each not in of_others)
    remarks = [*([f"DIVERGED, {count(lost, 'record')} lost"] if lost else []), *_remarks(row)]
    if of_others:
        remarks.insert(0, f"{count(len(of_others), 'COPY', 'COPIES')} OF ANOTHER TOPIC")
    if row["changed_while_read"]:
        remarks.insert(0, "CHANGED WHILE IT WAS READ")
    return (
        row["partition"],
        _copies_text([name for name in names if name is not None]),
        row["first_offset"],
        row["end_offset"],
        "cannot tell" if row["complete_from"] is None else f"{row['complete_from']:,}",
        f">= {row['records']:,}" if row["uncounted_batches"] else row["records"],
        size_of(row["size"] or 0),
        row["first_timestamp"],
        row["last_timestamp"],
        "; ".join(remarks),
    )


def _copies_text(names: Sequence[str]) -> str:
    """Return the copies of a partition, the leading one first; of many how many more there are."""
    together = " ".join(names)
    return together if len(together) <= _WIDEST else f"{names[0]} and {len(names) - 1} more"


def _remarks(row: PartitionEntry) -> list[str]:
    """Return what is not plain about one copy of a partition."""
    remarks = _beginning(row)
    if row["gap_counts"].get("compaction"):
        remarks.append("compacted")
    if _lost_gaps(row):
        remarks.append(f"{count(_lost_gaps(row), 'GAP')} not from compaction")
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


def _beginning(row: PartitionEntry) -> list[str]:
    """Return what is not plain about where a log begins."""
    start = row["log_start_offset"]
    if row["deleted_below"]:
        return [f"RECORDS BELOW {row['deleted_below']:,} DELETED, not compacted"]
    if start is not None and row["first_offset"] is not None and start > row["first_offset"]:
        return [f"log starts at {start:,}"]
    return []


def _lost_gaps(row: PartitionEntry) -> int:
    """Return the number of gaps that compaction does not account for."""
    return sum(row["gap_counts"].get(kind, 0) for kind in ("missing_segment", "unknown"))


def _others(rows: Sequence[PartitionEntry]) -> list[str]:
    """Return a line for each copy that does not lead and has something to say."""
    ends = {row["partition"]: row["end_offset"] for row in rows if row["is_leading"]}
    lines = []
    for row in rows:
        remarks = [each for each in _remarks(row) if each != "compacted"]
        if row["is_leading"]:
            continue
        if row["changed_while_read"]:
            remarks.insert(0, "CHANGED WHILE IT WAS READ")
        behind = (ends[row["partition"]] or 0) - (row["end_offset"] or 0)
        if behind > 0:
            remarks.insert(0, f"ends at {row['end_offset']:,}")
        if remarks:
            lines.append(f"  {row['partition']} on {row['copy']}: {'; '.join(remarks)}")
    return lines
