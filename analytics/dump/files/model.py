"""What a dump is made of: copies, their partitions, the files in them, and what to read of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from analytics.dump.batches.log_bounds import LogSense
from analytics.dump.copies.leadership import NO_LEADERS, Leaders
from schemas.snapshot import Snapshot

NOTHING_KNOWN = LogSense()
"""Of the log around a file."""

MAX_OFFSET = 2**63 - 1
"""End of a range that has none."""


@dataclass(frozen=True)
class Note:
    """Something found that is no error but changes how far the dump can be trusted."""

    where: str
    what: str


@dataclass(frozen=True)
class Ignored:
    """A file or directory that is not read, and why."""

    name: str
    why: str


@dataclass(frozen=True, order=True)
class SegmentFile:
    """One file of records.

    Attributes:
        path: Local path or URI.
        name: Relative to the copy's log directory: ``<topic>-<partition>/<file>``.
        base_offset: Of a segment, from its name; of a snapshot, the end offset it covers.
        size: Bytes when it was listed.
        kind: ``log``, or ``checkpoint`` for a snapshot of the metadata log.
        state: ``live``, or ``swap`` for a cleaner's finished output not yet renamed.
        modified: Nanoseconds since the epoch when it was listed.
    """

    path: str
    name: str
    base_offset: int
    size: int
    kind: str = "log"
    state: str = "live"
    modified: int = 0


@dataclass(frozen=True)
class Swap:
    """A cleaner's finished output that takes the place of segments which still lie beside it.

    Attributes:
        file: The swap file.
        end_offset: Its last offset + 1; more than its base offset even where it holds nothing.
        replaces: The live segments whose base offset lies in what it covers, in order.
        cleaned_until: Where these end: whole segments are cleaned, and what stood last need not
            be what is left.
    """

    file: SegmentFile
    end_offset: int
    replaces: tuple[SegmentFile, ...]
    cleaned_until: int


@dataclass(frozen=True)
class PartitionCopy:
    """One broker's copy of one partition.

    Attributes:
        copy: The copy's name.
        topic: The topic's name.
        partition: The partition's number.
        directory: Where its files lie.
        segments: What is read, in offset order; snapshots of the metadata log last.
        log_start_offset: From ``log-start-offset-checkpoint``; None where it names none, which
            means the first segment's base offset.
        high_watermark: From ``replication-offset-checkpoint``, written every few seconds.
        first_dirty_offset: From ``cleaner-offset-checkpoint``; from it on nothing was cleaned. 0
            where that file does not name the partition, None where there is no such file.
        leader_epochs: (epoch, first offset), from ``leader-epoch-checkpoint``.
        topic_id: 22 characters, from ``partition.metadata``.
        ignored: Files that are not read.
        whole: All of the partition's files are given, not only named ones.
        voters: Node ids of the quorum, from ``quorum-state`` of the metadata log.
        noted_ends: Offsets that the log reached, each with the file that says so.
        lost_segments: Base offsets of segments whose index is there and whose log is not.
        swaps: Those of ``segments`` that are swap files, with what they take the place of.
        noted_first_dirty: What ``first_dirty_offset`` was before a swap file proved more.
        fetched_intact_from: Of a log that its leader sent whole: the offset from which on the
            cleaner had removed nothing, at the latest its end. None of any other log.
    """

    copy: str
    topic: str
    partition: int
    directory: str
    segments: tuple[SegmentFile, ...]
    log_start_offset: int | None = None
    high_watermark: int | None = None
    first_dirty_offset: int | None = None
    leader_epochs: tuple[tuple[int, int], ...] = ()
    topic_id: str | None = None
    ignored: tuple[Ignored, ...] = ()
    whole: bool = True
    voters: tuple[int, ...] = ()
    noted_ends: tuple[tuple[int, str], ...] = ()
    lost_segments: tuple[int, ...] = ()
    swaps: tuple[Swap, ...] = ()
    noted_first_dirty: int | None = None
    fetched_intact_from: int | None = None

    @property
    def logs(self) -> tuple[SegmentFile, ...]:
        """The segments of the log itself."""
        return tuple(segment for segment in self.segments if segment.kind == "log")

    @property
    def checkpoints(self) -> tuple[SegmentFile, ...]:
        """The snapshots of the metadata log."""
        return tuple(segment for segment in self.segments if segment.kind == "checkpoint")

    @property
    def intact_from(self) -> int | None:
        """From it on the cleaner removed nothing; None where nothing tells how far it came."""
        if self.first_dirty_offset is None:
            return self.fetched_intact_from
        return self.first_dirty_offset

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition


@dataclass(frozen=True)
class Copy:
    """One broker's (or controller's) disks, as far as they are given.

    Attributes:
        name: How results name it.
        node_id: ``node.id`` or ``broker.id`` of ``meta.properties``.
        cluster_id: Likewise.
        clean_shutdown: A ``.kafka_cleanshutdown`` lies on every disk: the broker ended in order.
            None where no log directory as a whole is given.
        log_dirs: Paths or URIs.
        partitions: Those of internal topics.
        data_partitions: Those of all other topics; never decoded.
        ignored: Directories that are not read.
        facts: What the disks' other files say about the release.
        snapshot: What the cluster answered while its logs were fetched; None of a broker's disks.
    """

    name: str
    node_id: int | None
    cluster_id: str | None
    clean_shutdown: bool | None
    log_dirs: tuple[str, ...]
    partitions: tuple[PartitionCopy, ...]
    data_partitions: tuple[PartitionCopy, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    facts: tuple[str, ...] = ()
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class Slice:
    """What one read of one segment keeps: the unit of the decode job.

    The slices of a file never overlap in position and together cover it. A record whose offset is
    in one of ``rules`` is left out by that rule, and counted.

    Attributes:
        copy: Whose file.
        topic: Whose records.
        partition: Likewise.
        segment: The file.
        line: ``""`` for the line that is decoded, else the name under ``diverged/``.
        from_position: First byte.
        to_position: End of the last byte.
        from_offset: Records kept begin here.
        to_offset: And end before this.
        rules: (first offset, end offset, rule), ascending, disjoint.
        sense: What the segment's offsets and epochs can be; the reader judges by it.
        batches: Number of batches where a walk has counted them, else None.
        records: Number of records the headers claim, where a walk has counted them, else None.
        unreadable: Why whoever planned cannot read the file; None where it could be opened.
    """

    copy: str
    topic: str
    partition: int
    segment: SegmentFile
    line: str
    from_position: int
    to_position: int
    from_offset: int = 0
    to_offset: int = MAX_OFFSET
    rules: tuple[tuple[int, int, str], ...] = ()
    sense: LogSense = NOTHING_KNOWN
    batches: int | None = None
    records: int | None = None
    unreadable: str | None = None


OTHER_TOPIC = "topic_id"
"""Shows a line to be of another topic of the same name: no election took part."""
METADATA_LOG, FIRST_RECORD = "metadata_log", "first_record"
"""What shows when a leader was elected."""


@dataclass(frozen=True)
class Divergence:
    """A line of history that did not survive. The columns of the table `divergences`.

    Attributes:
        pieces: Which decoded lines its own records are in, as (line, first offset), ascending:
            two copies can share a part of what was lost.
        surviving_leader_epoch: Of the leader whose election ended the line. Where several lines
            were lost, that may be the leader of another one of them.
        elected_at: When that leader was elected.
        election_shown_by: `metadata_log`; or `first_record` of the new leader, which is later.
        leaderless_from: When the last leader of the lost line stopped, by the metadata log.
        unclean: The new leader was not in sync; None where the dump does not say.
        high_watermark: Of the copy: records below it were committed, and clients saw them.
    """

    topic: str
    partition: int
    copy: str
    diverges_at: int
    end_offset: int
    lost_records: int
    lost_from_timestamp: int | None
    lost_to_timestamp: int | None
    lost_leader_epoch: int | None
    surviving_leader_epoch: int | None
    surviving_copy: str
    elected_at: int | None
    how: str = ""
    pieces: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    election_shown_by: str | None = None
    leaderless_from: int | None = None
    unclean: bool | None = None
    high_watermark: int | None = None


@dataclass(frozen=True)
class Filled:
    """Offsets of a line that its leading copy lacks and another one gives."""

    topic: str
    partition: int
    line: str
    copy: str
    first_offset: int
    end_offset: int
    why: str


@dataclass(frozen=True)
class Plan:
    """What is read, and what is known before it is read.

    Attributes:
        leaders: What the metadata log knows of leaders.
        before_swaps: What is read, beside that, of partitions with swap files: the whole of each
            as it was before the cleaner had done; None where there are none, or none can be.
    """

    copies: tuple[Copy, ...]
    slices: tuple[Slice, ...]
    leading: dict[tuple[str, int], str] = field(default_factory=dict)
    divergences: tuple[Divergence, ...] = ()
    filled: tuple[Filled, ...] = ()
    notes: tuple[Note, ...] = ()
    leaders: Leaders = NO_LEADERS
    before_swaps: Plan | None = None
