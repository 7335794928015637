"""Lists of partitions and tasks, written as Kafka's tools write them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from schemas.releases import release_key

Row = Mapping[str, Any]

_ROLES = (("active", "ACTIVE"), ("standby", "STANDBY"), ("warmup", "WARMUP"))


def partitions_text(given: Iterable[Row], release: str, *, of_share: bool = False) -> str | None:
    """Return partitions of topics: `orders:0,1;returns:2` since 4.0, `orders(0,1)` before.

    kafka-share-groups of 4.0 writes each partition on its own; 3.8 and 3.9 leave the topic out,
    which is not copied.

    Args:
        given: Rows with `topic` and `partition`.
        release: Of Kafka.
        of_share: Of a share group.
    """
    topics: dict[str, list[int]] = defaultdict(list)
    for each in given:
        topics[each["topic"]].append(each["partition"])
    if not topics:
        return None
    lists = [(topic, sorted(set(numbers))) for topic, numbers in sorted(topics.items())]
    number = release_key(release)
    if of_share and number < (4, 1):
        return ",".join(f"{topic}:{each}" for topic, numbers in lists for each in numbers)
    if number < (4,):
        return ", ".join(f"{topic}({_numbers(numbers)})" for topic, numbers in lists)
    return ";".join(f"{topic}:{_numbers(numbers)}" for topic, numbers in lists)


def tasks_text(given: Iterable[Row], prefix: str = "") -> str | None:
    """Return streams tasks by role: `ACTIVE: 0:[0,1]; 1:[0]; STANDBY: 0:[2];`.

    Args:
        given: Rows with `role`, `subtopology_id` and `partition`.
        prefix: Goes before each role ("TARGET-").
    """
    rows = list(given)
    words = []
    for role, name in _ROLES:
        tasks = sorted(
            (each["subtopology_id"], each["partition"]) for each in rows if each["role"] == role
        )
        if tasks:
            lists = [
                f"{subtopology}:[{_numbers(number for _, number in numbers)}];"
                for subtopology, numbers in groupby(tasks, key=lambda task: task[0])
            ]
            words.append(f"{prefix}{name}: {' '.join(lists)}")
    return " ".join(words) or None


def _numbers(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
