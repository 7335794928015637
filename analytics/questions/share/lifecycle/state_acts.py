"""When share coordinators made and removed the state of share partitions.

State is made by a snapshot without ranges and without a leader (``initializeState``), the first of
a share partition with snapshot epoch 0; it is removed by a tombstone. Both are pruned with time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa

from analytics.questions.share.lifecycle.pictures import Pictures
from analytics.questions.share.share_log import KEY, ShareLog
from analytics.replay.log.arrow_rows import polars_rows
from analytics.replay.share.share_records import SNAPSHOT, TOMBSTONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

# The records that the order of steps of share groups is read off.

AFTER_ALL: Final = np.iinfo(np.int64).max


@dataclass(frozen=True)
class StepRecords:
    """What the order of steps is read off.

    Attributes:
        pictures: Of `pictures_of`.
        groups: `phases.COLUMNS` of ``share_group_metadata``, cut at the instant.
        members: The same of ``share_group_member_metadata``.
        log: Share state with what was deleted and is still in the files.
        complete_from: By partition of `__consumer_offsets`, the offset from which on every record
            is there; nothing of those of which that is not known.
        born_from: By partition of it, the offset from which on what has no earlier record had none:
            the cleaner leaves the last of each key. Nothing of those of which that is not known.
        are_clocks_alike: Whether no coordinator is known whose clock differed from the others':
            times of two topics in a wrong order mean nothing else.
        is_state_whole: Whether no record of share state is lost; those that brokers prune are not.
    """

    pictures: Pictures
    groups: pa.Table
    members: pa.Table
    log: ShareLog
    complete_from: Mapping[int, int]
    is_state_whole: bool = True
    born_from: Mapping[int, int] = field(default_factory=dict)
    are_clocks_alike: bool = True

    def since(self, partition: Numbers) -> Numbers:
        """Return from which offset on every record of partitions is there."""
        return _of_each(self.complete_from, partition)

    def born(self, partition: Numbers) -> Numbers:
        """Return from which offset on the first record of a key that is shown was its first."""
        return _of_each(self.born_from, partition)

    def is_whole_after(self, place: Numbers) -> NDArray[np.bool_]:
        """Return of pictures, by place, whether all after them is there; not where it is none."""
        of = np.maximum(place, 0)
        since = self.since(self.pictures.partition[of])
        found: NDArray[np.bool_] = (place >= 0) & (self.pictures.offset[of] >= since)
        return found


def _of_each(offsets: Mapping[int, int], partition: Numbers) -> Numbers:
    return np.array([offsets.get(int(each), AFTER_ALL) for each in partition], np.int64)


NONE: Final = -1
NO_TIME: Final = np.iinfo(np.int64).min


@dataclass(frozen=True)
class StateActs:
    """Makings and removals of what acts of groups are about.

    Attributes:
        size: How many acts there are.
        made: Of each making the act that it may belong to, the record (its place), its time.
        is_first: Whether it is the first record there ever was of its share partition.
        removed: Of each removal the act that it may belong to, the record, its time.
    """

    size: int
    made: tuple[Numbers, Numbers, Numbers]
    is_first: Truths
    removed: tuple[Numbers, Numbers, Numbers]

    @classmethod
    def of(cls, log: ShareLog, pictures: Pictures, group: Numbers, thing: Numbers) -> StateActs:
        """Match records with acts: of the same group and topic, and partition where one is meant.

        Args:
            log: The records of share state.
            pictures: Have the names.
            group: Of each act its group's number.
            thing: Of each act its thing's number.
        """
        pairs = _pairs(log, pictures, group, thing)
        timed = log.records.filter(pl.col("at").is_not_null())
        is_made = (
            (pl.col("kind") == SNAPSHOT) & (pl.col("leader_epoch") == 0) & (pl.col("ranges") == 0)
        )
        made = _joined(pairs, timed.filter(is_made))
        removed = _joined(pairs, timed.filter(pl.col("kind") == TOMBSTONE))
        is_first = made["is_first"] & (made["snapshot_epoch"] == 0)
        return cls(group.size, _numbers(made), is_first.to_numpy(), _numbers(removed))

    def initialised(self, earliest: Numbers, latest: Numbers) -> tuple[Numbers, Truths]:
        """Return when the state of each act was made, and whether that was too late.

        Args:
            earliest: What was made before belongs to another act.
            latest: What was made after is too late; `NO_TIME` where nothing is.
        """
        act, record, at = self.made
        ends = _ends(latest)[act]
        fits = (at >= earliest[act]) & (at <= ends)
        # What was made for another act is not late for this one.
        late = (at > ends) & self.is_first & ~np.isin(record, record[fits])
        stored = self._least(act[fits], at[fits])
        is_late = self._least(act[late], at[late]) != NONE
        return stored, is_late & (stored == NONE)

    def gone(self, earliest: Numbers, latest: Numbers) -> tuple[Numbers, Truths]:
        """Return when the state of each act was removed, and whether that was too late.

        Args:
            earliest: What was removed before belongs to another act.
            latest: What was removed after is too late; `NO_TIME` where nothing is.
        """
        act, record, at = self.removed
        ends = _ends(latest)[act]
        fits = (at >= earliest[act]) & (at <= ends)
        removed = self._least(act[fits], at[fits])
        left = (at > ends) & ~np.isin(record, record[fits])
        late = self._least(act[left], at[left])
        made_act, _, made_at = self.made
        after = made_at > _ends(latest)[made_act]
        # A removal after state was made anew is another act's.
        anew = self._least(made_act[after], made_at[after])
        is_late = (late != NONE) & (removed == NONE) & ((anew == NONE) | (anew > late))
        return removed, is_late

    def _least(self, act: Numbers, at: Numbers) -> Numbers:
        found = np.full(self.size, AFTER_ALL)
        np.minimum.at(found, act, at)
        return np.where(found == AFTER_ALL, NONE, found)


def _ends(latest: Numbers) -> Numbers:
    return np.where(latest == NO_TIME, AFTER_ALL, latest)


def _pairs(log: ShareLog, pictures: Pictures, group: Numbers, thing: Numbers) -> pl.DataFrame:
    """Return which act may be about which share partition: `act`, `share`."""
    acts = pl.DataFrame({"group": group, "thing": thing}, {"group": pl.Int64, "thing": pl.Int64})
    groups, things = pl.Series(pictures.group_ids), polars_rows(pictures.things)
    acts = acts.with_row_index("act").with_columns(
        group_id=groups.cast(pl.String)[acts["group"]],
        topic_id=things["topic_id"][acts["thing"]],
        partition=things["partition"][acts["thing"]].cast(pl.Int64),
    )
    is_whole = pl.col("partition") < 0
    shares = log.shares.select("share", *KEY)
    topics = acts.filter(is_whole).join(shares, ["group_id", "topic_id"], "inner")
    each = acts.filter(~is_whole).join(shares, KEY, "inner")
    return pl.concat([part.select("act", "share") for part in (topics, each)])


def _joined(pairs: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Return acts with the records that may belong to them."""
    return pairs.join(records, "share", "inner")


def _numbers(joined: pl.DataFrame) -> tuple[Numbers, Numbers, Numbers]:
    """Return acts, records and their times as columns of one length."""
    act, record, at = (joined[name].cast(pl.Int64).to_numpy() for name in ("act", "record", "at"))
    return act, record, at
