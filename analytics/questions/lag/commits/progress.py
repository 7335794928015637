"""How a group moves: what its commits advanced, when last, how often they changed nothing.

A fold over the commits in the order of the log; what is kept is a row for each partition of each
group, and a row for each step back and each jump forward.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.commits.commit_keys import CommitKeys, Names
from analytics.questions.lag.commits.moves_fold import (
    ADVANCE,
    ADVANCED,
    AFTER,
    AT,
    COMMIT,
    COMMITS,
    EPOCH,
    EVENT,
    FIRST_AT,
    FIRST_EPOCH,
    FIRST_OFFSET,
    GAPS,
    HAS_GAP,
    HIGHEST,
    IS_OTHER_TOPIC,
    JUMPS,
    KEPT,
    KEY,
    LAST_ADVANCE_AT,
    LAST_AT,
    LAST_EPOCH,
    LAST_MEMBER,
    LAST_TOPIC_ID,
    LATER_GAPS,
    MEMBER,
    MOVED,
    MOVED_AT,
    MOVED_EPOCH,
    MOVED_MEMBER,
    MOVED_ROW,
    OFFSET,
    OTHER,
    RECORDS,
    REWINDS,
    SINCE_AT,
    SINCE_OFFSET,
    TIMED,
    TIMED_ADVANCED,
    TIMES,
    TOLD,
    TOPIC_ID,
    UNCHANGED,
    UNKNOWN,
    fold_moves,
)
from analytics.questions.lag.times import END_OF_TIME
from analytics.replay.log.log_clocks import doubtful_times
from analytics.replay.offsets.offset_causes import TOPIC_RECREATED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.replay.log.log_clocks import LogClock
    from analytics.replayed.end_offset_samples import EndOffsetSamples
    from schemas.evaluation_rules import JumpRules

    _Flags = NDArray[np.bool_]
    _Numbers = NDArray[np.int64]

COLUMNS: Final = (
    *("group_id", "topic", "partition", "event", "committed_offset", "advance"),
    *("effective_timestamp", "epoch", "member_id", "previous_offset", "origin"),
    *("topic_id", "cause", "complete", "coordinator_partition", "effective_offset"),
)
"""The columns of `offset_history` that are read."""

_COMMITTED: Final = pa.array(["commit", "transaction_commit"])
_MICROS: Final = 1000
"""In a millisecond."""
_TIME: Final = pa.timestamp("us", "UTC")
_TEXT, _LONG = pa.string(), pa.int64()
_COUNTED: Final = {
    "commits": COMMITS,
    "unchanged_commits": UNCHANGED,
    "rewinds": REWINDS,
    "jumps": JUMPS,
    "advanced": ADVANCED,
    "timed_commits": TIMED,
    "timed_advanced": TIMED_ADVANCED,
}
_FOUND: Final = {
    "highest_committed": HIGHEST,
    "first_committed": FIRST_OFFSET,
    "first_epoch": FIRST_EPOCH,
}
_TIMES: Final = {
    "first_commit_at": FIRST_AT,
    "last_commit_at": LAST_AT,
    "last_advance_at": LAST_ADVANCE_AT,
    "since_at": SINCE_AT,
}
MOVES = pa.schema(
    [
        ("group_id", _TEXT),
        ("topic", _TEXT),
        ("partition", pa.int32()),
        ("kind", _TEXT),
        ("effective_timestamp", _TIME),
        ("previous_offset", _LONG),
        ("committed_offset", _LONG),
        ("advance", _LONG),
        ("previous_at", _TIME),
        ("previous_epoch", pa.int32()),
        ("previous_member_id", _TEXT),
        ("epoch", pa.int32()),
        ("member_id", _TEXT),
        ("origin", _TEXT),
    ]
)
"""Steps back (`rewind`) and steps far forward (`jump`): the table `offset_moves`."""


@dataclass
class ProgressFold:
    """How each partition of each group moved in the history that was seen.

    Attributes:
        keys: Whose numbers the commits have.
        rules: What a jump forward is.
        samples: Where logs ended, and when: no trend begins before the first of them.
        since_ms: When the trend begins: the offset in force then is kept.
        clocks: By partition of `__consumer_offsets`, where its clocks were set or wrong.
    """

    keys: CommitKeys
    rules: JumpRules
    samples: EndOffsetSamples
    since_ms: int = 0
    clocks: Mapping[int, LogClock] = field(default_factory=dict)
    _members: Names = field(default_factory=Names)
    _topic_ids: Names = field(default_factory=Names)
    _kept: _Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    _is_undated: _Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    _moves: list[pa.Table] = field(default_factory=list)

    def add(self, commits: pa.Table, numbers: _Numbers) -> None:
        """Take rows of `offset_history`, and the number of each one's partition."""
        self._grow()
        told = np.empty((commits.num_rows, TOLD), np.int64)
        told[:, KEY] = numbers
        # A commit of an offset below 0 commits none.
        is_made = pc.and_(
            pc.is_in(commits["event"], _COMMITTED), pc.is_valid(commits["committed_offset"])
        )
        told[:, EVENT] = np.where(is_made.to_numpy(), COMMIT, OTHER)
        told[:, MEMBER] = self._members.of(commits["member_id"])
        told[:, TOPIC_ID] = np.where(
            pc.is_valid(commits["topic_id"]).to_numpy(),
            self._topic_ids.of(commits["topic_id"]),
            UNKNOWN,
        )
        is_other = pc.fill_null(pc.equal(commits["cause"], TOPIC_RECREATED), fill_value=False)
        told[:, IS_OTHER_TOPIC] = is_other.to_numpy()
        told[:, HAS_GAP] = pc.invert(commits["complete"]).to_numpy()
        for place, name in (
            *((OFFSET, "committed_offset"), (ADVANCE, "advance")),
            *((AT, "effective_timestamp"), (EPOCH, "epoch")),
        ):
            told[:, place] = _numbers(commits[name])
        places = (_numbers(commits[name]) for name in ("coordinator_partition", "effective_offset"))
        is_undated = doubtful_times(self.clocks, *places) & is_made.to_numpy()
        self._is_undated[numbers[is_undated]] = True
        moves = np.empty((commits.num_rows, MOVED), np.int64)
        flat = told.reshape(-1)
        count = fold_moves(len(flat), flat, self._kept, self._rules(), moves)
        if count:
            self._moves.append(self._named(commits, moves[:count]))

    def progress(self) -> pa.Table:
        """Return what was seen of each partition.

        Returns:
            `group_id`, `topic`, `partition`; `commits`, `unchanged_commits` (of the offset that was
            in force already), `rewinds`, `jumps`, `advanced` (records forward, steps back left
            out); `timed_commits` and `timed_advanced`: those that have a time, and what they
            advanced by behind the first of them; `first_commit_at`, `last_commit_at`,
            `last_advance_at` (null where none advanced);
            `since_at` and `since_offset`: the offset in force when the trend begins;
            `highest_committed` for the topic of the last commit's id; `first_committed` and its
            `first_epoch`; `has_gaps`, whether commits may be missing before any of them, and
            `has_later_gaps`, before any but the first that has a time; `is_undated`, whether the
            times of some measure nothing.
        """
        self._grow()
        kept = self._kept.reshape(-1, KEPT)
        rows = self.keys.named()
        for name, place in _COUNTED.items():
            rows = rows.append_column(name, pa.array(kept[:, place]))
        # Records of the oldest message format have no time.
        is_timed = kept[:, TIMED] > 0
        for name, place in _TIMES.items():
            rows = rows.append_column(name, _times(np.where(is_timed, kept[:, place], UNKNOWN)))
        since = kept[:, SINCE_OFFSET]
        rows = rows.append_column("since_offset", pa.array(since, mask=since == UNKNOWN))
        for name, place in _FOUND.items():
            found = kept[:, place]
            rows = rows.append_column(name, pa.array(found, mask=found == UNKNOWN))
        rows = rows.append_column("has_gaps", pa.array(kept[:, GAPS] > 0))
        has_later_gaps = kept[:, LATER_GAPS] > 0
        rows = rows.append_column("has_later_gaps", pa.array(has_later_gaps))
        rows = rows.append_column("is_undated", pa.array(self._is_undated))
        # By how much offsets advanced between commits of which some may be missing nobody knows.
        place = rows.column_names.index("advanced")
        advanced = pa.array(kept[:, ADVANCED], mask=has_later_gaps)
        rows = rows.set_column(place, "advanced", advanced)
        return rows.filter(pc.greater(rows["commits"], 0))

    def moves(self) -> pa.Table:
        """Return steps back and jumps forward, in the order of the log (`MOVES`)."""
        return pa.concat_tables([MOVES.empty_table(), *self._moves])

    def _rules(self) -> _Numbers:
        rules = np.zeros(3, np.int64)
        rules[TIMES] = self.rules.times
        rules[RECORDS] = self.rules.records
        rules[AFTER] = self.rules.after
        return rules

    def _grow(self) -> None:
        known = len(self._kept) // KEPT
        new = self.keys.count - known
        if new:
            kept = np.zeros((new, KEPT), np.int64)
            first, _ = self.samples.of_keys(self.keys.named(known))
            kept[:, SINCE_AT] = _MICROS * self.since_ms
            if len(self.samples.times):
                sampled = np.minimum(first, len(self.samples.times) - 1)
                since = np.maximum(self.samples.times[sampled], self.since_ms)
                kept[:, SINCE_AT] = _MICROS * since
            kept[:, FIRST_AT] = END_OF_TIME
            untold = [LAST_AT, LAST_ADVANCE_AT, LAST_EPOCH, LAST_MEMBER, SINCE_OFFSET]
            untold += [HIGHEST, LAST_TOPIC_ID]
            kept[:, untold] = UNKNOWN
            self._kept = np.concatenate([self._kept, kept.reshape(-1)])
            self._is_undated = np.append(self._is_undated, np.zeros(new, np.bool_))

    def _named(self, commits: pa.Table, moves: _Numbers) -> pa.Table:
        rows = commits.take(pa.array(moves[:, MOVED_ROW]))
        epochs, members = moves[:, MOVED_EPOCH], moves[:, MOVED_MEMBER]
        before = pa.array(np.maximum(members, 0), mask=members == UNKNOWN)
        is_forward = pc.greater(rows["advance"], 0)
        columns = {
            **{name: rows[name] for name in rows.column_names},
            "kind": pc.if_else(is_forward, "jump", "rewind"),
            "previous_at": _times(moves[:, MOVED_AT]),
            "previous_epoch": pa.array(epochs, mask=epochs == UNKNOWN),
            "previous_member_id": self._members.array().take(before),
        }
        cast = [pc.cast(columns[each.name], each.type) for each in MOVES]
        return pa.table(cast, schema=MOVES)


def _numbers(column: pa.ChunkedArray) -> _Numbers:
    """Return numbers, `UNKNOWN` for null; of times their microseconds."""
    whole = column.combine_chunks()
    if pa.types.is_timestamp(whole.type):
        whole = whole.view(pa.int64())
    if whole.null_count:
        whole = pc.fill_null(pc.cast(whole, pa.int64()), UNKNOWN)
    found: _Numbers = whole.to_numpy()
    return found


def _times(micros: _Numbers) -> pa.Array:
    return pc.cast(pa.array(micros, mask=micros == UNKNOWN), _TIME)
