"""The table `committers`: who commits how often, and what a longer interval would save."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from analytics.questions.usage.keys.key_fold import (
    KEY_PLACE,
    RECORDS,
    SEEN,
    SEEN_BYTES,
    SEEN_FROM,
    TOMBSTONES,
    UNCHANGED,
)
from analytics.questions.usage.keys.key_states import COMMITS
from analytics.time_columns import times_of
from schemas import table as contract

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.questions.usage.keys.key_states import KeyStates, Kind, Place
    from schemas.usage_rules import UsageRules

DAY_MS: Final = 86_400_000
_NO_TIME: Final = np.iinfo(np.int64).max


def committers(
    states: KeyStates,
    now_ms: Mapping[Place, int],
    rules: UsageRules,
    interval_ms: int | None = None,
) -> pa.Table:
    """Return who commits, the most bytes a day first.

    Compaction takes commits away: rates are of the time behind what it has seen, of which every
    record is there. That time begins with the partition's first such record, of whatever group.

    Args:
        states: What is known of keys.
        now_ms: The end of the log by partition.
        rules: The interval to compare with, and from when on a rate is told.
        interval_ms: Another interval to compare with.
    """
    interval_ms = interval_ms or round(rules.interval_seconds * 1000)
    rows = states.rows
    number = states.partition_of(rows[:, KEY_PLACE])
    kinds: list[Kind] = states.kinds.names  # type: ignore[assignment]
    places: list[Place] = states.places.names  # type: ignore[assignment]
    since = _since(rows, number, len(places))
    now = np.array([now_ms.get(each, -1) for each in places], np.int64)
    observed = np.where((since == _NO_TIME) | (now < since), -1, now - since)
    is_commit = np.array([each.table == COMMITS for each in kinds], np.bool_)
    chosen = is_commit[states.kind_of(rows[:, KEY_PLACE])] if len(rows) else np.zeros(0, np.bool_)
    rows, number = rows[chosen], number[chosen]
    saved = _saved(rows, observed[number], interval_ms)
    rows, number, saved = _at_home(states, rows, number, saved)
    group = states.group_of(rows[:, KEY_PLACE])
    first = np.flatnonzero(np.diff(group, prepend=-1))
    found = _summed(rows, saved, first, observed[number[first]], rules)
    table = pa.table(
        {
            "group_id": pa.array(states.groups.names, pa.string()).take(pa.array(group[first])),
            "partition": pa.array(
                [places[each].partition for each in number[first].tolist()], pa.int32()
            ),
            "observed_from": _time(since[number[first]]),
            "wanted_interval_ms": pa.array(np.full(first.size, interval_ms, np.int64)),
            **found,
        }
    )
    if states.lacks_bytes:
        for name in _BYTES:
            none = pa.nulls(table.num_rows, pa.int64())
            table = table.set_column(table.column_names.index(name), name, none)
    return table.select([each.name for each in contract("committers").columns]).sort_by(
        [("bytes_per_day", "descending"), ("commits", "descending"), ("group_id", "ascending")]
    )


_BYTES: Final = ("bytes", "bytes_per_day", "saved_bytes_per_day")


def _since(rows: NDArray[np.int64], number: NDArray[np.int64], places: int) -> NDArray[np.int64]:
    """Return by partition the time of its first record behind which all are there."""
    since = np.full(places, _NO_TIME, np.int64)
    timed = rows[:, SEEN_FROM] >= 0
    np.minimum.at(since, number[timed], rows[timed, SEEN_FROM])
    return since


def _saved(
    rows: NDArray[np.int64], observed: NDArray[np.int64], interval_ms: int
) -> NDArray[np.int64]:
    """Return how many commits of each key one an interval would spare."""
    wanted = np.where(observed >= 0, observed // interval_ms + 1, _NO_TIME)
    found: NDArray[np.int64] = np.maximum(rows[:, SEEN] - wanted, 0)
    return found


def _at_home(
    states: KeyStates,
    rows: NDArray[np.int64],
    number: NDArray[np.int64],
    saved: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return keys by group, of each group those in one partition.

    A group has one partition; where a topic was made anew with others, the last one counts.
    """
    group = states.group_of(rows[:, KEY_PLACE])
    order = np.lexsort((number, group))
    group, number = group[order], number[order]
    last = np.append(np.flatnonzero(np.diff(group)), order.size - 1)
    sizes = np.diff(last, prepend=-1)
    home = np.repeat(number[last], sizes) if order.size else number
    kept = order[number == home]
    return rows[kept], number[number == home], saved[kept]


def _summed(
    rows: NDArray[np.int64],
    saved: NDArray[np.int64],
    first: NDArray[np.int64],
    observed: NDArray[np.int64],
    rules: UsageRules,
) -> dict[str, pa.Array]:
    """Return what the keys of each group add up to."""

    def total(values: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = np.add.reduceat(values, first) if first.size else values[:0]
        return found

    seen = rows[:, SEEN]
    commits, size = total(seen), total(rows[:, SEEN_BYTES])
    offsets = total((seen > 0).astype(np.int64))
    all_commits = total(rows[:, RECORDS] - rows[:, TOMBSTONES])
    unchanged = total(rows[:, UNCHANGED])
    # Bytes of what is spared: each key's commits are taken to be of one size.
    spared = total(saved * rows[:, SEEN_BYTES] // np.maximum(seen, 1))
    is_short = observed < rules.observed_seconds * 1000
    time = np.maximum(observed, 1)
    interval = np.round(observed * offsets / np.maximum(commits, 1)).astype(np.int64)
    return {
        "offsets": pa.array(offsets),
        "commits": pa.array(commits),
        "bytes": pa.array(size),
        "observed_ms": pa.array(observed, mask=observed < 0),
        "commits_per_second": pa.array(commits * 1000 / time, mask=is_short),
        "bytes_per_day": pa.array(_a_day(size, time), mask=is_short),
        "interval_ms": pa.array(interval, mask=is_short | (commits == 0)),
        "unchanged_commits": pa.array(unchanged),
        "unchanged_share": pa.array(unchanged / np.maximum(all_commits, 1), mask=all_commits == 0),
        "saved_commits": pa.array(total(saved)),
        "saved_bytes_per_day": pa.array(_a_day(spared, time), mask=is_short),
    }


def _a_day(size: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.round(size * float(DAY_MS) / time).astype(np.int64)
    return found


def _time(milliseconds: NDArray[np.int64]) -> pa.Array:
    return times_of(milliseconds, milliseconds == _NO_TIME)
