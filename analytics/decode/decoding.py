"""A decode run: plan, tasks on Spark, and the sums in which every record and byte comes even."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.cluster_probe import check_executors, files_of
from analytics.decode.chunks import CONTROL_TABLE, DECODED, UNDECODED_TABLE, RecordKind
from analytics.decode.log_decoding import decode_logs
from analytics.decode.resumption import all_parts
from analytics.decode.tasks import Settings, SliceReport, empty_parts
from analytics.decode.unplaced_rows import UnplacedRows, add_gaps
from analytics.dump.batches.batch_bytes import BatchBytes, Horizon, first_horizons
from analytics.dump.files.model import MAX_OFFSET, Divergence, Plan
from analytics.locations import open_location
from analytics.spark_tasks import own_errors
from analytics.wire.cursor import Reason
from analytics.workspace import BEFORE_SWAPS
from schemas import record_types
from schemas.releases import (
    NOTHING_SHOWN,
    FieldEvidence,
    KafkaVersion,
    RecordFormat,
    field_evidence,
    infer_kafka_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyarrow import fs
    from pyspark.sql import SparkSession

    from analytics.decode.archived_rows import ArchiveReport, RowsReport
    from analytics.decode.decoded_pieces import TaskRows
    from analytics.decode.log_decoding import Resumed
    from analytics.dump.copies.plan import PlanOptions
    from analytics.dump.records.raw_rows_files import RawRows
    from analytics.workspace import Part
    from schemas.manifest import AccountEntry, RecordTypeEntry, ResumedEntry

# A decode run: plan, tasks on Spark, what became of everything, publication.
#
# Shared by every command that needs decoded tables: one pass over the dump, whatever the number
# of tables.

_FEATURES = "decoded/feature_level_record"
_METADATA_VERSION = "metadata.version"
_GROUP = ("group", "group_id")
Kinds = dict[tuple[str, str], Counter[RecordKind]]
"""Decoded records by (topic, line of history) and kind; line "" is the one that survived."""


@dataclass(frozen=True)
class Decoding:
    """What a run produced, before it is published.

    Attributes:
        before_swaps: What came of `Plan.before_swaps`.
        tasks: What parts of logs were decoded of.
        resumed: What an earlier run had decoded; None where none was named.
    """

    parts: list[Part]
    slices: list[SliceReport]
    rows: list[RowsReport]
    kinds: Kinds = field(default_factory=dict)
    kafka_version: KafkaVersion = NOTHING_SHOWN
    groups_only_there: dict[tuple[str, str, int], list[str]] = field(default_factory=dict)
    encoding_to_try: str | None = None
    unplaced: UnplacedRows = field(default_factory=UnplacedRows)
    before_swaps: Decoding | None = None
    tasks: list[TaskRows] = field(default_factory=list)
    resumed: ResumedEntry | None = None


def decode_dump(
    spark: SparkSession | None,
    plan: Plan,
    archives: Sequence[RawRows],
    settings: Settings,
    options: PlanOptions,
    watched: AbstractContextManager[None] | None = None,
    resumed: Resumed | None = None,
) -> Decoding:
    """Decode everything that was planned into the staging folder of the settings.

    Args:
        spark: The session; None decodes logs in this process, and no archived rows.
        plan: What is read of logs.
        archives: Archived rows.
        settings: Where to, and what is wanted.
        options: What a person asked for.
        watched: Entered while Spark works on logs: shows progress.
        resumed: An earlier run, of which is kept what it decoded of the same logs.

    Raises:
        ClusterUnfitError: Executors do not see the files, or this side not what they write.
        ReadFailedError: A file could not be read where tasks were tried, and can be opened here.
    """
    if spark is not None:
        check_executors(spark, files_of(plan, archives), settings.staging)
    in_logs = frozenset((each.topic, each.partition) for each in plan.slices)
    with watched or nullcontext():
        logs = decode_logs(spark, plan.slices, settings, resumed)
        archived = _archived(spark, archives, settings, in_logs, options)
    parts = [*all_parts(logs.tasks), *(archived.parts if archived else ())]
    slices = logs.slices
    rows = archived.partitions if archived else []
    unplaced = archived.unplaced if archived else UnplacedRows()
    add_gaps(rows, unplaced)
    written = {part.table for part in parts}
    prefixes = {settings.folder(""), *(table.rpartition("/")[0] for table in written)}
    empty = [
        part for each in sorted(prefixes) for part in empty_parts(settings.staging, each, written)
    ]
    kinds = kinds_of(plan, slices, rows)
    shown, earlier = _release_evidence(plan, slices, rows, kinds), None
    if plan.before_swaps is not None:
        within = replace(settings, within=BEFORE_SWAPS)
        earlier = decode_dump(spark, plan.before_swaps, (), within, options)
        also = _release_evidence(plan.before_swaps, earlier.slices, (), earlier.kinds)
        shown = _ReleaseEvidence([*shown.formats, *also.formats], [*shown.fields, *also.fields])
    version = _kafka_version(shown, parts, settings.staging)
    return Decoding(
        sorted([*parts, *empty], key=lambda part: part.table),
        slices,
        rows,
        kinds,
        version,
        groups_only_there(plan, parts, settings.staging),
        _encoding_to_try(spark, archives, rows, options),
        unplaced,
        earlier,
        logs.tasks,
        logs.resumed,
    )


def _archived(
    spark: SparkSession | None,
    archives: Sequence[RawRows],
    settings: Settings,
    in_logs: frozenset[tuple[str, int]],
    options: PlanOptions,
) -> ArchiveReport | None:
    if spark is None or not archives:
        return None
    # PySpark is heavy: logs are decoded without it.
    from analytics.decode.archived_rows import decode_archives  # noqa: PLC0415

    with own_errors():
        return decode_archives(spark, archives, settings, in_logs, options)


def _encoding_to_try(
    spark: SparkSession | None,
    archives: Sequence[RawRows],
    rows: Sequence[RowsReport],
    options: PlanOptions,
) -> str | None:
    if spark is None or not archives:
        return None
    from analytics.decode.archived_rows import encoding_to_try  # noqa: PLC0415 - as above

    with own_errors():
        return encoding_to_try(spark, archives, rows, options.value_encoding)


def kinds_of(plan: Plan, slices: Iterable[SliceReport], rows: Iterable[RowsReport]) -> Kinds:
    """Return how many records of each kind were decoded."""
    kinds: Kinds = {}
    for report in slices:
        where = plan.slices[report.number]
        kinds.setdefault((where.topic, where.line), Counter()).update(report.kinds)
    for each in rows:
        kinds.setdefault((each.topic, ""), Counter()).update(each.counts.kinds)
    return kinds


@dataclass(frozen=True)
class _ReleaseEvidence:
    """What records show of the release, those that a filter left out among them."""

    formats: list[RecordFormat]
    fields: list[FieldEvidence]


def _release_evidence(
    plan: Plan, slices: Sequence[SliceReport], rows: Iterable[RowsReport], kinds: Kinds
) -> _ReleaseEvidence:
    reports = [(plan.slices[each.number].topic, each) for each in slices]
    reports += [(each.topic, each.counts) for each in rows]
    found = {(topic, kind) for (topic, _), counts in kinds.items() for kind in counts}
    found |= {(topic, kind) for topic, report in reports for kind in report.kinds_left_out}
    seen = [
        RecordFormat(topic, record_types(topic)[kind.record_type].table, kind.version, kind.layout)
        for topic, kind in found
    ]
    return _ReleaseEvidence(
        seen, [each for _, report in reports for each in report.fields_left_out]
    )


def _kafka_version(evidence: _ReleaseEvidence, parts: Iterable[Part], staging: str) -> KafkaVersion:
    parts = list(parts)
    levels = _metadata_levels(parts, staging)
    fields = [*evidence.fields, *_fields_set(parts, staging)]
    return infer_kafka_version(evidence.formats, levels, fields)


def _fields_set(parts: Iterable[Part], staging: str) -> list[FieldEvidence]:
    """Return which of the fields that tell releases apart some record sets."""
    filesystem = open_location(staging)[0]
    found = []
    for evidence in field_evidence():
        table = f"decoded/{evidence.table}"
        paths = [part.path for part in parts if part.table == table and part.rows]
        if paths:
            is_set = pc.field("value", evidence.column) != evidence.unset
            if ds.dataset(paths, filesystem=filesystem).head(1, filter=is_set).num_rows:
                found.append(evidence)
    return found


def _metadata_levels(parts: Iterable[Part], staging: str) -> list[int]:
    paths = [part.path for part in parts if part.table == _FEATURES]
    if not paths:
        return []
    features = ds.dataset(paths, filesystem=open_location(staging)[0]).to_table(columns=["value"])
    value = features["value"].combine_chunks()
    named = pc.equal(pc.struct_field(value, "name"), _METADATA_VERSION)
    levels: list[int] = pc.struct_field(value, "feature_level").filter(named).to_pylist()
    return levels


def groups_only_there(
    plan: Plan, parts: Sequence[Part], staging: str
) -> dict[tuple[str, str, int], list[str]]:
    """Return, by (copy, topic, partition), the groups that only a lost line has records of.

    A lost line is under ``diverged/``, or under ``decoded/`` where it was preferred.
    """
    found = _Groups(parts, open_location(staging)[0])
    lines = {(each.topic, each.partition, each.line) for each in plan.slices}
    only: dict[tuple[str, str, int], list[str]] = {}
    for each in plan.divergences:
        is_apart = (each.topic, each.partition, each.copy) in lines
        others = {
            line
            for topic, partition, line in lines
            if (topic, partition) == (each.topic, each.partition)
        }
        lost = found.of(each, each.copy if is_apart else "", from_offset=each.diverges_at)
        for line in others - {each.copy if is_apart else ""}:
            lost -= found.of(each, line)
        if lost:
            lost -= found.of(each, "", to_offset=each.diverges_at)
        only[each.copy, each.topic, each.partition] = sorted(lost)
    return only


@dataclass(frozen=True)
class _Groups:
    """The groups that keys of decoded parts name."""

    parts: Sequence[Part]
    filesystem: fs.FileSystem
    _opened: dict[str, ds.Dataset | None] = field(default_factory=dict)

    def of(
        self, where: Divergence, line: str, from_offset: int = 0, to_offset: int = MAX_OFFSET
    ) -> set[str]:
        """Return those of one partition's records on a line, between two offsets."""
        prefix = f"diverged/{line}/decoded/" if line else "decoded/"
        groups: set[str] = set()
        for kind in record_types(where.topic).values():
            column = next((each.column for each in kind.key.fields if each.column in _GROUP), None)
            table = self._table(f"{prefix}{kind.table}") if column else None
            if table is not None:
                rows = table.scanner(
                    columns={"group": ds.field("key", column)},
                    filter=(ds.field("topic") == where.topic)
                    & (ds.field("partition") == where.partition)
                    & (ds.field("offset") >= from_offset)
                    & (ds.field("offset") < to_offset),
                )
                for batch in rows.to_batches():
                    groups.update(pc.unique(batch["group"]).to_pylist())
        return groups

    def _table(self, name: str) -> ds.Dataset | None:
        """Return the files of a table; they are opened once, however often they are asked."""
        if name not in self._opened:
            paths = [part.path for part in self.parts if part.table == name]
            dataset = ds.dataset(paths, filesystem=self.filesystem) if paths else None
            self._opened[name] = dataset
        return self._opened[name]


# Where every record and byte of a decode run went, and whether it adds up.

MOST_HORIZONS = 1000
DIVERGED = "diverged"
"""A fate of records: they are in the tables of a line that did not survive."""
TABLES = frozenset({DECODED, CONTROL_TABLE, UNDECODED_TABLE})


@dataclass
class Account:
    """One copy's records and bytes of one internal partition.

    Of archived rows that do not say whose they are, topic or partition are None.
    """

    copy: str | None
    topic: str | None
    partition: int | None
    records: int = 0
    decoded: int = 0
    control_markers: int = 0
    undecoded: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    bytes_in_batches: int = 0
    bytes_damaged: int = 0
    bytes_trailing: int = 0
    bytes_unreadable: int = 0
    use: BatchBytes = field(default_factory=BatchBytes)
    fates: Counter[str] = field(default_factory=Counter)
    record_bytes: Counter[str] = field(default_factory=Counter)
    horizons: list[Horizon] = field(default_factory=list)

    @property
    def reconciles(self) -> bool:
        """Whether records in are records out, and bytes likewise."""
        out = self.decoded + self.control_markers + self.undecoded.total() + self.left_out.total()
        spent = (
            self.bytes_in_batches + self.bytes_damaged + self.bytes_trailing + self.bytes_unreadable
        )
        return self.records == out and self.bytes_read == spent and self._are_batches_told

    @property
    def _are_batches_told(self) -> bool:
        """Whether headers and records come to the bytes of the batches, none without a fate."""
        return (
            self.use.on_disk == self.bytes_in_batches
            and self.use.of_records == self.record_bytes.total()
        )

    def add(self, report: SliceReport, line: str = "") -> None:
        """Add one slice, of the line that survived or of another one."""
        self.decoded += report.kinds.total()
        self.control_markers += report.control_markers
        self.undecoded += report.undecoded
        self.left_out += report.left_out
        for fate, count in report.fates.items():
            told = DIVERGED if line and fate in TABLES else fate
            self.fates[told] += count
            self.record_bytes[told] += report.record_bytes[fate]
        summary = report.summary
        if summary is not None:
            self.use.add(summary.use)
            self.horizons += summary.horizons
            self.records += summary.records
            self.bytes_read += summary.bytes_read
            self.bytes_in_batches += summary.bytes_in_batches
            self.bytes_damaged += summary.bytes_damaged
            self.bytes_trailing += summary.bytes_trailing
            if report.unreadable:
                known = summary.bytes_in_batches + summary.bytes_damaged + summary.bytes_trailing
                self.bytes_unreadable += summary.bytes_read - known

    def as_json(self) -> AccountEntry:
        """Return it as the manifest has it."""
        return {
            "copy": self.copy,
            "topic": self.topic,
            "partition": self.partition,
            "records": self.records,
            "decoded": self.decoded,
            "control_markers": self.control_markers,
            "undecoded": dict(sorted(self.undecoded.items())),
            "left_out": dict(sorted(self.left_out.items())),
            "bytes_read": self.bytes_read,
            "bytes_in_batches": self.bytes_in_batches,
            "bytes_damaged": self.bytes_damaged,
            "bytes_trailing": self.bytes_trailing,
            "bytes_unreadable": self.bytes_unreadable,
            "bytes_of_batches": self.use.as_json(),
            "record_fates": {
                fate: {"records": self.fates[fate], "bytes": self.record_bytes[fate]}
                for fate in sorted(self.fates)
            },
            "delete_horizons": [
                each.as_json() for each in first_horizons(self.horizons, MOST_HORIZONS)
            ],
            "reconciles": self.reconciles,
        }


def reconciliation_of(plan: Plan, decoding: Decoding) -> list[Account]:
    """Return one account for each copy and internal partition, archived rows among them."""
    accounts: dict[tuple[str | None, str | None, int | None], Account] = {}
    for report in decoding.slices:
        each = plan.slices[report.number]
        key = (each.copy, each.topic, each.partition)
        accounts.setdefault(key, Account(*key)).add(report, each.line)
    for rows in decoding.rows:
        archived = (None, rows.topic, rows.partition)
        account = accounts.setdefault(archived, Account(*archived))
        account.add(rows.counts)
        account.records += rows.rows
    for place, count in decoding.unplaced.counts.items():
        account = accounts.setdefault((None, *place), Account(None, *place))
        account.records += count
        account.undecoded[str(Reason.UNPLACED_ROW)] += count
        account.fates[UNDECODED_TABLE] += count
    return sorted(accounts.values(), key=_order)


def _order(account: Account) -> tuple[str, int, str]:
    partition = -1 if account.partition is None else account.partition
    return account.topic or "", partition, account.copy or ""


def record_counts(decoding: Decoding) -> list[RecordTypeEntry]:
    """Return the decoded records by topic, line, type, version and layout.

    Version null is tombstones; line "" is the one that survived.
    """
    return [
        {
            "topic": topic,
            "line": line,
            "id": kind.record_type,
            "table": record_types(topic)[kind.record_type].table,
            "version": kind.version if kind.version >= 0 else None,
            "layout": kind.layout,
            "records": count,
        }
        for (topic, line), counts in sorted(decoding.kinds.items())
        for kind, count in sorted(
            counts.items(), key=lambda item: (*item[0][:2], item[0].layout or "")
        )
    ]
