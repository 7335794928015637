"""What the `manifest.json` of a workspace says, as types: mypy checks every key by them.

`fault_in` holds a manifest that was read against the same types. What they do not name may be
there, too. A key may be absent that `inspect` does not write, that workspaces of earlier releases
lack, or that is there only where it says something.

Times are ISO 8601 in UTC with milliseconds where they are texts, epoch milliseconds where a name
ends in `_ms`. Offsets are those of records in their log; an `end_offset` is the one after the last.

What was replayed, and evaluated.

What a running cluster answered to `snapshot`, as far as answers take it from the manifest.

`snapshot.json` of the dump has more (`schemas.snapshot`): settings' sources, replicas, addresses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NotRequired, Required, TypedDict, final

import msgspec

from schemas.manifest.records import (
    AbsentLeaderEntry,
    AccountEntry,
    BeforeSwaps,
    BytesOfBatches,
    CopyEntry,
    DamageEntry,
    DataPartitionEntry,
    DataTopicEntry,
    DivergenceEntry,
    EpochEntry,
    FileEntry,
    FilledEntry,
    Filters,
    GapEntry,
    HorizonEntry,
    IgnoredEntry,
    KafkaVersion,
    LeaderClockEntry,
    LedEntry,
    LogFacts,
    LossEntry,
    NoteEntry,
    Options,
    Pair,
    PartitionEntry,
    PieceEntry,
    RecordFate,
    RecordTypeEntry,
    ResumedEntry,
    ResumedPartitionEntry,
    StretchEntry,
    UnjudgedElectionEntry,
    UnplacedRowEntry,
    UnreadableEntry,
    cluster_ids,
)


class AsOfEntry(TypedDict):
    """An instant: a time, null for the end of the dump, and end offsets by partition."""

    time: str | None
    offsets: dict[str, int]


class LineEntry(TypedDict):
    """A line that is followed instead of the surviving one; `leader` is whether its leader led."""

    topic: str
    partition: int
    copy: str
    diverges_at: int
    surviving_copy: str
    elected_at: str | None
    leader: str


class FrameEntry(TypedDict):
    """The two cuts of a partition whose times go back."""

    topic: str
    partition: int
    certain_end: int
    possible_end: int
    later_ms: int
    earlier_ms: int | None


class OnlyOfSomeReplays(TypedDict, total=False):
    """What a manifest says of some replays.

    Keys:
        frames: Where logs are cut whose times go back at the instant.
        decoded_in: The workspace that was replayed, where it is another one.
    """

    frames: list[FrameEntry]
    decoded_in: str


class EraEntry(TypedDict):
    """A time in which clients went by one number of partitions."""

    partitions: int
    first: str | None
    last: str | None


class HomesEntry(TypedDict):
    """Where keys of an internal topic are looked for at the instant.

    Keys:
        perhaps: The number that brokers may have gone by instead.
        misplaced: Partition, and how many keys of others lie in it.
        unreachable: How many keys lie in such partitions alone.
        before: The eras that are over, the newest first.
        since: From when on this number counts.
        disputed: Hash of a key of which nothing shows where it is looked for, and a partition.
        is_number_guessed: No number of partitions explains where all keys lie.
    """

    partitions: int
    perhaps: int | None
    misplaced: list[Pair]
    unreachable: int
    before: list[EraEntry]
    since: str | None
    disputed: list[Pair]
    is_number_guessed: bool


class Replay(OnlyOfSomeReplays, total=False):
    """Of which instant, and by which rules, state and history are.

    Keys:
        kafka_version_is_named: A person named it, be it the one that the dump shows.
        assumed: What a person vouches for.
        topic_ids: Topic, id and number of partitions (null where not said), as a person gave them.
        homes: Only of internal topics that were given more partitions, or hold strange keys.
        partition_counts: How many partitions internal topics have, as all records show it.
        rows: By table.
    """

    as_of: Required[AsOfEntry]
    lines: list[LineEntry]
    kafka_version: Required[str]
    kafka_version_is_named: bool
    assumed: list[str]
    topic_ids: list[list[str | int | None]]
    filters: Filters
    homes: dict[str, HomesEntry]
    partition_counts: dict[str, int]
    rows: dict[str, int]


class EvaluationEntry(TypedDict):
    """A table of answers that is kept: of which instant, by whose rules, how many rows.

    Attributes:
        question: Whose answer it is, or `audit`.
        is_whole: It was asked of all groups and topics, with the settings that it has by itself.
    """

    as_of: AsOfEntry
    kafka_version: str
    rows: int
    question: NotRequired[str]
    is_whole: NotRequired[bool]


Edges = list[int | None]
"""Of a partition: its number, leader, log start and end offset, and the later end offset."""


class SnapshotBroker(TypedDict):
    """A broker; `settings` are null where it did not answer."""

    node_id: int
    settings: dict[str, str] | None


class SnapshotTopic(TypedDict):
    """A topic; `settings` are its own, null where they were not answered."""

    topic: str
    topic_id: str | None
    partitions: list[Edges]
    settings: dict[str, str] | None


class SnapshotGroup(TypedDict):
    """A group that has settings of its own."""

    group_id: str
    settings: dict[str, str]


class SnapshotEntry(TypedDict):
    """What a cluster answered between `taken_at` and `finished_at`.

    Keys:
        read_beyond_ends: An internal log was read further than where it ended at first: commits
            may have come after the first end offsets of other logs.
        resumed_from: `taken_at` of the earlier snapshot that it goes on from: it has records that
            the cleaner has removed since. Absent where it was fetched whole.
    """

    copy: str
    taken_at: str
    finished_at: str
    read_beyond_ends: bool
    brokers: list[SnapshotBroker]
    topics: list[SnapshotTopic]
    groups: list[SnapshotGroup]
    resumed_from: NotRequired[str]


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
