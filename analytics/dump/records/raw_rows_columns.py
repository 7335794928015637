"""The columns of archived rows: which there must be, and which files have.

A column that no row has is no column of nulls: where values are stored under another name, each
commit would be a deletion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.errors import InputNotRecognizedError, InputUnreadableError
from analytics.workspace import open_location

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

PLACE: Final = ("topic", "partition")
"""What `--topic-partition` says where rows do not."""
REQUIRED: Final = ("key", "value", *PLACE, "offset")
TIME: Final = "timestamp"
"""A row may lack its time: then no instant can be asked about."""

_MOST_NAMED: Final = 20


def check_columns(where: str, columns: Collection[str], *, has_place: bool = False) -> None:
    """Refuse rows that lack a column.

    Args:
        where: The file, or files.
        columns: The columns that there are.
        has_place: The topic and the partition are known otherwise.

    Raises:
        InputNotRecognizedError: One is not there.
    """
    needed = [each for each in REQUIRED if not (has_place and each in PLACE)]
    missing = [each for each in needed if each not in columns]
    if not missing:
        return
    if TIME not in columns:
        missing.append(f"{TIME} (which may be missing)")
    if missing[:2] == list(PLACE) and len(missing) == 2 + (TIME not in columns):
        missing[1] += " (say whose rows they are with --topic-partition)"
    named = ", ".join(sorted(map(str, columns))[:_MOST_NAMED]) or "none"
    raise InputNotRecognizedError(
        f"{where}: archived rows need the columns of Spark's Kafka source (key, value, topic, "
        f"partition, offset, timestamp); missing: {', '.join(missing)}; found: {named}. Rename "
        "the columns, as kcat's payload and ts into value and timestamp."
    )


def check_files(paths: Iterable[str], file_format: str, *, has_place: bool = False) -> None:
    """Refuse files that lack a column: each says which it has.

    Args:
        paths: Of Parquet or Avro.
        file_format: Which of the two.
        has_place: The topic and the partition are known otherwise.

    Raises:
        InputNotRecognizedError: One lacks a column.
        InputUnreadableError: One cannot be read.
    """
    for path in paths:
        try:
            found = _of_avro(path) if file_format == "avro" else _of_parquet(path)
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise InputUnreadableError(f"{path} cannot be read: {error!s:.200}") from error
        check_columns(path, found, has_place=has_place)


def _of_parquet(path: str) -> list[str]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where there is Parquet

    filesystem, name = open_location(path)
    return list(pq.read_schema(name, filesystem=filesystem).names)


def _of_avro(path: str) -> list[str]:
    import fastavro  # noqa: PLC0415 - only where there is Avro

    filesystem, name = open_location(path)
    with filesystem.open_input_file(name) as stream:
        schema = fastavro.reader(stream).writer_schema
    fields = schema.get("fields", ()) if isinstance(schema, dict) else ()
    return [str(each["name"]) for each in fields]
