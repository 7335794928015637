"""Where the batches of a slice are, once the chain is walked and offsets and epochs are judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.dump.batches.chain_walk import ChainWalk
from analytics.dump.batches.damage import Damage, DamageReason, Tail
from analytics.dump.batches.headers import read_headers
from analytics.dump.batches.limits import DEFAULT_LIMITS, Limits
from analytics.dump.batches.log_bounds import LogSense, implausible_epochs, implausible_offsets
from analytics.dump.records.raw_records import PADDING, Batches
from analytics.dump.records.wrappers import complete_wrappers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.files.byte_source import ByteSource


@dataclass(frozen=True)
class Layout:
    """What lies where in a slice of a segment.

    Attributes:
        batches: Those to read, in file order; a leader epoch not to be believed is -1.
        damages: In file order, without their bytes.
        tail: The bytes after the last batch, if any.
        implausible_epochs: Batches whose leader epoch is not to be believed.
    """

    batches: Batches
    damages: list[Damage]
    tail: Tail | None
    implausible_epochs: int


def lay_out(
    source: ByteSource,
    start: int,
    stop: int,
    sense: LogSense,
    *,
    check_crc: bool,
    limits: Limits = DEFAULT_LIMITS,
) -> Layout:
    """Find the batches from byte ``start``, where one begins, to byte ``stop``."""
    walk = ChainWalk(source, start, stop, sense, check_crc=check_crc)
    walk.run()
    batches = Batches.concatenate(walk.parts or [no_batches()])
    complete_wrappers(source, batches, limits)
    wrong = implausible_offsets(batches, sense)
    damages = walk.damages
    if wrong.any():
        damages = sorted(damages + _implausible(batches, wrong), key=lambda each: each.position)
        batches = batches.take(~wrong)
    doubtful = implausible_epochs(batches, sense)
    epochs = np.where(doubtful, np.int32(-1), batches.leader_epoch)
    batches = replace(batches, leader_epoch=epochs)
    return Layout(batches, damages, walk.tail, int(doubtful.sum()))


def _implausible(batches: Batches, wrong: NDArray[np.bool_]) -> list[Damage]:
    rows = batches.take(np.flatnonzero(wrong))
    columns = (rows.position, rows.size, rows.base_offset, rows.count)
    return [
        Damage(
            position,
            size,
            DamageReason.IMPLAUSIBLE_OFFSET,
            "the offset contradicts the batches around it or the segment's bounds",
            offset,
            records=max(count, 0),
        )
        for position, size, offset, count in zip(*(c.tolist() for c in columns), strict=True)
    ]


def no_batches() -> Batches:
    """Return a `Batches` without rows."""
    nothing = np.empty(0, np.int64)
    return read_headers(np.zeros(PADDING, np.uint8), nothing, nothing, 0)
