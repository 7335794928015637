"""Brokers whose clocks differ from the controller's, as the epochs in which they led show it.

A coordinator stamps its records with its broker's clock, a follower copies them as they are. The
metadata log has, by the controller's clock, when each leader was elected, and when the next one: in
between lie all its records that survive in a log in which the next one wrote. A record that says
less was written by a clock that is behind, one that says more by one that is ahead, by as much at
least. What a clock said within those bounds nothing can contradict: so a broker that led to the end
is held against the metadata log on its own disk, which controllers write to all the time; where
that ends long before, its clock is ahead or no controller could be reached.

Copies are no evidence of clocks: all have the bytes of the leader. Without a metadata log nothing
tells whose clock was wrong where times go back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analytics.dump.batches.segment_stats import EpochTimes
from analytics.dump.batches.stretches import BACK_MS, FORWARD_MS
from analytics.dump.copies.leadership import NOBODY, Leaders, Leadership, MadeAt
from analytics.epoch_times import iso_time
from schemas import CLUSTER_METADATA

Row = Mapping[str, Any]

TIMES: Final = "epoch_times"
CLOCKS: Final = "leader_clocks"
_MINUTE: Final = 60_000
_COPIED_MS: Final = 15 * _MINUTE
"""The directories of a disk are copied within less."""


@dataclass(frozen=True)
class ClockDifference:
    """A record whose leader's clock cannot have been the controller's.

    Attributes:
        node_id: The broker that led.
        ahead_ms: By how much its clock was ahead at least; negative: behind.
        why: The evidence, in words.
        is_sure: Nothing else explains it.
    """

    node_id: int
    ahead_ms: int
    why: str
    is_sure: bool = True

    @property
    def what(self) -> str:
        """A sentence about it."""
        minutes, way = abs(self.ahead_ms) // _MINUTE, "ahead of" if self.ahead_ms > 0 else "behind"
        said = (
            f"the clock of broker {self.node_id} was {minutes} min or more {way} the controller's"
        )
        other = "" if self.is_sure else ", or it had reached no controller for so long"
        return f"{said}{other}: {self.why}"


def with_leader_clocks(manifest: Row, leaders: Leaders) -> dict[str, Any]:
    """Return a manifest with `leader_clocks`: a row a broker whose clock differed.

    Each has `node_id`, `ahead_ms` (negative: behind), `is_sure`, `what` (the sentence) and, where
    it is sure, `led`: `topic`, `partition`, `leader_epoch`, `from_ms` and `to_ms` (epoch
    milliseconds by the controller's clock, null where not known) of all epochs of the broker.
    Clocks that differ by less than a minute, or by more than a day (times that are not believed),
    are not named.

    Args:
        manifest: Of a dump, its partitions with `epoch_times`.
        leaders: What its metadata log knows.
    """
    found: dict[tuple[int, bool], ClockDifference] = {}
    for row in manifest["partitions"]:
        if row.get("is_leading") and row["topic"] != CLUSTER_METADATA:
            for each in _differences(row, leaders):
                key = each.node_id, each.ahead_ms > 0
                held = found.get(key)
                if held is None or _rank(each) > _rank(held):
                    found[key] = each
    clocks = [
        {
            "node_id": each.node_id,
            "ahead_ms": each.ahead_ms,
            "is_sure": each.is_sure,
            "what": each.what,
            "led": list(_led(each, leaders)) if each.is_sure else [],
        }
        for _, each in sorted(found.items())
    ]
    return {**manifest, CLOCKS: clocks}


def _led(clock: ClockDifference, leaders: Leaders) -> Iterator[dict[str, Any]]:
    """Yield the epochs in which the broker led, and from when to when that was."""
    for (topic, partition), registered in sorted(leaders.registered.items()):
        if topic == CLUSTER_METADATA:
            continue
        for own in registered.led:
            if own.leader == clock.node_id:
                after = _next(registered.led, own)
                yield {
                    "topic": topic,
                    "partition": partition,
                    "leader_epoch": own.epoch,
                    "from_ms": own.since,
                    "to_ms": None if after is None else after.since,
                }


def _rank(each: ClockDifference) -> tuple[bool, int]:
    return each.is_sure, abs(each.ahead_ms)


def _differences(row: Row, leaders: Leaders) -> Iterator[ClockDifference]:
    key = row["topic"], row["partition"]
    times = [EpochTimes(*each) for each in row.get(TIMES) or ()]
    if key not in leaders.registered or not times:
        return
    led = leaders.registered[key].led
    place, latest = f"{key[0]}-{key[1]}", times[-1].epoch
    for each in times:
        own = next((one for one in led if one.epoch == each.epoch), None)
        if own is None or own.leader == NOBODY:
            continue
        if own.since is not None and _is_apart(own.since - each.least_ms):
            why = (
                f"{place} has a record of {iso_time(each.least_ms)} of leader epoch {own.epoch}, "
                f"which began at {iso_time(own.since)}"
            )
            yield ClockDifference(own.leader, each.least_ms - own.since, why)
        after = _next(led, own)
        if after is not None and after.epoch <= latest and after.since is not None:
            if _is_apart(each.most_ms - after.since):
                why = (
                    f"{place} has a record of {iso_time(each.most_ms)} of leader epoch "
                    f"{own.epoch}, and broker {after.leader} led from {iso_time(after.since)} on"
                )
                yield ClockDifference(own.leader, each.most_ms - after.since, why)
        elif each.epoch == latest:
            made_at = leaders.made_at.get(row["copy"], MadeAt(None))
            heard = made_at.last_time if made_at.metadata_end is not None else None
            is_own = made_at.node_id == own.leader
            if is_own and heard is not None and _COPIED_MS < each.most_ms - heard < FORWARD_MS:
                why = (
                    f"{place} has a record of {iso_time(each.most_ms)}, and the metadata log on "
                    f"the same disk ends at {iso_time(heard)}"
                )
                yield ClockDifference(own.leader, each.most_ms - heard, why, is_sure=False)


def _next(led: Sequence[Leadership], own: Leadership) -> Leadership | None:
    """Return the next leadership of another broker."""
    others = (NOBODY, own.leader)
    return next(
        (each for each in led if each.epoch > own.epoch and each.leader not in others), None
    )


def _is_apart(difference_ms: int) -> bool:
    return BACK_MS < difference_ms < FORWARD_MS
