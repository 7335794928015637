"""The groups that get offsets back: which of Kafka's tools resets each, and what to do before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from reports.quantities import count
from reports.restore.commands import CONSUMER_TOOL, STREAMS_TOOL, Reset
from reports.restore.file_names import file_names
from reports.restore.summary import VERDICTS

RESETTABLE: Final = ("Empty", "Dead")
"""States in which Kafka's tools reset a group (``ConsumerGroupCommand.resetOffsets``)."""

_CANNOT_TELL: Final = "cannot tell"
_NOBODY: Final = "-"


@dataclass(frozen=True)
class RestoredGroup:
    """One group of the plan.

    Attributes:
        row: Its row of the summary.
        reset: Its file and command; None where nothing is given back.
    """

    row: Mapping[str, Any]
    reset: Reset | None


def restored_groups(rows: pa.Table) -> list[RestoredGroup]:
    """Return the groups in order.

    Args:
        rows: The table `restore_groups`.
    """
    groups = rows.to_pylist()
    names = file_names(each["group_id"] for each in groups if each["restore"])
    return [_restored(each, names.get(each["group_id"])) for each in groups]


def _restored(group: Mapping[str, Any], file: str | None) -> RestoredGroup:
    name = group["group_id"]
    state = group["present_state"] if group["is_present"] else _NOBODY
    row = {
        "group_id": name,
        **{verdict: group[verdict] for verdict in VERDICTS},
        "present_state": state if group["unknown"] is None else _CANNOT_TELL,
    }
    if file is None:
        return RestoredGroup({**row, "file": None, "note": None}, None)
    notes = _notes(group)
    note = "; ".join(each.removeprefix(name).removeprefix(":").strip() for each in notes) or None
    tool = STREAMS_TOOL if group["group_type"] == "streams" else CONSUMER_TOOL
    return RestoredGroup(
        {**row, "file": file, "note": note},
        Reset(name, file, tool, notes),
    )


def _notes(group: Mapping[str, Any]) -> list[str]:
    """Return what a person has to know or do first, one sentence each."""
    name, unknown = group["group_id"], group["unknown"]
    notes = []
    if unknown is not None:
        what = "it has members" if group["is_present"] else "it is there"
        notes.append(f"{name}: cannot tell whether {what}: {unknown}")
    elif not group["is_present"]:
        notes.append(f"{name} is not there: its offsets are committed anew")
    elif group["present_state"] not in RESETTABLE:
        members = count(group["member_count"] or 0, "member")
        notes.append(
            f"{name} is {group['present_state']} with {members}: stop it first, it has to be "
            f"inactive"
        )
    if group["in_transactions"]:
        committed = count(group["in_transactions"], "offset was", "offsets were")
        notes.append(
            f"{name}: {committed} committed in transactions, whose other writes may be lost"
        )
    if group["refused"]:
        notes.append(f"{name}: {count(group['refused'], 'offset')} refused, see refused.csv")
    return notes
