"""Burrow's status of every partition that a group commits, at an instant and through history.

Commits stream through in the order of the log; what is kept is a window for each partition of each
group. Where no end offsets are known for the times of the commits, the rules that ask for the lag
then are not evaluated: the status is `NOT_EVALUABLE`, and never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.burrow.fold import (
    ALLOWED_LAG,
    CHANGED,
    CHANGED_AT,
    CHANGED_KEY,
    CHANGED_OFFSET,
    CHANGED_TO,
    DELETED,
    END_SAMPLE,
    FIRST_SAMPLE,
    INTERVALS,
    KEPT,
    MIN_DISTANCE,
    SAMPLE,
    TOLD,
    fold_commits,
    fold_until,
)
from analytics.questions.lag.burrow.window import NAMES
from analytics.questions.lag.commits.commit_keys import CommitKeys
from analytics.questions.lag.times import END_OF_TIME
from analytics.replayed.end_offset_samples import EndOffsetSamples, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    _Numbers = NDArray[np.int64]

    from schemas.evaluation_rules import BurrowRules

COMMITS: Final = (
    *("group_id", "topic", "partition"),
    *("event", "committed_offset", "commit_timestamp", "effective_timestamp"),
)
"""The columns of `offset_history` that are read."""

CHANGES = pa.schema(
    [
        ("key", pa.int64()),
        ("from_timestamp", pa.timestamp("us", tz="UTC")),
        ("status", pa.string()),
        ("committed_offset", pa.int64()),
    ]
)
RULES: Final = {
    "NOT_EVALUABLE": None,
    "OK": "no lag, or none once in the window, or it shrank (rule 1, 5)",
    "WARN": "the lag did not shrink (rule 5)",
    "STOP": "longer since the last commit than the window spans (rule 3)",
    "STALL": "the same offset over and over (rule 4)",
    "REWIND": "a step back that was not made good (rule 2)",
}
"""By what each status is told, in words."""
_FIELDS_A_COMMIT = 5
"""How much looking at a commit is, in fields that are read: when compiling pays."""


@dataclass
class StatusFold:
    """What Burrow would remember of the partitions of groups, commit by commit.

    Attributes:
        rules: How many commits make a window, and what lag is none.
        samples: Where logs ended, and when.
        keys: Whose numbers the commits have.
        until_ms: The instant. A commit of a later time is not believed: when it was made nothing
            tells, nor by when the commits behind it were in its window.
    """

    rules: BurrowRules
    samples: EndOffsetSamples
    keys: CommitKeys = field(default_factory=CommitKeys)
    until_ms: int = END_OF_TIME
    _is_doubted: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    _kept: _Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    _windows: _Numbers = field(default_factory=lambda: np.empty((3, 0), np.int64))

    def add(self, commits: pa.Table, numbers: _Numbers | None = None) -> pa.Table:
        """Take commits in the order of the log; return the changes of status (`CHANGES`).

        Args:
            commits: Rows of `offset_history`.
            numbers: Of each one's partition, where they were given already.
        """
        keys = self.keys.numbers_of(commits) if numbers is None else numbers
        if commits["effective_timestamp"].null_count:
            is_timed = pc.is_valid(commits["effective_timestamp"])
            commits, keys = commits.filter(is_timed), keys[is_timed.to_numpy()]
        self._grow()
        is_placed = self._before_doubt(keys, milliseconds(commits["effective_timestamp"]))
        if not is_placed.all():
            commits, keys = commits.filter(pa.array(is_placed)), keys[is_placed]
        if not commits.num_rows:
            return CHANGES.empty_table()
        told = np.empty((commits.num_rows, TOLD), np.int64)
        told[:, 0] = keys
        offsets = commits["committed_offset"]
        told[:, 1] = (pc.fill_null(offsets, DELETED) if offsets.null_count else offsets).to_numpy()
        arrivals = commits["effective_timestamp"]
        made = commits["commit_timestamp"]
        told[:, 2] = milliseconds(pc.coalesce(made, arrivals) if made.null_count else made)
        told[:, 3] = milliseconds(arrivals)
        is_seen = np.zeros(self.keys.count, np.bool_)
        is_seen[keys] = True
        changes = self._room(2 * len(told), np.flatnonzero(is_seen))
        count = fold_commits(
            len(told) * _FIELDS_A_COMMIT, told.reshape(-1), *self._state(), changes
        )
        return _changes(changes[:count])

    def finish(self, until_ms: int) -> pa.Table:
        """Look at all partitions up to a time; return the changes of status (`CHANGES`)."""
        self._grow()
        count = self.keys.count
        changes = self._room(count, np.arange(count))
        until = np.array([until_ms], np.int64)
        told = fold_until(len(changes) * _FIELDS_A_COMMIT, until, *self._state(), changes)
        found = changes[:told]
        return _changes(found[~self._is_doubted[found[:, CHANGED_KEY]]])

    def is_doubted(self, keys: _Numbers) -> NDArray[np.bool_]:
        """Return of partitions by their numbers whether nothing tells their present status."""
        doubted: NDArray[np.bool_] = self._is_doubted[keys]
        return doubted

    def _before_doubt(self, keys: _Numbers, arrivals: _Numbers) -> NDArray[np.bool_]:
        """Return which commits come before any of their partition whose time is not believed."""
        is_later = arrivals > self.until_ms
        place = np.arange(keys.size)
        first = np.full(self.keys.count, keys.size)
        np.minimum.at(first, keys[is_later], place[is_later])
        is_before: NDArray[np.bool_] = (place < first[keys]) & ~self._is_doubted[keys]
        self._is_doubted[keys[is_later]] = True
        return is_before

    def _state(self) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers, _Numbers]:
        rules = np.zeros(3, np.int64)
        rules[INTERVALS] = self.rules.intervals
        rules[MIN_DISTANCE] = self.rules.min_distance_ms
        rules[ALLOWED_LAG] = self.rules.allowed_lag
        return self._kept, self._windows, self.samples.times, self.samples.ends, rules

    def _room(self, own: int, keys: _Numbers) -> _Numbers:
        """Return room for all the changes that there can be."""
        bases = keys * KEPT
        left = self._kept[bases + END_SAMPLE] - self._kept[bases + SAMPLE]
        # Each sample may change the status, and so may a stop before it.
        return np.empty((own + int((2 * left + 2).sum()), CHANGED), np.int64)

    def _grow(self) -> None:
        """Make a window for each partition that is new."""
        known = len(self._kept) // KEPT
        new = self.keys.count - known
        if not new:
            return
        kept = np.zeros((new, KEPT), np.int64)
        first, end = self.samples.of_keys(self.keys.named(known))
        kept[:, SAMPLE] = kept[:, FIRST_SAMPLE] = first
        kept[:, END_SAMPLE] = end
        self._kept = np.concatenate([self._kept, kept.reshape(-1)])
        self._is_doubted = np.concatenate([self._is_doubted, np.zeros(new, np.bool_)])
        room = np.zeros((3, new * self.rules.intervals), np.int64)
        self._windows = np.concatenate([self._windows, room], axis=1)


def status_history(changes: Iterable[pa.Table], fold: StatusFold) -> pa.Table:
    """Return the changes of status as intervals: the table `status_history`.

    Returns:
        `group_id`, `topic`, `partition`, `status`, `from_timestamp`, `to_timestamp` (null: still),
        `rule`, `committed_offset`. Of a partition with a commit whose time is not believed it has
        what was over before that.
    """
    rows = pa.concat_tables([CHANGES.empty_table(), *changes]).sort_by(
        [("key", "ascending"), ("from_timestamp", "ascending")]
    )
    rows = _lasting(rows)
    key, since = rows["key"].combine_chunks(), rows["from_timestamp"].combine_chunks()
    following = pa.array(
        np.arange(1, rows.num_rows + 1), mask=np.arange(rows.num_rows) + 1 == rows.num_rows
    )
    is_followed = pc.fill_null(pc.equal(key.take(following), key), fill_value=False)
    until = pc.if_else(is_followed, since.take(following), None)
    is_told = pa.array(
        is_followed.to_numpy(zero_copy_only=False) | ~fold.is_doubted(key.to_numpy())
    )
    names = fold.keys.named().take(key)
    rule = pc.index_in(rows["status"], pa.array(list(RULES)))
    return (
        names.append_column("status", rows["status"])
        .append_column("from_timestamp", since)
        .append_column("to_timestamp", until)
        .append_column("rule", pa.array(list(RULES.values())).take(rule.combine_chunks()))
        .append_column("committed_offset", rows["committed_offset"])
        .filter(is_told)
    )


def _lasting(rows: pa.Table) -> pa.Table:
    """Leave out statuses that held for no time, and changes that thereby are none.

    A commit and a sample of the end may have the same time: the status after both counts.
    """
    same_key = _equals_next(rows["key"])
    rows = rows.filter(pa.array(~(same_key & _equals_next(rows["from_timestamp"]))))
    again = _equals_next(rows["key"]) & _equals_next(rows["status"])
    return rows.filter(pa.array(~np.append(False, again[:-1])[: rows.num_rows]))


def _equals_next(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return whether each value is the one after it; the last is not."""
    values = column.combine_chunks()
    found = np.zeros(len(values), np.bool_)
    found[:-1] = pc.equal(values[:-1], values[1:]).to_numpy(zero_copy_only=False)
    return found


def _changes(changes: NDArray[np.int64]) -> pa.Table:
    places = pc.index_in(pa.array(changes[:, CHANGED_TO]), pa.array(list(NAMES), pa.int64()))
    offsets = changes[:, CHANGED_OFFSET]
    micros = pa.array(changes[:, CHANGED_AT] * 1000)
    return pa.table(
        [
            pa.array(changes[:, CHANGED_KEY]),
            pc.cast(micros, CHANGES.field("from_timestamp").type),
            pa.array(NAMES.values(), pa.string()).take(places),
            pa.array(offsets, mask=offsets == DELETED),
        ],
        schema=CHANGES,
    )
