"""Whether a manifest's accounts agree with what the tool printed and with the rows there are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from schemas.manifest import AccountEntry, Manifest
    from tests.support.decoded_rows import DecodedRow
    from tests.support.dump_folder import DumpFolder
    from tests.support.dump_log_fields import Tally
    from tests.support.dump_log_records import PrintedRecord

BOOTSTRAP = f"{0:020}-{0:010}.checkpoint"
"""What formatting leaves, since 4.4 among the snapshots: the log begins with the same records."""
Partition = tuple[str, str, int]


def compare_accounts(
    tally: Tally,
    dump: DumpFolder,
    printed: Sequence[PrintedRecord],
    rows: Iterable[DecodedRow],
    manifest: Manifest,
) -> None:
    """Compare the manifest's ``reconciliation`` and ``record_types`` with lines, rows and files.

    For undamaged dumps: every printed record is a decoded row, a control marker, or left out by a
    named rule, and the bytes read are those of the files.
    """
    lines = Counter(
        (each.segment.copy, each.segment.topic, each.segment.partition) for each in printed
    )
    tables = Counter(_partition(row) for row in rows if row.table != "control_markers")
    markers = Counter(_partition(row) for row in rows if row.table == "control_markers")
    accounts: dict[Partition, AccountEntry] = {
        (str(each["copy"]), str(each["topic"]), each["partition"] or 0): each
        for each in manifest["reconciliation"]
    }
    for key, count in sorted(lines.items()):
        where = f"account of {key[0]}/{key[1]}-{key[2]}"
        if key not in accounts:
            tally.differences.append(f"{where}: none")
            continue
        account = accounts[key]
        tally.equal(f"{where} reconciles", True, account["reconciles"])
        tally.equal(f"{where} records", count, account["records"])
        tally.equal(f"{where} decoded", tables[key], account["decoded"])
        tally.equal(f"{where} control markers", markers[key], account["control_markers"])
        tally.equal(f"{where} undecoded", {}, account["undecoded"])
        left_out = count - tables[key] - markers[key]
        tally.equal(f"{where} left out", left_out, sum(account["left_out"].values()))
        tally.equal(f"{where} bytes", _bytes(dump, key), account["bytes_read"])
    if len({copy for copy, _, _ in lines}) == 1:
        _compare_rules(tally, dump, printed, accounts)
    _compare_types(tally, rows, manifest)


def _partition(row: DecodedRow) -> Partition:
    return row.values["copy"], row.values["topic"], row.values["partition"]


def _bytes(dump: DumpFolder, key: Partition) -> int:
    folder = dump.root / key[0] / f"{key[1]}-{key[2]}"
    return sum(
        path.stat().st_size
        for path in folder.iterdir()
        if path.suffix in (".log", ".checkpoint") and path.name != BOOTSTRAP
    )


def _compare_rules(
    tally: Tally,
    dump: DumpFolder,
    printed: Sequence[PrintedRecord],
    accounts: Mapping[Partition, AccountEntry],
) -> None:
    """Compare the rules by name; with several copies a record may fall under more than one."""
    expected: Counter[tuple[Partition, str]] = Counter()
    for each in printed:
        segment = each.segment
        start = dump.log_starts(segment.copy).get((segment.topic, segment.partition), 0)
        key = (segment.copy, segment.topic, segment.partition)
        if each.line.offset < start:
            expected[key, "below_log_start"] += 1
        elif each.is_counted:
            expected[key, f"unselected_type:{each.number}"] += 1
    found = {
        (key, rule): count
        for key, account in accounts.items()
        for rule, count in account["left_out"].items()
        if count
    }
    tally.equal("records left out, by rule", dict(expected), found)


def _compare_types(tally: Tally, rows: Iterable[DecodedRow], manifest: Manifest) -> None:
    """Compare the counts of record types and versions with those of the rows."""
    expected = Counter(
        (
            row.line,
            row.values["topic"],
            row.values["record_type"],
            row.values["value_version"],
            row.values["value_layout"],
        )
        for row in rows
        if "record_type" in row.values
    )
    found = {
        (each["line"], each["topic"], each["id"], each["version"], each["layout"]): each["records"]
        for each in manifest["record_types"]
    }
    tally.equal("record types of the manifest", dict(expected), found)
