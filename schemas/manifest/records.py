"""What came of the records, and what else is known of a dump."""

from __future__ import annotations

from typing import Required, TypedDict

from schemas.manifest.partitions import FilledEntry, PartitionEntry


class RecordTypeEntry(TypedDict, total=False):
    """Records of a type, version and layout; a tombstone's version is null.

    Keys:
        line: Only of what was decoded: "" is the line that survived.
        id: The number that a key begins with.
        table: Null where the type is not known.
    """

    topic: Required[str]
    line: str
    id: int
    table: Required[str | None]
    version: int | None
    layout: str | None
    records: Required[int]


class ResumedPartitionEntry(TypedDict):
    """What an earlier run had decoded of a copy of a partition.

    Keys:
        bytes_kept: Of segments whose rows were kept.
        bytes_decoded: Of segments that were decoded.
        why: Why the others were decoded: `new`, `changed`, `damaged`, `other_rules`, `unreadable`.
    """

    copy: str
    topic: str
    partition: int
    bytes_kept: int
    bytes_decoded: int
    why: list[str]


class ResumedEntry(TypedDict):
    """The workspace that a run went on from, and what was kept of it.

    Keys:
        refusal: Why nothing of it could be kept, whatever its logs are; null where it could.
    """

    resumed_from: str
    refusal: str | None
    partitions: list[ResumedPartitionEntry]


class KafkaVersion(TypedDict, total=False):
    """The newest release that something shows, null where nothing does, and what does."""

    at_least: str | None
    evidence: list[str]


class BytesOfBatches(TypedDict):
    """Where the bytes of batches went; the first four add up to what lies on disk."""

    headers: int
    plain: int
    control: int
    compressed: int
    uncompressed: int
    empty_batches: int


class RecordFate(TypedDict):
    """How many records, and bytes of them, became the same."""

    records: int
    bytes: int


class HorizonEntry(TypedDict):
    """Offsets in whose batches the cleaner set one delete horizon."""

    horizon_ms: int
    first_offset: int
    end_offset: int
    batches: int


class AccountEntry(TypedDict, total=False):
    """Where every record and byte of a copy of an internal partition went.

    Of archived rows `copy` is null; where they do not say whose they are, so are the others.

    Keys:
        undecoded: Records by reason.
        left_out: Records by what left them out.
        record_fates: By what became of records.
        reconciles: Both sums come out even.
    """

    copy: str | None
    topic: str | None
    partition: int | None
    records: int
    decoded: int
    control_markers: int
    undecoded: dict[str, int]
    left_out: dict[str, int]
    bytes_read: int
    bytes_in_batches: int
    bytes_damaged: int
    bytes_trailing: int
    bytes_unreadable: int
    bytes_of_batches: BytesOfBatches
    record_fates: dict[str, RecordFate]
    delete_horizons: list[HorizonEntry]
    reconciles: bool


class UnreadableEntry(TypedDict):
    """A file that could not be read; of archived rows `copy` is null and `segment` names them."""

    copy: str | None
    segment: str
    why: str


class UnplacedRowEntry(TypedDict):
    """An archived row that does not say where it was: `row` counts rows, or lines, from 1."""

    file: str
    row: int | None
    flaw: str


class NoteEntry(TypedDict):
    """All else worth knowing."""

    where: str
    what: str


class LedEntry(TypedDict):
    """A leader epoch of a broker, and when it led by the controller's clock; null is not known."""

    topic: str
    partition: int
    leader_epoch: int
    from_ms: int | None
    to_ms: int | None


class LeaderClockEntry(TypedDict, total=False):
    """A broker whose clock differed from the controller's.

    Keys:
        ahead_ms: By how much at least; negative: behind.
        what: A sentence about it.
        led: Empty where it is not sure.
    """

    node_id: int
    ahead_ms: int
    is_sure: bool
    what: Required[str]
    led: list[LedEntry]


class BeforeSwaps(TypedDict, total=False):
    """What a manifest says of partitions as they were before a cleaner's swap files."""

    partitions: Required[list[PartitionEntry]]
    filled: list[FilledEntry] | None
    record_types: Required[list[RecordTypeEntry]]
    reconciliation: list[AccountEntry]
    records_lost: int
    unreadable: list[UnreadableEntry]
