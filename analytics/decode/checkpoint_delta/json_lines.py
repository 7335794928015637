"""JSON Lines ``{offset, type, value}`` to checkpoints and deltas.

``type`` is 5 or 6, or the name of the control record; ``value`` has the fields as the seed prints
them or in camel case. ``topic``, ``partition`` and ``topicId`` may stand in each line; without the
first two the file's folder is named ``<topic>-<partition>``. A state may be a number, or a number
with its name behind it, as the seed prints it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analytics.decode.checkpoint_delta.chain_records import IDS, RECORDS, TABLES, ChainLog, Lost
from analytics.dump.files.segments import partition_of
from analytics.dump.files.storage import base_name, parent, read_small, storage_of
from analytics.errors import InputNotRecognizedError
from schemas.dialects import CHECKPOINT_DELTA, dialect_types
from schemas.fields import INTEGER_BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from schemas.model import Field

SUFFIXES: Final = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
_HEAD: Final = 1 << 20
_GZIP: Final = 31
"""Zlib's number for "a gzip header, the largest window"."""
_NAMES: Final = {
    name: kind
    for kind, (id_, table) in enumerate(zip(IDS, TABLES, strict=True))
    for name in (id_, str(id_), table.upper())
}


def read_json_lines(path: str, owner: tuple[str, int] | None = None) -> list[ChainLog]:
    """Read a file: a log for each partition that it names.

    What cannot be read is lost, alone where its place is told, else as if it were anywhere.

    Args:
        path: The file.
        owner: Whose the lines are that do not say so; else the folder's name tells.

    Raises:
        InputNotRecognizedError: No line says whose it is and where.
        InputUnreadableError: The system refuses.
    """
    owner = owner or partition_of(base_name(parent(path)))
    found: dict[tuple[str, int], _Lines] = defaultdict(_Lines)
    nowhere: list[Lost] = []
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            said = _object(line)
            place, offset = _place(said, owner), _offset(said)
        except _UnreadableError as error:
            nowhere.append(Lost(0, why=f"{where}: {error}"))
            continue
        found[place].take(said, offset, where)
    if not found:
        why = nowhere[0].why if nowhere else f"{path}: has no line"
        raise InputNotRecognizedError(
            f"{why} (--dialect {CHECKPOINT_DELTA} reads JSON Lines with offset, type and value; "
            f"topic and partition stand in each line or in the folder's name, <topic>-<partition>)"
        )
    return [each.log(place, nowhere) for place, each in sorted(found.items())]


def begins_so(path: str) -> bool:
    """Return whether a file's first line is a control record."""
    head = read_small(path, _HEAD)
    if path.endswith(".gz"):
        try:
            head = zlib.decompressobj(_GZIP).decompress(head, _HEAD)
        except zlib.error:
            return False
    try:
        said = json.loads(head.lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and {"offset", "type"} <= said.keys()


@dataclass
class _Lines:
    """The lines of one partition."""

    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)
    topic_id: str | None = None

    def take(self, line: Mapping[str, Any], offset: int, where: str) -> None:
        """Take a line."""
        if isinstance(line.get("topicId"), str):
            self.topic_id = line["topicId"]
        try:
            row = _record(line)
        except _UnreadableError as error:
            self._lose(offset, f"the record at offset {offset} cannot be read: {where}: {error}")
            return
        if row is not None and self.rows.setdefault(offset, row) != row:
            self._lose(offset, f"lines differ about offset {offset}")

    def _lose(self, offset: int, why: str) -> None:
        self.lost.append(Lost(offset, offset + 1, why))

    def log(self, place: tuple[str, int], nowhere: list[Lost]) -> ChainLog:
        """Return the log; what is lost has no record."""
        gone = {each.first_offset for each in self.lost}
        rows = [{"offset": at, **row} for at, row in self.rows.items() if at not in gone]
        table = pa.Table.from_pylist(rows, RECORDS).sort_by("offset")
        return ChainLog(*place, table, self.topic_id, lost=tuple(sorted([*self.lost, *nowhere])))


class _UnreadableError(Exception):
    """A line is no record of the dialect, though it says so."""


def _lines(path: str) -> Iterable[bytes]:
    with storage_of(path).open(path) as file:
        content = file.read()
    return (gzip.decompress(content) if path.endswith(".gz") else content).splitlines()


def _object(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _UnreadableError(f"is not JSON: {error}") from error
    if not isinstance(said, dict):
        raise _UnreadableError("is not an object with offset, type and value")
    return said


def _place(line: Mapping[str, Any], owner: tuple[str, int] | None) -> tuple[str, int]:
    topic, partition = line.get("topic"), line.get("partition")
    if topic is None and partition is None and owner is not None:
        return owner
    if isinstance(topic, str) and type(partition) is int and 0 <= partition < 2**31:
        return topic, partition
    raise _UnreadableError("nothing tells of which topic and partition it is")


def _offset(line: Mapping[str, Any]) -> int:
    offset = line.get("offset")
    if type(offset) is not int or not 0 <= offset < 2**63 - 1:
        raise _UnreadableError(f"its offset is {offset!r}")
    return offset


def _record(line: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a row of `RECORDS` but for its offset; None of other control records."""
    kind = line.get("type")
    if type(kind) is int and kind not in IDS:
        return None
    if not isinstance(kind, int | str) or str(kind) not in _NAMES:
        raise _UnreadableError(f"its type is {kind!r}")
    number = _NAMES[str(kind)]
    value = line.get("value")
    if not isinstance(value, dict):
        raise _UnreadableError("its value is no object")
    fields = dialect_types(CHECKPOINT_DELTA)[TABLES[number]].value.fields
    return {"kind": number, **_struct(value, fields)}


def _struct(value: object, fields: Iterable[Field]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _UnreadableError("a state is no object")
    given = {name[:1].lower() + name[1:]: each for name, each in value.items()}
    found = {}
    for each in fields:
        if each.name not in given:
            raise _UnreadableError(f"it has no {each.name}")
        found[each.column] = _value(given[each.name], each)
    return found


def _value(value: object, kind: Field) -> object:
    if kind.is_array:
        if not isinstance(value, list):
            raise _UnreadableError(f"its {kind.name} are no list")
        return [_struct(each, kind.fields) for each in value]
    if kind.type == "string":
        if isinstance(value, str):
            return value
    else:
        # The seed writes a state as "2 (Acknowledged)".
        if kind.name == "state" and isinstance(value, str):
            number = value.partition(" ")[0]
            value = int(number) if number.isdecimal() else value
        least, most = INTEGER_BOUNDS[kind.type]
        if type(value) is int and least <= value <= most:
            return value
    raise _UnreadableError(f"its {kind.name} is {value!r}, not of type {kind.type}")
