"""The table `share_steps`: in which order groups and the state of their partitions came and went.

KIP-932's table of operations: a group's metadata, member and partition record are written, then the
share coordinator stores a snapshot, then the group's partition record says that the state is there.
To remove state the partition record names it first; tombstones follow, then another partition
record. Of a whole group the tombstone of the partition record comes before that of the group.

The two topics are led by different brokers: what lies within `steps` of the rules of each other
counts as in order. What compaction or a loss may have taken is not held against anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.share.lifecycle.group_steps import group_steps
from analytics.questions.share.lifecycle.pictures import DELETING, INITIALIZED, INITIALIZING, NONE
from analytics.questions.share.lifecycle.state_acts import NO_TIME, StateActs
from analytics.time_columns import times_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.questions.share.lifecycle.pictures import Pictures
    from analytics.questions.share.lifecycle.state_acts import StepRecords

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

OUT_OF_ORDER, CANNOT_TELL, UNDER_WAY, IN_ORDER = (
    "out_of_order",
    "cannot_tell",
    "under_way",
    "in_order",
)
VERDICTS: Final = (OUT_OF_ORDER, CANNOT_TELL, UNDER_WAY, IN_ORDER)
INITIALIZE, DELETE_STATE = "initialize", "delete_state"
SKIPPED = "the group says that the state is there, and never said before that it was about to be"
LATE_STATE = "the state was first stored after the group said that it was there"
LATE_TOMBSTONE = "the state was removed after the group said that it was gone"
NOT_THERE = "the share coordinator's records of that time are not in the dump"
CLOCKS_DIFFER = "the clocks of its coordinators may differ"
CLOCK_WENT_BACK = "the clock of the group's coordinator went back between its records"
GIVEN_UP = "the group does not say that it was done"


@dataclass(frozen=True)
class _Acts:
    """One place for each: a thing that was in a phase in records that follow each other."""

    begin: Numbers
    end: Numbers  # the record after the last of them; NONE where there is none
    thing: Numbers


def share_steps(records: StepRecords, slack_ms: int) -> pa.Table:
    """Return the table without marks, what is out of order first.

    Args:
        records: What it is read off.
        slack_ms: Times of two topics that are no further apart are not in a wrong order.
    """
    found = [
        _initialized(records, slack_ms),
        _skipped(records),
        _deleted(records, slack_ms),
        group_steps(records),
    ]
    rows = pa.concat_tables([_table(each) for each in found])
    rank = pc.index_in(rows["verdict"], pa.array(VERDICTS))
    order = ["rank", "coordinator_partition", "began_offset", "topic_id", "partition"]
    rows = rows.append_column("rank", rank).sort_by([(each, "ascending") for each in order])
    return rows.drop_columns(["rank"])


def _acts(pictures: Pictures, phase: str) -> _Acts:
    """Return the stretches of records in which groups name things in a phase."""
    record, thing = pictures.named[phase]
    whose = pictures.group[record]
    order = np.lexsort((record, thing, whose))
    record, thing, whose = record[order], thing[order], whose[order]
    new = np.ones(record.size, np.bool_)
    new[1:] = (whose[1:] != whose[:-1]) | (thing[1:] != thing[:-1]) | (record[1:] > record[:-1] + 1)
    last = np.ones(record.size, np.bool_)
    last[:-1] = new[1:]
    return _Acts(record[new], pictures.after()[record[last]], thing[new])


def _at(pictures: Pictures, place: Numbers) -> Numbers:
    return np.where(place >= 0, pictures.at[np.maximum(place, 0)], NONE)


def _initialized(records: StepRecords, slack_ms: int) -> dict[str, object]:
    pictures = records.pictures
    acts = _acts(pictures, INITIALIZING)
    begun, ended = _at(pictures, acts.begin), _at(pictures, acts.end)
    is_done = pictures.names(INITIALIZED, acts.end, acts.thing)
    state = StateActs.of(records.log, pictures, pictures.group[acts.begin], acts.thing)
    latest = np.where(ended == NONE, NO_TIME, ended + slack_ms)
    stored, is_late = state.initialised(begun - slack_ms, latest)
    is_late &= _is_whole(records, acts)
    words = np.full(acts.begin.size, IN_ORDER, object)
    why = np.full(acts.begin.size, None, object)
    untold = is_done & (stored == NONE) & ~is_late
    words[untold], why[untold] = CANNOT_TELL, _why_untold(records)
    words[is_done & is_late], why[is_done & is_late] = OUT_OF_ORDER, LATE_STATE
    words[acts.end == NONE] = UNDER_WAY
    why[(acts.end >= 0) & ~is_done] = GIVEN_UP
    return _columns(records, acts, INITIALIZE, stored, words, why)


def _is_whole(records: StepRecords, acts: _Acts) -> Truths:
    """Return whether nothing after acts began can be missing, and times of two topics compare."""
    is_sure = records.is_state_whole and records.are_clocks_alike
    return records.is_whole_after(acts.begin) & is_sure


def _why_untold(records: StepRecords) -> str:
    return NOT_THERE if records.are_clocks_alike else CLOCKS_DIFFER


def _skipped(records: StepRecords) -> dict[str, object]:
    """Return what a group says has state that it did not say was about to get it."""
    pictures = records.pictures
    record, thing = pictures.named[INITIALIZED]
    before = pictures.before()[record]
    is_begin = (before == NONE) | pictures.is_tombstone[np.maximum(before, 0)]
    # Where nothing is known of before, the log must be whole from its very beginning on.
    is_whole = np.where(
        before == NONE,
        records.since(pictures.partition[record]) == 0,
        records.is_whole_after(before),
    )
    told = pictures.names(INITIALIZED, before, thing) | pictures.names(INITIALIZING, before, thing)
    chosen = np.flatnonzero(is_whole & (is_begin | ~told))
    acts = _Acts(record[chosen], record[chosen], thing[chosen])
    words = np.full(chosen.size, OUT_OF_ORDER, object)
    why = np.full(chosen.size, SKIPPED, object)
    return _columns(records, acts, INITIALIZE, np.full(chosen.size, NONE), words, why)


def _deleted(records: StepRecords, slack_ms: int) -> dict[str, object]:
    pictures = records.pictures
    acts = _acts(pictures, DELETING)
    begun, ended = _at(pictures, acts.begin), _at(pictures, acts.end)
    state = StateActs.of(records.log, pictures, pictures.group[acts.begin], acts.thing)
    latest = np.where(ended == NONE, NO_TIME, ended + slack_ms)
    removed, is_late = state.gone(begun - slack_ms, latest)
    is_late &= _is_whole(records, acts)
    words = np.full(acts.begin.size, IN_ORDER, object)
    why = np.full(acts.begin.size, None, object)
    untold = (removed == NONE) & ~is_late
    words[untold], why[untold] = CANNOT_TELL, _why_untold(records)
    words[is_late], why[is_late] = OUT_OF_ORDER, LATE_TOMBSTONE
    words[acts.end == NONE], why[acts.end == NONE] = UNDER_WAY, None
    return _columns(records, acts, DELETE_STATE, removed, words, why)


def _columns(
    records: StepRecords,
    acts: _Acts,
    act: str,
    state_at: Numbers,
    words: NDArray[np.object_],
    why: NDArray[np.object_],
) -> dict[str, object]:
    pictures = records.pictures
    things = pictures.things.take(pa.array(acts.thing))
    partition = things["partition"].combine_chunks()
    return {
        "group_id": pictures.group_ids.take(pa.array(pictures.group[acts.begin])),
        "topic_id": things["topic_id"],
        "topic": pc.coalesce(things["topic"], things["topic_id"]),
        "partition": pc.if_else(pc.less(partition, 0), None, partition),
        "act": act,
        "began_at": _at(pictures, acts.begin),
        "state_at": state_at,
        "ended_at": _at(pictures, acts.end),
        "verdict": words,
        "reason": why,
        "coordinator_partition": pictures.partition[acts.begin],
        "began_offset": pictures.offset[acts.begin],
        "ended_offset": np.where(acts.end >= 0, pictures.offset[np.maximum(acts.end, 0)], NONE),
    }


def _table(columns: Mapping[str, object]) -> pa.Table:
    """Return columns under the contract; of times and offsets `NONE` is null."""
    begun, ended = np.asarray(columns["began_at"]), np.asarray(columns["ended_at"])
    is_timed = (begun != NONE) & (ended != NONE)
    size = begun.size
    # What was first is told by times: not where the coordinator's clock went back meanwhile.
    is_back = is_timed & (ended < begun)
    for name, value in (("verdict", CANNOT_TELL), ("reason", CLOCK_WENT_BACK)):
        columns = {**columns, name: np.where(is_back, value, np.asarray(columns[name], object))}
    texts = {
        name: pa.array(np.asarray(columns[name]).tolist(), pa.string())
        for name in ("verdict", "reason")
    }
    last = np.asarray(columns["ended_offset"])
    made = {
        **{name: columns[name] for name in ("group_id", "topic_id", "topic", "partition")},
        "act": pa.repeat(columns["act"], size)
        if isinstance(columns["act"], str)
        else columns["act"],
        **{name: times_of(np.asarray(columns[name])) for name in _TIMES},
        "took_ms": pa.array(ended - begun, mask=~is_timed | is_back),
        **texts,
        "coordinator_partition": pa.array(columns["coordinator_partition"], pa.int32()),
        "began_offset": columns["began_offset"],
        "ended_offset": pa.array(last, mask=last == NONE),
    }
    return pa.table({name: made[name] for name in STEPS.names}).cast(STEPS)


_TIMES: Final = ("began_at", "state_at", "ended_at")
_TIME = pa.timestamp("us", "UTC")
STEPS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("group_id", "topic_id", "topic")),
        ("partition", pa.int32()),
        ("act", pa.string()),
        *((name, _TIME) for name in _TIMES),
        ("took_ms", pa.int64()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("coordinator_partition", pa.int32()),
        ("began_offset", pa.int64()),
        ("ended_offset", pa.int64()),
    ]
)
"""The columns of `share_steps` without marks."""
