"""Print what audits of real dumps find against what happened.

    python -m tests.verdicts.findings FOLDER [DUMP...] --audits DIR

FOLDER holds dumps by name, as `tests/verdicts/data` names them; audits are kept in DIR, and are not
made again. A finding is wrong where nothing of its kind happened to its group; what happened for
certain and is not found is wrong, unless the audit says that it cannot tell.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from analytics.questions.timeline.words import NO_LOSS
from tests.verdicts.happened import (
    BY_TRANSACTION,
    EXPIRED,
    GROUP_DELETED,
    LOST,
    OFFSET_DELETED,
    REWOUND,
    TOPIC_DELETED,
    WHILE_EMPTY,
)
from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG, Held
from tests.verdicts.truth import DATA, Truth, read_truth

RULES = {
    "offsets_expired": {EXPIRED},
    "offsets_expired_early": set[str](),
    "group_deleted": {GROUP_DELETED},
    "offsets_deleted": {OFFSET_DELETED},
    "topic_deleted_under_group": {TOPIC_DELETED},
    "topic_created_again_under_group": {TOPIC_DELETED},
    "offsets_rewound": {REWOUND, BY_TRANSACTION},
    "offsets_reset_while_empty": {WHILE_EMPTY, BY_TRANSACTION},
    "offsets_lost_by_election": {LOST},
}
"""Which happenings make a finding of a rule right."""
OPEN = ("history_not_told", "group_not_whole", "removal_not_judged", "removal_unexplained")
"""Rules that say of a group that something cannot be told."""
ENDED = (0, 3)
"""Codes of an audit that came to its end."""
Row = Mapping[str, Any]


def hold_findings(truth: Truth, found: Iterable[Row], verdicts: Iterable[Row] = ()) -> Held:
    """Hold the findings of an audit against what happened, by rule.

    Args:
        truth: What happened.
        found: The findings.
        verdicts: Rows of `offset_verdicts`: since when nothing is known to have happened.
    """
    found, verdicts = list(found), list(verdicts)
    known_since = {
        (row["group_id"], row["topic"], row["partition"]): round(row["since"].timestamp() * 1000)
        for row in verdicts
        if row["verdict"] == NO_LOSS
    }
    held = Held()
    happened: dict[str, set[str]] = {}
    certain: dict[str, set[str]] = {}
    compacted = {
        (row["group_id"], row["topic"], row["partition"])
        for row in verdicts
        if "compacted" in (row["reason"] or "")
    }
    for each in truth.happenings:
        happened.setdefault(each.key[0], set()).add(each.what)
        is_gone = each.key in compacted or each.at[0] < known_since.get(each.key, each.at[0])
        if each.is_certain and not each.on_lost_line and not is_gone:
            certain.setdefault(each.key[0], set()).add(each.what)
    for group in truth.groups_deleted:
        happened.setdefault(group, set()).add(GROUP_DELETED)
    for group in truth.groups_lost | {key[0] for key in truth.share_lost}:
        happened.setdefault(group, set()).add(LOST)
    for row in found:
        rule, group = row["rule"], row["group_id"]
        if rule in RULES:
            is_right = bool(RULES[rule] & happened.get(group, set()))
            is_known = group in truth.witnessed or is_right
            word = RIGHT if is_right else WRONG if is_known else CANNOT_TELL
            held.add(word, rule, f"{rule} of {group}: {row['message']}")
    said = {(each["rule"], each["group_id"]) for each in found}
    for group, whats in certain.items():
        for what in sorted(whats):
            rules = [name for name, words in RULES.items() if what in words]
            if not any((name, group) in said for name in rules):
                is_open = any((name, group) in said for name in OPEN)
                word = CANNOT_TELL if is_open else WRONG
                held.add(word, rules[0], f"not found: {what} of {group}")
    return held


def main() -> int:
    """Audit, compare, print a line a rule, and return 1 where a finding is wrong or missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("dump", nargs="*")
    parser.add_argument("--audits", type=Path, required=True, help="where audits are kept")
    given = parser.parse_args()
    dumps = given.dump or sorted(path.name.removesuffix(".json.gz") for path in DATA.iterdir())
    wrong = 0
    for dump in dumps:
        found = findings_of(given.folder / dump, given.audits / dump)
        verdicts = pq.read_table(given.audits / dump / "evaluations" / "offset_verdicts")
        held = hold_findings(read_truth(dump), found, verdicts.to_pylist())
        counts = {word: held.count(word) for word in (RIGHT, CANNOT_TELL, WRONG)}
        print(f"{dump:<32}{len(found):>6} findings", counts, flush=True)
        for rule, fault in held.faults:
            print(f"  {rule}: {fault}")
        wrong += held.count(WRONG)
    return 1 if wrong else 0


def findings_of(dump: Path, out: Path) -> list[dict[str, Any]]:
    """Return the findings of a dump's audit, which is made where it is not there."""
    lines = out / "findings.jsonl"
    if not (out / "summary.json").exists():
        command = Path(sys.executable).with_name("groupscope")
        inputs = sorted(each.parent for each in dump.glob("*/meta.properties"))
        settings = sorted(dump.glob("*server.properties"))
        run = subprocess.run(
            [
                *map(str, (command, "audit", *inputs, "--out", out, "--quiet")),
                *("--fail-on", "never"),
                *(f"--broker-config={each}" for each in settings),
            ],
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if run.returncode not in ENDED:
            raise RuntimeError(f"the audit of {dump} ended with {run.returncode}")
    return [json.loads(line) for line in lines.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    sys.exit(main())
