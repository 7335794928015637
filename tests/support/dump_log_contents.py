"""What ``kafka-dump-log`` printed behind a record's numbers: its key, its payload, its marker.

Keys and payloads are JSON in all but two places: the transaction log up to 4.0, whose text form
can hold anything in the transactional id, and what the tool could not read, which stays as the
sentence it printed. JSON is taken off the line by a JSON parser: a group's metadata may well
contain the words ``payload:``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

# Control batches other than transaction markers print their type's own spelling.
CONTROL_NAMES = {
    "LeaderChange": "LEADER_CHANGE",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}

TRANSACTION_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


class DumpLogError(ValueError):
    """A line that no known release of the tool prints."""


@dataclass(frozen=True)
class Content:
    """What the tool said about a key or a payload.

    ``type`` is the record type's number (coordinator topics) or its upper-case name (metadata
    log), ``version`` the value's version. ``data`` is null for a tombstone (``is_delete``) and
    where the tool gave a sentence instead (``problem``). ``is_partial`` marks the text form of
    the transaction log, which leaves fields out.
    """

    type: int | str | None = None
    version: int | None = None
    data: dict[str, Any] | None = None
    is_delete: bool = False
    is_partial: bool = False
    problem: str | None = None

    @property
    def value_version(self) -> int | None:
        """The version of a value, also where the tool of 4.0 calls it ``type``."""
        if self.version is None and isinstance(self.type, int):
            return self.type
        return self.version


@dataclass(frozen=True)
class Control:
    """A control record: its type's name in Kafka's spelling, and a marker's coordinator epoch."""

    name: str
    coordinator_epoch: int | None = None
    data: dict[str, Any] | None = None


_MARKER = re.compile(r" endTxnMarker: (\w+) coordinatorEpoch: (-?\d+)$")
_CONTROL_TYPE = re.compile(r" controlType: (\w+)\((-?\d+)\)$")
_CONTROL_DATA = re.compile(
    r" (LeaderChange|SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters):? "
)


Contents = tuple[Control | None, Content | None, Content | None]


def parse_contents(rest: str, key_size: int) -> Contents:
    """Parse what follows the numbers of a record line: control record, key and payload.

    Raises:
        DumpLogError: for text of no known form.
    """
    if rest.strip() in ("", "}"):
        return None, None, None
    if match := _MARKER.match(rest):
        return Control(match[1], int(match[2])), None, None
    if match := _CONTROL_TYPE.match(rest):
        return Control(match[1]), None, None
    if match := _CONTROL_DATA.match(rest):
        return Control(CONTROL_NAMES[match[1]], data=json.loads(rest[match.end() :])), None, None
    if rest.startswith(" payload: "):
        return None, None, parse_content(rest.removeprefix(" payload: "))
    if not rest.startswith(" key: "):
        raise DumpLogError(f"unread: {rest[:200]!r}")
    return None, *_parse_key_and_payload(rest.removeprefix(" key: "), key_size)


_TRANSACTION_KEY = " key: transaction_metadata::transactionalId="
_TRANSACTION = re.compile(
    r" payload: (?:<DELETE>|producerId:(?P<id>-?\d+),producerEpoch:(?P<epoch>-?\d+),"
    r"state=(?P<state>\w+),partitions=\[(?P<partitions>.*)\],"
    r"txnLastUpdateTimestamp=(?P<updated>-?\d+),txnTimeoutMs=(?P<timeout>-?\d+))$",
    re.DOTALL,
)


def is_unfinished(line: str) -> bool:
    """Whether a record line broke off inside a raw transactional id that holds a line feed."""
    return _TRANSACTION_KEY in line and _TRANSACTION.search(line) is None


def _parse_key_and_payload(text: str, key_size: int) -> tuple[Content, Content | None]:
    if text.startswith("{"):
        key, end = json.JSONDecoder().raw_decode(text)
        payload = text[end:]
        if payload and not payload.startswith(" payload: "):
            raise DumpLogError(f"unread behind the key: {payload[:200]!r}")
        return _content(key), parse_content(payload.removeprefix(" payload: ")) if payload else None
    if (" key: " + text).startswith(_TRANSACTION_KEY):
        return _parse_transaction(text, key_size)
    return Content(problem=text), None


def _parse_transaction(text: str, key_size: int) -> tuple[Content, Content]:
    # The id is raw text; its length in bytes is known: the key less its number and length.
    raw_id = text.removeprefix(_TRANSACTION_KEY.removeprefix(" key: "))
    size = key_size - 4
    identifier = raw_id.encode("utf-8", errors="surrogateescape")[:size].decode("utf-8")
    match = _TRANSACTION.match(raw_id[len(identifier) :])
    if match is None:
        raise DumpLogError(f"not a transaction's payload: {raw_id[len(identifier) :][:200]!r}")
    key = Content(type=0, data={"transactionalId": identifier})
    if match["id"] is None:
        return key, Content(is_delete=True)
    partitions = [name.rsplit("-", 1) for name in match["partitions"].split(",") if name]
    data = {
        "producerId": int(match["id"]),
        "producerEpoch": int(match["epoch"]),
        "transactionTimeoutMs": int(match["timeout"]),
        "transactionStatus": TRANSACTION_STATES.index(match["state"]),
        "transactionPartitions": sorted((topic, int(number)) for topic, number in partitions),
        "transactionLastUpdateTimestampMs": int(match["updated"]),
    }
    return key, Content(data=data, is_partial=True)


def parse_content(text: str) -> Content:
    """Parse what stands behind ``key: `` or ``payload: ``."""
    if text == "<DELETE>":
        return Content(is_delete=True)
    if not text.startswith("{"):
        return Content(problem=text)
    return _content(json.loads(text))


def _content(value: dict[str, Any]) -> Content:
    kind, version = value.get("type"), value.get("version")
    if isinstance(kind, str) and re.fullmatch(r"-?\d+", kind):
        kind = int(kind)
    return Content(type=kind, version=None if version is None else int(version), data=value["data"])
