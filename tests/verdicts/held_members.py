"""What `rebalances` and `balance` say of members, held against who was in a group and had what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.verdicts.held import CANNOT_TELL, RIGHT, SECOND_MS, WRONG, Held, iso, moment

Row = Mapping[str, Any]
UNTOLD = {"cannot_tell", "unread", "unsettled"}
"""Verdicts of `balance` that speak of no sizes."""
FOREVER = 2**63
GONE_MS = 60_000
"""How long a group may take to note that a member has left: the others have to join again."""


@dataclass(frozen=True)
class Change:
    """A member that comes or goes, by what `rebalances` says.

    Attributes:
        at: When, in epoch milliseconds.
        is_there: Whether it is a member from then on.
        is_admitted: Whether it is said that more may have happened before.
    """

    at: int
    is_there: bool
    is_admitted: bool


def hold_rebalances(
    members: Mapping[str, Any],
    rows: Sequence[Row],
    until: int,
    *,
    is_untold: bool,
    churn: Sequence[Row] = (),
) -> Held:
    """Hold epochs, and who joined and left, against who was seen when, and in which epochs.

    Args:
        members: Of `members_of`.
        rows: Of `rebalances`.
        until: The instant asked about, in epoch milliseconds.
        is_untold: Whether the command ended with 3.
        churn: What the command sums up, and of which groups that is not all.
    """
    held = Held()
    lacking = {row["group_id"] for row in churn if not row["complete"]}
    by_group: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["at"] or "", row["from_offset"])):
        by_group[row["group_id"]].append(row)
    # Of a group that is gone in the end the cleaner may have taken all, its tombstone as well.
    gone = members["seen"].keys() - members["end"].keys()
    for group, seen in members["seen"].items():
        mine = by_group.get(group, [])
        changes = _changes(mine)
        for member, spans in seen.items():
            for low, high in spans:
                if high + SECOND_MS < until:
                    word = _word(changes.get(member, []), low, high)
                    if word is None:
                        is_admitted = is_untold or any(map(_is_admitted, mine))
                        is_admitted |= _names_too_few(mine[0]) if mine else group in gone
                        word = CANNOT_TELL if is_admitted else WRONG
                    what = f"{member} of {group} was there {iso(low)}..{iso(high)}"
                    held.add(word, group, f"rebalances denies it: {what}, {changes.get(member)}")
        _hold_left(members, group, changes, until, held, is_lacking=group in lacking)
    for group, epoch, at in members["epochs"]:
        if at + SECOND_MS < until:
            mine = by_group.get(group, [])
            is_admitted = is_untold or (not mine and group in gone)
            word, what = _of_epoch(mine, epoch, at, is_untold=is_admitted)
            held.add(word, group, f"epoch {epoch} of {group}, seen at {iso(at)}: {what}")
    return held


def _is_admitted(row: Row) -> bool:
    """Return whether a row may lack something; who changed is null where it is not known."""
    is_open = not row["complete"] or row["missing_is_compacted"]
    return is_open or row["joined"] is None or row["left"] is None


def _names_too_few(first: Row) -> bool:
    """Return whether a group had members when what is left of it begins, who joined any time."""
    members: int = first["member_count"]
    return members > len(first["joined"] or ())


def _changes(rows: Sequence[Row]) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = defaultdict(list)
    for row in rows:
        at = moment(row["at"]) or 0
        for name, is_there in (("left", False), ("joined", True)):
            for member in row[name] or ():
                found[member].append(Change(at, is_there, _is_admitted(row)))
    return found


def _word(changes: Sequence[Change], low: int, high: int) -> str | None:
    """Judge whether a member seen between two instants is told to be there; None: nothing is said.

    Before it first joined it was not there, before it first left it was.
    """
    if not changes:
        return None
    spans = []
    first = changes[0]
    before = Change(0, not first.is_there, first.is_admitted)
    told = [before, *changes]
    for number, change in enumerate(told):
        end = told[number + 1].at if number + 1 < len(told) else FOREVER
        spans.append((change, change.at, end))
    near = [
        change
        for change, begin, end in spans
        if begin <= high + SECOND_MS and end >= low - SECOND_MS
    ]
    if any(change.is_there for change in near):
        return RIGHT
    return CANNOT_TELL if any(change.is_admitted for change in near) else WRONG


def _hold_left(
    members: Mapping[str, Any],
    group: str,
    changes: Mapping[str, Sequence[Change]],
    until: int,
    held: Held,
    *,
    is_lacking: bool,
) -> None:
    """Hold who is told to be a member in the end against those that closed: they do not stay."""
    for member, at in members["left"].get(group, {}).items():
        told = changes.get(member)
        if told and at + GONE_MS < until:
            last = told[-1]
            is_admitted = last.is_admitted or is_lacking
            word = RIGHT if not last.is_there else CANNOT_TELL if is_admitted else WRONG
            what = f"{member} of {group} closed at {iso(at)}, and is told to stay since {last.at}"
            held.add(word, group, what)


def _of_epoch(rows: Sequence[Row], epoch: int, at: int, *, is_untold: bool) -> tuple[str, str]:
    """Judge whether an epoch that somebody was in is told, and not told to have left no record."""
    if epoch == 1 and rows and rows[0]["group_type"] != "classic":
        # A member that waits for its regular expression is in an epoch without a record.
        return RIGHT, ""
    if any(row["epoch"] == epoch and (moment(row["at"]) or 0) <= at + SECOND_MS for row in rows):
        return RIGHT, ""
    for before, row in zip([None, *rows], rows, strict=False):
        began = (moment(before["at"]) or 0) if before else 0
        is_between = began - SECOND_MS <= at <= (moment(row["at"]) or 0) + SECOND_MS
        missing = row["missing_before"] or 0
        if is_between and row["epoch"] - missing <= epoch < row["epoch"] and not _is_admitted(row):
            return WRONG, f"is told to have left no record before epoch {row['epoch']}"
    if is_untold or any(map(_is_admitted, rows)):
        return CANNOT_TELL, ""
    return WRONG, f"is not told; told are {[(row['epoch'], row['at']) for row in rows]}"


def hold_balance(
    sizes: Mapping[str, Sequence[int]], rows: Sequence[Row], *, is_untold: bool
) -> Held:
    """Hold how many partitions members have, of the fewest and the most, against what they had.

    Args:
        sizes: By group, ascending; groups of which that is not known are left out.
        rows: Of `balance`.
        is_untold: Whether the command ended with 3.
    """
    held = Held()
    told = {row["group_id"]: row for row in rows}
    for group, expected in sizes.items():
        row = told.get(group)
        if row is None:
            word = RIGHT if not expected else CANNOT_TELL if is_untold else WRONG
            held.add(word, group, f"balance leaves out {group}, members had {expected}")
            continue
        said = row["member_count"], row["min_partitions"], row["max_partitions"]
        if row["verdict"] in UNTOLD:
            held.add(CANNOT_TELL, group)
        elif expected and said == (len(expected), expected[0], expected[-1]):
            held.add(RIGHT, group)
        else:
            what = f"{row['verdict']}, members, fewest, most {said}"
            held.add(WRONG, group, f"balance says of {group}: {what}, had {list(expected)}")
    return held
