"""Hold ``groupscope share`` against what Kafka's own tools, and clients, said of whole dumps.

    python -m tests.support.share_check FOLDER [--keep DIR] [--groupscope COMMAND]

FOLDER is a dump, or holds dumps. Each is replayed; its rows are compared with every saved
`kafka-share-groups --describe --offsets`, and what it says of archived records, and since when
start offsets stand, with what members acknowledged when (`timeline.jsonl`). Prints a line for each,
and what is blocked, stalled or at fault; exit code 1 where a row of Kafka's tool differs, or a
record that was not rejected is said to have been.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support.lag_check import Held, dumps_of, held_against_output, run

ACCEPTED, REJECTED, RELEASED = "A", "X", "R"
TOLERATED_MS = 5_000
"""Between the instant at which a client had polled and the record of its acknowledgement."""
Place = tuple[str, str, int]
Acknowledged = dict[Place, list[tuple[int, str, int]]]


def acknowledged(dump: Path) -> Acknowledged:
    """Return by group, partition and offset each delivery: its count, outcome and time."""
    found: Acknowledged = defaultdict(list)
    for line in (dump / "timeline.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event.get("event") == "share-polled":
            for partition, offset, count, what in event["records"]:
                found[event["group"], partition, offset].append((count, what, event["at"]))
    return found


def rejections(archived: Sequence[Mapping[str, Any]], deliveries: Acknowledged) -> Held:
    """Compare what is said to have been rejected with what members rejected."""
    held = Held("rejected_or_gap, and a member rejected it")
    for row in archived:
        if row["cause"] != "rejected_or_gap":
            continue
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            place = row["group_id"], f"{row['topic']}-{row['partition']}", offset
            told = {what for count, what, _ in deliveries[place] if count == row["delivery_count"]}
            held.total += 1
            held.equal += REJECTED in told
            if REJECTED not in told:
                held.remarks.append(f"{place}: {sorted(told)}")
    return held


def last_done(row: Mapping[str, Any], deliveries: Acknowledged) -> int | None:
    """Return when the last offset before the next one was acknowledged for good, as members say."""
    times = []
    for offset in range(row["next_offset"] or 0):
        place = row["group_id"], f"{row['topic']}-{row['partition']}", offset
        done = [
            at
            for count, what, at in deliveries.get(place, ())
            if what in ACCEPTED + REJECTED
            or (what == RELEASED and count >= row["delivery_count_limit"])
        ]
        times += done[-1:]
    return max(times, default=None)


def movements(rows: Sequence[Mapping[str, Any]], deliveries: Acknowledged) -> Held:
    """Compare since when start offsets stand with when members acknowledged what lies below."""
    held = Held(f"start offsets moved within {TOLERATED_MS // 1000} s of what members acknowledged")
    for row in rows:
        told = last_done(row, deliveries)
        if row["start_moved_bound"] != "exact" or told is None:
            continue
        moved = datetime.fromisoformat(row["start_moved_at"]).timestamp() * 1000
        held.total += 1
        held.equal += abs(moved - told) <= TOLERATED_MS
        if abs(moved - told) > TOLERATED_MS:
            where = f"{row['group_id']} {row['topic']}-{row['partition']}"
            held.remarks.append(f"{where}: {round(moved - told)} ms after")
    return held


def compared(dump: Path, scratch: Path, groupscope: str) -> Iterator[tuple[Held, bool]]:
    """Replay a dump, ask it, and compare; also say whether a difference is a fault."""
    workspace = scratch / dump.name
    if not (workspace / "manifest.json").exists():
        run(groupscope, "replay", dump, "--out", workspace)
    settings = [
        each
        for file in sorted(dump.glob("*.server.properties"))
        for each in ("--broker-config", file)
    ]
    question = [groupscope, "share", workspace, *settings]
    for file in sorted((dump / "tools" / "describe").glob("share-groups-offsets*.txt")):
        told = run(*question, "--against", file)
        yield held_against_output(told, f"{dump.name} {file.name}"), True
    answer = json.loads(run(*question, "--format", "json"))
    deliveries = acknowledged(dump)
    for held, matters in (
        (rejections(answer["archived"], deliveries), True),
        (movements(answer["rows"], deliveries), False),
    ):
        held.what = f"{dump.name} {held.what}"
        yield held, matters
    statuses = Counter(row["status"] for row in answer["rows"])
    print(f"{dump.name} statuses: {dict(statuses)}; faults: {len(answer['faults'])}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare all dumps that are given; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path, help="workspaces stay here, and are asked again")
    parser.add_argument("--groupscope", default="groupscope")
    given = parser.parse_args(arguments)
    is_wrong = False
    for dump in dumps_of(given.folder):
        if not list((dump / "tools" / "describe").glob("share-groups-offsets*.txt")):
            continue
        with tempfile.TemporaryDirectory(prefix="share-") as scratch:
            for held, matters in compared(dump, given.keep or Path(scratch), given.groupscope):
                print(held.line(), flush=True)
                is_wrong |= matters and held.equal != held.total
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
