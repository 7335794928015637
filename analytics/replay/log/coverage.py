"""What a dump holds, as far as the completeness of state and its causes rest on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from analytics.dump.inspection.found_losses import Loss
from analytics.replay.log.frames import Frame
from analytics.replay.log.log_clocks import Clocks
from analytics.replay.log.topic_homes import TopicHomes

_NO_BEGINNING = "its beginning is not in the dump"


@dataclass(frozen=True)
class Coverage:
    """Where the dump's edges are.

    Attributes:
        complete_from: By topic and partition, the offset from which on no record is missing;
            partitions not named are taken to be whole.
        partitions: How many partitions each internal topic has.
        absent: Which of them the dump has no copy of.
        uncompacted_from: By topic and partition, the offset from which on not even compaction took
            a record; partitions not named show all.
        cleaned_until: By topic and partition, how far the cleaner has been where nothing else took
            records: what has its first record from there on was not there before.
        data_topics: Whose partition directories the dump holds; None where other topics may be
            there too.
        losses: By topic and partition, where records are missing, in order; the last ends at
            `complete_from`. Where none are named, all before `complete_from` may be missing.
        undecided: Partitions of the offsets topic whose records are archived rows, which do not
            show transactions.
        frames: By topic and partition, where logs whose times go back were cut.
        homes: By internal topic where keys are looked for, of topics where that is not simply the
            partition that they lie in.
        leader_epochs: By topic and partition, the leader epochs that logs and checkpoints note,
            with their first offsets: those that had begun at the instant.
        clocks: By topic and partition, where clocks were set or wrong up to the instant.
        has_topic_filter: Offsets of topics that were not asked for were left out.
        believed_until: The last time that is believed of any record: a later one measures nothing.
        is_of_running: What is asked is what the coordinator that ran at the instant answered; else
            what one has that loads the log up to its end offsets.
    """

    complete_from: Mapping[tuple[str, int], int] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[str, frozenset[int]] = field(default_factory=dict)
    uncompacted_from: Mapping[tuple[str, int], int] = field(default_factory=dict)
    cleaned_until: Mapping[tuple[str, int], int] = field(default_factory=dict)
    data_topics: frozenset[str] | None = None
    losses: Mapping[tuple[str, int], Sequence[Loss]] = field(default_factory=dict)
    undecided: frozenset[int] = frozenset()
    frames: Mapping[tuple[str, int], Frame] = field(default_factory=dict)
    homes: Mapping[str, TopicHomes] = field(default_factory=dict)
    leader_epochs: Mapping[tuple[str, int], Mapping[int, int]] = field(default_factory=dict)
    clocks: Clocks = field(default_factory=dict)
    has_topic_filter: bool = False
    believed_until: datetime | None = None
    is_of_running: bool = False

    def losses_of_topic(self, topic: str) -> dict[int, Sequence[Loss]]:
        """Return by partition where records are missing; partitions not named are whole."""
        return {
            partition: self.losses.get((name, partition)) or [Loss(0, start, _NO_BEGINNING)]
            for (name, partition), start in self.complete_from.items()
            if name == topic and start > 0
        }

    @property
    def of_loading(self) -> Self:
        """What a coordinator lacks that loads these logs: not what is missing within a file."""
        left = {
            key: [each for each in losses if not each.is_within_file]
            for key, losses in self.losses.items()
        }
        starts = {key: each for key, each in self.complete_from.items() if left.get(key, True)}
        return replace(self, losses=left, complete_from=starts)


WHOLE = Coverage()
"""Nothing is known to be missing."""
