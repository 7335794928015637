"""What a pass of the cleaner would leave of a log, and which tombstones it should have removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.questions.usage.keys.key_fold import (
    CLEAN_BATCH,
    CLEAN_BYTES,
    CLEAN_IS_TOMBSTONE,
    CLEAN_OFFSET,
    KEY_PLACE,
    LAST_BYTES,
    LAST_IS_TOMBSTONE,
    LAST_OFFSET,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.questions.usage.keys.key_states import KeyStates, Place

NO_HORIZON: Final = np.iinfo(np.int64).max
Horizons = tuple[tuple[int, int, int], ...]
"""(milliseconds, first offset, end offset), ascending by offset."""


@dataclass(frozen=True)
class Retained:
    """What is left of the part of a log where the cleaner may go, and the tombstones of all of it.

    Attributes:
        records: Data records that stay.
        record_bytes: Their bytes, uncompressed.
        batches: Batches that still hold one.
        overdue_tombstones: Standing tombstones whose delete horizon is over.
        overdue_bytes: Their bytes.
        oldest_horizon_ms: The first of those horizons; None without any.
    """

    records: int = 0
    record_bytes: int = 0
    batches: int = 0
    overdue_tombstones: int = 0
    overdue_bytes: int = 0
    oldest_horizon_ms: int | None = None


def retained(
    states: KeyStates, horizons: Mapping[Place, Horizons], now_ms: Mapping[Place, int]
) -> dict[Place, Retained]:
    """Return what would be left of each partition (``Cleaner.shouldRetainRecord``).

    The last record of each key where the cleaner may go stays: also where there is a later one
    beyond, which the cleaner does not look at. A tombstone goes once its delete horizon is over.

    Args:
        states: What is known of keys; its bounds say where the cleaner may go.
        horizons: Delete horizons by partition.
        now_ms: The end of the log by partition.
    """
    rows = states.rows
    number = states.partition_of(rows[:, KEY_PLACE])
    order = np.argsort(number, kind="stable")
    first = np.flatnonzero(np.diff(number[order], prepend=-1))
    places: list[Place] = states.places.names  # type: ignore[assignment]
    found = {}
    for chosen in np.split(order, first[1:]) if order.size else ():
        place = places[int(number[chosen[0]])]
        found[place] = _of_partition(rows[chosen], horizons.get(place, ()), now_ms.get(place, -1))
    return found


def _of_partition(rows: NDArray[np.int64], horizons: Horizons, now_ms: int) -> Retained:
    clean = rows[:, CLEAN_OFFSET]
    over = _horizons(clean, horizons) <= now_ms
    stays = (clean >= 0) & ~((rows[:, CLEAN_IS_TOMBSTONE] != 0) & over)
    stands = (rows[:, LAST_OFFSET] >= 0) & (rows[:, LAST_IS_TOMBSTONE] != 0)
    horizon = _horizons(rows[:, LAST_OFFSET], horizons)
    overdue = stands & (horizon <= now_ms)
    return Retained(
        records=int(stays.sum()),
        record_bytes=int(rows[stays, CLEAN_BYTES].sum()),
        batches=int(np.unique(rows[stays, CLEAN_BATCH]).size),
        overdue_tombstones=int(overdue.sum()),
        overdue_bytes=int(rows[overdue, LAST_BYTES].sum()),
        oldest_horizon_ms=int(horizon[overdue].min()) if overdue.any() else None,
    )


def _horizons(offset: NDArray[np.int64], horizons: Horizons) -> NDArray[np.int64]:
    """Return the delete horizon of the batch of each offset, `NO_HORIZON` where it has none."""
    found = np.full(offset.size, NO_HORIZON, np.int64)
    if horizons:
        horizon, first, end = np.array(horizons, np.int64).T
        place = np.searchsorted(first, offset, "right") - 1
        inside = (place >= 0) & (offset < end[np.maximum(place, 0)])
        found[inside] = horizon[place[inside]]
    return found
