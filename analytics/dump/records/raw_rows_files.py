"""Archived rows of Spark's Kafka source: which files they are, by name and by their first bytes.

Reading them is another module's work; here they are only told from other files.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

from analytics.dump.files.storage import Entry, join, read_small, storage_of
from analytics.errors import InputNotRecognizedError

NEEDED_COLUMNS = frozenset({"topic", "partition", "offset"})
"""Without these a row is of no use; null keys and values may be absent from JSON."""

_FORMATS = {
    ".parquet": "parquet",
    ".avro": "avro",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_HEAD = 1 << 16
_DEEPEST = 6
# Zlib's number for "a gzip header, the largest window".
_GZIP = 31


@dataclass(frozen=True)
class RawRows:
    """Archived rows: the INPUT as given, ``parquet``, ``json`` or ``avro``, and the files."""

    given: str
    path: str
    format: str
    files: tuple[str, ...]


def rows_in_file(given: str, path: str) -> RawRows | None:
    """Return the rows a file holds, None where it is none of the formats."""
    found = _format_of(path)
    return RawRows(given, path, found, (path,)) if found else None


def rows_in_folder(given: str, path: str) -> RawRows | None:
    """Return the rows a folder holds, partition folders (``date=...``) included; None if none.

    Raises:
        InputNotRecognizedError: Files of several formats lie side by side.
    """
    files = _files(path, depth=0)
    formats = {_named_format(file) for file in files}
    if len(formats) > 1:
        raise InputNotRecognizedError(
            f"{given}: holds files of {' and '.join(sorted(map(str, formats)))} side by side; "
            f"name those that hold the archived rows"
        )
    if not files or _format_of(files[0]) is None:
        return None
    return RawRows(given, path, str(formats.pop()), tuple(files))


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
    # Spark and Hadoop hide what is not data behind these two.
    return (
        not (entry.is_folder or entry.is_special) and entry.size > 0 and entry.name[0] not in "._"
    )


def _named_format(name: str) -> str | None:
    stem = name.removesuffix(".gz")
    return next((kind for suffix, kind in _FORMATS.items() if stem.endswith(suffix)), None)


def _format_of(path: str) -> str | None:
    """Return the format that the first bytes show; the name decides nothing."""
    head = read_small(path, _HEAD)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"Obj\x01"):
        return "avro"
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(_GZIP).decompress(head, _HEAD)
        except zlib.error:
            return None
    return "json" if _is_json_row(head.lstrip(b"\xef\xbb\xbf")) else None


def _is_json_row(head: bytes) -> bool:
    line, newline, _ = head.partition(b"\n")
    if not newline and len(head) >= _HEAD:
        # A first row longer than what was read: its columns must do.
        return all(f'"{name}"'.encode() in head for name in NEEDED_COLUMNS)
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and row.keys() >= NEEDED_COLUMNS
