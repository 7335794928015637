"""Partitions in words: `orders 0-3,7`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analytics.assignors.group import TopicPartition, by_topic

MOST_NAMED = 3
"""Topics or partitions named in a sentence; the rest is counted."""


def named(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions by topic, runs as `first-last`, the first topics only."""
    topics = by_topic(partitions)
    return listed([f"{topic} {runs(numbers)}" for topic, numbers in topics.items()])


def runs(numbers: Sequence[int]) -> str:
    """Return ascending numbers as runs: `0-3,7`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def listed(words: Sequence[str]) -> str:
    """Return the first of some words, and how many more there are."""
    more = len(words) - MOST_NAMED
    return ", ".join(words[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, word: str) -> str:
    """Return a number with its word: `1 partition`, `3 partitions`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
