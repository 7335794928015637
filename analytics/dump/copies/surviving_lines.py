"""Several brokers, one truth: which copy's line survived, and which lines were lost.

The copy with the newest leader epoch leads, then the one that goes furthest: an epoch is given
once, and a broker that knows a newer one was there when it was given (KIP-101; for the metadata
log, Raft's own rule). An epoch in which nothing was written counts; where the broker's own notes of
epochs are missing, the metadata log says in which it led or was in sync.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.dump.batches.headers import UNKNOWN_COUNT
from analytics.dump.copies.compare import MAX_COMPARED_BYTES, Parting, offsets_between, parting
from analytics.dump.copies.leadership import NO_EPOCH
from analytics.dump.files.model import FIRST_RECORD, MAX_OFFSET, Divergence, Note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.dump.batches.headers import Headers
    from analytics.dump.batches.walks import CopyLog
    from analytics.dump.copies.leadership import Leaders


@dataclass(frozen=True)
class LeaderRange:
    """Offsets of a copy, and the line of history they belong to."""

    first: int
    end: int
    line: str


@dataclass(frozen=True)
class Lines:
    """The copies of one partition, and the lines of history they hold.

    Attributes:
        copies: The one whose line is decoded first, then by rank.
        leading: Name of the copy whose line survived.
        leader_ranges: For each copy its ranges, ascending, from 0 to the end of all offsets;
            line ``""`` is the one that is decoded.
        divergences: One for each line that did not survive.
        notes: What could not be compared.
    """

    copies: tuple[CopyLog, ...]
    leading: str
    leader_ranges: Mapping[str, tuple[LeaderRange, ...]]
    divergences: tuple[Divergence, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass
class _Partings:
    """Partings of pairs of copies, each looked for once."""

    max_bytes: int
    by_pair: dict[tuple[str, str], Parting] = field(default_factory=dict)

    def of(self, other: CopyLog, leader: CopyLog) -> Parting:
        key = (other.name, leader.name)
        if key not in self.by_pair:
            self.by_pair[key] = parting(other, leader, self.max_bytes)
        return self.by_pair[key]


def find_lines(
    logs: Sequence[CopyLog],
    prefer_copy: str | None = None,
    node_ids: Mapping[str, int | None] | None = None,
    max_compared_bytes: int = MAX_COMPARED_BYTES,
) -> Lines:
    """Tell the lines of history that the copies of one partition hold.

    Args:
        logs: One walked log for each copy; at least one.
        prefer_copy: The copy whose line is decoded, whichever survived.
        node_ids: Of each copy; between equals a voter of the metadata quorum leads.
        max_compared_bytes: Of batches whose headers leave doubt.
    """
    ranked = ranked_copies(logs, node_ids or {})
    partings = _Partings(max_compared_bytes)
    divergences = _divergences(ranked, partings)
    decoded = sorted(ranked, key=lambda log: log.name != prefer_copy)
    leader_ranges: dict[str, tuple[LeaderRange, ...]] = {}
    for position, log in enumerate(decoded):
        leader_ranges[log.name] = _leader_ranges(log, decoded[:position], partings, leader_ranges)
    notes = tuple(
        Note(
            f"{other}: {logs[0].partition.topic}-{logs[0].partition.partition}",
            f"not every batch that differs from {leader}'s was compared: there are more than "
            f"{max_compared_bytes} bytes of them; leader epochs decided",
        )
        for (other, leader), found in partings.by_pair.items()
        if not found.compared_all
    )
    divergences = tuple(_with_pieces(each, leader_ranges[each.copy]) for each in divergences)
    return Lines(tuple(decoded), ranked[0].name, leader_ranges, divergences, notes)


def ranked_copies(logs: Sequence[CopyLog], node_ids: Mapping[str, int | None]) -> list[CopyLog]:
    """Return the copies, the one whose line survived first.

    Copies of another topic of the same name (it was deleted and created again) come after all
    those of the one written to last.
    """
    newest: dict[str | None, int] = {}
    for log in logs:
        times = log.headers.max_timestamp
        last = int(times.max()) if times.size else -1
        newest[log.partition.topic_id] = max(newest.get(log.partition.topic_id, -1), last)
    # A copy without an id may be of any: it is judged by its epochs.
    newest[None] = max(newest.values())

    def rank(log: CopyLog) -> tuple[int, int, int, int, bool, int, str]:
        is_voter = node_ids.get(log.name) in log.partition.voters
        return (
            -newest[log.partition.topic_id],
            -log.epochs.newest,
            -log.epochs.latest,
            -log.end_offset,
            not is_voter,
            log.first_offset,
            log.name,
        )

    return sorted(logs, key=rank)


def with_witnessed_epochs(logs: Sequence[CopyLog], leaders: Leaders) -> list[CopyLog]:
    """Return the copies of a partition with the epochs in which their brokers led or were in sync.

    Args:
        logs: Walked.
        leaders: What the metadata log knows.
    """
    latest = {log.name: log.epochs.latest for log in logs}
    found = leaders.witnessed_epochs(logs[0].partition.key, latest)
    return [replace(log, witnessed_epoch=found.get(log.name, NO_EPOCH)) for log in logs]


def _leader_ranges(
    log: CopyLog,
    before: Sequence[CopyLog],
    partings: _Partings,
    of_copies: Mapping[str, tuple[LeaderRange, ...]],
) -> tuple[LeaderRange, ...]:
    """Return a copy's ranges: shared with the copy it goes along with longest, then its own."""
    if not before:
        return (LeaderRange(0, MAX_OFFSET, ""),)
    nearest = max(before, key=lambda other: partings.of(log, other).offset)
    leaves_at = partings.of(log, nearest).offset
    if leaves_at >= log.end_offset or not _batches_from(log, leaves_at).any():
        return of_copies[nearest.name]
    shared = [
        LeaderRange(each.first, min(each.end, leaves_at), each.line)
        for each in of_copies[nearest.name]
        if each.first < leaves_at
    ]
    return (*shared, LeaderRange(leaves_at, MAX_OFFSET, log.name))


def _divergences(ranked: Sequence[CopyLog], partings: _Partings) -> tuple[Divergence, ...]:
    """Return one row for each line that left the surviving one; a shared one is counted once."""
    survivor, *others = ranked
    rows = []
    for position, log in enumerate(others, start=1):
        nearest = max(ranked[:position], key=lambda other: partings.of(log, other).offset)
        own_from = partings.of(log, nearest).offset
        lost = _batches_from(log, own_from)
        if own_from < log.end_offset and lost.any():
            parted = partings.of(log, survivor)
            later = [each for each in others if each is not log and each is not survivor]
            rows.append(_divergence(log, survivor, parted, own_from, later))
    return tuple(rows)


def _divergence(
    log: CopyLog, survivor: CopyLog, parted: Parting, own_from: int, others: Sequence[CopyLog]
) -> Divergence:
    """Return a lost line.

    Args:
        log: Whose line it is.
        survivor: Whose line survived.
        parted: Where the line leaves the surviving one.
        own_from: Where it leaves the line that it shares longest.
        others: Copies of lines that may have ended this one before the surviving one was there.
    """
    lost = log.headers.take(_batches_from(log, own_from))
    after = survivor.headers.take(_batches_from(survivor, parted.offset))
    last = int(lost.leader_epoch.max())
    epoch = int(after.leader_epoch[0]) if len(after) else survivor.epochs.at(parted.offset)
    if not len(after) and epoch <= last < survivor.epochs.newest:
        # Nothing was written since the election, and the broker's note of it is missing.
        epoch = survivor.epochs.newest
    ended_by = _first_after(last, own_from, others)
    if ended_by is not None and ended_by[0] < epoch:
        epoch, after = ended_by
    in_epoch = after.first_timestamp[after.leader_epoch == epoch] if len(after) else np.empty(0)
    elected = in_epoch[in_epoch >= 0]
    started, ended = lost.first_timestamp, lost.max_timestamp
    return Divergence(
        topic=log.partition.topic,
        partition=log.partition.partition,
        copy=log.name,
        diverges_at=parted.offset,
        end_offset=log.end_offset,
        lost_records=_records(log, lost, own_from),
        lost_from_timestamp=int(started[started >= 0].min()) if (started >= 0).any() else None,
        lost_to_timestamp=int(ended[ended >= 0].max()) if (ended >= 0).any() else None,
        lost_leader_epoch=_epoch_or_none(last),
        surviving_leader_epoch=_epoch_or_none(epoch),
        surviving_copy=survivor.name,
        elected_at=int(elected[0]) if elected.size else None,
        how=parted.how,
        election_shown_by=FIRST_RECORD if elected.size else None,
        high_watermark=log.partition.high_watermark,
    )


def _first_after(epoch: int, offset: int, others: Sequence[CopyLog]) -> tuple[int, Headers] | None:
    """Return the first later leader epoch from an offset on that copies have batches of, and these.

    None where no copy has any, or the epoch is not known.
    """
    found: tuple[int, Headers] | None = None
    for log in others if epoch > NO_EPOCH else ():
        headers = log.headers.take(_batches_from(log, offset))
        epochs = headers.leader_epoch[headers.leader_epoch > epoch]
        if epochs.size and (found is None or int(epochs.min()) < found[0]):
            found = int(epochs.min()), headers
    return found


def _with_pieces(divergence: Divergence, leader_ranges: Sequence[LeaderRange]) -> Divergence:
    pieces = tuple((each.line, each.first) for each in leader_ranges if each.line)
    return replace(divergence, pieces=pieces)


def _records(log: CopyLog, batches: Headers, first: int) -> int:
    """Return the number of records; those of compressed magic 0/1 entries are looked into."""
    if (batches.count == UNKNOWN_COUNT).any():
        return offsets_between(log, first, MAX_OFFSET).size
    return int(batches.count.sum())


def _batches_from(log: CopyLog, offset: int) -> NDArray[np.bool_]:
    """Mark the batches that hold records at or above an offset."""
    headers = log.headers
    marked: NDArray[np.bool_] = (headers.last_offset >= offset) & (headers.count != 0)
    return marked


def _epoch_or_none(epoch: int) -> int | None:
    return epoch if epoch > NO_EPOCH else None
