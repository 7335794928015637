"""The lag of each partition, and what that one number hides.

Kafka's tools print end - committed, whatever lies between: records that retention has deleted
meanwhile, an offset beyond the end, an offset that was committed for another topic of that name.
Here each is a number of its own, and nothing is clamped:

    lag = offsets_below_start + records_to_read - offsets_beyond_end
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.read_partitions import NEVER_COMMITTED

NO_END: Final = "where the log ends at that instant is not known"
FROM_START: Final = "never committed: counted from the log start"
BELOW_ZERO: Final = "an offset below 0 was committed, which is none: counted from the log start"
REMOVED: Final = "its offset was removed: counted from the log start"
NO_START: Final = "never committed, and where the log starts is not known"
NOT_TOLD: Final = "a record that is missing from the dump may have changed it"
BETWEEN: Final = "whether anything was left to read: the log ended, by its time index, between"
INTERPOLATED: Final = "the end is interpolated: by the log's time index it was between"
OTHER_LOG: Final = "committed for another topic of that name: the offset belongs to another log"

_ZERO: Final = pa.scalar(0, pa.int64())
_NONE: Final = pa.scalar(None, pa.int64())


def partition_lag(rows: pa.Table, ends: pa.Table, topics: pa.Table) -> pa.Table:
    """Add where logs start and end, and the lag.

    Args:
        rows: As `read_partitions` returns them.
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset` at the instant, and where
            that is interpolated `log_end_bound`, `log_end_least`, `log_end_most`.
        topics: The table `topics`: `topic`, `topic_id`, `deleted_at`.

    Returns:
        The rows with `log_start_offset`, `log_end_offset`; `lag` (Kafka's number; of a partition
        that was never committed what its log holds; below zero only where the commit is beyond the
        end); `offsets_below_start`, `records_to_read`, `offsets_beyond_end`; `is_other_log`; and
        `reason`, why a number is null or counted otherwise.
    """
    rows = rows.join(_bounded(ends), ["topic", "partition"])
    start, end = rows["log_start_offset"], rows["log_end_offset"]
    is_other = _is_other_log(rows, topics)
    is_untold = pc.invert(pc.fill_null(rows["complete"], fill_value=True))
    is_never = pc.and_(pc.equal(rows["kind"], NEVER_COMMITTED), pc.invert(is_untold))
    told = pc.if_else(is_untold, _NONE, rows["committed_offset"])
    rows = rows.set_column(rows.column_names.index("committed_offset"), "committed_offset", told)
    is_unsure = _may_be_at_end(rows, told)
    position = pc.if_else(pc.or_(is_other, is_unsure), _NONE, pc.if_else(is_never, start, told))
    readable_from = pc.max_element_wise(position, start, skip_nulls=True)
    readable_from = pc.if_else(pc.is_valid(position), readable_from, _NONE)
    columns = {
        "lag": pc.subtract(end, position),
        "offsets_below_start": _at_least_0(pc.subtract(start, position)),
        "records_to_read": pc.if_else(
            pc.and_(pc.is_null(start), pc.greater(end, readable_from)),
            _NONE,
            _at_least_0(pc.subtract(end, readable_from)),
        ),
        "offsets_beyond_end": _beyond(position, start, end),
        "is_other_log": is_other,
        "reason": pc.case_when(
            pc.make_struct(
                is_untold,
                is_other,
                is_unsure,
                pc.is_null(end),
                pc.and_(is_never, pc.is_null(start)),
                pc.and_(is_never, pc.is_valid(rows["commit_timestamp"])),
                is_never,
                pc.is_valid(rows["log_end_least"]),
            ),
            pc.coalesce(rows["missing"], NOT_TOLD),
            OTHER_LOG,
            pc.binary_join_element_wise(
                BETWEEN, _text(rows["log_end_least"]), "and", _text(rows["log_end_most"]), " "
            ),
            NO_END,
            NO_START,
            BELOW_ZERO,
            FROM_START,
            pc.binary_join_element_wise(
                INTERPOLATED, _text(rows["log_end_least"]), "and", _text(rows["log_end_most"]), " "
            ),
            pa.scalar(None, pa.string()),
        ),
    }
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows


def _bounded(ends: pa.Table) -> pa.Table:
    """Return ends with how sure they are; those that say nothing of it are what they say."""
    if "log_end_bound" in ends.column_names:
        return ends
    number = pa.nulls(ends.num_rows, pa.int64())
    bound = pc.if_else(pc.is_valid(ends["log_end_offset"]), "exact", pa.scalar(None, pa.string()))
    ends = ends.append_column("log_end_bound", bound)
    return ends.append_column("log_end_least", number).append_column("log_end_most", number)


def _may_be_at_end(rows: pa.Table, committed: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whether an offset lies where an interpolated end may be."""
    is_between = pc.and_(
        pc.greater_equal(committed, rows["log_end_least"]),
        pc.less_equal(committed, rows["log_end_most"]),
    )
    return pc.fill_null(is_between, fill_value=False)


def _beyond(
    position: pa.ChunkedArray, start: pa.ChunkedArray, end: pa.ChunkedArray
) -> pa.ChunkedArray:
    """Return how far positions are beyond the end; a log whose end is not known has none."""
    until = pc.if_else(pc.is_valid(end), pc.max_element_wise(end, start), _NONE)
    return _at_least_0(pc.subtract(position, until))


def _text(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(numbers, pa.string())


def _at_least_0(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.less(numbers, _ZERO), _ZERO, numbers)


def _is_other_log(rows: pa.Table, topics: pa.Table) -> pa.ChunkedArray:
    """Return whether an offset was committed for an id that the topic of that name has no more.

    (KIP-516). False where either id is not known, or several are.
    """
    there = topics.filter(
        pc.and_(pc.is_null(topics["deleted_at"]), pc.is_valid(topics["topic_id"]))
    )
    ids = there.group_by("topic").aggregate([("topic_id", "count_distinct"), ("topic_id", "max")])
    one = ids.filter(pc.equal(ids["topic_id_count_distinct"], 1))
    named = pc.index_in(rows["topic"], one["topic"].combine_chunks())
    now = one["topic_id_max"].combine_chunks().take(named.combine_chunks())
    return pc.fill_null(pc.not_equal(rows["topic_id"], now), fill_value=False)
