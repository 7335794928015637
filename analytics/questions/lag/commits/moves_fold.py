"""The loop over commits that measures how each partition of each group moves.

What is kept of each is a row of numbers, whatever the history's length. A step back, and a step
forward that is far longer than those before it, is told with who committed before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.wire.compiled import compiled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analytics.wire.compiled import Numbers as Given

    Numbers = NDArray[np.int64]

KEY, EVENT, OFFSET, ADVANCE, AT, EPOCH, MEMBER, TOPIC_ID, IS_OTHER_TOPIC, HAS_GAP = range(10)
"""What is told of each commit; its time, that of the log, in microseconds, or `UNKNOWN`. The number
of its topic's id; whether it is known to be for another topic of that name than the one before; and
whether commits may be missing before it."""
TOLD: Final = 10

COMMIT, OTHER = range(2)
"""Events: a commit that took effect, and what is none."""
MOST: Final = (1 << 63) - 1
UNKNOWN: Final = -(1 << 63)
"""A number that nothing tells."""

(
    COMMITS,
    UNCHANGED,
    REWINDS,
    JUMPS,
    FORWARD,
    ADVANCED,
    FIRST_AT,
    LAST_AT,
    LAST_ADVANCE_AT,
    LAST_EPOCH,
    LAST_MEMBER,
    SINCE_AT,
    SINCE_OFFSET,
    HIGHEST,
    LAST_TOPIC_ID,
    GAPS,
    FIRST_OFFSET,
    FIRST_EPOCH,
    TIMED,
    TIMED_ADVANCED,
    LATER_GAPS,
) = range(21)
"""What is kept: how many commits, of these unchanged, back, far forward, forward; records forward;
times; who committed last; for the trend from when on, and the offset in force then; the highest
offset committed for the topic of the last id; before how many commits others may be missing; the
first offset committed for that topic, and its epoch. Of the commits that have a time how many, and
what those behind the first of them advanced by; and before how many changes behind it others may be
missing."""
KEPT: Final = 21

TIMES, RECORDS, AFTER = range(3)
"""The rules of a jump: so many times the mean step forward, at least so many records, and seen so
many steps before."""

MOVED_ROW, MOVED_EPOCH, MOVED_MEMBER, MOVED_AT = range(4)
"""What is told of each move: the row of the commit, and of the commit before it whose it was and
when."""
MOVED: Final = 4

_READ: Final = "Array(int64, 1, 'C', readonly=True)"


def _reach(commits: Given, place: int, kept: Numbers, base: int) -> None:
    """Keep how far commits for the present topic of that name have reached."""
    topic, before = commits[place + TOPIC_ID], kept[base + LAST_TOPIC_ID]
    is_other = topic != UNKNOWN and before not in (UNKNOWN, topic)
    if is_other or commits[place + IS_OTHER_TOPIC] != 0:
        kept[base + HIGHEST] = UNKNOWN
        kept[base + FIRST_OFFSET] = commits[place + OFFSET]
        kept[base + FIRST_EPOCH] = commits[place + EPOCH]
    kept[base + HIGHEST] = max(kept[base + HIGHEST], commits[place + OFFSET])
    if topic != UNKNOWN:
        kept[base + LAST_TOPIC_ID] = topic


def _sum(whole: int, more: int) -> int:
    """A commit may be of any offset: a sum never grows beyond what a number holds."""
    return whole + more if more < MOST - whole else MOST


def _forward(kept: Numbers, base: int, advance: int, at: int, rules: Given) -> bool:
    """Keep a step forward; return whether it is a jump."""
    steps = kept[base + FORWARD]
    # Without a division: the mean of the steps before is what they add up to, shared out.
    is_jump = (
        steps >= rules[AFTER]
        and advance >= rules[RECORDS]
        and advance // rules[TIMES] >= kept[base + ADVANCED] // steps
    )
    if is_jump:
        kept[base + JUMPS] += 1
    kept[base + FORWARD] = steps + 1
    kept[base + ADVANCED] = _sum(kept[base + ADVANCED], advance)
    if at != UNKNOWN and kept[base + TIMED] > 0:
        kept[base + TIMED_ADVANCED] = _sum(kept[base + TIMED_ADVANCED], advance)
    kept[base + LAST_ADVANCE_AT] = max(kept[base + LAST_ADVANCE_AT], at)
    return bool(is_jump)


def _time(kept: Numbers, base: int, at: int, offset: int) -> None:
    """Keep when a commit was, and the offset in force when the trend begins."""
    if kept[base + TIMED] == 0:
        kept[base + SINCE_AT] = max(kept[base + SINCE_AT], at)
    if at <= kept[base + SINCE_AT]:
        kept[base + SINCE_OFFSET] = offset
    kept[base + FIRST_AT] = min(kept[base + FIRST_AT], at)
    kept[base + TIMED] += 1


@compiled(f"int64({_READ}, int64[::1], {_READ}, int64[:, ::1])", _reach, _sum, _forward, _time)
def fold_moves(commits: Given, kept: Numbers, rules: Numbers, moves: Numbers) -> int:
    """Measure commits, in order; return how many moves were told.

    Args:
        commits: `TOLD` numbers for each.
        kept: `KEPT` numbers for each partition of a group; changed. Before the first commit
            `FIRST_AT` is never, later times and who committed are `UNKNOWN`.
        rules: `TIMES`, `RECORDS`, `AFTER`.
        moves: Where moves are told, `MOVED` numbers each: must have room for one each commit.
    """
    told = 0
    for row in range(len(commits) // TOLD):
        place = row * TOLD
        base = commits[place + KEY] * KEPT
        # Commits may be missing before what is none, too.
        kept[base + GAPS] += commits[place + HAS_GAP]
        if kept[base + TIMED] > 0:
            kept[base + LATER_GAPS] += commits[place + HAS_GAP]
        if commits[place + EVENT] != COMMIT:
            continue
        at, advance = commits[place + AT], commits[place + ADVANCE]
        is_moved = False
        if advance == 0:
            kept[base + UNCHANGED] += 1
        elif advance > 0:
            is_moved = _forward(kept, base, advance, at, rules)
        elif advance != UNKNOWN:
            kept[base + REWINDS] += 1
            is_moved = True
        # When a move was that has no time is not known: it is counted, and not listed.
        if is_moved and at != UNKNOWN:
            moves[told, MOVED_ROW] = row
            moves[told, MOVED_EPOCH] = kept[base + LAST_EPOCH]
            moves[told, MOVED_MEMBER] = kept[base + LAST_MEMBER]
            moves[told, MOVED_AT] = kept[base + LAST_AT]
            told += 1
        if kept[base + COMMITS] == 0:
            kept[base + FIRST_OFFSET] = commits[place + OFFSET]
            kept[base + FIRST_EPOCH] = commits[place + EPOCH]
        _reach(commits, place, kept, base)
        kept[base + COMMITS] += 1
        if at != UNKNOWN:
            _time(kept, base, at, commits[place + OFFSET])
        kept[base + LAST_AT] = max(kept[base + LAST_AT], at)
        kept[base + LAST_EPOCH] = commits[place + EPOCH]
        kept[base + LAST_MEMBER] = commits[place + MEMBER]
    return told
