"""Which partition of an internal topic one key belongs to: ``Utils.abs(hashCode) mod partitions``.

`analytics.replay.log.internal_partitions` tells the same of columns of keys.
"""

from __future__ import annotations

from typing import Final

from analytics.assignors.java_order import string_hash

ALL_HASHES: Final = 1 << 32
LEAST_HASH: Final = 1 << 31
"""What the least hash would be without its sign: it has no positive counterpart and counts as 0."""


def home_of(key: str, partitions: int) -> int:
    """Return the partition that Kafka's coordinators choose.

    Args:
        key: A group id; for share state see `home_of_share`.
        partitions: How many partitions the internal topic has.
    """
    return hash_place(key) % partitions


def hash_place(key: str) -> int:
    """Return `Utils.abs(hashCode)` of a key: modulo a number of partitions it is a partition."""
    unsigned = string_hash(key)
    positive = min(unsigned, ALL_HASHES - unsigned)
    return 0 if positive == LEAST_HASH else positive


def home_of_share(group: str, topic_id: str, partition: int, partitions: int) -> int:
    """Return the partition that holds a share partition's state.

    ``ShareCoordinatorService.partitionFor``: by the hash of ``SharePartitionKey``.
    """
    return home_of(f"{group}:{topic_id}:{partition}", partitions)
