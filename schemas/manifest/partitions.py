"""Copies of internal partitions, and lines of them that did not survive."""

from __future__ import annotations

from typing import Required, TypedDict

from schemas.manifest.options import IgnoredEntry, Triple


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
