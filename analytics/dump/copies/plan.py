"""From INPUTs to what is read: one slice after the other, every record accounted for."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.dump.batches.batch_bytes import Damage, DamageReason, checksum_in_file
from analytics.dump.batches.headers import Headers
from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.batches.walks import CopyLog, log_senses, walk_copy, walk_segment
from analytics.dump.copies.compare import near_batches
from analytics.dump.copies.leadership import NO_LEADERS, Leaders
from analytics.dump.copies.slices import (
    ALL_THAT_COUNTS,
    Edges,
    choose_snapshots,
    slices_of_lines,
    slices_of_one,
    with_refusals,
)
from analytics.dump.copies.surviving_lines import find_lines, ranked_copies, with_witnessed_epochs
from analytics.dump.files.inputs import Inputs, recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.files.model import (
    NOTHING_KNOWN,
    Copy,
    Divergence,
    Filled,
    Ignored,
    Note,
    PartitionCopy,
    Plan,
    SegmentFile,
    Slice,
)
from analytics.dump.files.storage import ByteSource
from analytics.errors import InputNotRecognizedError, InputUnreadableError
from analytics.locations import base_name
from schemas import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.dump.batches.walks import SegmentWalk
    from analytics.dump.files.model import Swap

# A log as it was before its cleaner had done: the segments that swap files take the place of.
#
# A cleaner's finished output waits as ``.swap`` beside the segments that it replaces, which the
# broker deletes when it starts again (``LogLoader``). What it loads is the swap file; what
# happened is in the segments. They are believed only where they show the whole range: a segment
# that is gone cannot be told from records that an earlier cleaning took.

NOT_YET_IN_PLACE = "a cleaner's output that had not replaced the segments beside it"


def before_swaps(partition: PartitionCopy) -> PartitionCopy:
    """Return a partition with the segments that swap files take the place of, in their place.

    Args:
        partition: With swap files.
    """
    swapped = {each.file.name for each in partition.swaps}
    replaced = [each for swap in partition.swaps for each in swap.replaces]
    names = {base_name(each.path) for each in replaced}
    logs = [*(each for each in partition.logs if each.name not in swapped), *replaced]
    kept = [each for each in partition.ignored if each.name not in names]
    ignored = [Ignored(base_name(each.file.path), NOT_YET_IN_PLACE) for each in partition.swaps]
    return replace(
        partition,
        segments=(*sorted(logs, key=lambda each: each.base_offset), *partition.checkpoints),
        ignored=(*kept, *ignored),
        first_dirty_offset=partition.noted_first_dirty,
        swaps=(),
    )


def why_not_before_swaps(partition: PartitionCopy, before: PartitionCopy) -> str | None:
    """Return why a partition's segments do not show what was before its swap files; else None.

    Every batch of them is read and its checksum compared.

    Args:
        partition: With swap files.
        before: The same as `before_swaps` returns it.
    """
    senses = {each.name: sense for each, sense in zip(before.logs, log_senses(before), strict=True)}
    begins = {one.name: other.base_offset for one, other in pairwise(before.logs)}
    for swap in partition.swaps:
        name, replaced = base_name(swap.file.path), swap.replaces
        if not replaced or replaced[0].base_offset != swap.file.base_offset:
            return f"no segment that begins where {name} begins lies beside it"
        walks = [walk_segment(each, senses[each.name], check_crc=True) for each in replaced]
        why = _why_not_whole(walks, begins) or _why_not_all_of(swap, walks)
        if why is not None:
            return why
    return None


def _why_not_whole(walks: Sequence[SegmentWalk], begins: dict[str, int]) -> str | None:
    for walk in walks:
        name, end = base_name(walk.segment.path), _end(walk)
        if walk.unreadable or walk.damages or walk.changed:
            return f"{name} cannot be read whole"
        if begins.get(walk.segment.name, end) != end:
            return (
                f"{name} ends at offset {end:,} and the next segment begins at "
                f"{begins[walk.segment.name]:,}: whether another one is missing cannot be told"
            )
    return None


def _why_not_all_of(swap: Swap, walks: Sequence[SegmentWalk]) -> str | None:
    """Return why segments are not what a swap file was made of: it has what they have not.

    A batch that was cleaned lies within the one that it was.
    """
    own = walk_segment(swap.file, NOTHING_KNOWN).headers
    source = Headers.concatenate([Headers.none(), *(walk.headers for walk in walks)])
    at = np.searchsorted(source.last_offset, own.last_offset)
    is_there = at < len(source)
    is_there[is_there] = source.base_offset[at[is_there]] <= own.base_offset[is_there]
    if is_there.all():
        return None
    first, end = own.base_offset[~is_there][0], own.last_offset[~is_there][0] + 1
    name = base_name(swap.file.path)
    return f"{name} has a batch of offsets {first:,} to {end:,} that no segment beside it has"


def _end(walk: SegmentWalk) -> int:
    headers = walk.headers
    return int(headers.last_offset[-1]) + 1 if len(headers) else walk.segment.base_offset


# Batches that have rotted on one broker's disk are taken from another one's copy that is sound.
# Copies hold the same bytes, so comparing them finds rot far sooner than summing over every
# batch; a checksum is only asked where they differ, to tell whose bytes are the true ones.

SPLIT_BYTES = 128 << 20
MOST_ABSENT = 10_000

_PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class PlanOptions:
    """What a person may ask for.

    Attributes:
        topics: Internal topics to read; None = all.
        partitions: Their partitions to read; None = all.
        edges: Which ends of the logs count.
        prefer_copy: The copy whose line is decoded, whichever survived.
        topic_partition: Whose a segment is that lies outside a partition directory.
        value_encoding: How archived rows write keys and values, where that was said.
        split_bytes: Larger files are cut between batches.
        compare_bytes: Where several copies hold a batch, look whether one has rotted.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    edges: Edges = ALL_THAT_COUNTS
    prefer_copy: str | None = None
    topic_partition: str | None = None
    value_encoding: str | None = None
    split_bytes: int = SPLIT_BYTES
    compare_bytes: bool = True


@dataclass(frozen=True)
class PartitionPlan:
    """What is read of one partition."""

    slices: tuple[Slice, ...]
    leading: str
    divergences: tuple[Divergence, ...] = ()
    filled: tuple[Filled, ...] = ()
    notes: tuple[Note, ...] = ()


def _nobody(copies: Sequence[Copy]) -> Leaders:  # noqa: ARG001 - nothing is read
    return NO_LEADERS


def plan(
    inputs: Inputs | Sequence[str],
    options: PlanOptions | None = None,
    leaders_of: Callable[[Sequence[Copy]], Leaders] = _nobody,
) -> Plan:
    """Tell what to read, of which copy, on which line of history.

    Log directories only: archived rows and workspaces have their own doors.

    Args:
        inputs: INPUTs as given, or already recognised.
        options: What a person asked for.
        leaders_of: Returns what the metadata log of copies knows of leaders.

    Raises:
        InputNotRecognizedError: An INPUT is nothing known, or no copy has the preferred name.
        InputUnreadableError: The system refuses.
    """
    options = options or PlanOptions()
    if not isinstance(inputs, Inputs):
        inputs = recognize(inputs, options.topic_partition)
    notes: list[Note] = []
    copies = read_copies(inputs.disks, next_offset, notes)
    check_preferred(copies, options.prefer_copy)
    leaders = leaders_of(copies)
    plans = {
        key: plan_partition(group, copies, options, leaders)
        for key, group in partitions_by_key(copies, options).items()
    }
    earlier = _plan_before_swaps(copies, options, leaders, notes)
    return Plan(
        copies=tuple(copies),
        slices=tuple(each for found in plans.values() for each in found.slices),
        leading={key: found.leading for key, found in plans.items()},
        divergences=tuple(each for found in plans.values() for each in found.divergences),
        filled=tuple(each for found in plans.values() for each in found.filled),
        notes=(*notes, *(each for found in plans.values() for each in found.notes)),
        leaders=leaders,
        before_swaps=earlier,
    )


def _plan_before_swaps(
    copies: Sequence[Copy], options: PlanOptions, leaders: Leaders, notes: list[Note]
) -> Plan | None:
    """Return what is read of partitions with swap files as they were before; None where nothing is.

    Lines that did not survive are what they are, and decoded once.

    Args:
        copies: As listed.
        options: What a person asked for.
        leaders: What the metadata log knows of leaders.
        notes: Takes why segments that lie beside a swap file do not show what was before it.
    """
    every = partitions_by_key(copies, options)
    earlier = {
        (each.copy, each.key): before_swaps(each)
        for group in every.values()
        for each in group
        if each.swaps
    }
    if not earlier:
        return None
    refused = set()
    for group in every.values():
        for each in group:
            before = earlier.get((each.copy, each.key))
            why = None if before is None else why_not_before_swaps(each, before)
            if why is not None:
                refused.add(each.key)
                what = f"of what the cleaner took, nothing is read from beside a swap file: {why}"
                notes.append(Note(f"{each.copy}: {each.topic}-{each.partition}", what))
    copies = [
        replace(
            copy,
            partitions=tuple(earlier.get((each.copy, each.key), each) for each in copy.partitions),
        )
        for copy in copies
    ]
    wanted = {key for _, key in earlier} - refused
    groups = {k: each for k, each in partitions_by_key(copies, options).items() if k in wanted}
    plans = {k: plan_partition(group, copies, options, leaders) for k, group in groups.items()}
    if not plans:
        return None
    return Plan(
        copies=tuple(copies),
        slices=tuple(each for of in plans.values() for each in of.slices if not each.line),
        leading={key: of.leading for key, of in plans.items()},
        filled=tuple(each for of in plans.values() for each in of.filled if not each.line),
        leaders=leaders,
    )


def plan_partition(
    group: Sequence[PartitionCopy],
    copies: Sequence[Copy],
    options: PlanOptions,
    leaders: Leaders = NO_LEADERS,
) -> PartitionPlan:
    """Tell what to read of one partition.

    Args:
        group: Its copies; at least one.
        copies: All copies, for what their brokers are.
        options: What a person asked for.
        leaders: What the metadata log knows of leaders.
    """
    if len(group) == 1:
        slices = slices_of_one(group[0], options.split_bytes, options.edges)
        snapshots, notes = choose_snapshots(group)
        every = with_refusals((*slices, *snapshots))
        return PartitionPlan(every, group[0].copy, (), (), tuple(notes))
    node_ids = {copy.name: copy.node_id for copy in copies}
    logs = with_witnessed_epochs([walk_copy(each) for each in group], leaders)
    if options.compare_bytes:
        ranked = ranked_copies(logs, node_ids)
        logs = _without_rot(sorted(ranked, key=lambda log: log.name != options.prefer_copy))
    lines = find_lines(logs, options.prefer_copy, node_ids)
    slices, unions = slices_of_lines(lines, options.split_bytes, options.edges)
    snapshots, notes = choose_snapshots([log.partition for log in lines.copies])
    return PartitionPlan(
        slices=with_refusals((*slices, *snapshots), lines.copies),
        leading=lines.leading,
        divergences=lines.divergences,
        filled=tuple(each for union in unions for each in union.filled),
        notes=(*lines.notes, *notes),
    )


def partitions_by_key(
    copies: Iterable[Copy], options: PlanOptions
) -> Mapping[tuple[str, int], list[PartitionCopy]]:
    """Return the copies of each internal partition that is asked for, in order of topics."""
    groups: dict[tuple[str, int], list[PartitionCopy]] = defaultdict(list)
    for copy in copies:
        for each in copy.partitions:
            wanted = options.topics is None or each.topic in options.topics
            if wanted and (options.partitions is None or each.partition in options.partitions):
                groups[each.key].append(each)
    return dict(sorted(groups.items(), key=lambda item: (_place(item[0][0]), item[0])))


def absent_partitions(
    copies: Iterable[Copy], registered: Mapping[str, int] = MappingProxyType({})
) -> dict[str, tuple[int, ...]]:
    """Return, per internal topic, the partitions that no copy holds.

    Directories alone show those below the highest one; the metadata log shows how many there are.
    Of a topic that lacks more than any real one has, the first `MOST_ABSENT`.

    Args:
        copies: As listed.
        registered: How many partitions topics have, as far as the metadata log tells.
    """
    present: dict[str, set[int]] = defaultdict(set)
    for copy in copies:
        for each in copy.partitions:
            present[each.topic].add(each.partition)
    ends = {
        topic: max(*present[topic], registered.get(topic, 0) - 1)
        for topic in INTERNAL_TOPICS
        if present[topic]
    }
    return {
        topic: tuple(islice((n for n in range(end + 1) if n not in present[topic]), MOST_ABSENT))
        for topic, end in ends.items()
    }


def check_preferred(copies: Iterable[Copy], prefer_copy: str | None) -> None:
    """Refuse a preference for a copy that is not there.

    Raises:
        InputNotRecognizedError: No copy has that name.
    """
    names = [copy.name for copy in copies]
    if prefer_copy is not None and prefer_copy not in names:
        raise InputNotRecognizedError(
            f"--prefer-copy {prefer_copy}: no copy has this name; there are {', '.join(names)}"
        )


def next_offset(segment: SegmentFile) -> int:
    """Return a segment's last offset + 1; its base offset where it holds no batch."""
    headers = walk_segment(segment, LogSense(segment.base_offset)).headers
    return int(headers.last_offset[-1]) + 1 if len(headers) else segment.base_offset


def _place(topic: str) -> int:
    return INTERNAL_TOPICS.index(topic)


class _Run(NamedTuple):
    """Batches that lie side by side in one file of each copy, ``own`` and ``twin`` in turn."""

    own: NDArray[np.int64]
    twin: NDArray[np.int64]


def _without_rot(logs: Sequence[CopyLog]) -> list[CopyLog]:
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
