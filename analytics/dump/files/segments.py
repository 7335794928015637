"""The files of a log directory: segments, those that are none, and checkpoints beside them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from analytics.dump.files.model import MAX_OFFSET, Ignored, Note, SegmentFile, Swap
from analytics.dump.files.storage import Entry, read_small
from analytics.errors import InputUnreadableError
from analytics.locations import join
from schemas import CLUSTER_METADATA
from schemas.reading import SchemaError
from schemas.snapshot import Log, Snapshot, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

# The small text files that a broker keeps beside its logs.
#
# A broken file is a note with its line, never an error: what can be read of it is used. An empty
# file is no fault, a broker creates some of them long before it first writes them.

HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
FIRST_DIRTY = "cleaner-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
QUORUM_STATE = "quorum-state"
SNAPSHOT = "snapshot.json"
UNFINISHED_SNAPSHOT = ".unfinished-snapshot"
"""In a folder into which `snapshot` writes, until all is there."""


PARTITION_FILES = frozenset({LEADER_EPOCHS, PARTITION_METADATA, QUORUM_STATE})
"""Files of one partition beside its segments."""

Offsets = dict[tuple[str, int], int]

# A broker with a hundred thousand partitions writes about 5 MB.
_LARGEST = 64 << 20
_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_INT32 = 2**31
_CLUSTER_ID = "cluster.id"


@dataclass(frozen=True)
class DiskFiles:
    """What the files in the root of one log directory say.

    Attributes:
        properties: ``meta.properties`` as it is; empty where there is none.
        high_watermarks: Offset per topic and partition.
        log_starts: Likewise.
        first_dirty: Likewise.
        recovery_points: Likewise.
        clean_shutdown: Content of ``.kafka_cleanshutdown``, None where there is none.
        notes: What is broken in them.
        snapshot: What a cluster answered while these logs were fetched; None where they were not.
    """

    properties: Mapping[str, str]
    high_watermarks: Offsets
    log_starts: Offsets
    first_dirty: Offsets
    clean_shutdown: str | None
    notes: tuple[Note, ...]
    recovery_points: Offsets = field(default_factory=dict)
    snapshot: Snapshot | None = None

    def noted_ends(self, partition: tuple[str, int]) -> list[tuple[int, str]]:
        """Return offsets that a partition's log reached, each with the file that says so."""
        noted = (
            (self.high_watermarks, HIGH_WATERMARKS),
            (self.recovery_points, RECOVERY_POINTS),
            (self.first_dirty, FIRST_DIRTY),
        )
        return [(offsets[partition], name) for offsets, name in noted if partition in offsets]

    @cached_property
    def fetched(self) -> Mapping[tuple[str, int], Log]:
        """The logs that their leaders sent whole, by topic and partition."""
        logs = () if self.snapshot is None else self.snapshot.logs
        return {(each.topic, each.partition): each for each in logs if each.failure is None}

    @property
    def node_id(self) -> int | None:
        """The node's id: ``node.id`` of KRaft, ``broker.id`` of ZooKeeper's time."""
        text = self.properties.get("node.id", self.properties.get("broker.id", ""))
        return int(text) if re.fullmatch(r"-?\d{1,10}", text) else None

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id; releases before 0.10.1 wrote none."""
        answered = None if self.snapshot is None else self.snapshot.cluster_id
        return self.properties.get(_CLUSTER_ID) or answered

    @property
    def directory_id(self) -> str | None:
        """The disk's own id, written since 3.7."""
        return self.properties.get("directory.id") or None


@dataclass(frozen=True)
class QuorumState:
    """What a node of the metadata quorum last knew (``quorum-state``)."""

    leader_id: int | None = None
    leader_epoch: int | None = None
    voters: tuple[int, ...] = ()


def read_disk_files(names: set[str], path: Callable[[str], str]) -> DiskFiles:
    """Read those files of a log directory's root that are there.

    Args:
        names: What lies in the directory.
        path: Gives the path of a name.
    """
    notes: list[Note] = []

    def text(name: str) -> str:
        return _text(path(name), notes) if name in names else ""

    def offsets(name: str) -> Offsets:
        return parse_offsets(text(name), path(name), notes)

    properties = parse_properties(text(META_PROPERTIES))
    snapshot = _snapshot(text(SNAPSHOT), path(SNAPSHOT), notes) if SNAPSHOT in names else None
    return DiskFiles(
        properties=properties,
        high_watermarks=offsets(HIGH_WATERMARKS),
        log_starts=offsets(LOG_STARTS),
        first_dirty=offsets(FIRST_DIRTY),
        recovery_points=offsets(RECOVERY_POINTS),
        snapshot=_of_these_logs(snapshot, properties, path(SNAPSHOT), notes),
        clean_shutdown=text(CLEAN_SHUTDOWN).strip() if CLEAN_SHUTDOWN in names else None,
        notes=tuple(notes),
    )


def _snapshot(text: str, where: str, notes: list[Note]) -> Snapshot | None:
    try:
        return read_snapshot(text.encode(), where)
    except SchemaError as error:
        notes.append(Note(where, str(error)))
        return None


def _of_these_logs(
    snapshot: Snapshot | None, properties: Mapping[str, str], where: str, notes: list[Note]
) -> Snapshot | None:
    """Return a snapshot unless it is of another cluster than the logs beside it."""
    cluster = properties.get(_CLUSTER_ID) or None
    if snapshot is None or None in (cluster, snapshot.cluster_id):
        return snapshot
    if snapshot.cluster_id == cluster:
        return snapshot
    what = f"it is of cluster {snapshot.cluster_id}, the logs are of {cluster}; not read"
    notes.append(Note(where, what))
    return None


def read_leader_epochs(path: str, notes: list[Note]) -> tuple[tuple[int, int], ...]:
    """Return (epoch, first offset) from a ``leader-epoch-checkpoint``."""
    return parse_leader_epochs(_text(path, notes), path, notes)


def read_topic_id(path: str, notes: list[Note]) -> str | None:
    """Return the topic's id from a ``partition.metadata``; None where it names none."""
    text = _text(path, notes)
    found = parse_properties(text, separators=":").get("topic_id", "")
    if _UUID.fullmatch(found):
        return found
    if text.strip():
        notes.append(Note(path, f"no topic_id of 22 characters in it, found {text.strip()!r:.80}"))
    return None


def read_quorum_state(path: str, notes: list[Note]) -> QuorumState:
    """Return what a ``quorum-state`` says, nothing where it is broken."""
    try:
        state = json.loads(_text(path, notes) or "{}")
        voters = state.get("currentVoters") or []
        return QuorumState(
            leader_id=_at_least_0(state.get("leaderId")),
            leader_epoch=_at_least_0(state.get("leaderEpoch")),
            voters=tuple(int(voter["voterId"]) for voter in voters),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        notes.append(Note(path, f"not the JSON of a quorum-state ({error})"))
        return QuorumState()


def parse_offsets(text: str, where: str, notes: list[Note]) -> Offsets:
    """Read an offset checkpoint (OffsetCheckpointFile): ``topic partition offset`` lines."""
    offsets: Offsets = {}
    for number, line in _entries(text, where, notes):
        words = line.split(" ")
        if len(words) == 3 and _is_number(words[1], _INT32) and _is_number(words[2], MAX_OFFSET):
            offsets[words[0], int(words[1])] = int(words[2])
        else:
            notes.append(_bad_line(where, number, "topic partition offset", line))
    return offsets


def parse_leader_epochs(text: str, where: str, notes: list[Note]) -> tuple[tuple[int, int], ...]:
    """Read a leader epoch checkpoint (LeaderEpochCheckpointFile): ``epoch first-offset`` lines."""
    epochs: list[tuple[int, int]] = []
    for number, line in _entries(text, where, notes):
        words = line.split(" ")
        if not (
            len(words) == 2 and _is_number(words[0], _INT32) and _is_number(words[1], MAX_OFFSET)
        ):
            notes.append(_bad_line(where, number, "epoch first-offset", line))
            continue
        epoch, offset = int(words[0]), int(words[1])
        if epochs and (epoch <= epochs[-1][0] or offset < epochs[-1][1]):
            notes.append(_bad_line(where, number, "a later epoch and no lower offset", line))
            continue
        epochs.append((epoch, offset))
    return tuple(epochs)


def parse_properties(text: str, separators: str = "=:") -> dict[str, str]:
    """Read ``key=value`` lines as Java's Properties does, as far as brokers use it."""
    properties = {}
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#!":
            continue
        key, _, value = re.sub(f"[{separators}]", "\n", line, count=1).partition("\n")
        properties[key.strip()] = re.sub(r"\\(.)", r"\1", value.strip())
    return properties


def _entries(text: str, where: str, notes: list[Note]) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) after the two lines of version and count."""
    lines = text.splitlines()
    if not lines:
        return
    if lines[0].strip() != "0":
        notes.append(_bad_line(where, 1, "version 0", lines[0]))
    promised = lines[1].strip() if len(lines) > 1 else ""
    entries = [(number, line.strip()) for number, line in enumerate(lines, 1) if number > 2]
    entries = [(number, line) for number, line in entries if line]
    if not _is_number(promised, _INT32) or int(promised) != len(entries):
        what = f"line 2 promises {promised!r:.20} entries, {len(entries)} are there"
        notes.append(Note(where, what))
    yield from entries


def _text(path: str, notes: list[Note]) -> str:
    try:
        data = read_small(path, _LARGEST + 1)
    except InputUnreadableError as error:
        notes.append(Note(path, str(error)))
        return ""
    if len(data) > _LARGEST:
        notes.append(Note(path, f"larger than {_LARGEST} bytes: not read, it is no checkpoint"))
        return ""
    return data.decode("utf-8", errors="replace")


def _is_number(word: str, limit: int) -> bool:
    return word.isdecimal() and word.isascii() and len(word) <= 19 and int(word) < limit


def _at_least_0(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _bad_line(where: str, number: int, expected: str, text: str) -> Note:
    return Note(where, f"line {number}: expected {expected}, found {text!r:.80}; not used")


# Which files of a log directory are records, and why the others are not.
#
# Names follow Kafka's LogFileUtils, LocalLog and Snapshots (KIP-630): twenty digits of base
# offset, and suffixes for what is being cleaned, swapped, moved or deleted.

_PARTITION = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,10})")
_DYING = re.compile(r".+\.[0-9a-f]{32}-(?P<state>delete|future|stray)")
_LOG = re.compile(r"(?P<offset>\d{20})\.log(?P<suffix>|\.deleted|\.cleaned|\.swap)")
_CHECKPOINT = re.compile(
    r"(?P<offset>\d{20})-(?P<epoch>\d{10})(?P<random>-.+)?\.checkpoint(?P<suffix>|\.part|\.deleted)"
)
_INDEX = re.compile(r"\d{20}\.(?:index|timeindex|txnindex|snapshot)(?:|\.deleted|\.cleaned|\.swap)")
_SNAPSHOT = re.compile(r"(?P<offset>\d{20})\.snapshot")
_OF_A_SEGMENT = re.compile(r"(?P<offset>\d{20})\.(?:index|timeindex)")

_STATES = ("", ".swap", ".deleted", ".cleaned")

WHY_FOLDER = {
    "delete": "Kafka was deleting this partition",
    "future": "a replica on its way to another disk, which may lag",
    "stray": "a replica that the broker no longer held",
}
WHY_FILE = {
    ".deleted": "scheduled for removal by the broker",
    ".cleaned": "a cleaner's output that was not complete",
    ".part": "a snapshot that was not complete",
}
BOOTSTRAP = "bootstrap records, not a state of the log"
REPLACED = "replaced by the cleaner's finished output"
UNFINISHED_SPLIT = "part of a cleaning that was not complete"


@dataclass(frozen=True)
class Listing:
    """A partition directory's files of records, and what else lies in it.

    Attributes:
        segments: What is read.
        ignored: What is not, and why.
        swaps: The swap files among ``segments``, with what they take the place of.
    """

    segments: tuple[SegmentFile, ...]
    ignored: tuple[Ignored, ...]
    swaps: tuple[Swap, ...] = ()

    @property
    def cleaned_until(self) -> int:
        """How far swap files prove that all was cleaned, whatever the cleaner had noted."""
        return max((each.cleaned_until for each in self.swaps), default=0)


def partition_of(folder: str) -> tuple[str, int] | None:
    """Return topic and partition of a live partition directory's name, else None."""
    match = _PARTITION.fullmatch(folder)
    if match is None or int(match["partition"]) >= _INT32:
        return None
    return match["topic"], int(match["partition"])


def dying_state(folder: str) -> str | None:
    """Return ``delete``, ``future`` or ``stray`` for the name of a directory in that state."""
    match = _DYING.fullmatch(folder)
    return match["state"] if match else None


def is_segment_name(name: str) -> bool:
    """Whether a file name is that of a live segment or of a finished metadata snapshot."""
    match = _LOG.fullmatch(name) or _CHECKPOINT.fullmatch(name)
    return match is not None and match["suffix"] == ""


def holds_partition(entries: Iterable[Entry]) -> bool:
    """Whether a directory's files are those of a partition: by name alone ``broker-1`` is one."""
    return any(
        not entry.is_folder
        and (_LOG.fullmatch(entry.name) or entry.name in PARTITION_FILES or _is_checkpoint(entry))
        for entry in entries
    )


def snapshot_ends(names: Iterable[str]) -> list[tuple[int, str]]:
    """Return offsets that a log reached, each with the producer snapshot that says so.

    A broker takes one at the log's end: when it starts a segment, and when it stops.
    """
    found = [(name, _SNAPSHOT.fullmatch(name)) for name in sorted(names)]
    return [(int(match["offset"]), name) for name, match in found if match]


def segments_without_log(names: Iterable[str]) -> tuple[int, ...]:
    """Return base offsets of segments whose index is there and whose log is not."""
    there = set(names)
    found = [_OF_A_SEGMENT.fullmatch(name) for name in there]
    offsets = {match["offset"] for match in found if match}
    gone = {each for each in offsets if not any(f"{each}.log{end}" in there for end in _STATES)}
    return tuple(sorted(int(each) for each in gone))


def list_segments(folder: str, topic: str, partition: int, entries: Iterable[Entry]) -> Listing:
    """Tell the files of one partition directory apart.

    Swap files stand beside the originals they replace until `settle_swaps` looks into them.

    Args:
        folder: The directory's path.
        topic: Whose partition it is.
        partition: Its number.
        entries: What lies in the directory.
    """
    segments, ignored = [], []
    for entry in entries:
        found = _classify(folder, f"{topic}-{partition}", entry, topic)
        if isinstance(found, SegmentFile):
            segments.append(found)
        elif found is not None:
            ignored.append(found)
    segments.sort(key=lambda segment: (segment.kind != "log", segment.base_offset, segment.name))
    return Listing(tuple(segments), tuple(ignored))


def settle_swaps(listing: Listing, next_offset: Callable[[SegmentFile], int]) -> Listing:
    """Finish a cleaner's half-done replacement as a restarting broker does (LogLoader).

    A swap file takes the place of every original whose base offset lies in what it covers, unless
    a ``.cleaned`` file at or below it shows that the cleaning itself was not complete.

    Args:
        listing: Of one partition directory.
        next_offset: Reads a segment's last offset + 1.
    """
    swaps = [segment for segment in listing.segments if segment.state == "swap"]
    if not swaps:
        return listing
    cleaned = [int(i.name[:20]) for i in listing.ignored if i.why == WHY_FILE[".cleaned"]]
    unfinished = {swap.name for swap in swaps if cleaned and swap.base_offset >= min(cleaned)}
    logs = [each for each in listing.segments if each.state == "live" and each.kind == "log"]
    settled = tuple(
        _settled(swap, logs, next_offset) for swap in swaps if swap.name not in unfinished
    )
    replaced = {each.name for swap in settled for each in swap.replaces}
    kept, ignored = [], list(listing.ignored)
    for segment in listing.segments:
        if segment.name in unfinished:
            ignored.append(Ignored(_file_name(segment), UNFINISHED_SPLIT))
        elif segment.name in replaced:
            ignored.append(Ignored(_file_name(segment), REPLACED))
        else:
            kept.append(segment)
    return Listing(tuple(kept), tuple(ignored), settled)


def _settled(
    swap: SegmentFile, logs: Iterable[SegmentFile], next_offset: Callable[[SegmentFile], int]
) -> Swap:
    """Return what a swap file takes the place of; an empty one that of the original of its name."""
    end = max(next_offset(swap), swap.base_offset + 1)
    replaced = tuple(each for each in logs if swap.base_offset <= each.base_offset < end)
    return Swap(swap, end, replaced, max([end, *map(next_offset, replaced[-1:])]))


def _classify(folder: str, label: str, entry: Entry, topic: str) -> SegmentFile | Ignored | None:
    """Return what a file is; None for one that every partition directory has."""
    if entry.is_folder:
        return Ignored(entry.name, "a directory, where files of records belong")
    if entry.is_special:
        return Ignored(entry.name, "a pipe, a socket or a device")
    if entry.name in PARTITION_FILES or _INDEX.fullmatch(entry.name):
        return None
    log, checkpoint = _LOG.fullmatch(entry.name), _CHECKPOINT.fullmatch(entry.name)
    why = _why_not(log or checkpoint, topic, is_checkpoint=checkpoint is not None)
    match = log or checkpoint
    if why or match is None:
        return Ignored(entry.name, why)
    return SegmentFile(
        path=join(folder, entry.name),
        name=f"{label}/{entry.name}",
        base_offset=int(match["offset"]),
        size=entry.size,
        kind="log" if log else "checkpoint",
        state="swap" if match["suffix"] else "live",
        modified=entry.modified,
    )


def _why_not(match: re.Match[str] | None, topic: str, *, is_checkpoint: bool) -> str:
    """Return why a file of that name is not read, empty where it is."""
    if match is None or int(match["offset"]) > MAX_OFFSET:
        return "not a name Kafka gives"
    if match["suffix"] in WHY_FILE:
        return WHY_FILE[match["suffix"]]
    if is_checkpoint and topic != CLUSTER_METADATA:
        return "snapshots belong to the metadata log alone"
    is_bootstrap = is_checkpoint and int(match["offset"]) == 0 and int(match["epoch"]) == 0
    return BOOTSTRAP if is_bootstrap else ""


def _is_checkpoint(entry: Entry) -> bool:
    return _CHECKPOINT.fullmatch(entry.name) is not None


def _file_name(segment: SegmentFile) -> str:
    return segment.name.rpartition("/")[2]
