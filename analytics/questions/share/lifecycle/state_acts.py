"""When share coordinators made and removed the state of share partitions.

State is made by a snapshot without ranges and without a leader (``initializeState``), the first of
a share partition with snapshot epoch 0; it is removed by a tombstone. Both are pruned with time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.share.places import AFTER_ALL
from analytics.questions.share.state_log.share_log import NO_TIME
from analytics.replay.share.share_records import SNAPSHOT, TOMBSTONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.questions.share.lifecycle.pictures import Pictures
    from analytics.questions.share.state_log.share_log import ShareLog

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

NONE: Final = -1
_NAMES: Final = ("group_id", "topic_id")


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
        lengths = np.bincount(log.ranges.key, minlength=log.share.size)
        is_made = (log.kind == SNAPSHOT) & (log.leader_epoch == 0) & (lengths == 0)
        is_removed = log.kind == TOMBSTONE
        is_timed = log.at != NO_TIME
        pairs = _pairs(log, pictures, group, thing)
        act, record = _joined(pairs, log, np.flatnonzero(is_made & is_timed))
        first = log.is_first[record] & (log.snapshot_epoch[record] == 0)
        gone_act, gone = _joined(pairs, log, np.flatnonzero(is_removed & is_timed))
        return cls(group.size, (act, record, log.at[record]), first, (gone_act, gone, log.at[gone]))

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


def _pairs(log: ShareLog, pictures: Pictures, group: Numbers, thing: Numbers) -> pa.Table:
    """Return which act may be about which share partition: `act`, `share`."""
    things = pictures.things.take(pa.array(thing))
    acts = pa.table(
        {
            "group_id": pictures.group_ids.take(pa.array(group)).cast(pa.string()),
            "topic_id": things["topic_id"],
            "asked": things["partition"],
            "act": pa.array(np.arange(group.size)),
        }
    )
    shares = log.shares.select(["group_id", "topic_id", "partition"])
    shares = shares.cast(
        pa.schema([*((n, pa.string()) for n in _NAMES), ("partition", pa.int64())])
    )
    shares = shares.append_column("share", pa.array(np.arange(shares.num_rows)))
    is_whole = pc.less(acts["asked"], 0)
    topics = acts.filter(is_whole).join(shares, ["group_id", "topic_id"], join_type="inner")
    single = acts.filter(pc.invert(is_whole)).rename_columns(
        ["group_id", "topic_id", "partition", "act"]
    )
    each = single.join(shares, ["group_id", "topic_id", "partition"], join_type="inner")
    return pa.concat_tables([part.select(["act", "share"]) for part in (topics, each)])


def _joined(pairs: pa.Table, log: ShareLog, record: Numbers) -> tuple[Numbers, Numbers]:
    """Return acts and the records that may belong to them, two columns of one length."""
    records = pa.table({"share": pa.array(log.share[record]), "record": pa.array(record)})
    joined = pairs.join(records, "share", join_type="inner")
    return (
        joined["act"].to_numpy().astype(np.int64),
        joined["record"].to_numpy().astype(np.int64),
    )
