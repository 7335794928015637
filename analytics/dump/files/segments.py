"""Which files of a log directory are records, and why the others are not.

Names follow Kafka's LogFileUtils, LocalLog and Snapshots (KIP-630): twenty digits of base offset,
and suffixes for what is being cleaned, swapped, moved or deleted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.dump.files.checkpoints import PARTITION_FILES
from analytics.dump.files.model import MAX_OFFSET, Ignored, SegmentFile, Swap
from analytics.dump.files.storage import Entry, join
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PARTITION = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,10})")
_DYING = re.compile(r".+\.[0-9a-f]{32}-(?P<state>delete|future|stray)")
_LOG = re.compile(r"(?P<offset>\d{20})\.log(?P<suffix>|\.deleted|\.cleaned|\.swap)")
_CHECKPOINT = re.compile(
    r"(?P<offset>\d{20})-(?P<epoch>\d{10})(?P<random>-.+)?\.checkpoint(?P<suffix>|\.part|\.deleted)"
)
_INDEX = re.compile(r"\d{20}\.(?:index|timeindex|txnindex|snapshot)(?:|\.deleted|\.cleaned|\.swap)")
_SNAPSHOT = re.compile(r"(?P<offset>\d{20})\.snapshot")
_OF_A_SEGMENT = re.compile(r"(?P<offset>\d{20})\.(?:index|timeindex)")
_INT32 = 2**31

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
