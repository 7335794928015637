"""Rows of `list`: one for each group, as kafka-groups --list has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.describe.source import sorted_by
from reports.row_formats import Section, Text, rendered

HEADS = {
    "group_id": "GROUP",
    "type": "TYPE",
    "protocol_type": "PROTOCOL",
    "state": "STATE",
}
ALSO = ("group_type", "protocol_type", "state", "complete", "missing")
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
        names: The columns that are shown, of `HEADS`.
        output_format: The format.
        metadata: What JSON has beside the rows.
    """
    also = [name for name in ALSO if name not in names]
    heads = {name: HEADS[name] for name in names}
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
