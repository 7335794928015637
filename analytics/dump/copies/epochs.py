"""Leader epochs of one copy of a log, and where two copies part by them (KIP-101, KIP-279)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from analytics.dump.batches.header_columns import Headers

NO_EPOCH = -1
_MOST_EPOCHS = 1000


@dataclass(frozen=True)
class EpochLine:
    """The epochs of a copy, ascending, each with its first offset, and where the copy ends.

    Attributes:
        entries: Epochs and their first offsets.
        end_offset: Of the copy.
        witnessed: The newest epoch in which its broker led or was in sync, by the metadata log; -1
            where that is not known.
    """

    entries: tuple[tuple[int, int], ...]
    end_offset: int
    witnessed: int = NO_EPOCH

    @property
    def latest(self) -> int:
        """The newest epoch, one in which nothing was written included; -1 without any."""
        return self.entries[-1][0] if self.entries else NO_EPOCH

    @property
    def newest(self) -> int:
        """The newest epoch that the copy, or the metadata log of its broker, knows."""
        return max(self.latest, self.witnessed)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to ``epoch`` and its end offset (OffsetsForLeaderEpoch).

        Where there is none so old, epoch -1 and the first offset of the oldest.
        """
        at = bisect_right(self.entries, epoch, key=lambda entry: entry[0])
        found = self.entries[at - 1][0] if at else NO_EPOCH
        end = self.entries[at][1] if at < len(self.entries) else self.end_offset
        return found, min(end, self.end_offset)

    def at(self, offset: int) -> int:
        """Return the epoch that covers an offset, -1 where none does."""
        at = bisect_right(self.entries, offset, key=lambda entry: entry[1])
        return self.entries[at - 1][0] if at else NO_EPOCH


def epoch_line(
    checkpointed: Iterable[tuple[int, int]],
    batch_epochs: NDArray[np.int32],
    base_offsets: NDArray[np.int64],
    end_offset: int,
) -> EpochLine:
    """Put the epochs of a checkpoint and those of batches together.

    The checkpoint knows epochs in which nothing was written, and starts that compaction has
    removed from the batches; the batches know what a copied checkpoint was too old for.
    """
    starts = dict(checkpointed)
    if batch_epochs.size:
        first = np.flatnonzero(np.diff(batch_epochs, prepend=batch_epochs[0] - 1))
        pairs = zip(batch_epochs[first].tolist(), base_offsets[first].tolist(), strict=True)
        for epoch, offset in pairs:
            if epoch > NO_EPOCH:
                starts[epoch] = min(starts.get(epoch, offset), offset)
    entries: list[tuple[int, int]] = []
    for epoch, offset in sorted(starts.items()):
        if not entries or offset >= entries[-1][1]:
            entries.append((epoch, offset))
    return EpochLine(tuple(entries), end_offset)


def are_plausible(parts: Iterable[Headers], noted: Sequence[tuple[int, int]]) -> bool:
    """Whether the epochs of batches only grow and agree with the broker's own notes.

    No checksum covers them: a bit that flips would look like an election.

    Args:
        parts: Batches of one file, in its order.
        noted: (epoch, first offset) of the checkpoint beside it.
    """
    line = EpochLine(tuple(noted), 0)
    newest = NO_EPOCH
    for part in parts:
        changes = np.flatnonzero(np.diff(part.leader_epoch)) + 1
        for first, end in pairwise([0, *changes[:_MOST_EPOCHS].tolist(), len(part)]):
            epoch = int(part.leader_epoch[first])
            at = {line.at(int(part.base_offset[row])) for row in (first, end - 1)} - {NO_EPOCH}
            if epoch != NO_EPOCH and (epoch < newest or at - {epoch}):
                return False
            newest = max(newest, epoch)
        if changes.size > _MOST_EPOCHS:
            return False
    return True


def truncation_offset(other: EpochLine, leader: EpochLine) -> int:
    """Return the offset to which a copy would be cut back if it followed the leader.

    The follower asks for the end of its newest epoch, takes the leader's answer, and goes on with
    an older epoch until both know the same one (AbstractFetcherThread). Copies without epochs
    (formats 0 and 1) are cut to the shorter one.
    """
    if not other.entries or not leader.entries:
        return min(other.end_offset, leader.end_offset)
    epoch = other.latest
    while True:
        leader_epoch, leader_end = leader.end_of(epoch)
        if leader_epoch == NO_EPOCH:
            # All that the leader has is newer.
            return min(leader_end, other.end_offset)
        own_epoch, own_end = other.end_of(leader_epoch)
        if own_epoch in {leader_epoch, NO_EPOCH}:
            return min(leader_end, own_end)
        epoch = own_epoch
