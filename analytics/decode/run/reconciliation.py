"""Where every record and byte of a decode run went, and whether it adds up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analytics.decode.records.chunks import CONTROL_TABLE, DECODED, UNDECODED_TABLE
from analytics.dump.batches.batch_bytes import BatchBytes, Horizon, first_horizons
from analytics.wire.cursor import Reason
from schemas import record_types

if TYPE_CHECKING:
    from analytics.decode.run.decoding import Decoding
    from analytics.decode.tasks import SliceReport
    from analytics.dump.files.model import Plan


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

    def as_json(self) -> dict[str, Any]:
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
                each._asdict() for each in first_horizons(self.horizons, MOST_HORIZONS)
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


def record_counts(decoding: Decoding) -> list[dict[str, Any]]:
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
