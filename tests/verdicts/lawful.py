"""Audits of a dump with all its evidence and with some, each row held against the law.

python -m tests.verdicts.lawful DUMP [--evidence WORDS] [--faults FILE] [--keep DIR]
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from analytics.libraries_later import withhold_libraries
from tests.verdicts.altered_logs import ALTERED, CLOCKS, subsets_of_copies
from tests.verdicts.asking import ask, call
from tests.verdicts.evidence import EVIDENCE, Take, copied
from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG, Held
from tests.verdicts.law import Answers, hold_law

WHOLE = "whole"
TIMES = frozenset({"timestamp"})
"""A type of columns: with clocks that step, times are others."""


def takes_of(dump: Path) -> dict[str, Take]:
    """Return everything that is done to a dump."""
    brokers = tuple(sorted(each.name for each in dump.glob("broker-*") if each.is_dir()))
    named = {name: take for name, take in EVIDENCE.items() if take is not None}
    return {**subsets_of_copies(brokers), **ALTERED, **CLOCKS, **named}


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
    takes_of(dump)[evidence](copied(dump, copy))
    part = audited(copy, folder / "audit")
    return hold_law(whole, part, leave_out=TIMES if evidence in CLOCKS else frozenset())


def filtered(
    dump: Path, options: Sequence[str], folder: Path, whole: Answers
) -> Mapping[str, Held]:
    """Audit some of a dump and hold each table."""
    return hold_law(whole, audited(dump, folder / "audit", *options))


def main() -> int:
    """Print how many rows are right, not told and wrong, by what was taken away."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dump", type=Path)
    parser.add_argument("--evidence", default="", help="a pattern: only what it is found in")
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--topic", action="append", default=[])
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
        for evidence in (*takes_of(given.dump), *filters):
            if not re.search(given.evidence, evidence):
                continue
            folder = root / evidence.replace("/", " ").replace("*", "all")
            folder.mkdir(exist_ok=True)
            if evidence in filters:
                helds = filtered(root / "whole-dump", filters[evidence], folder, whole)
            else:
                helds = lawful(given.dump, evidence, folder, whole)
            wrong += _print(given.dump.name, evidence, helds, given.faults)
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
