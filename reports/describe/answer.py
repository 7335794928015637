"""The answers of `describe` and `list`: rows under the heads of Kafka's tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.groups import (
    Source,
    group_rows,
    member_rows,
    offset_rows,
    share_member_rows,
    share_offset_rows,
    sorted_by,
    state_rows,
    streams_member_rows,
    streams_offset_rows,
)
from reports.describe.tool_output import (
    CONSUMER,
    FAMILIES,
    HEADS,
    MEMBERS,
    OFFSETS,
    REMARK,
    SHARE,
    STATE,
    View,
    columns_of,
    contract_name,
)
from reports.row_formats import Section, Text, rendered
from schemas.releases import release_key

# Rows of `list`: one for each group, as kafka-groups --list has them.

LISTED = {
    "group_id": "GROUP",
    "type": "TYPE",
    "protocol_type": "PROTOCOL",
    "state": "STATE",
}
LISTED_BESIDES = ("group_type", "protocol_type", "state", "complete", "missing")
"""What formats for programs have besides."""
PROBLEM = "is_incomplete"
_SIMPLE = "simple"
_CLASSIC = "classic"


def list_text(
    groups: pa.Table, names: Sequence[str], output_format: str, metadata: Mapping[str, Any]
) -> Text:
    """Return groups as text.

    Args:
        groups: Rows of the table `groups`.
        names: The columns that are shown, of `LISTED`.
        output_format: The format.
        metadata: What JSON has beside the rows.
    """
    also = [name for name in LISTED_BESIDES if name not in names]
    heads = {name: LISTED[name] for name in names}
    return rendered(
        [Section(listed_rows(groups), heads, also, problem=PROBLEM)], output_format, metadata
    )


def listed_rows(groups: pa.Table) -> pa.Table:
    """Return a row for each group.

    A simple group is of type Classic to Kafka, without a protocol; `group_type` tells them apart.

    Args:
        groups: Rows of the table `groups`.
    """
    kinds = pc.if_else(pc.equal(groups["group_type"], _SIMPLE), _CLASSIC, groups["group_type"])
    return sorted_by(
        pa.table(
            {
                "group_id": groups["group_id"],
                "type": pc.utf8_capitalize(kinds),
                "protocol_type": groups["protocol_type"],
                "state": groups["state"],
                "group_type": groups["group_type"],
                "complete": groups["complete"],
                "missing": groups["missing"],
                PROBLEM: pc.invert(groups["complete"]),
            }
        ),
        "group_id",
    )


SPARE = ("client_host", "client_id")
"""What text leaves out first where there is no room."""
EARLY = "assignment_fields_written"
DOUBTS = ("complete", "missing", EARLY)
"""Columns that say whether a row can be told, why not, and what only Kafka's tools cannot."""


def describe_text(
    source: Source,
    what: str,
    output_format: str,
    metadata: Mapping[str, Any],
    *,
    verbose: bool,
) -> Text:
    """Return groups as text.

    Args:
        source: What describes them.
        what: Offsets, members or state.
        output_format: The format.
        metadata: What JSON has beside the rows; `kafka_version` is the release of the tools.
        verbose: With what the tools add for `--verbose`.
    """
    release = metadata["kafka_version"]
    is_for_people = output_format not in {"json", "csv"}
    sections = []
    for family in FAMILIES:
        view = View(family, what)
        if not source.groups_of(family).num_rows:
            continue
        rows = only_named(rows_of(view, source, release, verbose=verbose), None, source.topics)
        names = shown_columns(view, rows, release, verbose=verbose)
        sections.append(_section(view, rows, names, is_for_people=is_for_people))
    return rendered(sections, output_format, metadata)


def _section(view: View, rows: pa.Table, names: Sequence[str], *, is_for_people: bool) -> Section:
    """Return rows under the heads of Kafka's tool, and the names of our tables for programs.

    Of rows that cannot be told, or not all of them, it is said why.
    """
    heads = {contract_name(name, view.family): HEADS[name] for name in names}
    also = [name for name in ("group_type", *DOUBTS) if name in rows.column_names]
    found = rows.select([*names, *also]).rename_columns([*heads, *also])
    if is_for_people and "missing" in also:
        remark = _remarks(found)
        if remark.null_count < found.num_rows:
            found, heads = found.append_column("remark", remark), {**heads, **REMARK}
    problem = None
    if "missing" in also:
        problem = "is_untold"
        found = found.append_column(problem, pc.is_valid(found["missing"]))
    return Section(found, heads, also, name=f"{view.family}-groups", problem=problem, spare=SPARE)


def _remarks(rows: pa.Table) -> pa.ChunkedArray:
    """Return why rows cannot be told, and which of them Kafka's tools fail on."""
    remarks = pc.binary_join_element_wise("cannot tell", rows["missing"], ": ")
    if EARLY not in rows.column_names:
        return remarks
    early = "the assignment lacks its last field: Kafka's tools fail on it"
    is_early = pc.is_valid(rows[EARLY])
    return pc.coalesce(remarks, pc.if_else(is_early, early, pa.scalar(None, pa.string())))


def rows_of(view: View, source: Source, release: str, *, verbose: bool) -> pa.Table:
    """Return the rows of a view, with every column that any release has, and `group_type`."""
    if view.family == CONSUMER:
        rows = _consumer_rows(view, source, release)
    elif view.what == STATE:
        rows = state_rows(source, view.family)
    elif view.family == SHARE:
        is_offsets = view.what == OFFSETS
        rows = share_offset_rows(source) if is_offsets else share_member_rows(source, release)
    elif view.what == OFFSETS:
        rows = streams_offset_rows(source)
    else:
        rows = streams_member_rows(source, verbose=verbose)
    return _with_types(rows, source)


def _consumer_rows(view: View, source: Source, release: str) -> pa.Table:
    if view.what == OFFSETS:
        return offset_rows(source, release)
    if view.what == MEMBERS:
        return member_rows(source, release)
    return group_rows(source)


def _with_types(rows: pa.Table, source: Source) -> pa.Table:
    if "group_type" in rows.column_names:
        return rows
    names = source.groups["group_id"].combine_chunks()
    places = pc.index_in(rows["group"], names)
    return rows.append_column("group_type", pc.take(source.groups["group_type"], places))


def only_named(rows: pa.Table, groups: Sequence[str] | None, topics: pa.Array | None) -> pa.Table:
    """Return the rows of some groups and topics.

    Args:
        rows: `group`, and maybe `topic`.
        groups: Their names; None is all of them.
        topics: Likewise; of no meaning where rows are about no topic.
    """
    if groups is not None:
        rows = rows.filter(pc.is_in(rows["group"], pa.array(groups, pa.string())))
    if topics is not None and "topic" in rows.column_names:
        rows = rows.filter(pc.is_in(rows["topic"], topics))
    return rows


def shown_columns(view: View, rows: pa.Table, release: str, *, verbose: bool) -> list[str]:
    """Return the columns of a view that the tool of a release shows of these rows."""
    names = columns_of(view, release, verbose=verbose)
    left_out = set()
    if view == View(CONSUMER, MEMBERS):
        if _is_empty(rows["group_instance_id"]):
            left_out.add("group_instance_id")
        if not _has_both_protocols(rows):
            left_out.add("upgraded")
    if view == View(SHARE, OFFSETS) and _is_empty(rows["lag"]) and not _tells_lag(release):
        left_out.add("lag")
    return [name for name in names if name not in left_out]


def _tells_lag(release: str) -> bool:
    return release_key(release) >= (4, 2)


def _is_empty(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count == len(column))


def _has_both_protocols(rows: pa.Table) -> bool:
    """Return whether a group has members of both protocols: an upgrade is under way."""
    pairs = set(zip(rows["group"].to_pylist(), rows["upgraded"].to_pylist(), strict=True))
    return any((group, "true") in pairs and (group, "false") in pairs for group, _ in pairs)
