"""What `inspect` prints: a manifest as text that a person on call can take in from the top."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reports.columns import cell, columns, paragraph
from reports.inspected_topic import OTHER_TOPIC, lost_gaps, topic_lines
from reports.quantities import count, size_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

_MOST_LISTED = 20


def render(manifest: Row) -> str:
    """Return the whole page."""
    sections = [
        _heading(manifest),
        _copies(manifest),
        *(topic_lines(topic, rows, manifest) for topic, rows in _by_topic(manifest).items()),
        _archived(manifest),
        _divergences(manifest),
        _gaps(manifest),
        _unreadable(manifest),
        _damages(manifest),
        _record_types(manifest),
        _notes(manifest),
        _limitations(manifest),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section)


def _heading(manifest: Row) -> list[str]:
    version = manifest.get("kafka_version", {})
    release = "Kafka release: cannot tell, no record seen shows it"
    if version.get("at_least"):
        shown_by = ", ".join(version["evidence"])
        release = f"Kafka {version['at_least']} or newer (shown by {shown_by})"
    rows = manifest.get("partitions", [])
    times = [row["first_timestamp"] for row in rows if row["first_timestamp"]]
    ends = [row["last_timestamp"] for row in rows if row["last_timestamp"]]
    span = f"{min(times)} to {max(ends)}" if times and ends else "no record has a time"
    return [release, f"Records from {span}", *_alarms(manifest)]


def _alarms(manifest: Row) -> list[str]:
    """Return a line for each thing that should not be."""
    rows = _of_logs(manifest)
    lines = manifest.get("divergences", [])
    others = sum(each["lost_records"] for each in lines if each.get("shown_by") == OTHER_TOPIC)
    lost = sum(each["lost_records"] for each in lines) - others
    gaps = sum(lost_gaps(row) for row in rows)
    damaged = sum(row["bytes_damaged"] for row in rows)
    unread = len(manifest.get("unreadable", []))
    changed = sum(row["changed_while_read"] for row in rows)
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


def _copies(manifest: Row) -> list[str]:
    if not manifest.get("copies"):
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
    return columns(heads, rows)


def _by_topic(manifest: Row) -> dict[str, list[Row]]:
    topics: dict[str, list[Row]] = defaultdict(list)
    for row in _of_logs(manifest):
        topics[row["topic"]].append(row)
    return topics


def _of_logs(manifest: Row) -> list[Row]:
    """Return the partitions that copies of log directories hold; archived rows have no copy."""
    return [row for row in manifest.get("partitions", []) if row["copy"] is not None]


def _archived(manifest: Row) -> list[str]:
    heads = ("TOPIC", "PARTITION", "FIRST", "END", "RECORDS", "FROM", "TO")
    names = (
        *("topic", "partition", "first_offset", "end_offset", "records"),
        *("first_timestamp", "last_timestamp"),
    )
    rows = [
        tuple(row[name] for name in names)
        for row in manifest.get("partitions", [])
        if row["copy"] is None
    ]
    return ["Archived rows", *columns(heads, rows)] if rows else []


def _divergences(manifest: Row) -> list[str]:
    every = manifest.get("divergences", [])
    found = [each for each in every if each.get("shown_by") != OTHER_TOPIC]
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
        *columns(heads, rows),
        *([""] if others else []),
        *others,
    ]


def _other_topics(manifest: Row, lines: Sequence[Row]) -> list[str]:
    """Name copies of a topic that was deleted, and made again under another id."""
    if not lines:
        return []
    ids = {
        (row["topic"], row["partition"], row["copy"]): row.get("topic_id")
        for row in manifest.get("partitions", [])
    }
    rows = []
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
        *columns(heads, rows),
    ]


def _survivor(divergence: Row) -> str:
    epochs = divergence["surviving_leader_epoch"], divergence["lost_leader_epoch"]
    elected = divergence["elected_at"]
    return (
        f"{divergence['surviving_copy']}, leader epoch {epochs[0]} instead of {epochs[1]}"
        f"{f', elected by {elected}' if elected else ''}"
    )


def _gaps(manifest: Row) -> list[str]:
    rows = [
        (row["topic"], row["partition"], row["copy"], *gap.values())
        for row in _of_logs(manifest)
        for gap in row["gaps"]
        if gap["kind"] != "compaction"
    ]
    heads = ("TOPIC", "PARTITION", "COPY", "FIRST", "END", "KIND")
    return _table("Offsets that no batch holds, compaction apart", heads, rows)


def _unreadable(manifest: Row) -> list[str]:
    rows = [(e["copy"], e["segment"], e["why"]) for e in manifest.get("unreadable", [])]
    return _table("Files that could not be read", ("COPY", "FILE", "WHY"), rows)


def _damages(manifest: Row) -> list[str]:
    rows = [
        (row["copy"], each["file"], each["position"], each["size"], each["offset"], each["reason"])
        for row in _of_logs(manifest)
        for each in row["damages"]
    ]
    heads = ("COPY", "FILE", "POSITION", "BYTES", "OFFSET", "REASON")
    return _table("Bytes that are no readable batch", heads, rows)


def _record_types(manifest: Row) -> list[str]:
    found: dict[tuple[str, int, str], dict[str, int]] = defaultdict(dict)
    for each in manifest.get("record_types", []):
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
    return [title, *columns(("TOPIC", "ID", "TYPE", "VERSIONS"), rows)] if rows else []


def _notes(manifest: Row) -> list[str]:
    rows = [f"{each['where']}: {each['what']}" for each in manifest.get("notes", [])]
    rows += [each["what"] for each in manifest.get("leader_clocks", [])]
    ignored = [
        f"{row['copy']}: {row['topic']}-{row['partition']}/{each['name']}: {each['why']}"
        for row in _of_logs(manifest)
        for each in row["ignored"]
    ]
    rows = [line for row in _most([*rows, *ignored]) for line in paragraph(cell(row))]
    return ["Notes", *rows] if rows else []


def _limitations(manifest: Row) -> list[str]:
    rows = [line for each in manifest.get("unanswerable", []) for line in paragraph(each)]
    return ["Cannot tell", *rows] if rows else []


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    if not rows:
        return []
    more = len(rows) - _MOST_LISTED
    tail = [f"and {more:,} more (--format json has them)"] if more > 0 else []
    return [title, *columns(heads, rows[:_MOST_LISTED]), *tail]


def _most(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_LISTED
    tail = [f"and {more:,} more (--format json has them)"] if more > 0 else []
    return lines[:_MOST_LISTED] + tail
