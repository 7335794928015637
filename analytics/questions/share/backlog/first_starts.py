"""What a share group has no delivery on record of, of a partition taken on later than its topic.

A share partition that is initialised without a start offset begins where `share.auto.offset.reset`
says, at the end of the log if nothing else is set (``SharePartition.maybeInitialize``). A group
that has shared a topic for long, and gets a new partition of it, so passes over what was written
there before (KIP-1327). No delivery of what lies below its first start offset was ever stored. What
was handed out before the first write, and forgotten with the leader, no record tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.share.places import AFTER_ALL, places_in
from analytics.questions.share.settings import ALWAYS, ASSUMED, DYNAMIC, EARLIEST, OFFSET_RESET
from analytics.questions.share.state_log.share_log import KEY, begins
from analytics.replay.share.share_records import SNAPSHOT, TOMBSTONE

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from analytics.questions.share.settings import ShareSettings
    from analytics.questions.share.state_log.share_log import ShareLog

    Numbers = NDArray[np.int64]

BELOW_FIRST: Final = (
    "of offsets {} to {} it has no delivery on record, though it shared the topic in an earlier "
    "epoch: {}"
)
BY_TOOL: Final = "its state was made with a start offset, which tools do"
OTHERWISE: Final = (
    "share.auto.offset.reset is earliest, so something else set its start, or that is newer"
)
NOT_THEN: Final = "share.auto.offset.reset was set later, and what it was then is not known"
_NONE: Final = -1
_SOURCES: Final = {
    ASSUMED: "Kafka's default, assumed",
    DYNAMIC: "from the metadata log",
}
_GIVEN: Final = "from the settings given"


def with_first_starts(
    rows: pa.Table, log: ShareLog, settings: ShareSettings, lacking: Collection[int] = ()
) -> pa.Table:
    """Add `offsets_below_first`, `is_later_partition` and `offset_reset`, and say what follows.

    Args:
        rows: `KEY`, `coordinator_partition`, `log_start_offset`, `phase`, `complete`, `reason`.
        log: The records up to the instant.
        settings: What groups go by.
        lacking: Internal partitions of which the dump lacks records.
    """
    rows = rows.combine_chunks()
    place = places_in(log.shares.select(list(KEY)), rows, KEY)
    first, epoch, made = _first_starts(log)
    lacks = pc.is_in(rows["coordinator_partition"], pa.array(list(lacking), pa.int32()))
    is_whole = pc.and_(rows["complete"], pc.invert(pc.fill_null(lacks, fill_value=True)))
    known = (place >= 0) & is_whole.to_numpy(zero_copy_only=False)
    start, began, is_made = (
        np.where(known, np.append(each, _NONE)[place], _NONE) for each in (first, epoch, made)
    )
    log_start = pc.fill_null(rows["log_start_offset"], _NONE).to_numpy()
    has_both = (start >= 0) & (log_start >= 0)
    below = pa.array(np.maximum(start - log_start, 0), mask=~has_both)
    rows = rows.append_column("offsets_below_first", below)
    is_later = _is_later(rows, _least_epochs(log, place), began)
    rows = rows.append_column("is_later_partition", is_later)
    values, sources, since = settings.columns(rows["group_id"], OFFSET_RESET, pa.string())
    rows = rows.append_column("offset_reset", values)
    rows = rows.append_column("offset_reset_source", sources)
    when = np.where(known, np.append(log.at[_firsts(log)], _NONE)[place], _NONE)
    is_newer = pa.array((since.to_numpy() != ALWAYS) & (since.to_numpy() > when))
    how = _how(values, sources, is_newer, pa.array(is_made == 1))
    return _told(rows, pa.array(start), how)


def _lives(log: ShareLog) -> Numbers:
    """Number the lives of share partitions: a tombstone ends one."""
    gone = np.zeros(log.share.size, np.bool_)
    gone[1:] = log.kind[:-1] == TOMBSTONE
    lives: Numbers = np.cumsum(begins(log.share) | gone) - 1
    return lives


def _firsts(log: ShareLog) -> Numbers:
    """Return by share partition the place of the first record of its last life."""
    first = np.full(log.shares.num_rows, 0)
    starts = np.flatnonzero(begins(_lives(log)))
    first[log.share[starts]] = starts
    return first


def _first_starts(log: ShareLog) -> tuple[Numbers, Numbers, Numbers]:
    """Return by share partition its first start offset, first epoch, and whether a tool made it.

    All are -1 where the log does not have the state's beginning.
    """
    count, first = log.shares.num_rows, _firsts(log)
    found = np.full(count, AFTER_ALL)
    lives = _lives(log)
    is_last_life = lives == lives[first][log.share]
    has_start = np.flatnonzero(is_last_life & (log.start >= 0) & (log.kind != TOMBSTONE))[::-1]
    found[log.share[has_start]] = log.start[has_start]
    began = first.copy()
    began[log.share[has_start]] = has_start
    # A state is numbered from 0 on; one that begins with another number began before the log does.
    is_told = (log.kind[first] == SNAPSHOT) & (log.snapshot_epoch[first] == 0)
    has_ranges = np.bincount(log.ranges.key, minlength=log.share.size)[began] > 0
    is_made = (log.kind[began] == SNAPSHOT) & (log.leader_epoch[began] <= 0) & ~has_ranges
    return (
        np.where(is_told & (found != AFTER_ALL), found, _NONE),
        np.where(is_told, log.state_epoch[first], _NONE),
        np.where(is_told, is_made.astype(np.int64), _NONE),
    )


def _least_epochs(log: ShareLog, place: Numbers) -> Numbers:
    """Return by row the least state epoch that is on record of it: it had state by then."""
    lives = _lives(log)
    is_last_life = lives == lives[_firsts(log)][log.share]
    least = np.full(log.shares.num_rows + 1, AFTER_ALL)
    says = is_last_life & (log.kind == SNAPSHOT)
    np.minimum.at(least, log.share[says], log.state_epoch[says])
    return least[place]


def _is_later(rows: pa.Table, least: Numbers, began: Numbers) -> pa.Array:
    """Return whether another partition of the topic had state in an earlier epoch of the group.

    Null where the beginning is not known; nor is it where no epochs are kept (4.0: all are 0).
    """
    claimed = pc.not_equal(rows["phase"], "orphan").to_numpy(zero_copy_only=False)
    names = ["group_id", "topic_id"]
    keyed = rows.select(names).append_column("least", pa.array(np.where(claimed, least, AFTER_ALL)))
    keyed = keyed.append_column("row", pa.array(np.arange(rows.num_rows)))
    of_topic = keyed.group_by(names).aggregate([("least", "min")])
    joined = keyed.join(of_topic, names).sort_by("row")["least_min"].to_numpy()
    return pa.array(joined < began, mask=began <= 0)


def _how(values: pa.Array, sources: pa.Array, is_newer: pa.Array, is_made: pa.Array) -> pa.Array:
    """Return why a share partition began where it did, in words."""
    known = pa.array(list(_SOURCES))
    words = pc.fill_null(
        pa.array(list(_SOURCES.values())).take(pc.index_in(sources, known)), _GIVEN
    )
    said = pc.binary_join_element_wise("share.auto.offset.reset is ", values, " (", words, ")", "")
    cases = pc.make_struct(is_made, is_newer, pc.equal(values, EARLIEST))
    return pc.case_when(cases, BY_TOOL, NOT_THEN, OTHERWISE, said)


def _told(rows: pa.Table, start: pa.Array, how: pa.Array) -> pa.Table:
    """Put what was passed over before other reasons."""
    is_later, below, log_start, reason = (
        rows[name].combine_chunks()
        for name in ("is_later_partition", "offsets_below_first", "log_start_offset", "reason")
    )
    passed = pc.and_(is_later, pc.greater(below, 0))
    before, between, after, _ = BELOW_FIRST.split("{}")
    begin = pc.cast(log_start, pa.string())
    last = pc.cast(pc.subtract(start, 1), pa.string())
    said = pc.binary_join_element_wise(before, begin, between, last, after, how, "")
    both = pc.coalesce(pc.binary_join_element_wise(said, reason, "; "), said)
    reason = pc.if_else(pc.fill_null(passed, fill_value=False), both, reason)
    return rows.set_column(rows.column_names.index("reason"), "reason", reason)
