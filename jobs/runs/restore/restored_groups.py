"""The groups of a plan: which of Kafka's tools resets each, and what has to be done before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from analytics.questions.diff.paired import CANNOT_TELL
from reports.describe.columns import number_of
from reports.quantities import count
from reports.restore.commands import CONSUMER_TOOL, STREAMS_TOOL, Reset
from reports.restore.file_names import file_names
from reports.restore.summary import VERDICTS

STREAMS_FILES_FROM = (4, 2)
"""The first release whose kafka-streams-groups has --from-file."""

RESETTABLE = ("Empty", "Dead")
"""States in which Kafka's tools reset a group (``ConsumerGroupCommand.resetOffsets``)."""

_CONSUMER_PROTOCOLS = ("", "consumer")
_NOBODY = "-"
_IN = "in_transactions"


@dataclass(frozen=True)
class RestoredGroup:
    """One group of the plan.

    Attributes:
        said: Its row of the summary.
        reset: Its file and command; None where nothing is given back.
    """

    said: Mapping[str, Any]
    reset: Reset | None


def unfit_groups(old: pa.Table, new: pa.Table, release: str) -> pa.Table:
    """Return `group_id`, `unfit`: groups whose offsets no tool resets from a file, and why.

    Args:
        old: The table `groups` of the past.
        new: That of the present.
        release: Of the present.
    """
    present = {each["group_id"]: each for each in new.to_pylist()}
    found = {}
    for each in old.to_pylist():
        name = each["group_id"]
        why = _unfit(name, present.get(name), each, release)
        if why is not None:
            found[name] = why
    schema = pa.schema([("group_id", pa.string()), ("unfit", pa.string())])
    return pa.table({"group_id": list(found), "unfit": list(found.values())}, schema=schema)


def _unfit(
    name: str, now: Mapping[str, Any] | None, then: Mapping[str, Any], release: str
) -> str | None:
    if "\0" in name:
        return "its name holds a NUL, which no command line can carry"
    kind = (now or then)["group_type"]
    if kind == "share":
        return "it is a share group now, whose tool takes no file"
    if kind == "streams":
        if number_of(release) >= STREAMS_FILES_FROM:
            return None
        return f"kafka-streams-groups of {release} takes no file; that of 4.2 does"
    protocol = (now or {}).get("protocol_type") or ""
    if protocol not in _CONSUMER_PROTOCOLS:
        return f"kafka-consumer-groups resets no group of protocol type {protocol}"
    return None


def restored_groups(
    plan: pa.Table, old: pa.Table, new: pa.Table, untold: Mapping[str, str]
) -> list[RestoredGroup]:
    """Return the groups of a plan in order.

    Args:
        plan: As `analytics.questions.restore.plan` makes it.
        old: The table `groups` of the past: what was then but has no offset is not in the plan.
        new: That of the present.
        untold: Groups of which the present does not tell all, and why.
    """
    counts: dict[str, dict[str, int]] = {}
    grouped = plan.group_by(["group_id", "verdict", "via"]).aggregate([([], "count_all")])
    for each in grouped.to_pylist():
        verdicts = counts.setdefault(each["group_id"], dict.fromkeys((*VERDICTS, _IN), 0))
        verdicts[each["verdict"]] += each["count_all"]
        if (each["verdict"], each["via"]) == ("restore", "transaction"):
            verdicts[_IN] += each["count_all"]
    past = {each["group_id"]: each for each in old.to_pylist()}
    present = {each["group_id"]: each for each in new.to_pylist()}
    names = file_names(name for name, each in counts.items() if each["restore"])
    return [
        _restored(
            name, verdicts, (past.get(name), present.get(name)), names.get(name), untold.get(name)
        )
        for name, verdicts in sorted(counts.items())
    ]


def _restored(
    name: str,
    verdicts: Mapping[str, int],
    states: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None],
    file: str | None,
    untold: str | None,
) -> RestoredGroup:
    then, now = states
    state = now["state"] if now else _NOBODY
    said = {
        "group_id": name,
        **verdicts,
        "present_state": state if untold is None else CANNOT_TELL,
    }
    if file is None:
        return RestoredGroup({**said, "file": None, "note": None}, None)
    notes = []
    if untold is not None:
        what = "it is there" if now is None else "it has members"
        notes.append(f"{name}: cannot tell whether {what}: {untold}")
    elif now is None:
        notes.append(f"{name} is not there: its offsets are committed anew")
    elif now["state"] not in RESETTABLE:
        members = count(now["member_count"] or 0, "member")
        notes.append(
            f"{name} is {now['state']} with {members}: stop it first, it has to be inactive"
        )
    if verdicts[_IN]:
        committed = count(verdicts[_IN], "offset was", "offsets were")
        notes.append(
            f"{name}: {committed} committed in transactions, whose other writes may be lost"
        )
    if verdicts["refused"]:
        notes.append(f"{name}: {count(verdicts['refused'], 'offset')} refused, see refused.csv")
    kind = (now or then or {}).get("group_type")
    tool = STREAMS_TOOL if kind == "streams" else CONSUMER_TOOL
    note = "; ".join(each.removeprefix(name).removeprefix(":").strip() for each in notes)
    return RestoredGroup(
        {**said, "file": file, "note": note or None}, Reset(name, file, tool, notes)
    )
