"""What ``kafka-dump-log`` printed for one segment, as values.

Written from what the tool prints (3.9 to 4.3), not from this project's decoder and not
from its schemas: the tests hold the decoder against it, so the two must not share a mistake.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.dump_log_contents import (
    Content,
    Control,
    DumpLogError,
    is_unfinished,
    parse_contents,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIMESTAMP_LABELS = ("CreateTime", "LogAppendTime", "NoTimestampType")


@dataclass(frozen=True)
class RecordLine:
    """One record as printed. Sizes are bytes, -1 for null; the timestamp is milliseconds."""

    offset: int
    timestamp: int
    key_size: int
    value_size: int
    sequence: int | None
    header_keys: str
    control: Control | None
    key: Content | None
    payload: Content | None


@dataclass(frozen=True)
class BatchLine:
    """One batch, or one magic 0/1 entry, as printed, with the records printed under it.

    ``offset`` is the batch's base offset; a magic 0/1 entry prints its own offset there, which
    for a compressed wrapper is that of the last record inside. ``count`` is null for those.
    """

    magic: int
    offset: int
    last_offset: int
    count: int | None
    position: int
    size: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    is_control: bool
    codec: str
    crc: int
    is_valid: bool
    timestamp_label: str
    max_timestamp: int
    delete_horizon: int | None
    records: list[RecordLine] = field(default_factory=list)

    @property
    def base_offset(self) -> int:
        """The first offset of the batch as Kafka's ``RecordBatch.baseOffset`` gives it."""
        if self.magic >= 2 or not self.records:
            return self.offset
        return self.records[0].offset


@dataclass(frozen=True)
class SegmentText:
    """The tool's whole output for one file."""

    name: str
    start_offset: int | None
    batches: list[BatchLine]
    invalid_bytes: int


def read_dump_log(path: Path) -> SegmentText:
    """Read one output of the tool, gzipped or plain.

    Raises:
        DumpLogError: with file and line number, for a line no release prints.
    """
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    try:
        return parse_dump_log(data.decode("utf-8", errors="surrogateescape"))
    except DumpLogError as error:
        raise DumpLogError(f"{path}: {error}") from error


def parse_dump_log(text: str) -> SegmentText:
    """Parse the tool's output for one file (``--deep-iteration``, with or without a decoder)."""
    name, start, invalid = "", None, 0
    batches: list[BatchLine] = []
    for number, line in _logical_lines(text):
        try:
            if line.startswith("| "):
                batches[-1].records.append(parse_record_line(line))
            elif line.startswith(("baseOffset: ", "offset: ")):
                batches.append(parse_batch_line(line))
            elif line.startswith("Dumping "):
                name = line.removeprefix("Dumping ").rsplit("/", 1)[-1]
            elif match := re.match(r"(?:Log starting|Starting|Snapshot end) offset: (\d+)", line):
                start = int(match[1])
            elif match := re.match(r"Found (\d+) invalid bytes at the end of ", line):
                invalid = int(match[1])
            elif line != "KRaft bootstrap snapshot":
                raise DumpLogError("a line of no known form")
        except (ValueError, KeyError, IndexError) as error:
            raise DumpLogError(f"line {number}: {error!r}: {line[:200]!r}") from error
    return SegmentText(name, start, batches, invalid)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Physical lines, with those put together that a raw transactional id had broken."""
    held: str | None = None
    held_number = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if held is not None and held.startswith("| ") and is_unfinished(held):
            held += "\n" + line
            continue
        # The Scala tool leaves a brace of its own behind magic 0/1 records.
        if line in ("", "}"):
            continue
        if held is not None:
            yield held_number, held
        held, held_number = line, number
    if held is not None:
        yield held_number, held


_TOKEN = re.compile(
    r" ?(\w+): (-?\d+|true|false|[A-Za-z0-9_]+|OptionalLong(?:\.empty|\[-?\d+\]))\}?(?= |$)"
)
_CONTENT_NAMES = ("key", "payload", "endTxnMarker", "controlType", "LeaderChange")
_HEADER_KEYS = re.compile(r" headerKeys: \[(.*?)\](?= |$)")


def _tokens(line: str, position: int) -> tuple[dict[str, str], int]:
    found: dict[str, str] = {}
    while match := _TOKEN.match(line, position):
        if match[1] in _CONTENT_NAMES:
            break
        found[match[1]] = match[2]
        position = match.end()
    return found, position


def _timestamp(found: dict[str, str]) -> tuple[str, int]:
    for label in TIMESTAMP_LABELS:
        if label in found:
            return label, int(found[label])
    raise DumpLogError("no timestamp")


def parse_batch_line(line: str) -> BatchLine:
    """Parse ``baseOffset: …`` (magic 2) or ``offset: … position: …`` (magic 0/1)."""
    found, end = _tokens(line, 0)
    if line[end:].strip():
        raise DumpLogError(f"unread: {line[end:]!r}")
    label, max_timestamp = _timestamp(found)
    horizon = re.search(r"\[(-?\d+)\]", found.get("deleteHorizonMs", ""))
    offset = int(found["baseOffset"] if "baseOffset" in found else found["offset"])
    return BatchLine(
        magic=int(found["magic"]),
        offset=offset,
        last_offset=int(found.get("lastOffset", offset)),
        count=int(found["count"]) if "count" in found else None,
        position=int(found["position"]),
        size=int(found["size"]),
        leader_epoch=int(found.get("partitionLeaderEpoch", -1)),
        producer_id=int(found.get("producerId", -1)),
        producer_epoch=int(found.get("producerEpoch", -1)),
        is_transactional=found.get("isTransactional") == "true",
        is_control=found.get("isControl") == "true",
        codec=found["compresscodec"].lower(),
        crc=int(found["crc"]),
        is_valid=found["isvalid"] == "true",
        timestamp_label=label,
        max_timestamp=max_timestamp,
        delete_horizon=int(horizon[1]) if horizon else None,
    )


def parse_record_line(line: str) -> RecordLine:
    """Parse ``| offset: …`` with whatever the decoder printed behind it."""
    found, end = _tokens(line, 1)
    header_keys = ""
    if match := _HEADER_KEYS.match(line, end):
        header_keys, end = match[1], match.end()
    control, key, payload = parse_contents(line[end:], int(found["keySize"]))
    return RecordLine(
        offset=int(found["offset"]),
        timestamp=_timestamp(found)[1],
        key_size=int(found["keySize"]),
        value_size=int(found["valueSize"]),
        sequence=int(found["sequence"]) if "sequence" in found else None,
        header_keys=header_keys,
        control=control,
        key=key,
        payload=payload,
    )
