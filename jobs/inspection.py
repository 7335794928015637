"""What `inspect` does: recognise, list, look at headers, and put the manifest together."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from analytics.decode.elections import known_leaders
from analytics.dump.copies.plan import PlanOptions, absent_partitions, check_preferred, next_offset
from analytics.dump.copies.slices import Edges
from analytics.dump.files.inputs import Inputs, recognize
from analytics.dump.files.log_dirs import read_copies
from analytics.dump.files.model import Note
from analytics.dump.inspection.limitations import with_absent_leaders
from analytics.dump.inspection.manifest import Findings, build_manifest
from analytics.dump.inspection.study import study, with_leader_clocks
from analytics.dump.records.redpanda_rows import said_of_redpanda
from analytics.dump.records.segment_reader import TOMBSTONE
from analytics.replay.dump.times import last_record_time
from analytics.version import SCHEMA_VERSION, VERSION
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS, record_types
from schemas.releases import KafkaVersion, RecordFormat, infer_kafka_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.dump.copies.leadership import Leaders
    from analytics.dump.files.model import Copy
    from analytics.dump.inspection.study import Study
    from analytics.dump.records.segment_reader import Sample
    from jobs.cli.console import Console
    from schemas.manifest import (
        AnyManifest,
        LeaderClockEntry,
        Options,
        PartitionEntry,
        RecordTypeEntry,
    )

_TAKES_A_WHILE = 1 << 30


def inspect_inputs(
    console: Console,
    *,
    inputs: Sequence[str],
    topic_partition: str | None = None,
    prefer_copy: str | None = None,
    strict_high_watermark: bool = False,
    value_encoding: str | None = None,
    check_crc: bool = False,
) -> AnyManifest:
    """Look at INPUTs and return what is found as a manifest has it.

    Raises:
        GroupscopeError: An INPUT is nothing known, or cannot be read.
    """
    found = recognize(inputs, topic_partition)
    for sentence in found.descriptions:
        console.detail(sentence)
    if found.workspaces and not found.disks:
        asked = {
            "topic_partition": topic_partition,
            "prefer_copy": prefer_copy,
            "strict_high_watermark": strict_high_watermark,
            "value_encoding": value_encoding,
        }
        return _of_workspace(found.workspaces[0], asked)
    options = PlanOptions(
        edges=Edges(strict_high_watermark=strict_high_watermark),
        prefer_copy=prefer_copy,
        topic_partition=topic_partition,
    )
    notes = _archived(found)
    copies = read_copies(found.disks, next_offset, notes)
    check_preferred(copies, prefer_copy)
    for copy in copies:
        for item in copy.ignored:
            console.detail(f"{copy.name}: {item.name}: {item.why}; not read")
    leaders = known_leaders(copies)
    looked = _study(console, copies, options, leaders, check_crc=check_crc)
    sample = looked.findings.sample
    version = _kafka_version(sample)
    findings = Findings(
        copies=copies,
        surveys=looked.surveys,
        absent_partitions=absent_partitions(copies),
        divergences=looked.findings.divergences,
        leading=looked.findings.leading,
        record_types=_record_types(sample),
        kafka_version={"at_least": version.at_least, "evidence": version.evidence},
        notes=[*notes, *looked.findings.notes, *_of_other_brokers(sample)],
        is_crc_checked=check_crc,
        is_sample=True,
        has_archived_rows=bool(found.raw_rows),
    )
    said: Options = {
        "prefer_copy": prefer_copy,
        "strict_high_watermark": strict_high_watermark,
        "topic_partition": topic_partition,
        "value_encoding": value_encoding,
    }
    manifest = build_manifest(VERSION, inputs, said, findings)
    return with_leader_clocks(with_absent_leaders(manifest, leaders), leaders)


def _study(
    console: Console,
    copies: Sequence[Copy],
    options: PlanOptions,
    leaders: Leaders,
    *,
    check_crc: bool,
) -> Study:
    """Look at all headers, with a progress bar where that takes a while."""
    size = sum(each.size for copy in copies for each in copy.partitions)
    if not console.draws_progress or size < _TAKES_A_WHILE:
        return study(copies, options, check_crc=check_crc, leaders=leaders)
    with click.progressbar(
        length=size, label="reading headers", file=sys.stderr, show_eta=False
    ) as bar:
        return study(copies, options, check_crc=check_crc, leaders=leaders, report=bar.update)


def inspection_document(manifest: AnyManifest, inputs: Sequence[str]) -> dict[str, Any]:
    """Return what JSON has: the manifest, and its partitions as ``rows``."""
    rows: list[PartitionEntry] = []
    clocks: list[LeaderClockEntry] = []
    if "dialect" not in manifest:
        rows, clocks = manifest["partitions"], manifest.get("leader_clocks", [])
    return {
        "schema_version": SCHEMA_VERSION,
        "as_of": {"time": last_record_time(rows, clocks), "is_end": True, "offsets": {}},
        "input": list(inputs),
        "rows": rows,
        **manifest,
    }


def _of_workspace(path: str, options: Mapping[str, Any]) -> AnyManifest:
    # Arrow is heavy: a dump is looked into without it.
    from analytics.workspace import Workspace  # noqa: PLC0415
    from jobs.workspaces.replaying import refuse_options_of_decoding  # noqa: PLC0415

    space = Workspace(path)
    manifest = space.any_manifest()
    if "dialect" not in manifest:
        refuse_options_of_decoding(space, options)
    return manifest


def _archived(inputs: Inputs) -> list[Note]:
    return [
        Note(
            rows.argument,
            f"archived rows ({rows.format}): they have no headers to look at; `decode` reads them",
        )
        for rows in inputs.raw_rows
    ]


def _of_other_brokers(sample: Sample) -> list[Note]:
    if not sample.of_redpanda:
        return []
    seen = f"{said_of_redpanda(sample.of_redpanda)} among those looked at"
    return [Note(CONSUMER_OFFSETS, f"{seen}; `decode` keeps them undecoded")]


def _record_types(sample: Sample) -> list[RecordTypeEntry]:
    """Return the sampled types as the manifest has decoded ones; an unknown type has no table."""
    rows: list[RecordTypeEntry] = []
    for kind, count in sorted(sample.kinds.items()):
        known = record_types(kind.topic).get(kind.record_type)
        rows.append(
            {
                "topic": kind.topic,
                "id": kind.record_type,
                "table": known.table if known else None,
                "version": None if kind.version == TOMBSTONE else kind.version,
                "layout": None,
                "records": count,
            }
        )
    return rows


def _kafka_version(sample: Sample) -> KafkaVersion:
    seen = [
        RecordFormat(kind.topic, known.table, kind.version, None)
        for kind in sample.kinds
        if (known := record_types(kind.topic).get(kind.record_type))
    ]
    levels = (
        sample.metadata_levels if any(k.topic == CLUSTER_METADATA for k in sample.kinds) else ()
    )
    return infer_kafka_version(seen, levels)
