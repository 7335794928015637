"""The rows of a view, and which columns of them are shown."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe import consumer_groups, share_groups, streams_groups
from reports.describe.columns import (
    CONSUMER,
    MEMBERS,
    OFFSETS,
    SHARE,
    STATE,
    View,
    columns_of,
)
from reports.describe.source import Source
from reports.describe.state_rows import state_rows
from schemas.releases import release_key


def rows_of(view: View, source: Source, release: str, *, verbose: bool) -> pa.Table:
    """Return the rows of a view, with every column that any release has, and `group_type`."""
    if view.family == CONSUMER:
        rows = _consumer_rows(view, source, release)
    elif view.what == STATE:
        rows = state_rows(source, view.family)
    elif view.family == SHARE:
        is_offsets = view.what == OFFSETS
        rows = (
            share_groups.offset_rows(source)
            if is_offsets
            else share_groups.member_rows(source, release)
        )
    elif view.what == OFFSETS:
        rows = streams_groups.offset_rows(source)
    else:
        rows = streams_groups.member_rows(source, verbose=verbose)
    return _with_types(rows, source)


def _consumer_rows(view: View, source: Source, release: str) -> pa.Table:
    if view.what == OFFSETS:
        return consumer_groups.offset_rows(source, release)
    if view.what == MEMBERS:
        return consumer_groups.member_rows(source, release)
    return consumer_groups.group_rows(source)


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
