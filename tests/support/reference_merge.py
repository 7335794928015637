"""How the job control plane of a consistent region merges checkpoints, one message at a time.

Slow and simple, from the document alone: a merge is kept by sequence id; it knows how many distinct
operators there are by the largest set of names it was told, and is complete with as many distinct
names. What the partitions were said to be at is kept, not only the last: the document lets the last
writer win, which no order of files can tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Message:
    """What an operator sends."""

    sequence_id: int
    operator: str
    operators: list[str]
    offsets: dict[tuple[str, int], int]


@dataclass
class Merge:
    """What is kept of one sequence id."""

    count: int = 0
    named: list[str] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    offsets: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def receive(self, message: Message) -> None:
        self.count = max(self.count, len(set(message.operators)))
        for name in message.operators:
            if name not in self.named:
                self.named.append(name)
        if message.operator not in self.operators:
            self.operators.append(message.operator)
        for partition, offset in message.offsets.items():
            said = self.offsets.setdefault(partition, [])
            if offset not in said:
                said.append(offset)

    @property
    def is_complete(self) -> bool:
        return len(self.operators) >= self.count


def merges(messages: Iterable[Message]) -> dict[int, Merge]:
    """Return the merges after all messages."""
    found: dict[int, Merge] = {}
    for each in messages:
        found.setdefault(each.sequence_id, Merge()).receive(each)
    return found
