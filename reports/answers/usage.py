"""The answer of `usage`: what fills the internal topics, their cleaning, load and growth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.usage_writers import (
    clocks_section,
    committers_section,
    deletions_section,
    growth_of_records_section,
    limits_section,
    offset_deletions_section,
    patterns_section,
)
from reports.columns import printable
from reports.layout.output_format import OutputFormat
from reports.layout.section import LongSection, Rows, raw_section
from reports.layout.sentences import paragraphs
from reports.quantities import count, duration, size_of
from reports.row_formats import Section, Text, render, rendered

_TOP: Final = 10
_ON_DEMAND: Final = ("group_deletions", "record_growth", "topic_usage")
"""Tables that people see only where they name them."""

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

_HEADS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "copy": "COPY",
    "verdict": "CLEANER",
    "due_since": "DUE-SINCE",
    "dirty_ratio": "DIRTY",
    "min_dirty_ratio": "MIN-DIRTY",
    "cleanable_bytes": "CLEANABLE",
    "freed_bytes": "WOULD-FREE",
    "overdue_tombstones": "OVERDUE-TOMBSTONES",
    "evidence": "EVIDENCE",
}
_CLEANING_SPARE: Final = ("min_dirty_ratio", "overdue_tombstones", "due_since", "cleanable_bytes")
_PROBLEMS: Final = ("dead", "passed_over", "disabled", "cannot_tell")
_UNSHOWN: Final = ("not_compacted", "nothing_to_clean")
_DECIMALS: Final = 2

_LOAD_HEADS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "leader": "LEADER",
    "groups": "#GROUPS",
    "records": "RECORDS",
    "file_bytes": "BYTES",
    "times": "TIMES-MEAN",
    "load": "LOADS-IN",
    "misplaced_groups": "MISPLACED",
}
_GROWTH_HEADS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "copy": "COPY",
    "earlier_bytes": "BYTES-THEN",
    "file_bytes": "BYTES-NOW",
    "bytes_per_day": "BYTES/DAY",
    "appended_records": "APPENDED",
    "appended_per_day": "APPENDED/DAY",
}
_MOST_NAMED: Final = 5


def usage_text(
    tables: Mapping[str, Rows],
    figures: Mapping[str, Any],
    wanted: OutputFormat,
    metadata: Mapping[str, Any],
    *,
    by: str,
    room_bytes: int | None = None,
) -> Text:
    """Return the answer as text.

    Args:
        tables: Of the question, by name.
        figures: `sums`, `topic_usage` added up; `identity`, whether bytes come out even; `placed`,
            how groups lie on partitions; `disks`, when brokers' room is taken.
        wanted: The format.
        metadata: What JSON has beside the tables.
        by: What records and bytes are added up by.
        room_bytes: The room of a broker.
    """
    sections = _sections(tables, figures, by, wanted)
    if wanted.is_for_programs or wanted.table:
        return rendered(sections, _with_top(wanted), metadata)
    text = render(sections, _with_top(wanted), metadata)
    notes = [
        _verdicts_text(tables["log_cleaning"].whole(), metadata["cleaner_verdicts"]),
        _brokers_text(tables["coordinator_load"].whole()),
        placement_text(figures["placed"]),
        _outlook_text(figures["disks"], room_bytes or 0),
        _identity_text(tables["partition_usage"].whole(), figures["identity"]),
    ]
    return "\n\n".join([text, *(paragraphs(each.splitlines()) for each in notes if each)])


def _sections(
    tables: Mapping[str, Rows], figures: Mapping[str, Any], by: str, wanted: OutputFormat
) -> list[Section | LongSection]:
    programs = wanted.is_for_programs
    sums, only_near = figures["sums"], not (programs or wanted.table)
    is_told = any(each["expired_records"].null_count < each.num_rows for each in sums.pieces())
    limits = figures["near_limits"] if only_near else tables["size_limits"]
    growth = tables.get("usage_growth")
    sections: list[Section | LongSection] = [
        LongSection(sums, partial(_usage_section, by=by, with_expired=is_told)),
        _cleaning_section(tables["log_cleaning"].whole(), is_for_programs=programs),
        LongSection(tables["committers"], committers_section),
        LongSection(tables["one_shot_groups"], patterns_section),
        LongSection(tables["group_deletions"], deletions_section),
        LongSection(tables["offset_deletions"], offset_deletions_section),
        LongSection(limits, limits_section),
        LongSection(tables["record_growth"], growth_of_records_section),
        LongSection(tables["clock_differences"], clocks_section),
        _load_section(tables["coordinator_load"].whole()),
        *([] if growth is None else [_growth_section(growth.whole())]),
        _partition_section(tables["partition_usage"].whole()),
        LongSection(tables["topic_usage"], partial(raw_section, name="topic_usage")),
    ]
    if programs:
        return sections
    return [
        each
        for each in sections
        if each.name == wanted.table
        or (each.name not in _ON_DEMAND and (each.rows.num_rows or each.name == "usage"))
    ]


def _with_top(wanted: OutputFormat) -> OutputFormat:
    """Return the format; of several tables people see the first rows, unless they ask for more."""
    if wanted.is_for_programs or wanted.top is not None or wanted.table or wanted.only_problems:
        return wanted
    return OutputFormat(
        wanted, is_wide=wanted.is_wide, top=_TOP, sort=wanted.sort, is_colored=wanted.is_colored
    )


def _usage_section(rows: pa.Table, by: str, *, with_expired: bool) -> Section:
    """Return rows of `topic_usage`, added up; with what has expired, where that is known."""
    percent = [
        None if share is None else f"{100 * share:.1f} %" for share in rows["share"].to_pylist()
    ]
    rows = rows.append_column("percent", pa.array(percent, pa.string()))
    heads = {name: head for name, head in _KEY_HEADS.items() if name in rows.column_names}
    if by in {"partition", "topic"}:
        heads["groups"] = "#GROUPS"
    heads |= _SUM_HEADS
    if not with_expired:
        heads.pop("expired_records")
    also = [name for name in rows.column_names if name not in heads]
    title = "Records, uncompressed and without batch headers"
    return Section(rows, heads, also, name="usage", title=title, spare=_SPARE)


def _partition_section(rows: pa.Table) -> Section:
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


def _identity_text(rows: pa.Table, even: Any) -> str:  # noqa: ANN401 - of another layer
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


def _cleaning_section(rows: pa.Table, *, is_for_programs: bool) -> Section:
    """Return the table; people see no logs that there is nothing to say of, and ratios rounded."""
    if not is_for_programs:
        rows = rows.filter(pc.invert(pc.is_in(rows["verdict"], pa.array(_UNSHOWN))))
        place = rows.column_names.index("dirty_ratio")
        rows = rows.set_column(place, "dirty_ratio", pc.round(rows["dirty_ratio"], _DECIMALS))
    problem = pc.is_in(rows["verdict"], pa.array(_PROBLEMS))
    also = [name for name in rows.column_names if name not in _HEADS]
    return Section(
        rows.append_column("is_problem", problem),
        _HEADS,
        also,
        name="log_cleaning",
        key="log_cleaning",
        title="Compaction",
        problem="is_problem",
        spare=_CLEANING_SPARE,
    )


def _verdicts_text(rows: pa.Table, meanings: Mapping[str, str]) -> str:
    """Return how many logs have each verdict, and what it means."""
    counts = Counter(rows["verdict"].to_pylist())
    lines = [f"{word} ({counts[word]}): {text}" for word, text in meanings.items() if counts[word]]
    return "\n".join(["Cleaner, copies of logs:", *lines])


def _load_section(rows: pa.Table) -> Section:
    """Return the table `coordinator_load`."""
    times = [None if each is None else f"{each:.1f}" for each in rows["times_mean"].to_pylist()]
    loads = [duration(each) for each in rows["load_ms"].to_pylist()]
    wrong = [
        bool(hot or misplaced)
        for hot, misplaced in zip(
            rows["is_hot"].to_pylist(), rows["misplaced_groups"].to_pylist(), strict=True
        )
    ]
    shown = (
        rows.append_column("times", pa.array(times, pa.string()))
        .append_column("load", pa.array(loads, pa.string()))
        .append_column("is_problem", pa.array(wrong, pa.bool_()))
    )
    also = [each for each in rows.column_names if each not in _LOAD_HEADS]
    return Section(
        shown,
        _LOAD_HEADS,
        also,
        name="coordinator_load",
        key="coordinator_load",
        title="Load of coordinators",
        problem="is_problem",
        spare=("records",),
    )


def _brokers_text(rows: pa.Table) -> str:
    """Return what each broker leads, in words; empty where no leader is known."""
    sums: dict[int, list[int]] = {}
    for row in rows.to_pylist():
        if row["leader"] is not None:
            total = sums.setdefault(row["leader"], [0, 0, 0])
            total[0] += 1
            total[1] += row["groups"]
            total[2] += row["file_bytes"] or 0
    lines = [
        f"broker {leader} leads {count(total[0], 'partition')} with {size_of(total[2])}, "
        f"{count(total[1], 'group')}"
        for leader, total in sorted(sums.items(), key=lambda item: -item[1][2])
    ]
    return "\n".join(lines)


def placement_text(found: Any) -> str:  # noqa: ANN401 - of another layer
    """Return which groups lie where no broker looks for them; empty where none does.

    Args:
        found: Has `partitions`, `misplaced` (name, partition, home) of the first of
            `misplaced_groups`, and `fits`.
    """
    lines = []
    if found.misplaced:
        named = ", ".join(
            # A line's end in a name would begin a sentence of its own.
            f"{printable(name)} in {here}, belongs in {home}"
            for name, here, home in found.misplaced[:_MOST_NAMED]
        )
        more = found.misplaced_groups - _MOST_NAMED
        named += f" and {more:,} more" if more > 0 else ""
        lines.append(
            f"{count(found.misplaced_groups, 'group')} of __consumer_offsets lie where no broker "
            f"looks for them, with {found.partitions} partitions: {named}"
        )
    if found.fits is not None:
        said = "nothing says" if found.partitions is None else f"{found.partitions} do not fit"
        lines.append(
            f"Hashes of all groups fit {found.fits} partitions of __consumer_offsets; {said}."
        )
    return "\n".join(lines)


def _growth_section(rows: pa.Table) -> Section:
    """Return the table `usage_growth`."""
    also = [each for each in rows.column_names if each not in _GROWTH_HEADS]
    return Section(
        rows, _GROWTH_HEADS, also, name="usage_growth", key="usage_growth", title="Growth"
    )


def _outlook_text(found: Iterable[Any], room_bytes: int) -> str:
    """Return when internal topics take all the room they have, broker by broker.

    Args:
        found: Has `copy`, `file_bytes`, `bytes_per_day`, `full_at_ms`, `is_full`.
        room_bytes: The room.
    """
    lines = []
    for each in found:
        grown = f"{each.copy}: {size_of(each.file_bytes)}, {_signed(each.bytes_per_day)} a day"
        if each.is_full:
            lines.append(f"{grown}: more than {size_of(room_bytes)} already")
        elif each.full_at_ms is None:
            lines.append(f"{grown}: never {size_of(room_bytes)} at this rate")
        else:
            lines.append(f"{grown}: {size_of(room_bytes)} at {_time(each.full_at_ms)}")
    return "\n".join(lines)


def _signed(rate: float) -> str:
    return ("-" if rate < 0 else "+") + size_of(round(abs(rate)))


def _time(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return "a time beyond the calendar"
