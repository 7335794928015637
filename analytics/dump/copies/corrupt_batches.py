"""Batches that have rotted on one broker's disk while another one's copy is sound.

Copies hold the same bytes, so comparing them finds rot far sooner than summing over every batch; a
checksum is only asked where they differ, to tell whose bytes are the true ones.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.batches.checksums import checksum_in_file
from analytics.dump.batches.damage import Damage, DamageReason
from analytics.dump.batches.walks import CopyLog
from analytics.dump.copies.compare import near_batches
from analytics.dump.files.byte_source import ByteSource
from analytics.errors import InputUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

_PIECE_BYTES = 4 << 20


class _Run(NamedTuple):
    """Batches that lie side by side in one file of each copy, ``own`` and ``twin`` in turn."""

    own: NDArray[np.int64]
    twin: NDArray[np.int64]


def without_rot(logs: Sequence[CopyLog]) -> list[CopyLog]:
    """Return the copies with batches taken out that another copy shows to be damaged.

    Each copy is held against the first one; what no other copy holds is not looked at.

    Args:
        logs: Of one partition, the one to be decoded first.
    """
    first, *others = logs
    held = []
    for other in others:
        rotten, rotten_first = _rotten(other, first)
        held.append(_without(other, rotten))
        first = _without(first, rotten_first)
    return [first, *held]


def _rotten(other: CopyLog, first: CopyLog) -> tuple[list[int], list[int]]:
    """Return the rows of both copies whose bytes differ and do not check."""
    rotten: tuple[list[int], list[int]] = ([], [])
    for run in _runs(other, first):
        try:
            for row, twin in _differing(other, first, run):
                for log, number, found in ((other, row, rotten[0]), (first, twin, rotten[1])):
                    if not _checks(log, number):
                        found.append(number)
        except InputUnreadableError:
            # Whoever reads the file next is told.
            continue
    return rotten


def _runs(other: CopyLog, first: CopyLog) -> Iterator[_Run]:
    near = near_batches(other.headers, first.headers)
    own = np.flatnonzero(near.equal)
    twin = near.row[own]
    if not own.size:
        return
    breaks = np.zeros(own.size - 1, np.bool_)
    for log, rows in ((other, own), (first, twin)):
        ends = log.headers.position[rows] + log.headers.size[rows]
        breaks |= (log.file[rows[1:]] != log.file[rows[:-1]]) | (
            log.headers.position[rows[1:]] != ends[:-1]
        )
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), own.size]
    for start, end in pairwise(edges):
        yield _Run(own[start:end], twin[start:end])


def _differing(other: CopyLog, first: CopyLog, run: _Run) -> Iterator[tuple[int, int]]:
    """Yield the rows of batches of a run whose bytes are not the same in both files."""
    starts = other.headers.position[run.own]
    begin, end = int(starts[0]), int(starts[-1] + other.headers.size[run.own[-1]])
    shift = int(first.headers.position[run.twin[0]]) - begin
    with (
        ByteSource(_path(other, int(run.own[0]))) as ours,
        ByteSource(_path(first, int(run.twin[0]))) as theirs,
    ):
        for position in range(begin, end, _PIECE_BYTES):
            size = min(_PIECE_BYTES, end - position)
            same = ours.array(position, size) == theirs.array(position + shift, size)
            if same.all():
                continue
            places = np.flatnonzero(~same) + position
            for at in np.unique(np.searchsorted(starts, places, "right") - 1).tolist():
                yield int(run.own[at]), int(run.twin[at])


def _checks(log: CopyLog, row: int) -> bool:
    headers = log.headers
    position, size = int(headers.position[row]), int(headers.size[row])
    with ByteSource(_path(log, row)) as source:
        found = checksum_in_file(source, position, size, int(headers.magic[row]))
    return found == int(headers.crc[row])


def _without(log: CopyLog, rows: Iterable[int]) -> CopyLog:
    """Return a copy with batches taken for damage."""
    bad = np.array(sorted(set(rows)), np.int64)
    if not bad.size:
        return log
    walks = list(log.walks)
    for number in np.unique(log.file[bad]).tolist():
        positions = log.headers.position[bad[log.file[bad] == number]]
        walk = walks[number]
        keep = ~np.isin(walk.headers.position, positions)
        lost = walk.headers.take(~keep)
        damages = [
            Damage(position, size, DamageReason.BAD_CRC, offset=offset, records=max(count, 0))
            for position, size, offset, count in zip(
                lost.position.tolist(),
                lost.size.tolist(),
                lost.base_offset.tolist(),
                lost.count.tolist(),
                strict=True,
            )
        ]
        ordered = sorted((*walk.damages, *damages), key=lambda each: each.position)
        walks[number] = replace(walk, parts=(walk.headers.take(keep),), damages=tuple(ordered))
    return replace(log, walks=tuple(walks))


def _path(log: CopyLog, row: int) -> str:
    return log.walks[int(log.file[row])].segment.path
