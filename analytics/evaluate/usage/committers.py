"""The table `committers`: who commits how often, and what a longer interval would save."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.evaluate.usage.contract_table import table_of
from analytics.evaluate.usage.key_fold import (
    KEY_PLACE,
    RECORDS,
    SEEN,
    SEEN_BYTES,
    SEEN_FROM,
    TOMBSTONES,
    UNCHANGED,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from analytics.evaluate.usage.key_states import KeyStates, Kind, Place
    from schemas.usage_rules import UsageRules

COMMITS: Final = "offset_commit"
DAY_MS: Final = 86_400_000
_NEVER: Final = np.iinfo(np.int64).max


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
    observed = np.where((since == _NEVER) | (now < since), -1, now - since)
    is_commit = np.array([each.table == COMMITS for each in kinds], np.bool_)
    chosen = is_commit[states.kind_of(rows[:, KEY_PLACE])] if len(rows) else np.zeros(0, np.bool_)
    rows, number = rows[chosen], number[chosen]
    saved = _saved(rows, observed[number], interval_ms)
    group = states.group_of(rows[:, KEY_PLACE])
    order = np.lexsort((number, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    found = []
    for chosen_rows in np.split(order, first[1:]) if order.size else ():
        # A group has one partition; where a topic was made anew with others, the last counts.
        home = int(number[chosen_rows[-1]])
        here = chosen_rows[number[chosen_rows] == home]
        row = _row(rows[here], saved[here], int(observed[home]), rules, interval_ms)
        place = places[home]
        found.append(
            {
                "group_id": states.groups.names[int(group[here[0]])],
                "partition": place.partition,
                "observed_from": None if since[home] == _NEVER else int(since[home]),
                **row,
            }
        )
    if states.lacks_bytes:
        found = [each | dict.fromkeys(_BYTES) for each in found]
    return table_of("committers", found).sort_by(
        [("bytes_per_day", "descending"), ("commits", "descending"), ("group_id", "ascending")]
    )


_BYTES: Final = ("bytes", "bytes_per_day", "saved_bytes_per_day")


def _since(rows: NDArray[np.int64], number: NDArray[np.int64], places: int) -> NDArray[np.int64]:
    """Return by partition the time of its first record behind which all are there."""
    since = np.full(places, _NEVER, np.int64)
    timed = rows[:, SEEN_FROM] >= 0
    np.minimum.at(since, number[timed], rows[timed, SEEN_FROM])
    return since


def _saved(
    rows: NDArray[np.int64], observed: NDArray[np.int64], interval_ms: int
) -> NDArray[np.int64]:
    """Return how many commits of each key one an interval would spare."""
    wanted = np.where(observed >= 0, observed // interval_ms + 1, _NEVER)
    found: NDArray[np.int64] = np.maximum(rows[:, SEEN] - wanted, 0)
    return found


def _row(
    rows: NDArray[np.int64],
    saved: NDArray[np.int64],
    observed: int,
    rules: UsageRules,
    interval_ms: int,
) -> dict[str, Any]:
    seen = rows[:, SEEN]
    commits, size = int(seen.sum()), int(rows[:, SEEN_BYTES].sum())
    all_commits = int((rows[:, RECORDS] - rows[:, TOMBSTONES]).sum())
    unchanged = int(rows[:, UNCHANGED].sum())
    offsets = int((seen > 0).sum())
    is_told = observed >= rules.observed_seconds * 1000
    # Bytes of what is spared: each key's commits are taken to be of one size.
    spared = float((saved * rows[:, SEEN_BYTES] / np.maximum(seen, 1)).sum())
    return {
        "offsets": offsets,
        "commits": commits,
        "bytes": size,
        "observed_ms": observed if observed >= 0 else None,
        "commits_per_second": commits * 1000 / observed if is_told else None,
        "bytes_per_day": round(size * DAY_MS / observed) if is_told else None,
        "interval_ms": round(observed * offsets / commits) if is_told and commits else None,
        "unchanged_commits": unchanged,
        "unchanged_share": unchanged / all_commits if all_commits else None,
        "wanted_interval_ms": interval_ms,
        "saved_commits": int(saved.sum()),
        "saved_bytes_per_day": round(spared * DAY_MS / observed) if is_told else None,
    }
