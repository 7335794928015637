"""The small text files that a broker keeps beside its logs.

A broken file is a note with its line, never an error: what can be read of it is used. An empty
file is no fault, a broker creates some of them long before it first writes them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analytics.dump.files.model import MAX_OFFSET, Note
from analytics.dump.files.storage import read_small
from analytics.errors import InputUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
FIRST_DIRTY = "cleaner-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
QUORUM_STATE = "quorum-state"

DISK_FILES = frozenset(
    {HIGH_WATERMARKS, LOG_STARTS, FIRST_DIRTY, RECOVERY_POINTS, META_PROPERTIES, CLEAN_SHUTDOWN}
)
"""Files in the root of a log directory."""

PARTITION_FILES = frozenset({LEADER_EPOCHS, PARTITION_METADATA, QUORUM_STATE})
"""Files of one partition beside its segments."""

Offsets = dict[tuple[str, int], int]

# A broker with a hundred thousand partitions writes about 5 MB.
_LARGEST = 64 << 20
_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_INT32 = 2**31


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
    """

    properties: Mapping[str, str]
    high_watermarks: Offsets
    log_starts: Offsets
    first_dirty: Offsets
    clean_shutdown: str | None
    notes: tuple[Note, ...]
    recovery_points: Offsets = field(default_factory=dict)

    def noted_ends(self, partition: tuple[str, int]) -> list[tuple[int, str]]:
        """Return offsets that a partition's log reached, each with the file that says so."""
        noted = (
            (self.high_watermarks, HIGH_WATERMARKS),
            (self.recovery_points, RECOVERY_POINTS),
            (self.first_dirty, FIRST_DIRTY),
        )
        return [(offsets[partition], name) for offsets, name in noted if partition in offsets]

    @property
    def node_id(self) -> int | None:
        """The node's id: ``node.id`` of KRaft, ``broker.id`` of ZooKeeper's time."""
        text = self.properties.get("node.id", self.properties.get("broker.id", ""))
        return int(text) if re.fullmatch(r"-?\d{1,10}", text) else None

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id; releases before 0.10.1 wrote none."""
        return self.properties.get("cluster.id") or None

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

    return DiskFiles(
        properties=parse_properties(text(META_PROPERTIES)),
        high_watermarks=offsets(HIGH_WATERMARKS),
        log_starts=offsets(LOG_STARTS),
        first_dirty=offsets(FIRST_DIRTY),
        recovery_points=offsets(RECOVERY_POINTS),
        clean_shutdown=text(CLEAN_SHUTDOWN).strip() if CLEAN_SHUTDOWN in names else None,
        notes=tuple(notes),
    )


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
