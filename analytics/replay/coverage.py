"""What a dump holds, as far as the completeness of state and its causes rest on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Coverage:
    """Where the dump's edges are.

    Attributes:
        complete_from: By topic and partition, the offset from which on no record is missing;
            partitions not named are taken to be whole.
        partitions: How many partitions each internal topic has.
        absent: Which of them the dump has no copy of.
        shown_from: By topic and partition, the offset from which on not even compaction took a
            record; partitions not named show all.
        cleaned_until: By topic and partition, how far the cleaner has been where nothing else took
            records: what has its first record from there on was not there before.
        data_topics: Whose partition directories the dump holds; None where other topics may be
            there too.
    """

    complete_from: Mapping[tuple[str, int], int] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[str, frozenset[int]] = field(default_factory=dict)
    shown_from: Mapping[tuple[str, int], int] = field(default_factory=dict)
    cleaned_until: Mapping[tuple[str, int], int] = field(default_factory=dict)
    data_topics: frozenset[str] | None = None


WHOLE = Coverage()
"""Nothing is known to be missing."""
