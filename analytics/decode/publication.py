"""The end of a decode run: its manifest, and the tables where readers find them.

The manifest says what was read, how far it can be trusted, where everything went. Beside records
there are tables of data topics' logs, which say when they were written, by their files and indexes;
and of divergences, lines of history that did not survive.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.decode.decoded_pieces import digest_of, pieces_text
from analytics.decode.decoding import reconciliation_of, record_counts
from analytics.decode.elections import partition_counts, with_elections
from analytics.decode.unjudged_elections import with_unjudged_elections
from analytics.decode.unplaced_rows import named_rows, with_undecoded_losses
from analytics.dump.batches.stretches import stretch_rows
from analytics.dump.copies.plan import absent_partitions
from analytics.dump.files.cluster_answers import answers_of
from analytics.dump.files.data_logs import data_segments_and_times, stable_ends
from analytics.dump.files.data_topics import data_offsets
from analytics.dump.inspection.found_losses import with_archived_losses
from analytics.dump.inspection.limitations import with_absent_leaders
from analytics.dump.inspection.manifest import Findings, build_manifest, surveys_of_slices
from analytics.dump.inspection.study import has_changed, with_leader_clocks
from analytics.dump.inspection.survey import gap_rows
from analytics.dump.records.raw_rows_files import BINARY
from analytics.dump.records.redpanda_rows import REDPANDAS, said_of_redpanda
from analytics.epoch_times import iso_time
from analytics.errors import InputUnreadableError
from analytics.locations import make_folder, open_location
from analytics.time_columns import TIMESTAMP, times_of
from analytics.version import VERSION
from analytics.workspace import DATA_LOGS, FOLDERS, PIECES, Part
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analytics.decode.archived_rows import RowsReport
    from analytics.decode.decoding import Account, Decoding
    from analytics.decode.tasks import Settings
    from analytics.dump.copies.plan import PlanOptions
    from analytics.dump.files.data_topics import DataOffsets
    from analytics.dump.files.inputs import Inputs
    from analytics.dump.files.model import Copy, Divergence, PartitionCopy, Plan
    from analytics.dump.inspection.survey import PartitionSurvey
    from analytics.workspace import Staging
    from schemas.manifest import (
        BeforeSwaps,
        DataPartitionEntry,
        LogFacts,
        Manifest,
        NoteEntry,
        Options,
        PartitionEntry,
        UnplacedRowEntry,
        UnreadableEntry,
    )

_ONLY_IN_LOGS: Final[LogFacts] = {
    "topic_id": None,
    "size": None,
    "batches": None,
    "uncounted_batches": None,
    "control_batches": None,
    "transactional_batches": None,
    "log_start_offset": None,
    "deleted_below": None,
    "high_watermark": None,
    "records_above_high_watermark": None,
    "first_dirty_offset": None,
    "thinned_end": None,
    "crc_failures": None,
    "bytes_damaged": None,
    "truncated_tail": None,
    "preallocated_tail": None,
    "changed_while_read": None,
    "files": [],
    "leader_epochs": [],
    "epoch_times": [],
    "message_formats": {},
    "codecs": {},
    "damages": [],
    "ignored": [],
}
"""What the manifest has of a partition that rows do not show: no file, no batch, no checkpoint."""
_SEGMENTS_TABLE: Final = f"{DATA_LOGS}/data_segments"
_TIMES_TABLE: Final = f"{DATA_LOGS}/data_log_times"
_STABLE_TABLE: Final = f"{DATA_LOGS}/data_stable_ends"
_ANSWERS_TABLE: Final = f"{DATA_LOGS}/cluster_answers"

_DIVERGENCES = "history/divergences"
_DIVERGENCES_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("copy", pa.string()),
        ("diverges_at", pa.int64()),
        ("lost_records", pa.int64()),
        ("lost_from_timestamp", TIMESTAMP),
        ("lost_to_timestamp", TIMESTAMP),
        ("lost_leader_epoch", pa.int32()),
        ("surviving_leader_epoch", pa.int32()),
        ("surviving_copy", pa.string()),
        ("elected_at", TIMESTAMP),
        ("election_shown_by", pa.string()),
        ("leaderless_from", TIMESTAMP),
        ("unclean", pa.bool_()),
        ("groups_only_there", pa.list_(pa.field("element", pa.string()))),
    ]
)


def published(
    staging: Staging,
    inputs: Inputs,
    planned: Plan,
    decoding: Decoding,
    settings: Settings,
    options: PlanOptions,
    *,
    listing: str | None = None,
) -> Manifest:
    """Publish what was decoded and return the manifest.

    Args:
        staging: Where the tables lie.
        inputs: The INPUTs.
        planned: What was read of logs.
        decoding: What came of it.
        settings: What was wanted.
        options: What a person asked for.
        listing: A digest of the files that were read.
    """
    registered = planned.leaders.registered
    planned = with_elections(planned, registered)
    said: Options = {
        "topics": sorted(options.topics or ()),
        "partitions": sorted(options.partitions or ()),
        "groups": list(settings.selection.groups),
        "exclude_groups": list(settings.selection.exclude_groups),
        "data_topics": list(settings.selection.topics),
        "prefer_copy": options.prefer_copy,
        "topic_partition": options.topic_partition,
        "strict_high_watermark": options.edges.strict_high_watermark,
        "keep_below_log_start": options.edges.keep_below_log_start,
        "value_encoding": options.value_encoding,
    }
    manifest = _manifest(inputs.arguments, said, planned, decoding, staging.location)
    manifest["before_swaps"] = None
    parts = decoding.parts
    if planned.before_swaps is not None and decoding.before_swaps is not None:
        earlier = _manifest(
            inputs.arguments, said, planned.before_swaps, decoding.before_swaps, staging.location
        )
        parts = [*parts, *decoding.before_swaps.parts]
        manifest["before_swaps"] = of_logs_before_swaps(earlier)
    manifest["input_listing"] = listing
    if decoding.resumed is not None:
        manifest["resumed"] = decoding.resumed
    if decoding.tasks:
        text = pieces_text(decoding.tasks, decoding.parts, settings.selection)
        staging.workspace.write(PIECES, text)
        manifest["decoded_pieces"] = digest_of(text)
    divergences = _divergences_part(
        staging.location, planned.divergences, decoding.groups_only_there
    )
    data_logs = _data_log_parts(staging.location, planned.copies)
    staging.publish([*parts, divergences, *data_logs], FOLDERS, manifest)
    return manifest


def of_logs_before_swaps(earlier: Manifest) -> BeforeSwaps:
    """Return what a manifest says of logs as they were before swap files, under `before_swaps`."""
    return {
        "partitions": earlier["partitions"],
        "filled": earlier["filled"],
        "record_types": earlier["record_types"],
        "reconciliation": earlier["reconciliation"],
        "records_lost": earlier["records_lost"],
        "unreadable": earlier["unreadable"],
    }


def _manifest(
    arguments: Sequence[str],
    options: Options,
    planned: Plan,
    decoding: Decoding,
    staging: str,
) -> Manifest:
    """Return what a manifest says of what was decoded by a plan."""
    registered = planned.leaders.registered
    reconciliation = reconciliation_of(planned, decoding)
    counts = partition_counts(registered)
    manifest = _decode_manifest(arguments, options, planned, decoding, reconciliation, counts)
    manifest = with_undecoded_losses(manifest, decoding.parts, staging)
    manifest = with_unjudged_elections(manifest, registered)
    manifest = with_absent_leaders(manifest, planned.leaders)
    manifest = with_leader_clocks(manifest, planned.leaders)
    manifest["records_lost"] = sum(
        each.summary.records_lost for each in decoding.slices if each.summary
    )
    return manifest


def _decode_manifest(
    created_from: Sequence[str],
    options: Options,
    plan: Plan,
    decoding: Decoding,
    reconciliation: Sequence[Account],
    registered: Mapping[str, int] = MappingProxyType({}),
) -> Manifest:
    """Put the manifest of tables.md together, and the reconciliation of every record and byte.

    Args:
        created_from: INPUTs as given.
        options: What a person asked for.
        plan: What was read.
        decoding: What came of it.
        reconciliation: Of every record and byte.
        registered: How many partitions topics have, as far as the metadata log tells.
    """
    reports = [(plan.slices[each.number], each) for each in decoding.slices]
    surveys = _surveys(plan, decoding)
    findings = Findings(
        copies=plan.copies,
        surveys=surveys,
        before_swaps=[]
        if plan.before_swaps is None or decoding.before_swaps is None
        else _surveys(plan.before_swaps, decoding.before_swaps),
        absent_partitions=absent_partitions(plan.copies, registered),
        divergences=plan.divergences,
        leading=plan.leading,
        filled=plan.filled,
        record_types=record_counts(decoding),
        kafka_version={
            "at_least": decoding.kafka_version.at_least,
            "evidence": decoding.kafka_version.evidence,
        },
        groups_only_there=decoding.groups_only_there,
        digests={
            (each.copy, each.segment.name): report.summary.sha256
            for each, report in reports
            if report.summary and report.summary.sha256
        },
        notes=plan.notes,
        has_archived_rows=bool(decoding.rows),
    )
    manifest = build_manifest(VERSION, created_from, options, findings)
    manifest["reconciliation"] = [each.as_json() for each in reconciliation]
    manifest["unreadable"] = [
        {"copy": each.copy, "segment": each.segment.name, "why": report.unreadable}
        for each, report in reports
        if report.unreadable
    ]
    manifest["unreadable"] += _unreadable_rows(decoding, created_from)
    manifest["data_partitions"] = [
        _data_partition(data_offsets(each)) for copy in plan.copies for each in copy.data_partitions
    ]
    manifest["unplaced_rows"] = named_rows(decoding.unplaced)
    manifest["notes"] += [
        {"where": _where(each), "what": f"{each['flaw']}: not decoded"}
        for each in manifest["unplaced_rows"]
    ]
    manifest["notes"] += _of_other_brokers(reconciliation)
    if decoding.rows:
        manifest["partitions"] += [
            _archived(each) for each in decoding.rows if not each.counts.left_out["in_a_log"]
        ]
    return with_archived_losses(manifest)


def _surveys(plan: Plan, decoding: Decoding) -> list[PartitionSurvey]:
    """Return what was seen of each copy of each partition that was read by a plan."""
    read = [
        (plan.slices[each.number], replace(each.survey, unreadable=each.unreadable))
        for each in decoding.slices
        if each.survey
    ]
    return surveys_of_slices(plan, read, _has_changed)


def _of_other_brokers(reconciliation: Sequence[Account]) -> list[NoteEntry]:
    """Return how many records Kafka did not write, copy by copy."""
    found: Counter[str] = Counter()
    for each in reconciliation:
        where = CONSUMER_OFFSETS if each.copy is None else f"{each.copy}: {CONSUMER_OFFSETS}"
        found[where] += sum(each.undecoded[reason] for reason in REDPANDAS)
    return [
        {"where": where, "what": f"{said_of_redpanda(number)}: not decoded"}
        for where, number in found.items()
        if number
    ]


def _data_partition(offsets: DataOffsets) -> DataPartitionEntry:
    return {
        "topic": offsets.topic,
        "partition": offsets.partition,
        "copy": offsets.copy,
        "topic_id": offsets.topic_id,
        "log_start_offset": offsets.log_start_offset,
        "log_end_offset": offsets.log_end_offset,
        "is_exact": offsets.is_exact,
        "leader_epochs": [list(each) for each in offsets.leader_epochs],
    }


def _where(row: UnplacedRowEntry) -> str:
    """Return the file and the place in it of an archived row."""
    return row["file"] if row["row"] is None else f"{row['file']}, row {row['row']}"


def _has_changed(partition: PartitionCopy) -> bool:
    try:
        return has_changed(partition)
    except InputUnreadableError:  # the folder itself has gone away meanwhile
        return True


def _archived(rows: RowsReport) -> PartitionEntry:
    """Return a partition of archived rows; what only a log directory tells is null."""
    counts: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for gap in rows.gaps:
        counts[gap.kind] += 1
        missing[gap.kind] += gap.end_offset - gap.first_offset
    return {
        **_ONLY_IN_LOGS,
        "topic": rows.topic,
        "partition": rows.partition,
        "copy": None,
        "is_leading": True,
        "first_offset": rows.first_offset,
        "end_offset": rows.end_offset,
        "first_timestamp": iso_time(rows.first_timestamp),
        "last_timestamp": iso_time(rows.last_timestamp),
        **stretch_rows(rows.stretches),
        "clock_steps": [list(each) for each in rows.clock_steps],
        "records": rows.rows,
        "complete_from": rows.gaps[-1].end_offset if rows.gaps else 0,
        "gaps": gap_rows(rows.gaps),
        "gap_counts": dict(sorted(counts.items())),
        "gap_offsets": dict(sorted(missing.items())),
    }


def _unreadable_rows(decoding: Decoding, arguments: Sequence[str]) -> list[UnreadableEntry]:
    """Return what is wrong with archived rows of which none, or few, could be decoded."""
    decoded = sum(each.counts.kinds.total() for each in decoding.rows)
    failed = sum(each.counts.undecoded.total() for each in decoding.rows)
    left_out = sum(each.counts.left_out["filtered"] for each in decoding.rows)
    if not failed or ((decoded or left_out) and not decoding.encoding_to_try):
        return []
    why = f"{failed:,} of {decoded + failed + left_out:,} archived rows could not be decoded"
    if decoding.encoding_to_try:
        looks = decoding.encoding_to_try + (" text" if decoding.encoding_to_try != BINARY else "")
        why += (
            f": their keys and values look like {looks}: "
            f"try --value-encoding {decoding.encoding_to_try}"
        )
    return [{"copy": None, "segment": ", ".join(arguments), "why": why}]


def _data_log_parts(staging: str, copies: Iterable[Copy]) -> list[Part]:
    """Write `data_segments`, `data_log_times`, `data_stable_ends`, `cluster_answers`: a part each.

    Args:
        staging: Folder of the run.
        copies: As they were found.
    """
    filesystem, root = open_location(staging)
    make_folder(filesystem, root)
    parts = []
    copies = list(copies)
    tables = {
        **dict(zip((_SEGMENTS_TABLE, _TIMES_TABLE), data_segments_and_times(copies), strict=True)),
        _STABLE_TABLE: stable_ends(copies),
        _ANSWERS_TABLE: answers_of(copies),
    }
    for table, rows in tables.items():
        path = f"{root}/{table.rpartition('/')[2]}.parquet"
        pq.write_table(rows, path, filesystem=filesystem, store_schema=False)
        parts.append(Part(table, path, rows.num_rows))
    return parts


def _divergences_part(
    staging: str,
    divergences: Sequence[Divergence],
    groups_only_there: Mapping[tuple[str, str, int], Sequence[str]],
) -> Part:
    """Write the table's one part.

    Args:
        staging: Folder of the run.
        divergences: Lines that did not survive.
        groups_only_there: By copy, topic and partition.
    """
    rows = [
        {
            **asdict(each),
            "groups_only_there": groups_only_there.get((each.copy, each.topic, each.partition), []),
        }
        for each in divergences
    ]
    columns = {
        each.name: _column(each, [row[each.name] for row in rows]) for each in _DIVERGENCES_SCHEMA
    }
    filesystem, root = open_location(staging)
    make_folder(filesystem, root)
    path = f"{root}/divergences.parquet"
    table = pa.Table.from_pydict(columns, schema=_DIVERGENCES_SCHEMA)
    pq.write_table(table, path, filesystem=filesystem, store_schema=False)
    return Part(_DIVERGENCES, path, len(rows))


def _column(each: pa.Field, values: list[Any]) -> pa.Array:
    if each.type == TIMESTAMP:
        return times_of(np.array([-1 if value is None else value for value in values], np.int64))
    return pa.array(values, each.type)
