"""The records that the order of steps of share groups is read off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from analytics.questions.share.lifecycle.pictures import Pictures
from analytics.questions.share.share_log import ShareLog

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


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
