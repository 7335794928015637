"""Log directories become copies: one for each broker, however many disks it has.

One segment under two names is a copy that went wrong, or a file put back twice: the broker itself
never writes the same batches twice into two files of a partition. Read as two segments they would
contradict each other, and the wrong name would seem to bound its neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

from analytics.dump.files.inputs import DiskSource, PartitionSource, safe_name
from analytics.dump.files.model import Copy, Ignored, Note, PartitionCopy, SegmentFile
from analytics.dump.files.segments import (
    FIRST_DIRTY,
    LEADER_EPOCHS,
    PARTITION_METADATA,
    QUORUM_STATE,
    WHY_FOLDER,
    DiskFiles,
    QuorumState,
    dying_state,
    holds_partition,
    list_segments,
    partition_of,
    read_disk_files,
    read_leader_epochs,
    read_quorum_state,
    read_topic_id,
    segments_without_log,
    settle_swaps,
    snapshot_ends,
)
from analytics.dump.files.storage import storage_of
from analytics.errors import InputNotRecognizedError
from analytics.locations import base_name, join, parent
from schemas import INTERNAL_TOPICS
from schemas.snapshot import Log

if TYPE_CHECKING:
    from analytics.dump.files.segments import Listing

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
T = TypeVar("T")
NextOffset = Callable[[SegmentFile], int]

_BASE_OFFSET_BYTES = 8
_HEADER_BYTES = 61
_PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class _Disk:
    source: DiskSource
    files: DiskFiles
    partitions: tuple[PartitionSource, ...]
    ignored: tuple[Ignored, ...]
    names: frozenset[str]

    @property
    def whole(self) -> bool:
        return self.source.partitions is None

    @property
    def never_cleaned(self) -> int | None:
        """First dirty offset of a partition that the cleaner's checkpoint does not name.

        It names all that were ever cleaned; where it is not there, or broken, nothing is known.
        """
        path = join(self.source.path, FIRST_DIRTY)
        broken = any(note.where == path for note in self.files.notes)
        return 0 if FIRST_DIRTY in self.names and not broken else None

    @property
    def keys(self) -> set[tuple[str, int]]:
        return {(source.topic, source.partition) for source in self.partitions}


def read_copies(
    sources: Sequence[DiskSource], next_offset: NextOffset, notes: list[Note]
) -> list[Copy]:
    """Read what lies in log directories and put the disks of each broker together.

    Args:
        sources: The log directories.
        next_offset: Reads a segment's last offset + 1; asked only about swap files.
        notes: Takes what is broken in checkpoint files.

    Raises:
        InputNotRecognizedError: The log directories are of several clusters.
        InputUnreadableError: A directory cannot be read.
    """
    disks = [_read_disk(source) for source in sources]
    for disk in disks:
        notes += disk.files.notes
        notes += _dying(disk)
    notes += _held_twice(disks)
    _check_one_cluster(disks)
    named = _named(_disks_of_each_broker(disks))
    return [_copy(name, group, next_offset, notes) for name, group in named.items()]


def _read_disk(source: DiskSource) -> _Disk:
    storage = storage_of(source.path)
    entries = storage.list(source.path)
    names = {entry.name for entry in entries if not (entry.is_folder or entry.is_special)}
    files = read_disk_files(names, lambda name: join(source.path, name))
    if source.partitions is not None:
        return _Disk(source, files, source.partitions, (), frozenset(names))
    partitions, ignored = [], []
    for entry in entries:
        if not entry.is_folder:
            continue
        whose, state = partition_of(entry.name), dying_state(entry.name)
        if whose:
            partitions.append(PartitionSource(join(source.path, entry.name), *whose))
        else:
            why = WHY_FOLDER[state] if state else "not a partition directory"
            ignored.append(Ignored(entry.name, why))
    return _Disk(source, files, tuple(partitions), tuple(ignored), frozenset(names))


def _dying(disk: _Disk) -> Iterator[Note]:
    """Yield the directories of internal topics that Kafka was deleting."""
    for each in disk.ignored:
        if each.why == WHY_FOLDER["delete"] and each.name.startswith(tuple(INTERNAL_TOPICS)):
            yield Note(join(disk.source.path, each.name), f"not read: {each.why}")


def _held_twice(disks: Sequence[_Disk]) -> Iterator[Note]:
    """Yield the partitions that two disks of one broker hold (``LogManager.loadLogs``).

    Disks have ids from release 3.7 on. Without, the same disk copied at two times looks alike, but
    that each copy has partitions that the other lacks is rare then.
    """
    for one, other in combinations(disks, 2):
        ids = one.files.directory_id, other.files.directory_id
        is_same_broker = one.files.node_id is not None and one.files.node_id == other.files.node_id
        if not is_same_broker or ids[0] == ids[1] is not None:
            continue
        if None in ids and not (one.keys - other.keys and other.keys - one.keys):
            continue
        why = (
            "unless one is an older copy of the other, it does not start with both"
            if None in ids
            else "it does not start with both"
        )
        for topic, number in sorted(one.keys & other.keys):
            yield Note(
                f"{one.source.path}, {other.source.path}",
                f"two log directories of broker {one.files.node_id} hold {topic}-{number}: {why} "
                f"(Duplicate log directories found)",
            )


def _check_one_cluster(disks: Sequence[_Disk]) -> None:
    clusters: dict[str, str] = {}
    for disk in disks:
        if disk.files.cluster_id:
            clusters.setdefault(disk.files.cluster_id, disk.source.path)
    if len(clusters) > 1:
        found = ", ".join(f"{path} is of {cluster}" for cluster, path in clusters.items())
        raise InputNotRecognizedError(
            f"log directories of several clusters: {found}. Copies are compared and merged, which "
            f"makes sense within one cluster only: give those of one at a time"
        )


def _disks_of_each_broker(disks: Sequence[_Disk]) -> list[list[_Disk]]:
    """Group disks by the name given, else by what meta.properties says.

    Disks of one broker hold different partitions. The same broker's disk copied at two times
    holds the same ones: those are two copies.
    """
    groups: list[list[_Disk]] = []
    for disk in disks:
        for group in groups:
            if _is_of_broker(disk, group):
                group.append(disk)
                break
        else:
            groups.append([disk])
    return groups


def _is_of_broker(disk: _Disk, group: Sequence[_Disk]) -> bool:
    first = group[0]
    if disk.source.name is not None or first.source.name is not None:
        return disk.source.name == first.source.name
    same_node = disk.files.node_id is not None and disk.files.node_id == first.files.node_id
    taken = set[tuple[str, int]]().union(*(other.keys for other in group))
    same_disk = disk.files.directory_id is not None and any(
        other.files.directory_id == disk.files.directory_id for other in group
    )
    return same_node and not same_disk and not taken & disk.keys


def _named(groups: Sequence[list[_Disk]]) -> dict[str, list[_Disk]]:
    """Return the groups by unique names that can stand in a path of results."""
    wanted = [_names_for(group) for group in groups]
    named: dict[str, list[_Disk]] = {}
    for position, group in enumerate(groups):
        others = {names[0] for i, names in enumerate(wanted) if i != position}
        names = wanted[position]
        name = next((n for n in names if n not in named and n not in others), names[0])
        number = 2
        while name in named:
            name = f"{names[0]}-{number}"
            number += 1
        named[name] = group
    return named


def _names_for(group: Sequence[_Disk]) -> list[str]:
    """Return names for a copy, the best first, the less likely to clash later."""
    first = group[0]
    if first.source.name:
        return [first.source.name]
    own = safe_name(base_name(first.source.path))
    longer = safe_name(f"{base_name(parent(first.source.path))}-{own}")
    if len(group) > 1:
        return [f"broker-{first.files.node_id}", longer]
    return [own, longer]


def _copy(name: str, disks: Sequence[_Disk], next_offset: NextOffset, notes: list[Note]) -> Copy:
    by_key: dict[tuple[str, int], list[tuple[_Disk, PartitionSource]]] = defaultdict(list)
    for disk in disks:
        for source in disk.partitions:
            by_key[source.topic, source.partition].append((disk, source))
    partitions = [
        found
        for _, sources in sorted(by_key.items())
        if (found := _partition(name, sources, next_offset, notes)) is not None
    ]
    whole = [disk for disk in disks if disk.whole]
    first = disks[0].files
    return Copy(
        name=name,
        node_id=first.node_id,
        cluster_id=first.cluster_id,
        clean_shutdown=all(d.files.clean_shutdown is not None for d in whole) if whole else None,
        log_dirs=tuple(disk.source.path for disk in disks),
        partitions=tuple(p for p in partitions if p.topic in INTERNAL_TOPICS),
        data_partitions=tuple(p for p in partitions if p.topic not in INTERNAL_TOPICS),
        ignored=tuple(item for disk in disks for item in disk.ignored),
        facts=tuple(sorted({fact for disk in whole for fact in _facts(disk)})),
        snapshot=next((d.files.snapshot for d in disks if d.files.snapshot is not None), None),
    )


def _partition(
    copy: str,
    sources: Sequence[tuple[_Disk, PartitionSource]],
    next_offset: NextOffset,
    notes: list[Note],
) -> PartitionCopy | None:
    """Return one partition of a copy; named files of it are read together."""
    disk, source = sources[0]
    if any(other.directory != source.directory for _, other in sources):
        where = ", ".join(other.directory for _, other in sources)
        what = f"one copy holds {source.topic}-{source.partition} twice; only the first is read"
        notes.append(Note(where, what))
    listed = storage_of(source.directory).list(source.directory)
    if not holds_partition(listed):
        return None
    names = {entry.name for entry in listed if not (entry.is_folder or entry.is_special)}
    files = {other.file for _, other in sources if other.file is not None}
    kept = [entry for entry in listed if entry.name in files] if files else listed
    listing = list_segments(source.directory, source.topic, source.partition, kept)
    listing = settle_swaps(listing, next_offset)
    cleaned_until, swaps = listing.cleaned_until, listing.swaps
    if source.topic in INTERNAL_TOPICS:
        listing = settle_doubles(listing)
    key = (source.topic, source.partition)
    noted = disk.files.first_dirty.get(key, disk.never_cleaned)
    # The cleaner notes how far it came when all its files are in place.
    first_dirty = None if noted is None else max(noted, cleaned_until)

    def beside(name: str, read: Callable[[str, list[Note]], T], otherwise: T) -> T:
        return read(join(source.directory, name), notes) if name in names else otherwise

    return PartitionCopy(
        copy=copy,
        topic=source.topic,
        partition=source.partition,
        directory=source.directory,
        segments=listing.segments,
        log_start_offset=disk.files.log_starts.get(key),
        high_watermark=disk.files.high_watermarks.get(key),
        first_dirty_offset=first_dirty,
        leader_epochs=beside(LEADER_EPOCHS, read_leader_epochs, ()),
        topic_id=beside(PARTITION_METADATA, read_topic_id, None),
        ignored=listing.ignored,
        whole=not files,
        voters=beside(QUORUM_STATE, read_quorum_state, QuorumState()).voters,
        noted_ends=(*disk.files.noted_ends(key), *snapshot_ends(names)),
        lost_segments=segments_without_log(names),
        swaps=swaps,
        noted_first_dirty=noted,
        fetched_intact_from=_fetched_intact_from(disk.files.fetched.get(key), listing.segments),
    )


def _fetched_intact_from(log: Log | None, segments: Sequence[SegmentFile]) -> int | None:
    """Return the offset from which on a fetched log lacks nothing, if all of it still is there.

    What a leader sends is all that its log holds. So offsets that are missing were removed by the
    cleaner, up to an offset that nobody tells, and for newer records of their keys, all of which
    lie below the end: reading ends only behind a stretch from which nothing was removed.
    """
    if log is None or log.bytes != sum(each.size for each in segments):
        return None
    return log.log_end_offset if log.has_gaps else log.log_start_offset


def _facts(disk: _Disk) -> list[str]:
    """Return what the root of a log directory says about the release, in fixed words."""
    properties = disk.files.properties
    facts = [f"meta.properties version {properties['version']}"] if "version" in properties else []
    if disk.files.directory_id:
        facts.append("directory.id")
    if BOOTSTRAP_CHECKPOINT in disk.names:
        facts.append(BOOTSTRAP_CHECKPOINT)
    return facts


def settle_doubles(listing: Listing) -> Listing:
    """Leave out each file that holds the same bytes as another one of its partition.

    Kept is the one whose name fits: the highest base offset that is not above the first batch's.
    Only files of equal size are looked into, and no further than they agree.

    Args:
        listing: Of one partition directory.

    Raises:
        InputUnreadableError: A file cannot be read.
    """
    by_size: dict[int, list[SegmentFile]] = defaultdict(list)
    for segment in listing.segments:
        if segment.kind == "log" and segment.size:
            by_size[segment.size].append(segment)
    same_as: dict[str, SegmentFile] = {}
    for group in by_size.values():
        for doubles in _equal_files(group) if len(group) > 1 else ():
            best = _best_named(doubles)
            same_as |= {each.name: best for each in doubles if each is not best}
    if not same_as:
        return listing
    ignored = [
        Ignored(base_name(each.path), f"holds the same bytes as {base_name(kept.path)}")
        for each in listing.segments
        if (kept := same_as.get(each.name)) is not None
    ]
    return replace(
        listing,
        segments=tuple(each for each in listing.segments if each.name not in same_as),
        ignored=(*listing.ignored, *ignored),
    )


def _equal_files(group: Sequence[SegmentFile]) -> Iterator[list[SegmentFile]]:
    """Yield the files of one size that are equal, two or more at a time."""
    by_header: dict[bytes, list[SegmentFile]] = defaultdict(list)
    for segment in group:
        by_header[_header(segment)].append(segment)
    for alike in by_header.values():
        left = alike
        while len(left) > 1:
            first, *others = left
            equal = [first, *(each for each in others if _is_equal(first, each))]
            if len(equal) > 1:
                yield equal
            left = [each for each in others if each not in equal]


def _header(segment: SegmentFile) -> bytes:
    with storage_of(segment.path).open(segment.path) as file:
        return file.read(_HEADER_BYTES)


def _is_equal(one: SegmentFile, other: SegmentFile) -> bool:
    with (
        storage_of(one.path).open(one.path) as left,
        storage_of(other.path).open(other.path) as right,
    ):
        while True:
            piece = left.read(_PIECE_BYTES)
            if piece != right.read(_PIECE_BYTES):
                return False
            if not piece:
                return True


def _best_named(doubles: Sequence[SegmentFile]) -> SegmentFile:
    first_offset = int.from_bytes(_header(doubles[0])[:_BASE_OFFSET_BYTES], "big", signed=True)
    fitting = [each for each in doubles if each.base_offset <= first_offset]
    if fitting:
        return max(fitting, key=lambda each: each.base_offset)
    return min(doubles, key=lambda each: each.base_offset)
