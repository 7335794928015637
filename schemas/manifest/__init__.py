"""What the `manifest.json` of a workspace says, as types: mypy checks every key by them.

`fault_in` holds a manifest that was read against the same types. What they do not name may be
there, too. A key may be absent that `inspect` does not write, that workspaces of earlier releases
lack, or that is there only where it says something.

Times are ISO 8601 in UTC with milliseconds where they are texts, epoch milliseconds where a name
ends in `_ms`. Offsets are those of records in their log; an `end_offset` is the one after the last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Required, TypedDict, final

import msgspec

from schemas.manifest.options import (
    CopyEntry,
    DataPartitionEntry,
    DataTopicEntry,
    Filters,
    IgnoredEntry,
    Options,
    cluster_ids,
)
from schemas.manifest.partitions import (
    AbsentLeaderEntry,
    DamageEntry,
    DivergenceEntry,
    EpochEntry,
    FileEntry,
    FilledEntry,
    GapEntry,
    LogFacts,
    LossEntry,
    PartitionEntry,
    PieceEntry,
    StretchEntry,
    UnjudgedElectionEntry,
)
from schemas.manifest.records import (
    AccountEntry,
    BeforeSwaps,
    BytesOfBatches,
    HorizonEntry,
    KafkaVersion,
    LeaderClockEntry,
    LedEntry,
    NoteEntry,
    RecordFate,
    RecordTypeEntry,
    ResumedEntry,
    ResumedPartitionEntry,
    UnplacedRowEntry,
    UnreadableEntry,
)
from schemas.manifest.replay import (
    AsOfEntry,
    EraEntry,
    EvaluationEntry,
    FrameEntry,
    HomesEntry,
    LineEntry,
    OnlyOfSomeReplays,
    Replay,
)
from schemas.manifest.snapshots import (
    SnapshotBroker,
    SnapshotEntry,
    SnapshotGroup,
    SnapshotTopic,
)

__all__ = [
    "AbsentLeaderEntry",
    "AccountEntry",
    "AnyManifest",
    "AsOfEntry",
    "BeforeSwaps",
    "BytesOfBatches",
    "CopyEntry",
    "DamageEntry",
    "DataPartitionEntry",
    "DataTopicEntry",
    "Dialect",
    "DialectManifest",
    "DivergenceEntry",
    "EpochEntry",
    "EraEntry",
    "EvaluationEntry",
    "FileEntry",
    "FilledEntry",
    "Filters",
    "FrameEntry",
    "GapEntry",
    "HomesEntry",
    "HorizonEntry",
    "IgnoredEntry",
    "KafkaVersion",
    "LeaderClockEntry",
    "LedEntry",
    "LineEntry",
    "LogFacts",
    "LossEntry",
    "Manifest",
    "NoteEntry",
    "OnlyOfSomeReplays",
    "Options",
    "PartitionEntry",
    "PieceEntry",
    "RecordFate",
    "RecordTypeEntry",
    "Replay",
    "ResumedEntry",
    "ResumedPartitionEntry",
    "SnapshotBroker",
    "SnapshotEntry",
    "SnapshotGroup",
    "SnapshotTopic",
    "StretchEntry",
    "UnjudgedElectionEntry",
    "UnplacedRowEntry",
    "UnreadableEntry",
    "cluster_ids",
    "fault_in",
]


@final
class Manifest(TypedDict, total=False):
    """The manifest of a workspace made of a dump.

    Keys:
        created_from: INPUTs as they were given.
        absent_partitions: By internal topic the partitions that no copy holds.
        record_types_are_a_sample: `inspect` looked at some records only.
        filled: Null where nobody looked what one copy has for another.
        crc_checked: The checksum of every batch was looked at.
        unanswerable: What the dump cannot tell, a sentence each.
        records_lost: In damaged batches that could be read so far.
        before_swaps: Null where no partition has swap files.
        resumed: What an earlier run had decoded; only where one was named.
        decoded_pieces: The SHA-256 of the file that says what tables were decoded of.
        input_listing: A digest of names, sizes and times of the files that were read.
        evaluations: By table.
        files: The bytes of each file of the tables, by its path.
        snapshots: What clusters answered of whose logs copies were fetched.
        redacted: The workspace has no names, and no decoded records.
        read_before_swaps: Never in a file: of which partitions `of_history` took `before_swaps`.
    """

    schema_version: Required[int]
    groupscope_version: str
    created_from: Required[list[str]]
    options: Required[Options]
    copies: Required[list[CopyEntry]]
    data_topics: list[DataTopicEntry]
    partitions: Required[list[PartitionEntry]]
    absent_partitions: dict[str, list[int]]
    record_types: Required[list[RecordTypeEntry]]
    record_types_are_a_sample: bool
    divergences: list[DivergenceEntry]
    filled: list[FilledEntry] | None
    kafka_version: Required[KafkaVersion]
    crc_checked: bool
    unreadable: list[UnreadableEntry]
    unanswerable: list[str]
    notes: list[NoteEntry]
    leader_clocks: list[LeaderClockEntry]
    reconciliation: list[AccountEntry]
    data_partitions: list[DataPartitionEntry]
    unplaced_rows: list[UnplacedRowEntry]
    records_lost: int
    before_swaps: BeforeSwaps | None
    resumed: ResumedEntry
    decoded_pieces: str
    input_listing: str | None
    replay: Replay
    evaluations: dict[str, EvaluationEntry]
    files: dict[str, int]
    snapshots: list[SnapshotEntry]
    redacted: bool
    read_before_swaps: list[tuple[str, int]]


class Dialect(TypedDict):
    """Share state in a design that no release has: `unseen` is what of it cannot be told."""

    name: str
    unseen: list[str]
    rows: dict[str, int]


@final
class DialectManifest(TypedDict, total=False):
    """The manifest of a workspace of a dialect: it has nothing of what is made of a dump."""

    schema_version: Required[int]
    groupscope_version: str
    created_from: Required[list[str]]
    dialect: Required[Dialect]
    files: dict[str, int]


AnyManifest = Manifest | DialectManifest

# What was read, held against the types.

_REFUSAL: Final = re.compile(r"^(?P<reason>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_LACKS: Final = re.compile(r"^Object missing required field `(?P<name>.*)`$")
_INDEX: Final = re.compile(r"\[[^\]]*\]")
_KINDS: Final = {"Expected `array`": "list", "Expected `object`": "object"}


def fault_in(manifest: Mapping[str, Any]) -> str | None:
    """Return what of a manifest is not as it has to be, with the field; None where all is.

    Args:
        manifest: As it was read.
    """
    kind: type[AnyManifest] = DialectManifest if "dialect" in manifest else Manifest
    try:
        msgspec.convert(manifest, kind, strict=True)
    except msgspec.ValidationError as error:
        refusal = _REFUSAL.match(str(error))
        assert refusal is not None
        return _in_words(refusal["reason"], _INDEX.sub("", refusal["path"] or ""))
    return None


def _in_words(reason: str, path: str) -> str:
    place = path.removeprefix(".")
    if (lack := _LACKS.match(reason)) is not None:
        name = f"{place}.{lack['name']}".removeprefix(".")
        return f"it lacks {name}"
    kind = _KINDS.get(reason.partition(",")[0])
    return f"{place} is not what it has to be" if kind is None else f"{place} is no {kind}"
