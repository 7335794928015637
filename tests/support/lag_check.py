"""Hold ``groupscope lag`` against what Kafka's own tools and brokers said of whole dumps.

    python -m tests.support.lag_check FOLDER [--keep DIR] [--groupscope COMMAND]

FOLDER is a dump, or holds dumps. Each is replayed; its lag is compared row by row with every saved
`--describe --offsets` output in `tools/describe`, and its numbers with what the coordinators
themselves answered (`tools/state.json.gz`, `tools/end-offsets.json`). Prints a line for each;
exit code 1 where anything differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

COUNTS = re.compile(r"([\d,]+) of ([\d,]+) rows equal")
CODES = (0, 1, 3)

STALLED = ("commits_without_progress", "silent")
STUCK_MS = 5 * 60_000
"""After so long without progress a partition with lag is stuck (`schemas/rules/lag.json`)."""
BORDER_MS = 3_000
"""Clients hear of a commit a little later than the log has it."""
HARMLESS = (
    *("opened", "assigned", "revoked", "closed", "commit-failed", "config", "resubscribed"),
    *("group-seen", "offset-present", "client-killed", "offset-changed", "mark", "marked"),
)
"""Events of a group that commit nothing."""

LATER = {
    "kafka-4.3.1-failover": ("parcel-router", "its members timed out after the tool had run"),
    "kafka-4.3.1-expiry": ("retention-probe", "its offset expired after the tool had run"),
}
"""Groups whose rows are others at the end of the dump; the brokers' last answers have them too."""


@dataclass
class Held:
    """One comparison: how many rows, how many of them equal, and what was left out or differs."""

    what: str
    equal: int = 0
    total: int = 0
    remarks: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The counts, and what is to be said of them."""
        beside = "".join(f"\n    {each}" for each in self.remarks)
        return f"{self.what}: {self.equal} of {self.total} equal{beside}"


def outputs(dump: Path) -> list[Path]:
    """Saved outputs about offsets of groups that commit them."""
    found = sorted((dump / "tools" / "describe").glob("*offsets*.txt"))
    return [each for each in found if not each.name.startswith("share")]


def held_against_output(told: str, what: str) -> Held:
    """Return what `lag --against` printed, as counts."""
    lines = told.splitlines()
    found = next((match for line in lines if (match := COUNTS.match(line))), None)
    if found is None:
        return Held(what, 0, 0, lines[:3])
    equal, total = (int(number.replace(",", "")) for number in found.groups())
    return Held(what, equal, total, [each for each in lines if each and each != found.string])


def numbers_told(dump: Path) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Return committed offset and log end, as coordinators and leaders answered last."""
    with gzip.open(dump / "tools" / "state.json.gz", "rt", encoding="utf-8") as file:
        state = json.load(file)
    ends = json.loads((dump / "tools" / "end-offsets.json").read_text(encoding="utf-8"))
    shares = {each["group_id"] for each in state.get("share_partitions", ())}
    return {
        (each["group_id"], each["topic"], each["partition"]): (
            each["offset"],
            ends[f"{each['topic']}-{each['partition']}"]["end"],
        )
        for each in state["committed_offsets"]
        if each["group_id"] not in shares
        and each["offset"] >= 0
        and f"{each['topic']}-{each['partition']}" in ends
    }


def held_against_answers(rows: Iterable[Mapping[str, Any]], dump: Path) -> Held:
    """Compare every committed offset and its lag with what the brokers themselves answered."""
    held = Held(f"{dump.name} brokers' answers")
    found = {(each["group_id"], each["topic"], each["partition"]): each for each in rows}
    for key, (offset, end) in numbers_told(dump).items():
        row = found.get(key, {})
        ours = tuple(row.get(name) for name in ("committed_offset", "log_end_offset", "lag"))
        held.total += 1
        if ours == (offset, end, end - offset):
            held.equal += 1
        else:
            held.remarks.append(f"{key}: {ours}, the brokers say {(offset, end, end - offset)}")
    return held


def stalls_told(dump: Path, as_of_ms: int) -> dict[tuple[str, str, int], str | None]:
    """Return what clients' own tellings of their commits say of those that a member made last.

    `commits_without_progress` where none advanced for `STUCK_MS`, though one came since, `silent`
    where none came, else None. What happened within `BORDER_MS` of the border is left out, and so
    is what something else than a client's plain commit may have changed.
    """
    commits: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    others: set[str] = set()
    for line in (dump / "timeline.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        group = event.get("group")
        if event["event"] == "commit" and isinstance(event.get("offsets"), dict):
            for name, offset in event["offsets"].items():
                topic, _, partition = name.rpartition("-")
                if isinstance(offset, int):
                    at = commits.setdefault((group, topic, int(partition)), [])
                    at.append((event["at"], offset))
        elif group is not None and event["event"] not in HARMLESS:
            others.add(group)
    found: dict[tuple[str, str, int], str | None] = {}
    for key, each in commits.items():
        advances = [at for (_, before), (at, after) in pairwise(each) if after > before]
        ages = [as_of_ms - at for at in (each[-1][0], *advances[-1:])]
        if key[0] not in others and all(abs(age - STUCK_MS) > BORDER_MS for age in ages):
            is_stuck = len(ages) == 1 or ages[1] > STUCK_MS
            word = "commits_without_progress" if ages[0] < STUCK_MS else "silent"
            found[key] = word if is_stuck else None
    return found


def held_against_clients(answer: Mapping[str, Any], dump: Path) -> Held:
    """Compare who is called stalled with what clients say of their own commits."""
    held = Held(f"{dump.name} stalls, by clients' tellings")
    as_of = datetime.fromisoformat(answer["as_of"]["time"])
    told = stalls_told(dump, round(as_of.timestamp() * 1000))
    stalled = 0
    for row in answer["rows"]:
        key = row["group_id"], row["topic"], row["partition"]
        is_owned = row["member_id"] is not None and row["committed_offset"] is not None
        if key in told and is_owned and row["lag"] is not None and row["lag"] > 0:
            ours = row["verdict"] if row["verdict"] in STALLED else None
            held.total += 1
            held.equal += ours == told[key]
            stalled += told[key] is not None
            if ours != told[key]:
                held.remarks.append(f"{key}: {ours}, the clients say {told[key]}")
    if held.total:
        held.what += f" ({stalled} stalled)"
    return held


def compared(dump: Path, scratch: Path, groupscope: str) -> Iterator[Held]:
    """Replay a dump, ask it, and compare.

    Where data topics were left out of it, `tools/end-offsets.csv` says where their logs ended.
    """
    workspace = scratch / dump.name
    if not (workspace / "manifest.json").exists():
        run(groupscope, "replay", dump, "--out", workspace)
    ends = dump / "tools" / "end-offsets.csv"
    question: list[str | Path] = [groupscope, "lag", workspace]
    question += ["--end-offsets", ends] if ends.exists() else []
    group, why = LATER.get(dump.name, (None, ""))
    left_out = ["--exclude-group", group] if group is not None else []
    for file in outputs(dump):
        told = run(*question, "--against", file, *left_out)
        held = held_against_output(told, f"{dump.name} {file.name}")
        if group is not None and group in file.read_text(encoding="utf-8"):
            held.remarks.append(f"group {group!r} is not compared: {why}")
        yield held
    if (dump / "tools" / "end-offsets.json").exists():
        answer = json.loads(run(*question, "--format", "json"))
        yield held_against_answers(answer["rows"], dump)
        yield held_against_clients(answer, dump)


def run(*command: str | Path) -> str:
    """Run a command line quietly; return what it printed.

    Raises:
        RuntimeError: It ended as no answer ends.
    """
    done = subprocess.run(
        [*map(str, command), "--quiet"], capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode not in CODES:
        raise RuntimeError(f"{command}: {done.stderr}")
    return done.stdout


def dumps_of(folder: Path) -> list[Path]:
    """Return a dump, or those in a folder."""
    if (folder / "tools").is_dir():
        return [folder]
    return sorted(each.parent for each in folder.glob("*/tools"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare all dumps that are given; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path, help="workspaces stay here, and are asked again")
    parser.add_argument("--groupscope", default="groupscope")
    given = parser.parse_args(arguments)
    differing = equal = total = 0
    for dump in dumps_of(given.folder):
        with tempfile.TemporaryDirectory(prefix="lag-") as scratch:
            for held in compared(dump, given.keep or Path(scratch), given.groupscope):
                print(held.line(), flush=True)
                equal, total = equal + held.equal, total + held.total
                differing += held.equal != held.total
    print(f"{equal} of {total} equal")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
