"""Rows of share groups, as kafka-share-groups --describe has them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.assigned import partitions_text
from reports.describe.columns import SHARE
from reports.describe.source import Source, only_groups, sorted_by

_SHOWN = ("initializing", "initialized", "unknown")


def offset_rows(source: Source) -> pa.Table:
    """Return a row for each share partition (``DescribeShareGroupOffsets``)."""
    shares = only_groups(source.shares, source.groups_of(SHARE))
    rows = shares.filter(pc.is_in(shares["phase"], pa.array(_SHOWN)))
    is_started = pc.is_valid(rows["start_offset"])
    return sorted_by(
        pa.table(
            {
                "group": rows["group_id"],
                "topic": rows["topic"],
                "partition": rows["partition"],
                "leader_epoch": pc.if_else(
                    is_started, rows["leader_epoch"], pa.scalar(None, pa.int32())
                ),
                "start_offset": rows["start_offset"],
                "lag": rows["lag"],
            }
        ),
        "group",
        "topic",
        "partition",
    )


def member_rows(source: Source, release: str) -> pa.Table:
    """Return a row for each member."""
    given: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in only_groups(source.assignments, source.groups_of(SHARE)).to_pylist():
        if each["kind"] == "current":
            given[each["group_id"], each["member_id"]].append(each)
    rows = [
        {
            "group": each["group_id"],
            "consumer_id": each["member_id"],
            "host": each["client_host"],
            "client_id": each["client_id"],
            "partitions": len(given[each["group_id"], each["member_id"]]),
            "member_epoch": each["member_epoch"],
            "assignment": partitions_text(
                given[each["group_id"], each["member_id"]], release, of_share=True
            ),
        }
        for each in source.members_of(SHARE).to_pylist()
    ]
    return sorted_by(pa.Table.from_pylist(rows, _MEMBERS), "group", "consumer_id")


_MEMBERS = pa.schema(
    [
        ("group", pa.string()),
        ("consumer_id", pa.string()),
        ("host", pa.string()),
        ("client_id", pa.string()),
        ("partitions", pa.int32()),
        ("member_epoch", pa.int32()),
        ("assignment", pa.string()),
    ]
)
