"""The order in which Java walks a HashMap, where Kafka's answer hangs on it.

A HashMap has a power of two of buckets and walks them in turn; what shares a bucket comes in the
order it was put in. (Buckets of eight and more become trees, which may turn that last order; keys
that collide so often do not occur among member ids.) Kafka hands the members to every assignor in
a `HashMap<String, ...>`, so their order is known offline too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from analytics.assignors.group import Group, Member, TopicId

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
Number = TypeVar("Number", int, "NDArray[Any]")
"""A number, or a column of them."""

_WORD = 0xFFFF_FFFF
_DEFAULT_CAPACITY = 16


def in_hash_order(
    keys: Iterable[T], hash_of: Callable[[T], int], *, capacity: int = _DEFAULT_CAPACITY
) -> list[T]:
    """Return distinct keys in the order a HashMap walks them.

    Args:
        keys: In the order they are put in.
        hash_of: Java's `hashCode` of a key; only its low 32 bits count.
        capacity: What the map's constructor was given.
    """
    put = list(keys)
    buckets = table_size(len(put), capacity)
    return sorted(put, key=lambda key: bucket(hash_of(key), buckets))


def table_size(count: int, capacity: int = _DEFAULT_CAPACITY) -> int:
    """Return the number of buckets of a map that has held `count` keys: it doubles above 3/4."""
    buckets = 1
    while buckets < capacity:
        buckets *= 2
    while count > buckets * 3 // 4:
        buckets *= 2
    return buckets


def bucket(hash_code: Number, buckets: Number) -> Number:
    """Return the bucket of a hash; Java folds the upper half into the lower one first."""
    unsigned = hash_code & _WORD
    found: Number = (unsigned ^ (unsigned >> 16)) & (buckets - 1)
    return found


def copied_set_capacity(count: int) -> int:
    """Return the capacity of a HashSet made from a collection of `count` elements."""
    return max(int(count / 0.75) + 1, _DEFAULT_CAPACITY)


def sort_key(text: str) -> bytes:
    """Return a key that sorts strings as Java's `compareTo` does: by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")


def string_hash(text: str) -> int:
    """Return `String.hashCode`, unsigned."""
    units = sort_key(text)
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & _WORD
    return code


def topic_id_hash(topic_id: TopicId) -> int:
    """Return `Uuid.hashCode`, unsigned."""
    mixed = topic_id[0] ^ topic_id[1]
    return (mixed >> 32 ^ mixed) & _WORD


def members_in_order(group: Group) -> list[Member]:
    """Return the members as Kafka's maps by member id walk them."""
    return in_hash_order(group.members, lambda member: string_hash(member.id))


def subscription_in_order(topics: Iterable[str]) -> list[str]:
    """Return a member's topics as the coordinator's set of their names is walked.

    A member record holds them sorted, and the broker's assignors see topic ids in this order
    (`TopicIds`), so it decides between ids that share a bucket.
    """
    names = sorted(topics, key=sort_key)
    return in_hash_order(names, string_hash, capacity=copied_set_capacity(len(names)))


def topics_in_order(ids: Mapping[str, TopicId], topics: Iterable[str]) -> list[str]:
    """Return topics as a map by their ids is walked."""
    return in_hash_order(topics, lambda topic: topic_id_hash(ids[topic]))


def copied_topics_in_order(ids: Mapping[str, TopicId], topics: Iterable[str]) -> list[str]:
    """Return topics as a set copied from a set of their ids is walked."""
    copied = list(topics)
    capacity = copied_set_capacity(len(copied))
    return in_hash_order(copied, lambda topic: topic_id_hash(ids[topic]), capacity=capacity)


def partitions_in_order(partitions: Iterable[int]) -> list[int]:
    """Return partitions as a set copied from a record is walked: by number, modulo its size."""
    copied = list(partitions)
    return in_hash_order(copied, int, capacity=copied_set_capacity(len(copied)))
