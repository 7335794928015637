"""Which delivery states were left for others that they cannot be left for (KIP-932).

The text's table of transitions has no way out of Acknowledged and Archived, and what shipped has
one way out of Archiving (KIP-1191). What a record stores of an offset is so held against what an
earlier one of the same run stored of it. Runs end where the state is deleted, initialised anew or
where a start offset goes back: what follows is held against nothing before. What a record stores
below its own start offset never counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.questions.share.backlog.progress import first_covers
from analytics.questions.share.places import AFTER_ALL
from analytics.questions.share.state_log.window import STATE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.questions.share.backlog.progress import Covers
    from analytics.questions.share.state_log.share_log import ShareLog
    from analytics.replay.share.share_ranges import Ranges

    Numbers = NDArray[np.int64]


def forbidden_transitions(
    log: ShareLog, allowed: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Return the records that store what cannot follow.

    Args:
        log: The records.
        allowed: By delivery state those that may follow; a state may always be stored again.

    Yields:
        By state that was left and state that follows: the records, what was stored before, what
        they store.
    """
    numbers = {name: number for number, name in STATE_NAMES.items()}
    ranges = _counting(log)
    run = log.run[ranges.key].astype(np.int64)
    for name, after in allowed.items():
        is_before = ranges.state == numbers[name]
        if not is_before.any():
            continue
        pieces = first_covers(ranges.where(is_before), run[is_before])
        for other in numbers.keys() - {name, *after}:
            chosen = np.flatnonzero(ranges.state == numbers[other])
            records = _that_follow(ranges, run, chosen, pieces)
            same = np.ones(records.size, np.int64)
            yield records, same * numbers[name], same * numbers[other]


def _counting(log: ShareLog) -> Ranges:
    """Return what is stored from the start offsets in force on."""
    ranges = log.ranges
    first = np.maximum(ranges.first, log.start[ranges.key])
    return replace(ranges, first=first).where(first <= ranges.last)


def _that_follow(ranges: Ranges, run: Numbers, chosen: Numbers, pieces: Covers) -> Numbers:
    """Return the records of chosen ranges that come after a piece which they overlap."""
    # Pieces are in order of run and offset: those that a range overlaps follow each other.
    begin = _places(pieces.share, pieces.last, run[chosen], ranges.first[chosen], after=False)
    end = _places(pieces.share, pieces.first, run[chosen], ranges.last[chosen], after=True)
    overlaps = np.flatnonzero(end > begin)
    if not overlaps.size:
        return np.zeros(0, np.int64)
    bounds = np.stack([begin[overlaps], end[overlaps]], axis=1).ravel()
    earliest = np.minimum.reduceat(np.append(pieces.record, AFTER_ALL), bounds)[::2]
    record = ranges.key[chosen[overlaps]]
    found: Numbers = np.unique(record[earliest < record])
    return found


def _places(
    keys: Numbers, values: Numbers, key: Numbers, value: Numbers, *, after: bool
) -> Numbers:
    """Return where (key, value) pairs would stand among others in order: before or after equals."""
    every, amounts = np.concatenate([keys, key]), np.concatenate([values, value])
    asked = np.repeat([0, 1 if after else -1], [keys.size, key.size])
    order = np.lexsort((asked, amounts, every))
    seen = np.cumsum(asked[order] == 0)
    found = np.empty(every.size, np.int64)
    found[order] = seen
    return found[keys.size :]
