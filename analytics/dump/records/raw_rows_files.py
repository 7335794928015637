"""Archived rows of Spark's Kafka source: which files they are, by name and by their first bytes.

Reading them is another module's work; here they are only told from other files.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analytics.dump.files.storage import Entry, read_small, storage_of
from analytics.errors import InputNotRecognizedError, InputUnreadableError
from analytics.locations import base_name, is_uri, join, parent, uri_of
from schemas import INTERNAL_TOPICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE_COLUMNS = frozenset({"topic", "partition"})
NEEDED_COLUMNS = PLACE_COLUMNS | {"offset"}
"""Without these a row is of no use; null keys and values may be absent from JSON."""
BINARY, HEX, BASE64 = "binary", "hex", "base64"
ENCODINGS = (BINARY, HEX, BASE64)
"""What `--value-encoding` may be."""

TABLE: Final = "table"
"""The format of rows that a table of a catalog holds."""
FRAME: Final = "DataFrame"
"""The format of rows that a DataFrame holds."""

FLAW = "flaw"
"""The column that says what is wrong with a row's place; null where nothing is."""

_FORMATS = {
    ".parquet": "parquet",
    ".avro": "avro",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_TABLE_LOGS: Final = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders that are in a table's, by what wrote them."""
_ICEBERG_METADATA, _ICEBERG_DATA = "metadata", "data"
_KNOWN_COLUMNS = (*sorted(NEEDED_COLUMNS), "key", "value")
_NAMED_PLACE = re.compile(rf"({'|'.join(map(re.escape, INTERNAL_TOPICS))})-([0-9]{{1,9}})(?![0-9])")
_HEAD = 1 << 16
_MOST_LINES = 100
_DEEPEST = 6
# Zlib's number for "a gzip header, the largest window".
_GZIP = 31


@dataclass(frozen=True)
class RawRows:
    """Archived rows.

    Attributes:
        argument: The INPUT as it was written.
        path: Where it is; of a table its name.
        format: ``parquet``, ``json`` or ``avro``, `TABLE` or `FRAME`.
        files: Its files; of a table and a DataFrame none.
        place: The topic and partition of rows that do not name them.
        frame: The rows themselves, where they came as a DataFrame.
    """

    argument: str
    path: str
    format: str
    files: tuple[str, ...]
    place: tuple[str, int] | None = None
    frame: DataFrame | None = None


def rows_in_frame(frame: DataFrame) -> RawRows:
    """Return the rows of a DataFrame, whose columns are looked at when it is read."""
    return RawRows("a DataFrame", "", FRAME, (), frame=frame)


def rows_in_table(argument: str, name: str, owner: tuple[str, int] | None = None) -> RawRows:
    """Return the rows of a table, which is looked up where it is read.

    Args:
        argument: How it was given.
        name: ``NAME``, ``SCHEMA.NAME`` or ``CATALOG.SCHEMA.NAME``.
        owner: The topic and partition of rows that do not name them.
    """
    return RawRows(argument, name, TABLE, (), owner)


def rows_in_file(argument: str, path: str, owner: tuple[str, int] | None = None) -> RawRows | None:
    """Return the rows a file holds, None where it is none of the formats.

    Raises:
        InputNotRecognizedError: They do not say whose they are, and nobody else does; or the file
            is one of a table.
    """
    found = _format_of(path)
    if found is None:
        return None
    _check_no_table(argument, parent(path))
    _check_place(argument, [path], found, owner)
    return RawRows(argument, path, found, (path,), owner)


def rows_in_folder(
    argument: str, path: str, owner: tuple[str, int] | None = None
) -> RawRows | None:
    """Return the rows a folder holds, partition folders (``date=...``) included; None if none.

    Raises:
        InputNotRecognizedError: Files of several formats lie side by side, or rows do not say whose
            they are, and nobody else does; or the folder is a table's.
    """
    _check_no_table(argument, path)
    files = _files(path, depth=0)
    formats = {_named_format(file) for file in files}
    if len(formats) > 1:
        raise InputNotRecognizedError(
            f"{argument}: holds files of {' and '.join(sorted(map(str, formats)))} side by side; "
            f"name those that hold the archived rows"
        )
    if not files or _format_of(files[0]) is None:
        return None
    found = str(formats.pop())
    _check_place(argument, files, found, owner)
    return RawRows(argument, path, found, tuple(files), owner)


def _check_no_table(argument: str, folder: str) -> None:
    """Refuse a folder that is a table's, or lies in one: its log says which files are its rows.

    Files that were deleted, replaced or not committed lie beside those that are rows, and rows
    that were deleted are still in their files (Delta Lake's protocol, "Delta Log Entries" and
    "Deletion Vectors"; Iceberg's spec, "Table Metadata" and "Row-level Deletes"; Hudi's spec,
    "Timeline").

    Raises:
        InputNotRecognizedError: It is one.
    """
    for _ in range(_DEEPEST + 1):
        kind = _table_in(folder)
        if kind is not None:
            raise InputNotRecognizedError(
                f"{argument}: files of a table of {kind} ({folder}), of which only its own reader "
                f"knows which are its rows: give it with --from-table CATALOG.SCHEMA.NAME, or in "
                f"Python as a DataFrame to open_dump"
            )
        name, above = base_name(folder), parent(folder)
        if not ("=" in name or name == _ICEBERG_DATA) or above in {folder, ""}:
            return
        folder = above


def _table_in(folder: str) -> str | None:
    """Return what made the table whose folder it is; None where it is no table's, or is closed.

    Of many files each asks for some names: folders of as many are not listed for each.
    """
    storage = storage_of(folder)
    try:
        for name, kind in _TABLE_LOGS.items():
            entry = storage.entry(join(folder, name))
            if entry is not None and entry.is_folder:
                return kind
        inner = join(folder, _ICEBERG_METADATA)
        entry = storage.entry(inner)
        names = [each.name for each in storage.list(inner)] if entry and entry.is_folder else []
    except InputUnreadableError:
        return None
    is_iceberg = any(name.endswith((".metadata.json", ".metadata.json.gz")) for name in names)
    return "Iceberg" if is_iceberg else None


def _check_place(
    argument: str, files: list[str], file_format: str, owner: tuple[str, int] | None
) -> None:
    """Refuse rows of JSON whose topic and partition neither they nor a person name.

    Of other formats the columns are seen when they are read. Folders may name them, as Hive's
    partitions do (``topic=__consumer_offsets/partition=9``). An export that writes a file a
    partition says whose it is in the file's name: one that says another partition is refused.

    Raises:
        InputNotRecognizedError: Nobody names them, or the name of a file contradicts.
    """
    if owner is not None:
        for path in files:
            named = _place_in_name(path)
            if named is not None and named != owner:
                raise InputNotRecognizedError(
                    f"{path}: its name says {named[0]}-{named[1]}, and --topic-partition "
                    f"{owner[0]}-{owner[1]}; give only files of that partition"
                )
        return
    names = _json_names(_head(files[0])) if file_format == "json" else None
    if names is None or names | columns_of_folders(files[0]) >= PLACE_COLUMNS:
        return
    named = _place_in_name(files[0])
    whose = "__consumer_offsets-17" if named is None else f"{named[0]}-{named[1]}"
    found = ", ".join(sorted(names))
    raise InputNotRecognizedError(
        f"{argument}: JSON Lines without "
        f"{' and '.join(sorted(PLACE_COLUMNS - names, reverse=True))} "
        f"(found: {found}): say whose rows they are, one partition at a time, as in "
        f"{files[0]} --topic-partition {whose}"
    )


def columns_of_folders(path: str) -> set[str]:
    """Return which of topic and partition the folders of a file name (``partition=9``)."""
    above = parent(path)
    folders = uri_of(above).path if is_uri(above) else above
    named = {each.partition("=")[0] for each in folders.split("/") if "=" in each}
    return named & PLACE_COLUMNS


def _place_in_name(path: str) -> tuple[str, int] | None:
    """Return the partition of an internal topic that a file's name begins with; None if none."""
    found = _NAMED_PLACE.match(base_name(path))
    return (found[1], int(found[2])) if found else None


def _files(folder: str, depth: int) -> list[str]:
    found: list[str] = []
    for entry in storage_of(folder).list(folder):
        path = join(folder, entry.name)
        if entry.is_folder and "=" in entry.name and depth < _DEEPEST:
            found += _files(path, depth + 1)
        elif _is_data(entry) and _named_format(entry.name):
            found.append(path)
    return found


def _is_data(entry: Entry) -> bool:
    # Spark and Hadoop hide what is not data behind these two; sinks name files by their topic.
    is_hidden = entry.name[0] in "._" and not entry.name.startswith(INTERNAL_TOPICS)
    return not (entry.is_folder or entry.is_special) and entry.size > 0 and not is_hidden


def _named_format(name: str) -> str | None:
    stem = name.removesuffix(".gz")
    return next((kind for suffix, kind in _FORMATS.items() if stem.endswith(suffix)), None)


def _format_of(path: str) -> str | None:
    """Return the format that the first bytes show; the name decides nothing."""
    head = _head(path)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"Obj\x01"):
        return "avro"
    names = _json_names(head)
    return None if names is None or "offset" not in names else "json"


def _head(path: str) -> bytes:
    """Return the first bytes of a file, unpacked where it is packed as a whole."""
    head = read_small(path, _HEAD)
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        return zlib.decompressobj(_GZIP).decompress(head, _HEAD)
    except zlib.error:
        return b""


def _json_names(head: bytes) -> set[str] | None:
    """Return the names in the first lines of JSON Lines; None where none of them is an object.

    A line may lack what is null in it, and may be damaged.
    """
    lines = head.lstrip(b"\xef\xbb\xbf").split(b"\n")
    if len(lines) == 1 and len(head) >= _HEAD:
        # A first row longer than what was read: its columns must do.
        return {name for name in _KNOWN_COLUMNS if f'"{name}"'.encode() in head} or None
    whole = lines[:-1] if len(head) >= _HEAD else lines
    found: set[str] | None = None
    for line in whole[:_MOST_LINES]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            found = (found or set()) | row.keys()
    return found
