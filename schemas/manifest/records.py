"""What came of the records, and what else is known of a dump.

What was asked for when a dump was decoded, and what of it is there.

Copies of internal partitions, and lines of them that did not survive.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Required, TypedDict

import msgspec


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
    """The workspace that a run went on from, of which copies it was made, and what was kept of it.

    Keys:
        refusal: Why nothing of it could be kept, whatever its logs are; null where it could.
    """

    resumed_from: str
    resumed_copies: list[str]
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


Pair = Annotated[list[int], msgspec.Meta(min_length=2, max_length=2)]
Triple = Annotated[list[int], msgspec.Meta(min_length=3, max_length=3)]


class Filters(TypedDict, total=False):
    """Options that leave records out: an empty list, and one that is absent, leave out nothing.

    Keys:
        topics: Internal topics that are read.
        partitions: Partitions of these that are read.
        groups: Groups that are kept, by name or pattern.
        exclude_groups: Groups that are left out, likewise.
        data_topics: Topics of which offsets are kept.
    """

    topics: list[str]
    partitions: list[int]
    groups: list[str]
    exclude_groups: list[str]
    data_topics: list[str]


class Options(Filters, total=False):
    """What a person asked for when a dump was decoded; `inspect` has some of it.

    Keys:
        prefer_copy: The copy whose lines are decoded, whichever survived.
        topic_partition: Whose a segment is that lies outside a partition directory.
        strict_high_watermark: Records above the high watermark were left out.
        keep_below_log_start: Records below the log start were kept.
        value_encoding: How archived rows write keys and values, where that was said.
    """

    prefer_copy: str | None
    topic_partition: str | None
    strict_high_watermark: bool
    keep_below_log_start: bool
    value_encoding: str | None


class IgnoredEntry(TypedDict):
    """A file or folder that is not read."""

    name: str
    why: str


class CopyEntry(TypedDict, total=False):
    """The disks of one broker.

    Keys:
        clean_shutdown: The broker ended in order; null where no whole log directory is given.
        log_dirs: Paths or URIs.
        internal_partitions: How many.
        data_partitions: How many; `data_topics` counts their topics.
    """

    name: Required[str]
    node_id: int | None
    cluster_id: str | None
    clean_shutdown: bool | None
    log_dirs: list[str]
    internal_partitions: int
    data_partitions: int
    data_topics: int
    ignored: list[IgnoredEntry]


def cluster_ids(copies: Iterable[CopyEntry]) -> list[str]:
    """Return the ids of the clusters that copies are of, in order; none where no copy says its."""
    return sorted({id_ for each in copies if (id_ := each.get("cluster_id"))})


class DataTopicEntry(TypedDict):
    """A topic that is not decoded; `partitions` are the numbers that some copy holds."""

    topic: str
    topic_id: str | None
    partitions: list[int]


class DataPartitionEntry(TypedDict, total=False):
    """Where one copy of a partition of such a topic starts and ends.

    Keys:
        log_start_offset: Null where files before the first one are missing.
        log_end_offset: A lower bound where it is not `is_exact`.
        leader_epochs: Epoch and first offset of each.
    """

    topic: Required[str]
    partition: Required[int]
    copy: str
    topic_id: str | None
    log_start_offset: int | None
    log_end_offset: int
    is_exact: bool
    leader_epochs: list[Pair]


class FileEntry(TypedDict, total=False):
    """A segment, or a snapshot of the metadata log; `kind` is `log` or `checkpoint`."""

    name: Required[str]
    kind: Required[str]
    size: int
    sha256: str | None
    first_timestamp: str | None
    last_timestamp: str | None


class EpochEntry(TypedDict):
    """A leader epoch, and the first offset that was written in it."""

    epoch: int
    first_offset: int


class LossEntry(TypedDict, total=False):
    """Offsets whose records the dump lacks; `end_offset` is null where nobody knows it.

    Keys:
        why: What shows it.
        is_within_file: They lie between two batches of one file.
        is_below_start: It begins with what was deleted below the log start.
    """

    first_offset: Required[int]
    end_offset: Required[int | None]
    why: Required[str]
    is_within_file: bool
    is_below_start: bool


class GapEntry(TypedDict):
    """Offsets that no batch covers; `kind` says why."""

    first_offset: int
    end_offset: int
    kind: str


class StretchEntry(TypedDict):
    """Batches in a row whose times go on; `batches` have a time."""

    first_offset: int
    end_offset: int
    first_ms: int
    last_ms: int
    batches: int


class DamageEntry(TypedDict, total=False):
    """Bytes of a file that are no readable batch; `offset` is null where no header claims one."""

    file: str
    position: int
    size: int
    reason: str
    detail: str
    offset: Required[int | None]


class AbsentLeaderEntry(TypedDict):
    """A leader whose records no copy need have: from `first_offset` on it may have others."""

    leader: int
    leader_epoch: int
    since: str | None
    first_offset: int
    why: str


class UnjudgedElectionEntry(TypedDict, total=False):
    """An election that may have lost commits unseen.

    Keys:
        leader_epoch: Of the leader that was elected; null where no epochs are recorded.
        at: When; null where that is not known.
        first_offset: From which on the leader before may have had other records.
        is_unclean: It is known to have been unclean.
    """

    leader_epoch: Required[int | None]
    at: Required[str | None]
    first_offset: Required[int]
    why: Required[str]
    is_unclean: bool


class LogFacts(TypedDict, total=False):
    """What is known of the log of one copy of an internal partition.

    Keys:
        is_leading: The line of this copy is the one that is decoded.
        stretches: Only where a clock was set.
        clock_steps: Offsets between which a clock was set back, and the time before (ms).
        deleted_below: Below it records of a compacted topic were deleted.
        first_dirty_offset: From it on nothing was cleaned.
        thinned_end: Up to it batches lack records.
        complete_from: From it on every record is there; null where nothing tells.
        lacks: The losses in a sentence.
        epoch_times: Leader epoch, least and greatest time of its batches (ms).
        crc_failures: Null where checksums were not looked at.
        truncated_tail: Bytes of a last batch that is not whole.
        preallocated_tail: Zero bytes behind the last batch.
        absent_leaders: Only of partitions that the metadata log names.
        unjudged_elections: Only of coordinators' partitions that are decoded.
    """

    copy: str | None
    is_leading: bool
    topic_id: str | None
    files: list[FileEntry]
    size: int | None
    first_offset: int | None
    end_offset: int | None
    first_timestamp: str | None
    last_timestamp: str | None
    stretches: list[StretchEntry]
    clock_steps: list[Triple]
    batches: int | None
    records: int | None
    uncounted_batches: int | None
    control_batches: int | None
    transactional_batches: int | None
    message_formats: dict[str, int]
    codecs: dict[str, int]
    log_start_offset: int | None
    deleted_below: int | None
    high_watermark: int | None
    records_above_high_watermark: int | None
    first_dirty_offset: int | None
    thinned_end: int | None
    complete_from: int | None
    losses: list[LossEntry]
    lacks: str | None
    leader_epochs: list[EpochEntry]
    epoch_times: list[Triple]
    gaps: list[GapEntry]
    gap_counts: dict[str, int]
    gap_offsets: dict[str, int]
    crc_failures: int | None
    bytes_damaged: int | None
    damages: list[DamageEntry]
    truncated_tail: int | None
    preallocated_tail: int | None
    changed_while_read: bool | None
    ignored: list[IgnoredEntry]
    absent_leaders: list[AbsentLeaderEntry]
    unjudged_elections: list[UnjudgedElectionEntry]


class PartitionEntry(LogFacts, total=False):
    """One copy of an internal partition; of archived rows `copy` is null, as all of files is."""

    topic: Required[str]
    partition: Required[int]


class FilledEntry(TypedDict):
    """Offsets of a line that its leading copy lacks and `copy` gives; the surviving line is ""."""

    topic: str
    partition: int
    line: str
    copy: str
    first_offset: int
    end_offset: int
    why: str


class PieceEntry(TypedDict):
    """From which offset on the records of a lost line are under another line's name."""

    line: str
    first_offset: int


class DivergenceEntry(TypedDict, total=False):
    """A line of history that did not survive.

    Keys:
        surviving_leader_epoch: Of the leader whose election ended the line.
        elected_at: When that leader was elected.
        election_shown_by: `metadata_log`, or `first_record` of the new leader, which is later.
        leaderless_from: When the last leader of the line stopped.
        unclean: The new leader was not in sync; null where the dump does not say.
        high_watermark: Of the copy: clients saw what lies below it.
        shown_by: How the line was told from the one that survived.
        groups_only_there: Null where records were not decoded.
    """

    topic: Required[str]
    partition: Required[int]
    copy: str
    diverges_at: int
    end_offset: int
    lost_records: int
    lost_from_timestamp: str | None
    lost_to_timestamp: str | None
    lost_leader_epoch: int | None
    surviving_leader_epoch: int | None
    surviving_copy: str
    elected_at: str | None
    election_shown_by: str | None
    leaderless_from: str | None
    unclean: bool | None
    high_watermark: int | None
    pieces: list[PieceEntry]
    shown_by: str
    groups_only_there: list[str] | None
