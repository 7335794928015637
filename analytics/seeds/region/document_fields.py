"""Fields of documents that others wrote, and the forms of checkpoints that are rows of such."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from analytics.epoch_times import LAST_MS
from analytics.errors import InputNotRecognizedError
from analytics.seeds.region.contributions import (
    REGION,
    CheckpointKey,
    Contribution,
    Partition,
)
from analytics.side_files import MOST, MOST_INT, bad, plain_text, read_bytes, read_json

# Fields of documents that others wrote: there and of the right kind, or named as wrong.

Document = Mapping[str, Any]


def whole(document: Document, field: str, where: str, *, least: int = 0, most: int = MOST) -> int:
    """Return a whole number that has to be there.

    Raises:
        InputNotRecognizedError: It is not, or is none.
    """
    found = whole_or_none(document, field, where, least=least, most=most)
    if found is None:
        raise bad(where, field, None, "a whole number")
    return found


def whole_or_none(
    document: Document, field: str, where: str, *, least: int = 0, most: int = MOST
) -> int | None:
    """Return a whole number, None where there is none.

    Raises:
        InputNotRecognizedError: It is something else.
    """
    value = document.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise bad(where, field, value, f"a whole number from {least} to {most}")
    return value


def partition_of(document: Document, where: str) -> tuple[str, int]:
    """Return `topic` and `partition`, which have to be there.

    Raises:
        InputNotRecognizedError: One is not, or is none.
    """
    return text(document, "topic", where), whole(document, "partition", where, most=MOST_INT)


def text(document: Document, field: str, where: str) -> str:
    """Return a text that has to be there.

    Raises:
        InputNotRecognizedError: It is not, or is none.
    """
    value = document.get(field)
    if not isinstance(value, str):
        raise bad(where, field, value, "a name")
    return plain_text(value, field, where)


def text_or_none(document: Document, field: str, where: str) -> str | None:
    """Return a text, None where there is none.

    Raises:
        InputNotRecognizedError: It is something else.
    """
    return None if document.get(field) is None else text(document, field, where)


def texts(document: Document, field: str, where: str) -> tuple[str, ...]:
    """Return a list of names that has to be there.

    Raises:
        InputNotRecognizedError: It is not, or is none.
    """
    value = document.get(field)
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise bad(where, field, value, "a list of names")
    return tuple(value)


def listed(document: Document, field: str, where: str) -> list[Document]:
    """Return a list of objects that has to be there.

    Raises:
        InputNotRecognizedError: It is not, or is none.
    """
    value = document.get(field)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise bad(where, field, value, "a list of objects")
    return value


def time_or_none(document: Document, field: str, where: str) -> int | None:
    """Return a time in epoch milliseconds: a number of them, ISO 8601, or a time already.

    Raises:
        InputNotRecognizedError: It is something else.
    """
    value = document.get(field)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise bad(where, field, value, "epoch milliseconds or ISO 8601") from None
    if isinstance(value, datetime):
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
        return round(value.timestamp() * 1000)
    return whole_or_none(document, field, where, most=LAST_MS)


def by_partition(
    value: Any,  # noqa: ANN401 - as the file has it
    field: str,
    where: str,
    *,
    least: int = 0,
) -> dict[int, int]:
    """Return offsets by partition, of an object with partitions as names: ``{"0": 123}``.

    Raises:
        InputNotRecognizedError: It is something else.
    """
    wanted = 'an object of offsets by partition, as in {"0": 123}'
    if not isinstance(value, dict):
        raise bad(where, field, value, wanted)
    found = {}
    for name, offset in value.items():
        if not re.fullmatch(r"[0-9]{1,9}", str(name)):
            raise bad(where, f"{field}.{name}", offset, wanted)
        found[int(name)] = whole(value, name, f"{where}, {field}", least=least)
    return found


# Checkpoints of the operators of a consistent region: rows of JSON Lines, JSON or Parquet.
#
# ``{group_id, region_index, checkpoint_sequence_id, reset_attempt, operator, operators[],
# offsets[{topic, partition, offset}], at}``, and `drain_started_at` where it is known.

FIELDS = ("operator", "operators", "checkpoint_sequence_id")
"""A row has these, or is none."""


def is_region_row(document: Document) -> bool:
    """Return whether a document is a contribution of an operator."""
    return any(name in document for name in FIELDS)


def region_row(document: Document, where: str, group: str | None) -> Contribution:
    """Return the contribution that a row is.

    Args:
        document: The row.
        where: The file, and the place in it.
        group: The group of rows that name none.

    Raises:
        InputNotRecognizedError: A field is not what it has to be.
    """
    operators = tuple(dict.fromkeys(texts(document, "operators", where)))
    key = CheckpointKey(
        text_or_none(document, "group_id", where) or group,
        REGION,
        None,
        whole(document, "checkpoint_sequence_id", where),
    )
    return Contribution(
        key,
        (text(document, "operator", where),),
        operators,
        len(operators),
        tuple(offsets_of(document, where)),
        region_index=whole_or_none(document, "region_index", where, most=MOST_INT),
        reset_attempt=whole_or_none(document, "reset_attempt", where, most=MOST_INT),
        at=time_or_none(document, "at", where),
        drain_started_at=time_or_none(document, "drain_started_at", where),
    )


def offsets_of(document: Document, where: str) -> list[tuple[Partition, int | None]]:
    """Return `offsets` of a row, in the order of their partitions.

    Raises:
        InputNotRecognizedError: One is none, or a partition is named twice.
    """
    found: dict[Partition, int | None] = {}
    for place, each in enumerate(listed(document, "offsets", where)):
        at = f"{where}, offsets[{place}]"
        partition = partition_of(each, at)
        offset = whole(each, "offset", at)
        if found.get(partition, offset) != offset:
            raise bad(at, "offset", offset, f"{found[partition]}, as of this partition before")
        found[partition] = offset
    return sorted(found.items())


# Initial offsets that a group keeps of its partitions, from a side file.


def read_initial_offsets(path: str | None) -> dict[Partition, int]:
    """Return the offsets of a file: CSV, JSON, JSON Lines or Parquet; none without a file.

    Raises:
        InputNotRecognizedError: A row has no topic, partition or offset.
        InputUnreadableError: It cannot be read.
    """
    if path is None:
        return {}
    found: dict[Partition, int] = {}
    for place, row in enumerate(_rows(read_bytes(path), path), 1):
        where = f"{path}, row {place}"
        if not isinstance(row, dict):
            raise bad(where, "the row", row, "topic, partition and offset")
        found[partition_of(row, where)] = whole(row, "offset", where)
    return found


def _rows(data: bytes, path: str) -> list[Any]:
    try:
        if data.startswith(b"PAR1"):
            rows: list[Any] = pq.read_table(io.BytesIO(data)).to_pylist()
            return rows
        if data.lstrip()[:1] not in (b"[", b"{"):
            return list(pyarrow.csv.read_csv(io.BytesIO(data)).to_pylist())
    except (pa.ArrowException, OSError) as error:
        raise InputNotRecognizedError(f"{path}: {error!s:.200}") from error
    if data.lstrip().startswith(b"["):
        return list(read_json(data, path))
    return [read_json(each, path) for each in data.splitlines() if each.strip()]
