"""Small logs that some releases refuse to load, on a real broker: what it says and what we say.

Run as ``python -m tests.brokers --cases --release 4.1.1``. A fresh cluster gets its offsets topic,
is stopped, and starts again on the logs of the cases in `tests/cases/reports` and of some made
here. Its own log says which partitions it loaded and at which record it gave up.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analytics.replay.graph import needed_for, resolve
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.losses import WHOLE
from analytics.replay.log.rules import replay_rules
from schemas import record_type, tables
from tests.brokers.batches import batches_of
from tests.brokers.broker import Addresses, Broker, BrokerFailedError
from tests.brokers.performance import Say
from tests.brokers.programs import Programs
from tests.brokers.releases import Release, broker_settings, loading_settings
from tests.brokers.thinning import GROUPS, rewritten
from tests.brokers.truncation import forget
from tests.support.decoded_frames import frames_of_dump
from tests.support.encoder import encode_key, encode_value
from tests.support.plain_batches import read_plain_batch
from tests.support.segments import NOW, Header, Record, batch

REPORTS = Path(__file__).parents[1] / "cases" / "reports"
HANDOVER = REPORTS / "handover-compacted" / "dump" / "broker-1" / f"{GROUPS}-22"
PARTITIONS = 50
_FIRST = "00000000000000000000.log"
_LOADED = re.compile(
    rf"Finished loading (?:of metadata|offsets and group metadata) from {GROUPS}-(\d+)"
)
_FAILED = re.compile(
    rf"(?:Failed to load metadata|Error loading (?:offsets|group metadata)) from {GROUPS}-(\d+)"
)
_AT = re.compile(rf"Replaying record .* from {GROUPS}-(\d+) at offset (\d+) .*failed")
_WHY = re.compile(r"(?:\w+\.)*\w*(?:Exception|Error): (?!Replaying record)(.*)")
_SECONDS = 120
_BETWEEN = 0.5
_TAKEN_OVER_AT = 8
"""The offset at which the case hands a partition over, to an epoch that is higher by one."""


@dataclass(frozen=True)
class Case:
    """A log of one partition of the offsets topic.

    Attributes:
        name: What it is called in what is printed.
        partition: Where it lies.
        segment: Its bytes.
    """

    name: str
    partition: int
    segment: bytes


@dataclass(frozen=True)
class Verdict:
    """What became of a partition: refused or not, and at which record where that is known."""

    is_refused: bool | None
    offset: int | None = None
    why: str = ""

    def agrees(self, other: Verdict) -> bool:
        """Whether both say the same, as far as both say anything."""
        if self.is_refused != other.is_refused:
            return False
        return None in (self.offset, other.offset) or self.offset == other.offset


def all_cases() -> list[Case]:
    """Return the cases of reports that are logs, and those made here, each in its own partition."""
    found = [
        Case(folder.parents[2].name, int(folder.name.rpartition("-")[2]), _bytes_of(folder))
        for folder in sorted(REPORTS.glob(f"*/dump/broker-1/{GROUPS}-*"))
    ]
    made = {
        "handover to the same epoch": _handover_to(0),
        "handover to an older epoch": _handover_to(-1),
        "streams group over a simple one": _streams_over_simple(),
        "topic id in an offset": _commit_with_topic_id(),
    }
    taken: set[int] = set()
    cases = []
    for each in [*found, *(Case(name, -1, segment) for name, segment in made.items())]:
        free = each.partition
        if free < 0 or free in taken:
            free = next(number for number in range(PARTITIONS) if number not in taken)
        taken.add(free)
        cases.append(Case(each.name, free, each.segment))
    return cases


def _bytes_of(partition: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(partition.glob("*.log")))


def _handover_to(more: int) -> bytes:
    """Return the case with another epoch of the new owner, counted from that of the last one."""
    written = bytearray()
    for each in batches_of(HANDOVER):
        records = read_plain_batch(each.read())
        changed = [
            one._replace(value=_with_epoch(one.value, more))
            if one.offset == _TAKEN_OVER_AT and one.value is not None
            else one
            for one in records
        ]
        written += each.read() if changed == records else rewritten(each, changed)
    return bytes(written)


def _with_epoch(value: bytes, more: int) -> bytes:
    """Return a member's current assignment with another epoch: it stands behind the version."""
    (epoch,) = struct.unpack_from(">i", value, 2)
    return value[:2] + struct.pack(">i", epoch - 1 + more) + value[6:]


def _streams_over_simple() -> bytes:
    """Return a group that committed offsets only, and is a streams group then (KAFKA-20254)."""
    kind = record_type("streams_group_metadata")
    # Ids and epochs; a tagged list of settings that nobody set is null.
    value: dict[str, Any] = {
        each.column: None if each.tag is not None and "configs" in each.column else 0
        for each in kind.value.at(0, None)
    }
    value |= {"epoch": 1}
    record = Record(
        1, NOW, encode_key(kind, kind.ids[0], {"group_id": "g"}), encode_value(kind, 0, value)
    )
    return _commit(0, 3, {}) + batch([record], Header(leader_epoch=0)).data


def _commit_with_topic_id() -> bytes:
    return _commit(0, 4, {"topic_id": "u5ZBMDzUQ5GGCJjlyXxzcA"})


def _commit(offset: int, version: int, more: dict[str, str]) -> bytes:
    kind = record_type("offset_commit")
    key = encode_key(kind, 1, {"group": "g", "topic": "orders", "partition": 0})
    value = {"offset": 7, "leader_epoch": -1, "metadata": "", "commit_timestamp": NOW, **more}
    row = Record(offset, NOW, key, encode_value(kind, version, value))
    return batch([row], Header(leader_epoch=0)).data


@dataclass(frozen=True)
class LoadedCases:
    """The cases on a broker of a release."""

    release: Release
    programs: Programs
    folder: Path
    say: Say

    def differ(self) -> bool:
        """Load them, and tell case by case what the broker does and what we say."""
        cases = all_cases()
        theirs = self._it_says(cases)
        differing = 0
        for each in cases:
            ours, real = self._we_say(each), theirs[each.partition]
            agrees = ours.agrees(real)
            differing += not agrees
            self.say(
                f"{'' if agrees else 'DIFFERS: '}{each.name}: we say {_said(ours)}, "
                f"the broker {_said(real)}"
            )
        self.say(f"{len(cases)} cases loaded by {self.release.number}, {differing} differ")
        return differing > 0

    def _it_says(self, cases: list[Case]) -> dict[int, Verdict]:
        addresses = Addresses.free()
        settings = loading_settings(broker_settings(self.release, 1))
        settings |= {"offsets.topic.num.partitions": str(PARTITIONS)}
        broker = Broker(self.programs, addresses, settings, self.folder / "cases")
        broker.format(self.release)
        broker.start()
        last = broker.log_dir / f"{GROUPS}-{PARTITIONS - 1}"
        try:
            _wait(lambda: _asks_for_coordinator(addresses.broker) and last.is_dir())
            _wait(lambda: len(_numbers(_LOADED, broker.said)) == PARTITIONS)
        finally:
            broker.stop()
        for each in cases:
            _put(broker.log_dir / f"{GROUPS}-{each.partition}", each.segment)
        forget(broker.log_dir)
        broker.said.unlink()
        broker.start()
        try:
            _wait(
                lambda: (
                    len(_numbers(_LOADED, broker.said) | _numbers(_FAILED, broker.said))
                    == PARTITIONS
                )
            )
        finally:
            broker.kill()
        said = broker.said.read_text(errors="replace")
        return {each.partition: verdict(each.partition, said) for each in cases}

    def _we_say(self, case: Case) -> Verdict:
        folder = self.folder / "ours" / str(case.partition)
        _put(folder / f"{GROUPS}-{case.partition}", case.segment)
        names = [each.name for each in tables().values() if each.kind in {"decoded", "control"}]
        given = {
            "cut": frames_of_dump(folder, GROUPS, names),
            "rules": replay_rules(self.release.number),
            "coverage": WHOLE,
        }
        found = resolve(needed_for(HISTORY, ("load_faults",)), given)["load_faults"]
        rows = found.sort("record_offset").rows(named=True)
        stops = [each for each in rows if each["stops_loading"]]
        if not stops:
            unknown = any(each["stops_loading"] is None for each in rows)
            return Verdict(None if unknown else False)
        return Verdict(True, stops[0]["record_offset"], stops[0]["fault"])


def _put(partition: Path, segment: bytes) -> None:
    """Give a partition's folder a log, and take all that belongs to another one."""
    partition.mkdir(parents=True, exist_ok=True)
    for each in partition.glob("0*"):
        each.unlink()
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (partition / _FIRST).write_bytes(segment)


def verdict(partition: int, said: str) -> Verdict:
    """Return what a broker's log says of a partition."""
    if partition not in {int(each) for each in _FAILED.findall(said)}:
        is_loaded = partition in {int(each) for each in _LOADED.findall(said)}
        return Verdict(False if is_loaded else None)
    places = {int(number): int(offset) for number, offset in _AT.findall(said)}
    after = next(each for each in _FAILED.finditer(said) if int(each[1]) == partition)
    why = _WHY.search(said, after.start())
    return Verdict(True, places.get(partition), why[1][:120] if why else "")


def _said(verdict: Verdict) -> str:
    if verdict.is_refused is None:
        return "that it cannot be told"
    if not verdict.is_refused:
        return "loads it"
    at = "" if verdict.offset is None else f" at {verdict.offset}"
    return f"refuses it{at} ({verdict.why})"


def _numbers(pattern: re.Pattern[str], file: Path) -> set[int]:
    said = file.read_text(errors="replace") if file.exists() else ""
    return {int(each) for each in pattern.findall(said)}


def _wait(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + _SECONDS
    while not is_done():
        if time.monotonic() > end:
            raise BrokerFailedError(f"not done in {_SECONDS} s")
        time.sleep(_BETWEEN)


def _asks_for_coordinator(port: int) -> bool:
    """Ask for a group's coordinator (FindCoordinator 1), which makes the offsets topic."""
    client = b"\0\x06groups"
    body = struct.pack(">hhi", 10, 1, 7) + client + b"\0\x01g\0"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            return bool(connection.recv(4))
    except OSError:
        return False
