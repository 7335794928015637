"""Since when start offsets stand still while there are records to deliver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from analytics.questions.share.backlog.progress import NO_RECORD, progress
from analytics.questions.share.places import places_in
from analytics.questions.share.state_log.share_log import KEY, NO_TIME
from analytics.questions.share.state_log.window import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from analytics.questions.share.state_log.share_log import ShareLog
    from analytics.replay.log.log_clocks import LogClock
    from analytics.replayed.end_offset_samples import EndOffsetSamples

    Flags = NDArray[np.bool_]
    Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Stalls:
    """For each share partition, in epoch milliseconds; -1 where nothing tells.

    Attributes:
        moved_at: When the last offset before the next one was dealt with.
        is_moved_exact: Whether that is when it was; else it may have been earlier.
        since: From then on nothing moved and there were records to deliver.
        is_since_exact: Whether it began then; else it may have begun earlier.
        is_unmeasured: A clock of the log was set since, or was wrong: nothing tells how long that
            is.
    """

    moved_at: Numbers
    is_moved_exact: NDArray[np.bool_]
    since: Numbers
    is_since_exact: NDArray[np.bool_]
    is_unmeasured: NDArray[np.bool_]


def stalls(
    rows: pa.Table, log: ShareLog, samples: EndOffsetSamples, clocks: Mapping[int, LogClock]
) -> Stalls:
    """Return since when start offsets stand.

    Args:
        rows: Share partitions: `group_id`, `topic_id`, `topic`, `partition`, `next_offset`.
        log: The records up to the instant.
        samples: Where logs ended, and when.
        clocks: By partition of `__share_group_state`, where its clocks were set or wrong.
    """
    place = places_in(log.shares.select(list(KEY)), rows, KEY)
    here = place >= 0
    following = np.full(log.shares.num_rows, NONE)
    wanted = pc.fill_null(rows["next_offset"], NONE).to_numpy()
    following[place[here]] = wanted[here]
    found = progress(log, following)
    moved, beyond, first, told = (
        np.where(here, np.append(each, NO_RECORD)[place], NO_RECORD)
        for each in (found.moved, found.beyond, found.first, found.is_told)
    )
    moved_at, beyond_at = _times(log, moved), _times(log, beyond)
    is_exact = (moved != NO_RECORD) & ((moved != first) | (told == 1))
    seen = _first_samples_beyond(rows, wanted, samples)
    # What is stored there was in the log: the earlier of both shows that there was something.
    shown = np.where(beyond_at == NONE, seen, beyond_at)
    shown = np.where(seen == NONE, shown, np.minimum(shown, seen))
    known = (moved_at != NONE) & (shown != NONE)
    # The later of two times is only known where one clock wrote both.
    is_unmeasured = _is_set_since(log, moved, clocks) | _is_wrong(log, beyond, clocks)
    since = np.where(known & ~is_unmeasured, np.maximum(moved_at, shown), NONE)
    is_since_exact = is_exact & known & (moved_at >= shown)
    return Stalls(moved_at, is_exact, since, is_since_exact, is_unmeasured)


def _is_set_since(log: ShareLog, record: Numbers, clocks: Mapping[int, LogClock]) -> Flags:
    """Return behind which records a clock was set, or which a wrong one wrote."""
    home, offset = _places(log, record)
    found = _is_wrong(log, record, clocks)
    for number, clock in clocks.items():
        last = max((last for _, last in clock.unexplained), default=NONE)
        found |= (home == number) & (offset < last)
    return found


def _is_wrong(log: ShareLog, record: Numbers, clocks: Mapping[int, LogClock]) -> Flags:
    home, offset = _places(log, record)
    found = np.zeros(record.size, np.bool_)
    for number, clock in clocks.items():
        found |= (home == number) & clock.is_wrong(offset)
    return found


def _places(log: ShareLog, record: Numbers) -> tuple[Numbers, Numbers]:
    """Return the partition and the offset of records, both `NONE` of none."""
    home = np.append(log.shares["coordinator_partition"].to_numpy(), NONE)
    share = np.append(log.share, NONE)[record]
    return home[share], np.append(log.offset, NONE)[record]


def _times(log: ShareLog, record: Numbers) -> Numbers:
    at = np.append(log.at, NONE)[record]
    return np.where(at == NO_TIME, NONE, at)


def _first_samples_beyond(rows: pa.Table, wanted: Numbers, samples: EndOffsetSamples) -> Numbers:
    """Return when the end of the log was first seen beyond the next offset."""
    found = np.full(rows.num_rows, NONE)
    topics, partitions = rows["topic"].to_pylist(), rows["partition"].to_pylist()
    for row, key in enumerate(zip(topics, partitions, strict=True)):
        first, end = samples.places.get(key, (0, 0))
        beyond = np.flatnonzero(samples.ends[first:end] > wanted[row])
        if beyond.size and wanted[row] >= 0:
            found[row] = samples.times[first + beyond[0]]
    return found
