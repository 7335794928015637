"""The tables that rules read: those of a workspace, and what its manifest says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analytics.questions.findings.configured_rules import configured_rules
from schemas import tables

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_LOGS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("copy", pa.string()),
        ("is_leading", pa.bool_()),
        ("lacks", pa.string()),
        ("deleted_below", pa.int64()),
        ("bytes_damaged", pa.int64()),
    ]
)
_ABSENT = pa.schema([("topic", pa.string()), ("partitions", pa.int64())])


def judged_tables(state: ReplayedWorkspace, verdicts: pa.Table) -> dict[str, pa.Table]:
    """Return the tables that rules read, those of a workspace and what its manifest says.

    Args:
        state: A workspace in which all questions were answered.
        verdicts: The table `offset_verdicts` of the same instant.
    """
    rules = configured_rules(state.settings.given.findings)
    wanted = {rule.table for rule in rules if rule.is_on}
    stored = state.tables
    found = {
        name: stored.read(name) for name in sorted(wanted & tables().keys()) if stored.has(name)
    }
    return {
        **found,
        "offset_verdicts": verdicts,
        "log_partitions": pa.Table.from_pylist(list(_logs(state.manifest)), schema=_LOGS),
        "absent_partitions": pa.Table.from_pylist(list(_absent(state.manifest)), schema=_ABSENT),
    }


def _logs(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in manifest["partitions"]:
        yield {
            **{name: each.get(name) for name in ("topic", "partition", "copy", "lacks")},
            "is_leading": each.get("is_leading", True),
            "deleted_below": each.get("deleted_below"),
            "bytes_damaged": each.get("bytes_damaged"),
        }


def _absent(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for topic, numbers in manifest.get("absent_partitions", {}).items():
        if numbers:
            yield {"topic": topic, "partitions": len(numbers)}
