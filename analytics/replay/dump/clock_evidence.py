"""What a manifest knows of the clocks that wrote each internal partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from analytics.dump.inspection.losses import OPEN_END
from analytics.replay.log.log_clocks import LogClock, Span
from analytics.replay.log.losses_at import leading

Row = Mapping[str, Any]


def clocks_in(manifest: Row, ends: Mapping[tuple[str, int], int | None]) -> dict[Any, LogClock]:
    """Return the clocks of the partitions in which one was set or wrong, by topic and partition.

    Steps back are those that headers of batches show (`clock_steps` of a partition); whose clock
    was wrong, and in which leader epochs, the metadata log does (`leader_clocks`).

    Args:
        manifest: Of a workspace with decoded tables.
        ends: Up to which offset records count, by topic and partition; None or not named: to the
            end.
    """
    led: dict[tuple[str, int], set[int]] = defaultdict(set)
    for clock in manifest.get("leader_clocks", ()):
        for each in clock["led"]:
            led[each["topic"], each["partition"]].add(each["leader_epoch"])
    found = {}
    for row in leading(manifest):
        key = row["topic"], row["partition"]
        steps = tuple((first, last) for first, last, _ in row.get("clock_steps") or ())
        clock = LogClock(steps, tuple(_stretches(row, led.get(key, set()))))
        kept = clock.until(ends.get(key))
        if kept is not None:
            found[key] = kept
    return found


def _stretches(row: Row, epochs: set[int]) -> Iterator[Span]:
    """Yield which offsets were written in leader epochs, neighbours as one."""
    noted = sorted((each["first_offset"], each["epoch"]) for each in row.get("leader_epochs") or ())
    held: Span | None = None
    for (first, epoch), (end, _) in pairwise([*noted, (OPEN_END, 0)]):
        if epoch not in epochs:
            continue
        if held is not None and held[1] == first:
            held = held[0], end
            continue
        if held is not None:
            yield held
        held = first, end
    if held is not None:
        yield held
