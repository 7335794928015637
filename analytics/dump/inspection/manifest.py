"""The manifest: what was read, how far it can be trusted, what it cannot tell.

`inspect` fills it from headers, `decode` from what it read; the columns are the same.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analytics.dump.batches.batch_bytes import DamageReason
from analytics.dump.batches.segment_stats import joined
from analytics.dump.batches.stretches import stretch_rows
from analytics.dump.files.data_topics import data_topics
from analytics.dump.files.model import Note
from analytics.dump.inspection.found_losses import (
    complete_from,
    deleted_below,
    lacks,
    loss_rows,
    losses_of_line,
)
from analytics.dump.inspection.limitations import limitations
from analytics.dump.inspection.survey import PartitionSurvey, gap_rows, survey_of
from analytics.epoch_times import iso_time
from analytics.version import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from analytics.dump.batches.segment_stats import SegmentSurvey
    from analytics.dump.files.model import (
        Copy,
        Divergence,
        Filled,
        Ignored,
        PartitionCopy,
        Plan,
        Slice,
    )
    from schemas.manifest import (
        CopyEntry,
        DamageEntry,
        DivergenceEntry,
        FilledEntry,
        IgnoredEntry,
        KafkaVersion,
        Manifest,
        Options,
        PartitionEntry,
        RecordTypeEntry,
        SnapshotEntry,
    )
    from schemas.snapshot import Setting, Snapshot

MOST_GAPS = 1000
MOST_DAMAGES = 1000


def _nothing_shown() -> KafkaVersion:
    return {}


@dataclass(frozen=True)
class Findings:
    """What a run found out about a dump.

    Attributes:
        copies: As listed.
        surveys: One for each copy of each internal partition.
        before_swaps: The same of partitions that are read, too, as they were before swap files.
        absent_partitions: Per internal topic.
        divergences: Lines of history that did not survive.
        leading: Per partition the copy whose line survived.
        filled: What other copies gave the leading one; None where that was not looked for.
        record_types: Rows of id, version, layout and count.
        kafka_version: What is known of the release, and from what.
        groups_only_there: Of a divergence (copy, topic, partition), once records are decoded.
        digests: SHA-256 by copy and segment name.
        notes: All else worth knowing.
        is_crc_checked: Every batch was summed over.
        is_sample: ``record_types`` counts a sample.
        has_archived_rows: Some or all records come from archived rows, not from logs.
    """

    copies: Sequence[Copy]
    surveys: Sequence[PartitionSurvey]
    absent_partitions: Mapping[str, Sequence[int]]
    divergences: Sequence[Divergence] = ()
    leading: Mapping[tuple[str, int], str] = field(default_factory=dict)
    filled: Sequence[Filled] | None = None
    record_types: Sequence[RecordTypeEntry] = ()
    kafka_version: KafkaVersion = field(default_factory=_nothing_shown)
    groups_only_there: Mapping[tuple[str, str, int], Sequence[str]] = field(default_factory=dict)
    digests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    notes: Sequence[Note] = ()
    is_crc_checked: bool = True
    is_sample: bool = False
    has_archived_rows: bool = False
    before_swaps: Sequence[PartitionSurvey] = ()

    @property
    def of_history(self) -> Sequence[PartitionSurvey]:
        """The surveys that tell what history there is."""
        keys = {each.partition.key for each in self.before_swaps}
        return [*(e for e in self.surveys if e.partition.key not in keys), *self.before_swaps]


def build_manifest(
    groupscope_version: str,
    created_from: Sequence[str],
    options: Options,
    findings: Findings,
) -> Manifest:
    """Put the manifest together; times are ISO 8601 in UTC with milliseconds.

    Args:
        groupscope_version: Of this program.
        created_from: INPUTs as given.
        options: What a person asked for.
        findings: What the run found out.
    """
    manifest: Manifest = {
        "schema_version": SCHEMA_VERSION,
        "groupscope_version": groupscope_version,
        "created_from": list(created_from),
        "options": options,
        "copies": [copy_row(each) for each in findings.copies],
        "data_topics": [
            {
                "topic": each.topic,
                "topic_id": each.topic_id,
                "partitions": list(each.partitions),
            }
            for each in data_topics(findings.copies)
        ],
        "partitions": [partition_row(each, findings) for each in findings.surveys],
        "absent_partitions": {
            topic: list(missing) for topic, missing in findings.absent_partitions.items()
        },
        "record_types": list(findings.record_types),
        "record_types_are_a_sample": findings.is_sample,
        "divergences": [divergence_row(each, findings) for each in findings.divergences],
        "filled": _filled(findings.filled),
        "kafka_version": findings.kafka_version,
        "crc_checked": findings.is_crc_checked,
        "unreadable": [
            {"copy": survey.partition.copy, "segment": file.segment.name, "why": file.unreadable}
            for survey in findings.surveys
            for file in survey.files
            if file.unreadable
        ],
        "unanswerable": limitations(
            findings.copies,
            findings.of_history,
            findings.absent_partitions,
            is_crc_checked=findings.is_crc_checked,
            has_archived_rows=findings.has_archived_rows,
        ),
        "notes": [
            {"where": each.where, "what": each.what}
            for each in (*findings.notes, *_overflowing(findings.surveys))
        ],
    }
    if snapshots := snapshot_rows(findings.copies):
        manifest["snapshots"] = snapshots
    return manifest


def surveys_of_slices(
    plan: Plan,
    read: Iterable[tuple[Slice, SegmentSurvey]],
    has_changed: Callable[[PartitionCopy], bool] = lambda _: False,
) -> list[PartitionSurvey]:
    """Return one survey for each copy of each partition, from what was read slice by slice.

    Args:
        plan: What was to be read.
        read: Slices, and what their headers said.
        has_changed: Whether the files of a partition are no longer as they were listed.
    """
    pieces: dict[tuple[str, str], list[tuple[int, SegmentSurvey]]] = defaultdict(list)
    keys = set()
    for each, survey in read:
        pieces[each.copy, each.segment.name].append((each.from_position, survey))
        keys.add((each.topic, each.partition))
    files: dict[str, list[SegmentSurvey]] = defaultdict(list)
    for (copy, _), found in pieces.items():
        ordered = sorted(found, key=lambda piece: piece[0])
        files[copy].append(joined([survey for _, survey in ordered]))
    # A directory without a single file of records is there, too: all it held is lost.
    keys |= set(plan.leading)
    order = {key: place for place, key in enumerate(plan.leading)}
    partitions = [p for copy in plan.copies for p in copy.partitions if p.key in keys]
    partitions.sort(key=lambda each: (order.get(each.key, len(order)), each.key))
    return [
        survey_of(each, files[each.copy], listing_changed=has_changed(each)) for each in partitions
    ]


def copy_row(copy: Copy) -> CopyEntry:
    """Return a copy as the manifest has it."""
    return {
        "name": copy.name,
        "node_id": copy.node_id,
        "cluster_id": copy.cluster_id,
        "clean_shutdown": copy.clean_shutdown,
        "log_dirs": list(copy.log_dirs),
        "internal_partitions": len(copy.partitions),
        "data_partitions": len(copy.data_partitions),
        "data_topics": len({each.topic for each in copy.data_partitions}),
        "ignored": _ignored(copy.ignored),
    }


def partition_row(survey: PartitionSurvey, findings: Findings) -> PartitionEntry:
    """Return one copy of a partition as the manifest has it."""
    partition = survey.partition
    leading = findings.leading.get(partition.key, partition.copy)
    is_leading = leading == partition.copy
    losses = losses_of_line(survey, findings.surveys, findings.filled or () if is_leading else ())
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "copy": partition.copy,
        "is_leading": is_leading,
        "topic_id": partition.topic_id,
        "files": [
            {
                "name": file.segment.name,
                "kind": file.segment.kind,
                "size": file.segment.size,
                "sha256": findings.digests.get((partition.copy, file.segment.name)),
                "first_timestamp": iso_time(file.first_timestamp),
                "last_timestamp": iso_time(file.last_timestamp),
            }
            for file in survey.files
        ],
        "size": partition.size,
        "first_offset": survey.first_offset,
        "end_offset": survey.end_offset,
        "first_timestamp": iso_time(survey.first_timestamp),
        "last_timestamp": iso_time(survey.last_timestamp),
        **stretch_rows(survey.stretches),
        "clock_steps": [list(each) for each in survey.clock_steps],
        "batches": survey.batches,
        "records": survey.records,
        "uncounted_batches": sum(log.uncounted_batches for log in survey.logs),
        "control_batches": sum(log.control_batches for log in survey.logs),
        "transactional_batches": sum(log.transactional_batches for log in survey.logs),
        "message_formats": _numbers(survey.counted("magics")),
        "codecs": _codecs(survey),
        "log_start_offset": partition.log_start_offset,
        "deleted_below": deleted_below(partition) or None,
        "high_watermark": partition.high_watermark,
        "records_above_high_watermark": survey.records_above_high_watermark,
        "first_dirty_offset": partition.first_dirty_offset,
        "thinned_end": max(
            (e for f in survey.logs if (e := f.thinned_end) is not None), default=None
        ),
        "complete_from": complete_from(survey, losses),
        "losses": loss_rows(losses),
        "lacks": lacks(*partition.key, losses) if losses else None,
        "leader_epochs": [
            {"epoch": epoch, "first_offset": offset} for epoch, offset in survey.leader_epochs
        ],
        "epoch_times": [list(each) for each in survey.epoch_times],
        "gaps": gap_rows(survey.gaps[:MOST_GAPS]),
        "gap_counts": dict(sorted(survey.gap_counts.items())),
        "gap_offsets": dict(sorted(survey.gap_offsets.items())),
        "crc_failures": survey.crc_failures if findings.is_crc_checked else None,
        "bytes_damaged": survey.bytes_damaged,
        "damages": _damages(survey),
        "truncated_tail": survey.truncated_tail,
        "preallocated_tail": survey.preallocated_tail,
        "changed_while_read": survey.changed_while_read,
        "ignored": _ignored(partition.ignored),
    }


def divergence_row(each: Divergence, findings: Findings) -> DivergenceEntry:
    """Return a divergence as the manifest has it."""
    key = (each.copy, each.topic, each.partition)
    groups = findings.groups_only_there.get(key)
    return {
        "topic": each.topic,
        "partition": each.partition,
        "copy": each.copy,
        "diverges_at": each.diverges_at,
        "end_offset": each.end_offset,
        "lost_records": each.lost_records,
        "lost_from_timestamp": iso_time(each.lost_from_timestamp),
        "lost_to_timestamp": iso_time(each.lost_to_timestamp),
        "lost_leader_epoch": each.lost_leader_epoch,
        "surviving_leader_epoch": each.surviving_leader_epoch,
        "surviving_copy": each.surviving_copy,
        "elected_at": iso_time(each.elected_at),
        "election_shown_by": each.election_shown_by,
        "leaderless_from": iso_time(each.leaderless_from),
        "unclean": each.unclean,
        "high_watermark": each.high_watermark,
        "pieces": [{"line": line, "first_offset": first} for line, first in each.pieces],
        "shown_by": each.how,
        "groups_only_there": None if groups is None else list(groups),
    }


def filled_row(each: Filled) -> FilledEntry:
    """Return what one copy gave another as the manifest has it."""
    return {
        "topic": each.topic,
        "partition": each.partition,
        "line": each.line,
        "copy": each.copy,
        "first_offset": each.first_offset,
        "end_offset": each.end_offset,
        "why": each.why,
    }


def _overflowing(surveys: Iterable[PartitionSurvey]) -> list[Note]:
    """Name the segments whose offsets go beyond what an index of theirs can name."""
    what = (
        "holds offsets more than 2^31-1 above the one in its name, which no index can hold; old "
        "releases merged such segments (KAFKA-6264). All of it is read"
    )
    return [
        Note(f"{survey.partition.copy}: {file.segment.name}", what)
        for survey in surveys
        for file in survey.logs
        if file.overflows
    ]


def _filled(filled: Sequence[Filled] | None) -> list[FilledEntry] | None:
    return None if filled is None else [filled_row(each) for each in filled]


def _damages(survey: PartitionSurvey) -> list[DamageEntry]:
    rows: list[DamageEntry] = [
        {
            "file": file.segment.name,
            "position": damage.position,
            "size": damage.size,
            "reason": str(DamageReason(damage.reason)),
            "detail": damage.detail,
            "offset": damage.offset,
        }
        for file in survey.files
        for damage in file.damages
    ]
    return rows[:MOST_DAMAGES]


def _codecs(survey: PartitionSurvey) -> dict[str, int]:
    names = ("none", "gzip", "snappy", "lz4", "zstd")
    return {
        names[number] if number < len(names) else str(number): count
        for number, count in sorted(survey.counted("codecs").items())
    }


def _numbers(counts: Mapping[int, int]) -> dict[str, int]:
    return {str(number): count for number, count in sorted(counts.items())}


def _ignored(items: Iterable[Ignored]) -> list[IgnoredEntry]:
    return [{"name": item.name, "why": item.why} for item in items]


# What clusters answered to `snapshot`, as the manifest has it.


def snapshot_rows(copies: Iterable[Copy]) -> list[SnapshotEntry]:
    """Return an entry for each copy that was fetched from a running cluster."""
    return [_entry(each.name, each.snapshot) for each in copies if each.snapshot is not None]


def _entry(copy: str, snapshot: Snapshot) -> SnapshotEntry:
    of_groups = {each.group_id: _values(each.configs) for each in snapshot.groups}
    entry: SnapshotEntry = {
        "copy": copy,
        "taken_at": snapshot.taken_at,
        "finished_at": snapshot.finished_at,
        "read_beyond_ends": _is_read_beyond_ends(snapshot),
        "brokers": [
            {"node_id": each.node_id, "settings": _values(each.configs)}
            for each in snapshot.brokers
        ],
        "topics": [
            {
                "topic": topic.topic,
                "topic_id": topic.topic_id,
                "partitions": [
                    [
                        *(each.partition, each.leader),
                        *(each.log_start_offset, each.log_end_offset, each.later_end_offset),
                    ]
                    for each in topic.partitions
                ],
                "settings": _values(topic.configs),
            }
            for topic in snapshot.topics
        ],
        "groups": [
            {"group_id": group, "settings": settings}
            for group, settings in of_groups.items()
            if settings
        ],
    }
    # Without the key it is what it was before there was one: saved runs are known by their digest.
    if since := _resumed_from(snapshot):
        entry["resumed_from"] = since
    return entry


def _resumed_from(snapshot: Snapshot) -> str | None:
    """Return of when the snapshot is that this one has batches of; null where it has none."""
    is_held = any(each.fetched_from is not None for each in snapshot.logs)
    return snapshot.resumed_from if is_held else None


def _is_read_beyond_ends(snapshot: Snapshot) -> bool:
    ends = {
        (topic.topic, each.partition): each.log_end_offset
        for topic in snapshot.topics
        for each in topic.partitions
    }
    # A batch that begins below the end is there whole.
    return any(
        each.next_offset is not None
        and each.next_offset > (ends.get((each.topic, each.partition)) or 0)
        for each in snapshot.logs
    )


def _values(configs: Sequence[Setting] | None) -> dict[str, str] | None:
    return None if configs is None else {each.name: each.value for each in configs}
