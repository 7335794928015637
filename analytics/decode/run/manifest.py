"""The manifest of a decode run: what was read, how far it can be trusted, where everything went."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from analytics.decode.run.reconciliation import record_counts
from analytics.decode.unplaced_rows import named_rows
from analytics.dump.batches.stretches import stretch_rows
from analytics.dump.copies.plan import absent_partitions
from analytics.dump.files.data_topics import data_offsets
from analytics.dump.inspection.archived_losses import with_archived_losses
from analytics.dump.inspection.changes import has_changed
from analytics.dump.inspection.manifest import Findings, build_manifest, surveys_of_slices
from analytics.dump.records.raw_rows_files import BINARY
from analytics.dump.records.redpanda_rows import REDPANDAS, said_of_redpanda
from analytics.epoch_times import iso_time
from analytics.errors import InputUnreadableError
from analytics.version import VERSION
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.decode.archived_rows import RowsReport
    from analytics.decode.run.decoding import Decoding
    from analytics.decode.run.reconciliation import Account
    from analytics.dump.files.model import PartitionCopy, Plan
    from analytics.dump.inspection.survey import PartitionSurvey

_ONLY_IN_LOGS: dict[str, Any] = {
    **dict.fromkeys(
        (
            *("topic_id", "size", "batches", "uncounted_batches", "control_batches"),
            *("transactional_batches", "log_start_offset", "deleted_below", "high_watermark"),
            *("records_above_high_watermark", "first_dirty_offset", "thinned_end"),
            *("crc_failures", "bytes_damaged", "truncated_tail", "preallocated_tail"),
            "changed_while_read",
        )
    ),
    "files": [],
    "leader_epochs": [],
    "epoch_times": [],
    "message_formats": {},
    "codecs": {},
    "damages": [],
    "ignored": [],
}
"""What the manifest has of a partition that rows do not show: no file, no batch, no checkpoint."""


def decode_manifest(
    created_from: Sequence[str],
    options: Mapping[str, Any],
    plan: Plan,
    decoding: Decoding,
    reconciliation: Sequence[Account],
    registered: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
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
        kafka_version=decoding.kafka_version._asdict(),
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
    manifest["unreadable"] += unreadable_rows(decoding, created_from)
    manifest["data_partitions"] = [
        asdict(data_offsets(each)) for copy in plan.copies for each in copy.data_partitions
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


def _of_other_brokers(reconciliation: Sequence[Account]) -> list[dict[str, str]]:
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


def _where(row: Mapping[str, Any]) -> str:
    """Return the file and the place in it of an archived row."""
    return str(row["file"]) if row["row"] is None else f"{row['file']}, row {row['row']}"


def _has_changed(partition: PartitionCopy) -> bool:
    try:
        return has_changed(partition)
    except InputUnreadableError:  # the folder itself has gone away meanwhile
        return True


def _archived(rows: RowsReport) -> dict[str, Any]:
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
        "gaps": [gap._asdict() for gap in rows.gaps],
        "gap_counts": dict(sorted(counts.items())),
        "gap_offsets": dict(sorted(missing.items())),
    }


def unreadable_rows(decoding: Decoding, arguments: Sequence[str]) -> list[dict[str, Any]]:
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
