"""The answer of `usage`: what fills the internal topics, their cleaning, load and growth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import with_values
from reports.layout.output_format import OutputFormat
from reports.layout.section import LongSection, Rows, as_main, raw_section, table_section, without
from reports.plain_text import count, paragraphs, printable, size_of
from reports.row_formats import Section, Text, render, rendered

# Who fills the offsets topic: committers, groups left behind, what is near a limit.


def committers_section(rows: pa.Table) -> Section:
    """Return the table `committers`."""
    rate = pc.round(rows["commits_per_second"], 3)
    shown = with_values(rows, "commits_per_second", rate)
    return table_section(shown, "committers", title="Committers")


def patterns_section(rows: pa.Table) -> Section:
    """Return the table `one_shot_groups`."""
    title = "Groups whose names look generated (--table group_deletions lists commands to review)"
    return table_section(rows, "one_shot_groups", title=title)


def deletions_section(rows: pa.Table) -> Section:
    """Return the table `group_deletions`."""
    return table_section(rows, "group_deletions")


def offset_deletions_section(rows: pa.Table) -> Section:
    """Return the table `offset_deletions`."""
    title = "Offsets of topics that are gone (to review)"
    return table_section(rows, "offset_deletions", title=title)


def growth_of_records_section(rows: pa.Table) -> Section:
    """Return the table `record_growth`."""
    title = "How many more members or topics fit into a group's records"
    shown = rows.append_column("each", pc.round(rows["bytes_each"], 1))
    return table_section(shown, "record_growth", title=title)


def clocks_section(rows: pa.Table) -> Section:
    """Return the table `clock_differences`."""
    return table_section(rows, "clock_differences", title="Times that contradict each other")


def limits_section(rows: pa.Table) -> Section:
    """Return the table `size_limits`."""
    section = table_section(rows, "size_limits", title="Near what brokers take", problem="is_near")
    return replace(section, also=[*section.also, "is_near"])


_TOP: Final = 10
_ON_DEMAND: Final = ("group_deletions", "record_growth", "topic_usage")
"""Tables that people see only where they name them."""

_NEITHER: Final = ("damaged_bytes", "trailing_bytes", "unreadable_bytes")

_PROBLEMS: Final = ("dead", "passed_over", "disabled", "cannot_tell")
_UNSHOWN: Final = ("not_compacted", "nothing_to_clean")
_DECIMALS: Final = 2

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
    return "\n\n".join(
        [text, *(paragraphs(each.splitlines(), wanted.width) for each in notes if each)]
    )


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
    return wanted.with_top(_TOP)


def _usage_section(rows: pa.Table, by: str, *, with_expired: bool) -> Section:
    """Return rows of `topic_usage`, added up; with what has expired, where that is known."""
    percent = [
        None if share is None else f"{100 * share:.1f} %" for share in rows["share"].to_pylist()
    ]
    rows = rows.append_column("percent", pa.array(percent, pa.string()))
    title = "Records, uncompressed and without batch headers"
    view = by.replace("-", "_")
    section = as_main(table_section(rows, "topic_usage", "usage", view=view, title=title))
    if with_expired:
        return section
    also = [name for name in rows.column_names if name in {*section.also, "expired_records"}]
    return replace(without(section, ["expired_records"]), also=also)


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
    return table_section(shown, "partition_usage", title="Bytes of the files", problem="is_problem")


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
        rows = with_values(rows, "dirty_ratio", pc.round(rows["dirty_ratio"], _DECIMALS))
    problem = pc.is_in(rows["verdict"], pa.array(_PROBLEMS))
    shown = rows.append_column("is_problem", problem)
    return table_section(shown, "log_cleaning", title="Compaction", problem="is_problem")


def _verdicts_text(rows: pa.Table, meanings: Mapping[str, str]) -> str:
    """Return how many logs have each verdict, and what it means."""
    counts = Counter(rows["verdict"].to_pylist())
    lines = [f"{word} ({counts[word]}): {text}" for word, text in meanings.items() if counts[word]]
    return "\n".join(["Cleaner, copies of logs:", *lines])


def _load_section(rows: pa.Table) -> Section:
    """Return the table `coordinator_load`."""
    times = [None if each is None else f"{each:.1f}" for each in rows["times_mean"].to_pylist()]
    wrong = [
        bool(hot or misplaced)
        for hot, misplaced in zip(
            rows["is_hot"].to_pylist(), rows["misplaced_groups"].to_pylist(), strict=True
        )
    ]
    shown = rows.append_column("times", pa.array(times, pa.string())).append_column(
        "is_problem", pa.array(wrong, pa.bool_())
    )
    title = "Load of coordinators"
    return table_section(shown, "coordinator_load", title=title, problem="is_problem")


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
    return table_section(rows, "usage_growth", title="Growth")


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
