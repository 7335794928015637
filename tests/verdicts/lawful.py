"""Audits of a dump with all its evidence and with some, each row held against the law.

python -m tests.verdicts.lawful DUMP [--evidence WORDS] [--group G] [--topic T] [--other DUMP]
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from analytics.libraries_later import withhold_libraries
from tests.verdicts.altered_logs import (
    ALTERED,
    CLEANED,
    CLOCKS,
    SHARE,
    subsets_of_copies,
    without_terms,
)
from tests.verdicts.asking import ask, call
from tests.verdicts.evidence import EVIDENCE, OFFSETS, Take, copied
from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG, Held
from tests.verdicts.law import Answers, declared, hold_equal, hold_law

WHOLE = "whole"
TIMES = frozenset({"timestamp", *declared()["clocks"]["columns"]})
"""A type of columns, and some columns: with clocks that step, times are others."""


def terms_of(whole: Answers) -> dict[str, list[int]]:
    """Return who led each partition of groups, one after the other, by the name of its folder.

    The end of a dump is the last record of any of its logs: others stay, so that it does.
    """
    epochs = whole.table("coordinator_epochs")
    terms: dict[str, list[int]] = {}
    for row in [] if epochs is None else epochs.sort("leader_epoch").iter_rows(named=True):
        if row["topic"] not in {OFFSETS, SHARE}:
            continue
        led = terms.setdefault(f"{row['topic']}-{row['partition']}", [])
        if row["leader"] is not None and led[-1:] != [row["leader"]]:
            led.append(row["leader"])
    return terms


def takes_of(dump: Path, whole: Answers | None = None) -> dict[str, Take]:
    """Return everything that is done to a dump; with an audit of it also what elections allow."""
    brokers = tuple(sorted(each.name for each in dump.glob("broker-*") if each.is_dir()))
    named = {name: take for name, take in EVIDENCE.items() if take is not None}
    terms = {} if whole is None else without_terms(terms_of(whole))
    return {**subsets_of_copies(brokers), **ALTERED, **CLOCKS, **named, **terms}


def filters_of(groups: Sequence[str], topics: Sequence[str]) -> dict[str, list[str]]:
    """Return options that leave something out of what is replayed, by their words."""
    return {
        **{f"--group {name}": ["--group", name] for name in groups},
        **{f"--exclude-group {name}": ["--exclude-group", name] for name in groups},
        **{f"--topic {name}": ["--topic", name] for name in topics},
    }


def audited(source: Path, out: Path, *options: str) -> Answers:
    """Audit a dump, or read the audit that is there."""
    said = out.with_suffix(".said")
    if not said.exists():
        answer = ask("audit", source, *options, "--out", out, "--fail-on", "never")
        said.write_text(f"{answer.code}\n{answer.told}\n{answer.said}", "utf-8")
    code, _, words = said.read_text("utf-8").partition("\n")
    return Answers(out, int(code), words)


def replayed(source: Path, out: Path, *options: str) -> Answers:
    """Replay a dump: state and history alone."""
    answer = call("replay", source, *options, "--out", out)
    return Answers(out, answer.code, answer.said)


def lawful(dump: Path, evidence: str, folder: Path, whole: Answers) -> Mapping[str, Held]:
    """Take something away, audit what is left, and hold each table."""
    copy = folder / "dump"
    shutil.rmtree(copy, ignore_errors=True)
    takes_of(dump, whole)[evidence](copied(dump, copy))
    part = audited(copy, folder / "audit")
    return hold_law(whole, part, leave_out=changed_by(evidence))


def changed_by(evidence: str) -> frozenset[str]:
    """Return which columns, or tables, are others by what was done itself."""
    if evidence in CLOCKS:
        return TIMES
    logs = declared()["logs"]
    return frozenset((*logs["tables"], *logs["columns"]) if evidence in CLEANED else ())


def filtered(
    dump: Path, options: Sequence[str], folder: Path, whole: Answers
) -> Mapping[str, Held]:
    """Audit some of a dump and hold each table."""
    part = audited(dump, folder / "audit", *options)
    return hold_law(whole, part, leave_out=_of_what_is_asked(options))


def filtered_at_decode(
    dump: Path, options: Sequence[str], folder: Path, whole: Answers
) -> Mapping[str, Held]:
    """Decode some of a dump, audit what was decoded, and hold each table."""
    decoded = folder / "decoded"
    if not (decoded / "manifest.json").exists():
        answer = call("decode", dump, *options, "--out", decoded)
        assert answer.code in {0, 3}, answer.said
    part = audited(decoded, folder / "audit")
    return hold_law(whole, part, leave_out=_of_what_is_asked(options))


def _of_what_is_asked(options: Sequence[str]) -> frozenset[str]:
    """Return as `table.column` what is of the offsets, or of the groups, that are asked about."""
    free = declared()["filters"]
    counts = free["columns"] if "--topic" in options else free["of_groups"]
    return frozenset(f"{name}.{column}" for name, columns in counts.items() for column in columns)


def used_before(
    dump: Path, other: Path, options: Sequence[str], folder: Path, whole: Answers
) -> Mapping[str, Held]:
    """Audit something else into a folder, then the dump: it is as in a fresh one."""
    out = folder / "audit"
    if not out.with_suffix(".said").exists():
        ask("audit", other, *options, "--out", out, "--fail-on", "never")
    return hold_equal(whole, audited(dump, out))


def main() -> int:
    """Print how many rows are right, not told and wrong, by what was taken away."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dump", type=Path)
    parser.add_argument("--evidence", default="", help="a pattern: only what it is found in")
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--topic", action="append", default=[])
    parser.add_argument("--other", action="append", type=Path, default=[], help="another dump")
    parser.add_argument("--faults", type=Path, help="where to write what is wrong")
    parser.add_argument("--keep", type=Path, help="audits stay here, and are read again")
    given = parser.parse_args()
    withhold_libraries()
    with tempfile.TemporaryDirectory(prefix="verdicts-") as scratch:
        root = (given.keep or Path(scratch)) / given.dump.name
        root.mkdir(parents=True, exist_ok=True)
        whole = audited(copied_once(given.dump, root / "whole-dump"), root / "whole")
        wrong = 0
        filters = filters_of(given.group, given.topic)
        cells = {
            evidence: partial(lawful, given.dump, evidence)
            for evidence in takes_of(given.dump, whole)
        }
        source = root / "whole-dump"
        for name, options in filters.items():
            cells[name] = partial(filtered, source, options)
            cells[f"decode {name}"] = partial(filtered_at_decode, source, options)
            cells[f"used before with {name}"] = partial(used_before, source, source, options)
        for other in given.other:
            cells[f"used before for {other.name}"] = partial(used_before, source, other, [])
        for evidence, cell in cells.items():
            if re.search(given.evidence, evidence):
                folder = root / evidence.replace("/", " ").replace("*", "all")
                folder.mkdir(exist_ok=True)
                wrong += _print(given.dump.name, evidence, cell(folder, whole), given.faults)
    return 1 if wrong else 0


def copied_once(dump: Path, target: Path) -> Path:
    """Link the log directories, where they are not there."""
    return target if target.exists() else copied(dump, target)


def _print(dump: str, evidence: str, helds: Mapping[str, Held], faults: Path | None) -> int:
    counts = [
        sum(held.count(word) for held in helds.values()) for word in (RIGHT, CANNOT_TELL, WRONG)
    ]
    print(f"{dump:<30}{evidence:<48}{counts[0]:>8}{counts[1]:>14}{counts[2]:>8}", flush=True)
    if faults:
        with faults.open("a") as file:
            for held in helds.values():
                for _, fault in held.faults:
                    print(f"{dump}; {evidence}; {fault}", file=file)
    return counts[2]


if __name__ == "__main__":
    sys.exit(main())
