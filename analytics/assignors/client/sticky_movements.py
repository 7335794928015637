"""Who gave what to whom while a sticky assignor balances (`PartitionMovements`)."""

from __future__ import annotations

from analytics.assignors.group import TopicPartition
from analytics.assignors.java_order import bucket, string_hash, table_size

_Pair = tuple[str, str]


class Movements:
    """Remembers moves, so that one is undone rather than answered by a move back.

    If member A gave a partition of a topic to B, and now B shall give another one of the same
    topic to A, the first one goes back instead: both keep more of what they had.
    """

    def __init__(self) -> None:
        self._pair_of: dict[TopicPartition, _Pair] = {}
        self._moved: dict[str, dict[_Pair, _MovedPartitions]] = {}

    def replacement(self, partition: TopicPartition, giver: str, taker: str) -> TopicPartition:
        """Return the partition that shall really go, given that this one would."""
        origin = self._pair_of.get(partition, (giver, ""))[0]
        back = self._moved.get(partition[0], {}).get((taker, origin))
        return back.first() if back else partition

    def note(self, partition: TopicPartition, giver: str, taker: str) -> None:
        """Remember a move; one that brings a partition back to its origin is forgotten."""
        earlier = self._pair_of.pop(partition, None)
        pairs = self._moved.setdefault(partition[0], {})
        if earlier is not None:
            pairs[earlier].remove(partition)
            if not pairs[earlier]:
                del pairs[earlier]
        origin = earlier[0] if earlier is not None else giver
        if origin != taker:
            pair = (origin, taker)
            self._pair_of[partition] = pair
            pairs.setdefault(pair, _MovedPartitions(partition[0])).add(partition)


class _MovedPartitions:
    """Partitions of one topic, in a set that Java walks from the first bucket on."""

    def __init__(self, topic: str) -> None:
        self._topic_hash = string_hash(topic)
        self._partitions: dict[TopicPartition, None] = {}
        self._most = 0

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, partition: TopicPartition) -> None:
        self._partitions[partition] = None
        self._most = max(self._most, len(self._partitions))

    def remove(self, partition: TopicPartition) -> None:
        del self._partitions[partition]

    def first(self) -> TopicPartition:
        buckets = table_size(self._most)
        return min(self._partitions, key=lambda tp: bucket(self._hash(tp[1]), buckets))

    def _hash(self, partition: int) -> int:
        return 31 * (31 + partition) + self._topic_hash
