"""Hold what ``groupscope decode`` wrote against what Kafka's own tool printed for the same bytes.

Run as a program it takes a dump (or a folder of them), decodes every copy alone and then all
copies of a dump together, and compares every printed record with exactly one decoded row, field
by field::

    python -m tests.support.dump_log_check FOLDER [FOLDER ...] [--groupscope PROGRAM]

It prints what was compared and ends with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.decoded_rows import (
    DecodedRow,
    Place,
    by_place,
    read_manifest,
    read_rows,
)
from tests.support.dump_folder import DumpFolder, dumps_in
from tests.support.dump_log_fields import Tally
from tests.support.dump_log_manifest import compare_accounts
from tests.support.dump_log_records import PrintedRecord, compare_record

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

SHOWN_DIFFERENCES = 20


@dataclass
class Report:
    """What one comparison saw. ``left_out`` counts printed records without a row, by rule."""

    name: str
    segments: int = 0
    records: int = 0
    compared: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)

    @property
    def differences(self) -> list[str]:
        """The differences in words."""
        return self.tally.differences

    def sentence(self) -> str:
        """The counts in one line."""
        left_out = "".join(f", {count} {rule}" for rule, count in sorted(self.left_out.items()))
        return (
            f"{self.name}: {self.segments} segments, {self.records} records printed, "
            f"{self.compared} rows and {self.tally.fields} fields compared{left_out}, "
            f"{len(self.differences)} differences"
        )


def printed_records(dump: DumpFolder, copy: str) -> list[PrintedRecord]:
    """Every record line of one copy."""
    return [
        PrintedRecord(segment, batch, line)
        for segment in dump.segments(copy)
        for batch in segment.text.batches
        for line in batch.records
    ]


def check(
    dump: DumpFolder,
    copies: Iterable[str],
    decoded: Iterable[DecodedRow],
    lost: Container[tuple[str, int]] = (),
) -> Report:
    """Compare rows decoded from ``copies`` of ``dump`` with what was printed for them.

    Every line must have exactly one row, or a rule that leaves it out: it lies below its log
    start, its type is only counted, or (with several copies) an equal record of another copy is
    the one that was kept. Every row of a printed segment must have a line. Batches ``lost`` to
    damage done on purpose (segment and position) must have no row.
    """
    copies = list(copies)
    report = Report(f"{dump.root.name} {'+'.join(copies)}")
    rows = by_place(decoded)
    pending: list[PrintedRecord] = []
    kept: dict[tuple[object, ...], int] = Counter()
    printed: set[str] = set()
    for copy in copies:
        log_starts = dump.log_starts(copy)
        records = printed_records(dump, copy)
        printed |= {f"{copy}/{each.segment}" for each in dump.segments(copy)}
        report.records += len(records)
        for record in records:
            if _match(report, record, rows):
                kept[_identity(record)] += 1
            else:
                log_start = log_starts.get((record.segment.topic, record.segment.partition), 0)
                if (record.segment.segment, record.batch.position) in lost:
                    report.left_out["lost"] += 1
                elif record.is_counted:
                    report.left_out["unselected_type"] += 1
                elif record.line.offset < log_start:
                    report.left_out["below_log_start"] += 1
                else:
                    pending.append(record)
    report.segments = len(printed)
    _explain(report, pending, kept)
    for place, left in rows.items():
        if f"{place[0]}/{place[1]}" in printed:
            report.differences.extend(_unprinted(row) for row in left)
    return report


def _match(report: Report, record: PrintedRecord, rows: dict[Place, list[DecodedRow]]) -> bool:
    found = rows.pop(record.place, [])
    if len(found) > 1:
        tables = ", ".join(sorted(row.table for row in found))
        report.differences.append(f"{record.where}: {len(found)} rows ({tables})")
    for row in found[:1]:
        if record.problem is not None:
            # The tool of an older release cannot say what a newer record holds.
            report.left_out["unreadable to the tool"] += 1
            continue
        compare_record(report.tally, record, row)
        report.compared += 1
    return bool(found)


def _identity(record: PrintedRecord) -> tuple[object, ...]:
    segment, batch, line = record.segment, record.batch, record.line
    return (
        segment.topic,
        segment.partition,
        batch.leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        repr(line),
    )


def _explain(
    report: Report, pending: list[PrintedRecord], kept: dict[tuple[object, ...], int]
) -> None:
    for record in pending:
        if kept.get(_identity(record)):
            report.left_out["duplicate_copy"] += 1
        elif record.problem is not None:
            report.left_out["unreadable to the tool"] += 1
        else:
            report.differences.append(f"{record.where}: no row")


def _unprinted(row: DecodedRow) -> str:
    values = row.values
    detail = f" ({values['reason']}: {values['detail']})" if row.table == "undecoded" else ""
    place = f"{values['copy']}/{values['segment']}@{values['offset']}"
    return f"{place}: a row in {row.table}{detail}, no line"


def check_workspace(dump: DumpFolder, copies: list[str], workspace: Path) -> Report:
    """Compare a finished workspace: its rows with the lines, its manifest with both."""
    rows = read_rows(workspace)
    report = check(dump, copies, rows)
    printed = [record for copy in copies for record in printed_records(dump, copy)]
    compare_accounts(report.tally, dump, printed, rows, read_manifest(workspace))
    return report


def decode(groupscope: str, inputs: list[str], out: Path) -> None:
    """Run the installed command."""
    command = [groupscope, "decode", *inputs, "--out", str(out), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")


def check_dump(dump: DumpFolder, groupscope: str, scratch: Path) -> list[Report]:
    """Decode and compare each copy alone, then all of them as one."""
    reports = []
    for copy in dump.copies:
        decode(groupscope, [f"{copy}={dump.root / copy}"], scratch / copy)
        reports.append(check_workspace(dump, [copy], scratch / copy))
    if len(dump.copies) > 1:
        inputs = [f"{copy}={dump.root / copy}" for copy in dump.copies]
        decode(groupscope, inputs, scratch / "together")
        reports.append(check_workspace(dump, dump.copies, scratch / "together"))
    return reports


def main(arguments: list[str] | None = None) -> int:
    """Check every dump named or found in the folders named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    installed = Path(sys.executable).with_name("groupscope")
    parser.add_argument("--groupscope", default=str(installed), help="the command to run")
    options = parser.parse_args(arguments)
    reports: list[Report] = []
    for dump in [each for folder in options.folders for each in dumps_in(folder)]:
        with tempfile.TemporaryDirectory(prefix="dump-log-check-") as scratch:
            for report in check_dump(dump, options.groupscope, Path(scratch)):
                print(report.sentence(), flush=True)
                for difference in report.differences[:SHOWN_DIFFERENCES]:
                    print(f"  {difference}", flush=True)
                reports.append(report)
    fields = sum(report.tally.fields for report in reports)
    compared = sum(report.compared for report in reports)
    differences = sum(len(report.differences) for report in reports)
    print(f"{compared} records and {fields} fields compared, {differences} differences")
    return 1 if differences or not reports else 0


if __name__ == "__main__":
    sys.exit(main())
