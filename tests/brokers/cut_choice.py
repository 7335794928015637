"""Where to cut: an end offset for each internal partition, always between two batches."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.brokers.batches import Batch


@dataclass(frozen=True)
class ChosenCut:
    """End offsets by ``topic-partition``. ``kind`` is instant, offsets or whole."""

    kind: str
    as_of_ms: int | None
    end_offsets: Mapping[str, int]

    def told(self) -> dict[str, Any]:
        """Return what ``cut.json`` says."""
        return {
            "kind": self.kind,
            "as_of_ms": self.as_of_ms,
            "end_offsets": dict(sorted(self.end_offsets.items())),
        }


def choose_cuts(
    logs: Mapping[str, Sequence[Batch]],
    log_starts: Mapping[str, int],
    number: int,
    draw: random.Random,
) -> list[ChosenCut]:
    """Choose cuts: everything first, then instants and offsets in turn.

    Args:
        logs: The batches of each internal partition.
        log_starts: Where a partition begins if not at its first batch: nothing below is left.
        number: How many cuts.
        draw: Chance.
    """
    ends = {name: boundaries(batches, log_starts.get(name, 0)) for name, batches in logs.items()}
    cuts = [ChosenCut("whole", None, {name: places[-1] for name, places in ends.items()})]
    times = sorted({each.max_timestamp for batches in logs.values() for each in batches})
    for each in range(1, number):
        if each % 2 and times:
            # The early ones hold little: rather cut late.
            at = times[max(draw.randrange(len(times)), draw.randrange(len(times)))]
            cuts.append(ChosenCut("instant", at, _ends_at(logs, ends, at)))
        else:
            chosen = {name: draw.choice(places) for name, places in ends.items()}
            cuts.append(ChosenCut("offsets", None, chosen))
    return cuts[:number]


def boundaries(batches: Sequence[Batch], log_start: int) -> list[int]:
    """Return every offset at which a log may end, ascending: where it begins, and after batches."""
    first = max(log_start, batches[0].base_offset) if batches else log_start
    return [first, *(each.last_offset + 1 for each in batches if each.last_offset >= first)]


def _ends_at(
    logs: Mapping[str, Sequence[Batch]], ends: Mapping[str, Sequence[int]], at: int
) -> dict[str, int]:
    """Return where each log ended when the batches up to an instant had been appended."""
    found = {}
    for name, batches in logs.items():
        later = [each for each in batches if each.max_timestamp > at]
        stop = later[0].base_offset if later else ends[name][-1]
        found[name] = max(each for each in ends[name] if each <= max(stop, ends[name][0]))
    return found
