"""What took an offset away or back, or put it under another topic, by the log that survived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.timeline.history import COMMITS, DELETE, OffsetHistory
from analytics.questions.timeline.words import (
    BELOW_ZERO,
    CANNOT_TELL,
    HIGH,
    OF_CAUSE,
    PLACE,
    RECREATED,
    REWOUND,
    TOPIC_DELETED,
    Place,
    Row,
    Verdict,
    record_of,
    verdict_row,
)

LOST_BY_ELECTION, REWOUND_BY_MEMBER = "lost_by_election", "rewound_by_member"
FEWEST_STEPS = 2
"""So many steps back to the same offset, with progress between them, tell two writers."""

WHOSE_OF = "which of the {} members committed it stands in no record"
TWO_WRITERS = (
    "two writers: {} steps back to exactly {} while other commits went on; who committed stands in "
    "no record"
)
_OTHER_RECORDS = (TOPIC_DELETED, RECREATED)
"""After these the same offset is another record: nothing is read again."""


def happenings(history: OffsetHistory) -> list[Verdict]:
    """Return a verdict for each deletion, step back, commit below 0, and for a topic born again."""
    rows = history.rows
    deleted = pc.equal(rows["event"], DELETE)
    found = [_deletion(history, index) for index in history.where(deleted)]
    went_back = pc.and_(pc.invert(deleted), pc.less(rows["advance"], 0))
    back = history.where(went_back)
    frozen = frozen_offsets(history, back)
    found += [_step_back(history, index, frozen.get(index, 0)) for index in back]
    is_none = pc.and_(
        pc.is_in(rows["event"], pa.array(COMMITS)), pc.is_null(rows["committed_offset"])
    )
    found += [_below_zero(history, index) for index in history.where(is_none)]
    return found + list(_born_again(history))


def _below_zero(history: OffsetHistory, index: int) -> Verdict:
    """Say of a commit of an offset below 0 that since then there is none."""
    row = history.at(index)
    return _row(
        history.place_of(index),
        row,
        BELOW_ZERO,
        became=None,
        confidence=HIGH,
        reason=f"{row['stored_offset']} is no offset to Kafka's clients and tools: a consumer goes "
        "where auto.offset.reset says",
    )


def _deletion(history: OffsetHistory, index: int) -> Verdict:
    row, after = history.at(index), history.next_commit(index)
    verdict, was = OF_CAUSE.get(row["cause"] or "unknown", CANNOT_TELL), row["previous_offset"]
    first = None if after is None else after["committed_offset"]
    is_read_again = was is not None and first is not None and first < was
    reason = "it was deleted, and the dump does not show by what" if verdict == CANNOT_TELL else ""
    if first is not None:
        reason = f"{reason}; then {first} was committed".removeprefix("; ")
    return _row(
        history.place_of(index),
        row,
        verdict,
        committed_at=_committed_at(history, index),
        became=None,
        cost=was - first if is_read_again and verdict not in _OTHER_RECORDS else None,
        reason=reason or None,
    )


def _committed_at(history: OffsetHistory, index: int) -> datetime | None:
    """Return when what a deletion removed took effect; None where the dump does not show it."""
    row, place = history.at(index), history.place_of(index)
    before = history.before(place, row["effective_offset"])
    if before is None or before["committed_offset"] != row["previous_offset"]:
        return None
    at: datetime | None = before["effective_timestamp"]
    return at


def frozen_offsets(history: OffsetHistory, back: Sequence[int]) -> dict[int, int]:
    """Return steps back to one and the same offset, while other commits go on, and how many.

    A member whose position stands still commits it again and again; others go on from theirs.
    """
    rows = history.rows.take(pa.array(back, pa.int64()))
    told = pl.DataFrame(
        {
            "index": back,
            **{name: pl.from_arrow(rows[name]) for name in (*PLACE, "committed_offset")},
            "previous": pl.from_arrow(rows["previous_offset"]),
            "members": pl.from_arrow(rows["group_members"]),
            "cause": pl.from_arrow(rows["cause"]),
        }
    ).filter((pl.col("cause") == REWOUND_BY_MEMBER) & (pl.col("members") != 1))
    of_one = [*PLACE, "committed_offset"]
    grown = (pl.col("previous").max().over(of_one)) > pl.col("previous").min().over(of_one)
    told = told.filter((pl.len().over(of_one) >= FEWEST_STEPS) & grown)
    counts = told.select("index", pl.len().over(of_one).alias("steps"))
    return dict(zip(counts["index"].to_list(), counts["steps"].to_list(), strict=True))


def _step_back(history: OffsetHistory, index: int, frozen: int = 0) -> Verdict:
    row = history.at(index)
    verdict = OF_CAUSE.get(row["cause"] or "unknown", CANNOT_TELL)
    reason = None
    if verdict == CANNOT_TELL:
        reason = "it went back, and the dump does not show who committed it"
    if verdict == REWOUND and row["group_members"] not in {1, None}:
        reason = WHOSE_OF.format(row["group_members"])
    if frozen:
        reason = TWO_WRITERS.format(frozen, row["committed_offset"])
    if row["cause"] == LOST_BY_ELECTION:
        reason = "an unclean election of the topic's partition may have cost it these records"
    return _row(
        history.place_of(index),
        row,
        verdict,
        became=row["committed_offset"],
        cost=None if verdict in _OTHER_RECORDS else -row["advance"],
        reason=reason,
    )


def _born_again(history: OffsetHistory) -> Iterator[Verdict]:
    """Yield commits that did not go back, but name another id of the topic than the one before."""
    for index in history.where(_names_another_id(history)):
        before, row = history.at(index - 1), history.at(index)
        yield _row(
            history.place_of(index),
            row,
            RECREATED,
            became=row["committed_offset"],
            cost=None,
            reason=f"id {before['topic_id']} became {row['topic_id']}",
            confidence=HIGH,
        )


def _names_another_id(history: OffsetHistory) -> pa.ChunkedArray:
    """Return for each change whether it names another id of its topic than the one before."""
    rows = history.rows
    # What is known to go on from a commit has that commit before it: it is of the same place.
    goes_on = pc.greater_equal(rows["advance"], 0)
    ids = rows["topic_id"].combine_chunks()
    before = pa.concat_arrays([pa.nulls(min(1, len(ids)), ids.type), ids[:-1]])
    return pc.and_(goes_on, pc.not_equal(ids, before))


def _row(place: Place, change: Row, verdict: str, **columns: object) -> Verdict:
    return verdict_row(
        place,
        verdict,
        at=change["effective_timestamp"],
        was=change["previous_offset"],
        record=record_of(change, change["effective_offset"]),
        **{"confidence": change["confidence"], **columns},
    )


def incomplete(history: OffsetHistory) -> dict[Place, Row]:
    """Return the last change of each place before which records are lost."""
    gaps: Iterable[int] = history.where(pc.invert(pc.fill_null(history.rows["complete"], True)))  # noqa: FBT003
    return {history.place_of(index): history.at(index) for index in gaps}
