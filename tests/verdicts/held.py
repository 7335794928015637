"""What `timeline` says, held against what happened.

Three words for each thing that happened and for each that is said: right, cannot tell, wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.verdicts.happened import (
    BY_TRANSACTION,
    EXPIRED,
    GROUP_DELETED,
    LOST,
    OFFSET_DELETED,
    REWOUND,
    TOPIC_DELETED,
    WHILE_EMPTY,
    Happening,
)
from tests.verdicts.truth import OFFSETS_PARTITIONS, Truth, home_of
from tests.verdicts.witness import Key

RIGHT, CANNOT_TELL, WRONG = "right", "cannot tell", "wrong"

WORDS = {
    EXPIRED: {"expired"},
    GROUP_DELETED: {"group_deleted"},
    OFFSET_DELETED: {"offset_deleted"},
    TOPIC_DELETED: {"topic_deleted", "topic_recreated"},
    REWOUND: {"rewound_by_member"},
    WHILE_EMPTY: {"committed_while_empty"},
    # A transaction's commit names no member: both words are right.
    BY_TRANSACTION: {"rewound_by_member", "committed_while_empty"},
    LOST: {"lost_by_election"},
}
"""Which verdicts are right for what happened."""

UNTOLD, NO_LOSS = "cannot_tell", "no_loss_found"
"""Verdicts on what is not known to have happened."""

LOSSES = frozenset[str]().union(*WORDS.values())
SECOND_MS = 1000
Row = Mapping[str, Any]


@dataclass
class Held:
    """How much of what was said, and of what happened, is right; and what is wrong.

    Attributes:
        by_group: How often each word is true of a group.
        faults: What is wrong: of which group, and what.
    """

    by_group: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)

    def add(self, word: str, group: str, what: str = "") -> None:
        """Count one thing; say of a wrong one what it is."""
        self.by_group[group, word] += 1
        if word == WRONG:
            self.faults.append((group, what))

    def count(self, word: str) -> int:
        """Return how often a word is true."""
        return sum(number for (_, each), number in self.by_group.items() if each == word)

    def of(self, groups: Callable[[str], bool]) -> Held:
        """Return what is held of some of the groups."""
        mine = {key: number for key, number in self.by_group.items() if groups(key[0])}
        return Held(Counter(mine), [each for each in self.faults if groups(each[0])])


@dataclass(frozen=True)
class Told:
    """The verdicts of a timeline.

    Attributes:
        rows: The verdicts, as JSON gives them.
        is_untold: Whether the command says that something cannot be told: exit code 3.
        said: What it says of what cannot be told, and of which groups.
        compacted: Until when history was compacted, as far as it says, by partition of the offsets
            topic: nothing may be left of an offset.
    """

    rows: Sequence[Row]
    is_untold: bool = False
    said: str = ""
    compacted: Mapping[int, str | None] = field(default_factory=dict)

    def by_key(self) -> Mapping[Key, list[Row]]:
        """Return verdicts by group, topic and partition; of a whole group by the group alone."""
        found: dict[Any, list[Row]] = defaultdict(list)
        for row in self.rows:
            whole = row.get("topic") is None
            key = row["group_id"] if whole else (row["group_id"], row["topic"], row["partition"])
            found[key].append(row)
        return found


def hold_timeline(truth: Truth, told: Told) -> Held:
    """Hold verdicts against what happened."""
    held = Held()
    by_key = told.by_key()
    for happening in truth.happenings:
        if not happening.is_certain or happening.on_lost_line:
            continue
        rows = _about(by_key, happening.key)
        if any(_tells(row, happening) for row in rows):
            held.add(RIGHT, happening.key[0])
        elif (
            _is_admitted(rows, happening)
            or _is_untold(told, by_key, happening.key[0])
            or (not rows and _is_compacted(told, happening))
        ):
            held.add(CANNOT_TELL, happening.key[0])
        else:
            said = [(row["verdict"], row["at"], row["was"], row["became"]) for row in rows]
            held.add(WRONG, happening.key[0], f"not told: {_shown(happening)}; told are {said}")
    for row in told.rows:
        if row["verdict"] not in WORDS[LOST] or not _is_of_share(truth, row):
            _hold_row(truth, row, held)
    _hold_shares(truth, told, by_key, held)
    return held


def _is_of_share(truth: Truth, row: Row) -> bool:
    key = row["group_id"], row["topic"], row["partition"]
    return key in truth.share_lost and _has_lost(truth)


def _has_lost(truth: Truth) -> bool:
    return any(each.what == LOST for each in truth.happenings)


def _hold_shares(truth: Truth, told: Told, by_key: Mapping[Any, list[Row]], held: Held) -> None:
    """Hold what elections took of share groups; their start offsets are `was` and `became`."""
    if not _has_lost(truth):
        return
    for key, starts in truth.share_lost.items():
        rows = _about(by_key, key)
        said = [(each["was"], each["became"]) for each in rows if each["verdict"] in WORDS[LOST]]
        if starts in said or (not rows and _is_untold(told, by_key, key[0])):
            held.add(RIGHT if starts in said else CANNOT_TELL, key[0])
        elif any(each["verdict"] == UNTOLD for each in rows):
            held.add(CANNOT_TELL, key[0])
        else:
            held.add(WRONG, key[0], f"state of share partition {key} went from {starts}: {said}")


def _about(by_key: Mapping[Any, list[Row]], key: Key) -> list[Row]:
    return [*by_key.get(key, ()), *by_key.get(key[0], ())]


def _hold_row(truth: Truth, row: Row, held: Held) -> None:
    verdict, key = row["verdict"], (row["group_id"], row["topic"], row["partition"])
    about = [each for each in truth.happenings if each.key == key or row["topic"] is None]
    if verdict == UNTOLD:
        held.add(CANNOT_TELL, key[0])
    elif verdict in LOSSES:
        is_lost_group = row["topic"] is None and key[0] in truth.groups_lost
        if is_lost_group or any(_tells(row, each) for each in about if each.key[0] == key[0]):
            held.add(RIGHT, key[0])
        elif not _is_unknown(truth, row):
            held.add(WRONG, key[0], f"did not happen: {_said(row)}")
    elif verdict == NO_LOSS:
        since = _instant(row)
        after = [
            each
            for each in about
            if each.is_certain and not each.on_lost_line and each.at[0] > since + SECOND_MS
        ]
        held.add(
            WRONG if after else RIGHT, key[0], f"{_said(row)}, yet: {list(map(_shown, after))}"
        )
    else:
        word, what = _standing(truth, row, key)
        held.add(word, key[0], what)


def _standing(truth: Truth, row: Row, key: Key) -> tuple[str, str]:
    """Judge words for how an offset stands."""
    wrong = {
        "never_committed": key in truth.ever or key in truth.end,
        "pending": key[0] in truth.witnessed and key not in truth.staged,
        "below_log_start": key not in truth.deleted_records,
    }
    if row["verdict"] not in wrong:
        return WRONG, f"no word for a verdict: {_said(row)}"
    return (WRONG if wrong[row["verdict"]] else RIGHT), f"is not so: {_said(row)}"


def _is_unknown(truth: Truth, row: Row) -> bool:
    """Return whether nobody told what this verdict is about: commits of Streams' members.

    That such a group was deleted is told, and not what it had committed.
    """
    if row["group_id"] in truth.witnessed:
        return False
    if row["verdict"] == "group_deleted":
        at = moment(row["at"]) or 0
        spans = truth.groups_deleted.get(row["group_id"], ())
        return any(low - SECOND_MS <= at <= high + SECOND_MS for low, high in spans)
    return row["verdict"] in {"rewound_by_member", "committed_while_empty"}


def _tells(row: Row, happening: Happening) -> bool:
    """Return whether a verdict says that this happened: what, when, from what to what."""
    if row["verdict"] not in WORDS[happening.what]:
        return False
    if row["topic"] is None:
        return happening.what == LOST and happening.became == {None}
    at = moment(row["at"])
    low, high = happening.at
    # That a topic is deleted shows in what follows: its re-creation, or the next commit.
    first = moment(row.get("not_before")) or at
    is_late = happening.what != TOPIC_DELETED and first is not None and first > high + SECOND_MS
    if is_late or (at is not None and at < low - SECOND_MS):
        return False
    if happening.was and row["was"] is not None and row["was"] not in happening.was:
        return False
    if not _costs(row, happening):
        return False
    return (
        happening.what == TOPIC_DELETED
        or not happening.became
        or row["became"] in happening.became
        or (row["became"] is None and happening.what != LOST)
    )


def _costs(row: Row, happening: Happening) -> bool:
    """Return whether the cost is that of going from one offset to the other, if it is told."""
    was, became, cost = row["was"], row["became"], row.get("cost")
    if cost is None or was is None or became is None:
        return True
    # A client may have kept its position through an election: then nothing is read again.
    return cost == was - became or (happening.what == LOST and cost == 0)


def _is_admitted(rows: Iterable[Row], happening: Happening) -> bool:
    """Return whether it is said that this cannot be told, or lies before what is known."""
    for row in rows:
        if row["verdict"] == UNTOLD:
            return True
        is_first = row["verdict"] == NO_LOSS or (
            (row.get("reason") or "").endswith("was compacted")
        )
        if is_first and _instant(row) >= happening.at[0]:
            return True
    return False


def _is_untold(told: Told, by_key: Mapping[Any, list[Row]], group: str) -> bool:
    """Return whether nothing is said of a group, and that it cannot be told is."""
    silent = not any(group in (key, key[0]) for key in by_key)
    return told.is_untold and (silent or group in told.said)


def _is_compacted(told: Told, happening: Happening) -> bool:
    """Return whether it is said that nothing may be left of an offset of before a time."""
    until = moment(told.compacted.get(home_of(happening.key[0], OFFSETS_PARTITIONS)))
    return until is not None and happening.at[0] < until


def _instant(row: Row) -> int:
    """Return from when on nothing is said to be lost; from the beginning where that is not said."""
    return moment(row.get("since") or row["at"]) or 0


def moment(text: str | None) -> int | None:
    """Return an instant that a command printed, in epoch milliseconds."""
    if not text:
        return None
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _shown(happening: Happening) -> str:
    low, high = (iso(each) for each in happening.at)
    was, became = (sorted(map(str, each)) for each in (happening.was, happening.became))
    return f"{'/'.join(map(str, happening.key))} {happening.what} {low}..{high} {was} -> {became}"


def _said(row: Row) -> str:
    names = (
        "group_id",
        "topic",
        "partition",
        "verdict",
        "since",
        "at",
        "was",
        "became",
        "confidence",
    )
    return " ".join(f"{name}={row.get(name)}" for name in names)


def iso(milliseconds: int) -> str:
    """Return an instant as commands print it."""
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return (epoch + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")
