"""What `diff` and `restore` say of two instants, held against what was in force at both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tests.verdicts.happened import LOST, NOTHING, Happening, Values
from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG, Held, iso
from tests.verdicts.truth import Truth
from tests.verdicts.witness import Key

Row = Mapping[str, Any]
Offsets = Mapping[Key, Values]

UNSURE = ("incomplete", "present_unknown", "data_uncertain")
"""Reasons of a refusal that say that the dump cannot tell."""
TAKEN = {"went_back", "vanished"}
UNTOLD, BY_ELECTION = "cannot_tell", "lost_by_election"
"""What `change`, and `cause`, say of what cannot be told, and of what an election took."""


def hold_diff(
    truth: Truth, then: Offsets, end: Offsets, rows: Sequence[Row], *, is_untold: bool
) -> Held:
    """Hold changed offsets against what was in force at both instants.

    Args:
        truth: What happened.
        then: What was in force at the first instant, of groups of which that is known.
        end: The same at the second.
        rows: Of `diff`, those of offsets.
        is_untold: Whether the command ended with 3.
    """
    held = Held()
    known = {key[0] for key in then} & {key[0] for key in end}
    lost = {each.key: each for each in truth.happenings if each.what == LOST}
    told = {_key(row): row for row in rows}
    for key, row in told.items():
        if key[0] in known:
            word, what = _change(row, then.get(key, NOTHING), end.get(key, NOTHING), lost.get(key))
            held.add(word, key[0], f"diff says of {key}: {what}")
    for key in {*then, *end} - told.keys():
        before, after = then.get(key, NOTHING), end.get(key, NOTHING)
        if key[0] in known and not before & after:
            word = CANNOT_TELL if is_untold else WRONG
            held.add(word, key[0], f"diff leaves out {key}: {_shown(before)} -> {_shown(after)}")
    return held


def _key(row: Row) -> Key:
    return row["group_id"], row["topic"], row["partition"]


def _change(row: Row, before: Values, after: Values, lost: Happening | None) -> tuple[str, str]:
    change, said = row["change"], (row["from_committed_offset"], row["to_committed_offset"])
    for side, possible, value in zip(("from", "to"), (before, after), said, strict=True):
        # Of what cannot be told a side that is known may be shown.
        if value not in possible and not (change == UNTOLD and value is None):
            return WRONG, f"{change}, {side} {value}, was {_shown(possible)}"
    if change == UNTOLD:
        return CANNOT_TELL, change
    cause = row["cause"]
    if cause == BY_ELECTION and lost is None:
        return WRONG, f"{change} by an election, which took nothing"
    if lost is not None and change in TAKEN and said[0] in lost.was and cause is None:
        return WRONG, f"{change} {said}, and not that an election took it at {iso(lost.at[1])}"
    return RIGHT, ""


def hold_restore(then: Offsets, end: Offsets, rows: Sequence[Row], *, is_untold: bool) -> Held:
    """Hold what would be given back against what was in force at both instants.

    Args:
        then: What was in force at the instant asked about, of groups of which that is known.
        end: The same at the end.
        rows: Of `restore`, those of offsets.
        is_untold: Whether the command ended with 3.
    """
    held = Held()
    groups = {key[0] for key in then}
    told = {_key(row): row for row in rows}
    for key, row in told.items():
        if key[0] in groups:
            word, what = _plan(row, then.get(key, NOTHING), end.get(key, NOTHING))
            held.add(word, key[0], f"restore says of {key}: {what}")
    for key, possible in then.items():
        if key not in told and None not in possible:
            word = CANNOT_TELL if is_untold else WRONG
            held.add(word, key[0], f"restore leaves out {key}, was {_shown(possible)}")
    return held


def _plan(row: Row, before: Values, after: Values) -> tuple[str, str]:
    verdict, reasons = row["verdict"], (row["reason"] or "").split("; ")
    if any(each in UNSURE for each in reasons):
        return CANNOT_TELL, verdict
    offset, present = row["committed_offset"], row["present_offset"]
    if offset not in before and "pending_transaction" not in reasons:
        return WRONG, f"{verdict} {offset}, was {_shown(before)}"
    if present not in after:
        return WRONG, f"{verdict} {offset} where {present} is in force, is {_shown(after)}"
    return RIGHT, ""


def _shown(values: Collection[int | None]) -> str:
    return "/".join(sorted(map(str, values)))
