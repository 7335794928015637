"""What a plan keeps, read record by record: the plain way that a decode run has to equal."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from analytics.dump.records.segment_reader import SegmentReader

if TYPE_CHECKING:
    from analytics.dump.files.model import Plan


class Kept(NamedTuple):
    """One record."""

    key: bytes
    value: bytes | None
    copy: str


@dataclass
class Planned:
    """Records by line, topic, partition and offset, and how many each rule left out.

    ``twice`` lists what a line holds more than once, ``read`` counts the records of each copy.
    """

    lines: dict[tuple[str, str, int], dict[int, Kept]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    left_out: Counter[str] = field(default_factory=Counter)
    twice: list[tuple[str, int]] = field(default_factory=list)
    read: Counter[str] = field(default_factory=Counter)

    def offsets(
        self, line: str = "", topic: str = "__consumer_offsets", partition: int = 0
    ) -> list[int]:
        """Offsets of one line, ascending."""
        return sorted(self.lines.get((line, topic, partition), {}))

    def values(
        self, line: str = "", topic: str = "__consumer_offsets", partition: int = 0
    ) -> dict[int, str]:
        """Values of one line as text, by offset."""
        found = self.lines.get((line, topic, partition), {})
        return {offset: (found[offset].value or b"").decode() for offset in sorted(found)}


def read_plan(plan: Plan) -> Planned:
    """Read all slices of a plan; snapshots, whose offsets mean nothing, apart."""
    planned = Planned()
    for each in plan.slices:
        for chunk in SegmentReader(each, digest=False).chunks():
            records = chunk.records
            for row, offset in enumerate(records.offset.tolist()):
                planned.read[each.copy] += 1
                rule = next((r for first, end, r in each.rules if first <= offset < end), None)
                if rule is not None:
                    planned.left_out[rule] += 1
                    continue
                key, value = (
                    None
                    if spans.length[row] < 0
                    else records.data[
                        spans.start[row] : spans.start[row] + spans.length[row]
                    ].tobytes()
                    for spans in (records.key, records.value)
                )
                line = planned.lines[each.line, each.topic, each.partition]
                if offset in line and each.segment.kind == "log":
                    planned.twice.append((each.line, offset))
                line[offset] = Kept(key or b"", value, each.copy)
    return planned
