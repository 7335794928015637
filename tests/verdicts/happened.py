"""What happened to offsets: made of what was done to them, act by act.

An act of which nobody knows whether it was done leaves several values possible. What happened for
certain has to be told; what may have happened may be told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.verdicts.witness import Act, Key

REWOUND = "rewound by a member"
WHILE_EMPTY = "committed while the group was Empty"
BY_TRANSACTION = "rewound by a transaction"
EXPIRED = "expired"
GROUP_DELETED = "group deleted"
OFFSET_DELETED = "offset deleted"
TOPIC_DELETED = "topic deleted"
LOST = "lost by an election"

OF_CAUSES = {
    "expiration": EXPIRED,
    "group_deleted": GROUP_DELETED,
    "offsets_deleted": OFFSET_DELETED,
    "topic_deleted": TOPIC_DELETED,
}
"""What the causes of `removals.json` are called here."""

Values = frozenset[int | None]
NOTHING: Values = frozenset({None})
Span = tuple[int, int]


@dataclass(frozen=True)
class Happening:
    """One thing that took an offset away, or back.

    Attributes:
        key: Of which group, topic and partition.
        what: The word for it.
        at: The two instants between which it happened, in epoch milliseconds.
        was: What may have been in force before; empty is not known.
        became: What may have been in force afterwards.
        is_certain: Whether it happened for certain.
        on_lost_line: Whether it happened on a line of history that did not survive.
    """

    key: Key
    what: str
    at: Span
    was: Values
    became: Values
    is_certain: bool = True
    on_lost_line: bool = False


@dataclass
class Life:
    """What is known of one offset so far."""

    values: Values = NOTHING
    since: int = -1
    doubtful: dict[int, int] = field(default_factory=dict)
    staged: dict[str, tuple[int, int]] = field(default_factory=dict)
    dropped: bool = False
    past: list[tuple[Span, Values, bool]] = field(default_factory=list)

    def becomes(self, values: Values, at: tuple[int, int], number: int) -> None:
        """Take over what is in force; a doubtful commit may still come to be."""
        late = {offset for offset, until in self.doubtful.items() if until >= at[1]}
        self.values = values | late
        self.since = number
        self.past.append((at, self.values, True))


@dataclass(frozen=True)
class Removal:
    """A tombstone and its cause, as `removals.json` tells it."""

    key: Key
    what: str
    at: tuple[int, int]
    was: int | None
    removes_pending: bool


@dataclass
class History:
    """The offsets of a dump, and what happened to them."""

    lives: dict[Key, Life] = field(default_factory=lambda: defaultdict(Life))
    happenings: list[Happening] = field(default_factory=list)

    def possible_at(self, key: Key, instant: int) -> Values:
        """Return what may have been in force at an instant."""
        found, under_way = NOTHING, list[tuple[int, Values]]()
        for (low, high), after, is_certain in self.lives[key].past:
            if is_certain and high <= instant:
                found = after
                under_way = [each for each in under_way if each[0] > low]
            elif low <= instant:
                under_way.append((high, after))
        return found.union(*(values for _, values in under_way))


def history_of(acts: Sequence[Act], removals: Sequence[Removal] = ()) -> History:
    """Go through acts in order; where `removals.json` is given, it alone says what was removed."""
    history = History()
    steps: list[tuple[int, int, Act | Removal]] = [
        *((act.answered, 1, act) for act in acts),
        *((removal.at[1], 0, removal) for removal in removals),
    ]
    for number, (_, _, step) in enumerate(sorted(steps, key=lambda each: each[:2])):
        if isinstance(step, Removal):
            _remove(history, step, number)
        elif step.kind == "commit":
            _commit(history, step, number)
        elif step.kind == "staged":
            for (topic, partition), offset in (step.offsets or {}).items():
                life = history.lives[step.group or "", topic, partition]
                life.staged[step.names[0]] = (offset, number)
        elif step.kind == "settled":
            _settle(history, step)
        elif not removals:
            _delete(history, step, number)
    return history


def _commit(history: History, act: Act, number: int) -> None:
    for (topic, partition), offset in (act.offsets or {}).items():
        key = (act.group or "", topic, partition)
        life = history.lives[key]
        if not act.is_certain:
            life.doubtful[offset] = act.at[1]
            life.past.append((act.at, frozenset({offset}), False))
            life.values = life.values | {offset}
            continue
        _step(history, key, act, offset, number, REWOUND if act.by_member else WHILE_EMPTY)


def _step(history: History, key: Key, act: Act, offset: int, number: int, what: str) -> None:
    life = history.lives[key]
    higher = frozenset(value for value in life.values if value is not None and value > offset)
    if higher:
        certain = higher == life.values
        became = frozenset({offset})
        history.happenings.append(Happening(key, what, act.at, higher, became, certain))
    life.becomes(frozenset({offset}), act.at, number)


def _settle(history: History, act: Act) -> None:
    producer, end = act.names
    for key, life in list(history.lives.items()):
        if producer not in life.staged:
            continue
        offset, staged_at = life.staged.pop(producer)
        # What was committed after it was staged stays.
        if end == "COMMIT" and staged_at > life.since:
            _step(history, key, act, offset, staged_at, BY_TRANSACTION)


def _delete(history: History, act: Act, number: int) -> None:
    for key, life in list(history.lives.items()):
        group, topic, partition = key
        hit = {
            "deleted": group == act.group and (topic, partition) in (act.offsets or {}),
            "group_deleted": group == act.group,
            "topic_deleted": topic in act.names,
        }.get(act.kind, False)
        if not hit:
            continue
        there = life.values - NOTHING
        if there:
            what = OF_CAUSES[{"deleted": "offsets_deleted"}.get(act.kind, act.kind)]
            certain = there == life.values
            history.happenings.append(Happening(key, what, act.at, there, NOTHING, certain))
        life.staged.clear()
        life.becomes(NOTHING, act.at, number)


def _remove(history: History, removal: Removal, number: int) -> None:
    life = history.lives[removal.key]
    if removal.removes_pending:
        life.staged.clear()
        life.dropped = True
    history.happenings.append(_happening(removal))
    life.becomes(NOTHING, removal.at, number)


def _happening(removal: Removal) -> Happening:
    was = frozenset[int | None]() if removal.was is None else frozenset({removal.was})
    # Where nothing was in force, or nobody knows what: that it went may be left out.
    return Happening(removal.key, removal.what, removal.at, was, NOTHING, removal.was is not None)


def two_lines(
    together: Iterable[Act],
    lost: Iterable[Act],
    surviving: Iterable[Act],
    before: Mapping[Key, int | None],
    after: Mapping[Key, int | None],
    elected: Mapping[Key, Span],
) -> History:
    """Go through acts of two lines of history that part; an election takes one of them away.

    Args:
        together: What was done before the lines part.
        lost: What was done on the line that did not survive.
        surviving: What was done on the other.
        before: What the coordinator of the lost line answered last.
        after: What one answers that has loaded the surviving line as it was when it took over.
        elected: When the leader of the surviving line was elected, of the offsets that it has.
    """
    common = list(together)
    dead = history_of([*common, *lost])
    history = history_of(common)
    told = set(history.happenings)
    common_past = {key: life.past for key, life in history.lives.items()}
    for key, span in elected.items():
        became = after.get(key)
        life = history.lives[key]
        life.past = [*dead.lives[key].past, (span, frozenset({became}), True)]
        life.values = frozenset({became})
    # The surviving line goes on from what its leader had.
    on = history_of([*common, *surviving])
    for key, span in elected.items():
        was, value = before.get(key), after.get(key)
        if was != value:
            later = on.lives[key].past[len(common_past.get(key, [])) :]
            went_on = _resumed(later, was, value)
            history.happenings.append(Happening(key, LOST, span, frozenset({was}), went_on))
    for key, life in on.lives.items():
        history.lives[key].past += [
            each for each in life.past if each not in history.lives[key].past
        ]
        history.lives[key].values = life.values
        history.lives[key].staged = life.staged
    history.happenings += [each for each in on.happenings if each not in told]
    history.happenings += [
        replace(each, on_lost_line=True) for each in dead.happenings if each not in told
    ]
    return history


def _resumed(
    later: Sequence[tuple[Span, Values, bool]], was: int | None, value: int | None
) -> Values:
    """Return what an offset became by an election: where its group went on, or what is in force.

    Args:
        later: What was committed on the surviving line since.
        was: What was in force on the lost line.
        value: What was in force on the surviving one.
    """
    found: set[int | None] = set()
    for _, values, is_certain in later:
        found |= values
        if is_certain:
            break
    else:
        found.add(value)
    return frozenset(
        value if each is None or was is None or each >= was else each for each in found
    )
