"""What the `manifest.json` of a workspace says, as types: mypy checks every key by them.

`fault_in` holds a manifest that was read against the same types. What they do not name may be
there, too. A key may be absent that `inspect` does not write, that workspaces of earlier releases
lack, or that is there only where it says something.

Times are ISO 8601 in UTC with milliseconds where they are texts, epoch milliseconds where a name
ends in `_ms`. Offsets are those of records in their log; an `end_offset` is the one after the last.
"""

from __future__ import annotations

from schemas.manifest.document import (
    AnyManifest,
    Dialect,
    DialectManifest,
    Manifest,
    fault_in,
)
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
