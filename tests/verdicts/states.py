"""What `describe`, `list` and `expiration` say, held against what coordinators answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.verdicts.happened import OF_CAUSES, TOPIC_DELETED, Values
from tests.verdicts.held import CANNOT_TELL, RIGHT, SECOND_MS, WRONG, Held, moment
from tests.verdicts.truth import Truth
from tests.verdicts.witness import Key

Row = Mapping[str, Any]


def hold_offsets(truth: Mapping[Key, Values], rows: Sequence[Row], *, is_untold: bool) -> Held:
    """Hold committed offsets against what was in force, or may have been.

    Args:
        truth: What was in force, of groups of which that is known.
        rows: Of `describe --offsets`.
        is_untold: Whether the command ended with 3.
    """
    held = Held()
    groups = {key[0] for key in truth}
    told: dict[Key, Row] = {}
    # Kafka's tools print no committed offsets of Streams groups and share groups.
    unprinted = {row["group_id"] for row in rows if "committed_offset" not in row}
    for row in rows:
        if "committed_offset" in row and row["topic"] is not None:
            told[row["group_id"], row["topic"], row["partition"]] = row
    for key, row in told.items():
        if key[0] not in groups:
            continue
        value, possible = row["committed_offset"], truth.get(key, frozenset({None}))
        if value in possible:
            held.add(RIGHT, key[0])
        elif value is None and row.get("complete") is False:
            held.add(CANNOT_TELL, key[0])
        else:
            held.add(WRONG, key[0], f"{key} is told as {value}, was {sorted(map(str, possible))}")
    named = {row["group_id"] for row in rows}
    for key, possible in truth.items():
        if key in told or None in possible or key[0] in unprinted:
            continue
        # A group that is there, and of which offsets are left out, has to say so.
        if is_untold:
            held.add(CANNOT_TELL, key[0])
        else:
            there = "though its group is there" if key[0] in named else "with its group"
            held.add(WRONG, key[0], f"{key} is left out {there}, was {sorted(map(str, possible))}")
    return held


def hold_list(truth: Truth, rows: Sequence[Row], *, is_untold: bool) -> Held:
    """Hold the groups listed against those that had offsets in the end."""
    held = Held()
    listed = {row["group_id"] for row in rows}
    for group in {key[0] for key, offset in truth.end.items() if offset is not None}:
        if group in listed:
            held.add(RIGHT, group)
        else:
            held.add(CANNOT_TELL if is_untold else WRONG, group, f"{group} is not listed")
    return held


def hold_removals(truth: Truth, rows: Sequence[Row], *, is_untold: bool) -> Held:
    """Hold judged removals against their true causes."""
    held = Held()
    words = set(OF_CAUSES.values())
    happened = [each for each in truth.happenings if each.what in words and not each.on_lost_line]
    matched = set()
    for row in rows:
        key, at = (row["group_id"], row["topic"], row["partition"]), moment(row["removed_at"])
        near = [
            (number, each)
            for number, each in enumerate(happened)
            if each.key == key
            and (at is None or each.at[0] - SECOND_MS <= at <= each.at[1] + SECOND_MS)
        ]
        causes = {each.what for _, each in near}
        matched |= {number for number, _ in near}
        if row["cause"] == "unknown":
            held.add(CANNOT_TELL, key[0])
        elif OF_CAUSES.get(row["cause"]) in causes:
            held.add(RIGHT, key[0])
        elif not near and key[0] not in truth.witnessed:
            continue
        else:
            said = f"{key} {row['cause']} ({row['confidence']}) at {row['removed_at']}"
            held.add(WRONG, key[0], f"removal {said}, was {sorted(causes)}")
    for number, each in enumerate(happened):
        # Brokers do not always write tombstones for a topic that they delete.
        if number not in matched and each.is_certain and each.what != TOPIC_DELETED:
            held.add(CANNOT_TELL if is_untold else WRONG, each.key[0], f"removal not told: {each}")
    return held
