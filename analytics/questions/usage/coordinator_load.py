"""The table `coordinator_load`: what partitions cost the broker that leads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc

from analytics.contracts import table_of
from analytics.replay.log.key_homes import home_of
from schemas import CONSUMER_OFFSETS, COORDINATOR_TOPICS

if TYPE_CHECKING:
    import pyarrow as pa

    from schemas.usage_rules import UsageRules

_MOST_PARTITIONS: Final = 1000
_LEAST_GROUPS: Final = 5
"""So many groups at least must agree on a number of partitions that nobody names."""
_HASHES: Final = 1 << 62


@dataclass(frozen=True)
class Placed:
    """How groups lie on the partitions of `__consumer_offsets`.

    Attributes:
        partitions: How many it has; None where nothing says.
        misplaced: Groups in a partition that their hash does not belong to, and that one.
        fits: Another number of partitions with which all of them would be where they belong.
    """

    partitions: int | None
    misplaced: tuple[tuple[str, int, int], ...]
    fits: int | None


def placed(groups: Sequence[tuple[str, int]], partitions: int | None) -> Placed:
    """Hold groups against their hashes (``Utils.abs(hashCode) % partitions``).

    Args:
        groups: Groups with commits or records of their own, and the partition they lie in.
        partitions: How many partitions the topic has; None where nothing says.
    """
    if not groups:
        return Placed(partitions, (), None)
    # A hash modulo more than any hash is the hash.
    hashes = np.array([home_of(name, _HASHES) for name, _ in groups], np.int64)
    here = np.array([partition for _, partition in groups], np.int64)
    fits = None
    wrong = np.zeros(len(groups), np.bool_)
    if partitions:
        wrong = hashes % partitions != here
    if (wrong.any() or not partitions) and len(set(groups)) >= _LEAST_GROUPS:
        numbers = range(int(here.max()) + 1, _MOST_PARTITIONS + 1)
        fitting = [each for each in numbers if (hashes % each == here).all()]
        fits = fitting[0] if len(fitting) == 1 else None
    misplaced = tuple(
        (groups[row][0], int(here[row]), int(hashes[row] % (partitions or 1)))
        for row in np.flatnonzero(wrong).tolist()
    )
    return Placed(partitions, misplaced, fits)


def groups_placed(usage: pa.Table) -> list[tuple[str, int]]:
    """Return the groups of `topic_usage` with the partition of `__consumer_offsets` they lie in."""
    rows = usage.filter(
        pc.and_(pc.equal(usage["topic"], CONSUMER_OFFSETS), pc.is_valid(usage["group_id"]))
    )
    pairs = rows.group_by(["group_id", "partition"]).aggregate([])
    return sorted(zip(pairs["group_id"].to_pylist(), pairs["partition"].to_pylist(), strict=True))


def coordinator_load(
    usage: pa.Table,
    partitions: pa.Table,
    leaders: Mapping[tuple[str, int], int | None],
    found: Placed,
    rules: UsageRules,
) -> pa.Table:
    """Return what each partition costs, the largest first.

    Args:
        usage: The table `topic_usage`.
        partitions: The table `partition_usage`.
        leaders: Who leads each internal partition, as far as known.
        found: How groups lie.
        rules: What is hot, and how fast a coordinator reads.
    """
    sums = {
        (row["topic"], row["partition"]): row
        for row in usage.group_by(["topic", "partition"])
        .aggregate([("records", "sum"), ("live_records", "sum"), ("group_id", "count_distinct")])
        .to_pylist()
    }
    sizes = {
        (row["topic"], row["partition"]): row["file_bytes"]
        for row in partitions.to_pylist()
        if row["is_leading"] and row["topic"] in COORDINATOR_TOPICS
    }
    means = {
        topic: fmean(known) if known else 0.0
        for topic in COORDINATOR_TOPICS
        for known in [[s for place, s in sizes.items() if place[0] == topic and s is not None]]
    }
    wrong: dict[int, int] = {}
    for _, partition, _ in found.misplaced:
        wrong[partition] = wrong.get(partition, 0) + 1
    rows = [
        _row(place, size, means[place[0]], sums.get(place, {}), leaders, rules)
        | {"misplaced_groups": _misplaced(place, wrong, found)}
        for place, size in sizes.items()
    ]
    keys = [("topic", "ascending"), ("partition", "ascending")]
    return table_of("coordinator_load", rows).sort_by([("file_bytes", "descending"), *keys])


def _misplaced(place: tuple[str, int], wrong: Mapping[int, int], found: Placed) -> int | None:
    if place[0] != CONSUMER_OFFSETS or found.partitions is None:
        return None
    return wrong.get(place[1], 0)


def _row(
    place: tuple[str, int],
    size: int | None,
    mean: float,
    sums: Mapping[str, Any],
    leaders: Mapping[tuple[str, int], int | None],
    rules: UsageRules,
) -> dict[str, Any]:
    times = None if size is None or not mean else size / mean
    is_hot = times is not None and times > rules.hot_times and (size or 0) > rules.hot_bytes
    return {
        "topic": place[0],
        "partition": place[1],
        "leader": leaders.get(place),
        "groups": sums.get("group_id_count_distinct", 0),
        "records": sums.get("records_sum", 0),
        "live_records": sums.get("live_records_sum"),
        "file_bytes": size,
        "times_mean": times,
        "is_hot": is_hot,
        "load_ms": None if size is None else round(size * 1000 / rules.load_bytes_per_second),
    }
