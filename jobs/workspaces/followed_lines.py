"""Which lines of diverged partitions an answer follows, and how it says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from analytics.replay.dump.written_instants import iso_time
from analytics.replay.log.lines import CANNOT_TELL, NOBODY_LED, FollowedLine
from reports.quantities import ranges


def sentences(lines: Iterable[FollowedLine], instant: str) -> Iterator[str]:
    """Say which lines are followed, why, and how to ask the other.

    Args:
        lines: What is followed.
        instant: In words.
    """
    alike = sorted(lines, key=_alike)
    for (state, copy, survivor), group in groupby(alike, key=_alike):
        held = list(group)
        places = _places(held)
        ended = min((each.elected_at for each in held if each.elected_at is not None), default=None)
        other = f"to ask the line that survived: the dump with --prefer-copy {survivor}"
        until = f"until the election at {iso_time(ended)}" if ended is not None else ""
        if state == CANNOT_TELL:
            yield (
                f"cannot tell which line of {places} was in force at {instant}: {copy}'s is "
                f"followed; {other}"
            )
        elif state == NOBODY_LED:
            yield (
                f"{places}: nobody led at {instant}{until and f', {until}'}; the line of {copy}, "
                f"which led last, is followed; {other}"
            )
        else:
            yield f"{places}: the line of {copy}, which led {until}, is followed; {other}"


def _alike(line: FollowedLine) -> tuple[str, str, str]:
    return line.at_that_time, line.copy, line.surviving_copy


def _places(lines: Iterable[FollowedLine]) -> str:
    topics = groupby(sorted(lines, key=lambda each: each.topic), key=lambda each: each.topic)
    return " and ".join(
        f"{topic} {ranges(each.partition for each in group)}" for topic, group in topics
    )
