"""Values of one record type, over all the versions and layouts that a chunk holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.decode.records.frames import Failures
from analytics.wire.columns import (
    Column,
    absent_struct,
    concat,
    distinct,
    invalid_rows,
    struct_type,
    take,
)
from analytics.wire.cursor import Cursor, Reason, UnknownTags
from analytics.wire.decoder import value_reader
from schemas import record_types
from schemas.kafka_settings import WITHHELD, sensitive_settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.decode.records.frames import Frames
    from analytics.wire.cursor import ByteBuffer
    from schemas.model import RecordType

# Secrets of the metadata log: values of sensitive settings, and bytes that may hold some.
#
# A ``ConfigRecord`` has passwords as they were given; Kafka declares such settings as of the type
# PASSWORD (``ConfigDef.Type``). They are withheld before anything is written. Nobody knows what
# is in records that cannot be read: their bytes are withheld, too.


def without_secrets(kind: RecordType, value: pa.StructArray) -> pa.StructArray:
    """Return the values of a record type without those of sensitive settings.

    Args:
        kind: The record type; its fields say by which other field they are withheld.
        value: Its column `value`.
    """
    withheld = [each for each in kind.value.fields if each.withheld_by is not None]
    if not withheld:
        return value
    columns = {field.name: value.field(field.name) for field in value.type}
    names = {each.name: each.column for each in kind.value.fields}
    for each in withheld:
        setting = columns[names[each.withheld_by or ""]]
        is_sensitive = pc.match_substring_regex(setting, sensitive_settings())
        is_secret = pc.and_(
            pc.fill_null(is_sensitive, fill_value=False), columns[each.column].is_valid()
        )
        columns[each.column] = pc.if_else(is_secret, WITHHELD, columns[each.column])
    return pa.StructArray.from_arrays(
        list(columns.values()), fields=list(value.type), mask=value.is_null()
    )


@cache
def may_hold_secrets(topic: str) -> bool:
    """Return whether records of a topic may hold secrets: their bytes are not kept."""
    return any(
        kind.read == "secret" or any(each.withheld_by for each in kind.value.fields)
        for kind in record_types(topic).values()
    )


def without_bytes(detail: pa.Array, lengths: pa.Array) -> pa.Array:
    """Return details of undecoded rows that say how many bytes of each were withheld.

    Args:
        detail: In words; may be null.
        lengths: Of the value in bytes; negative or null where there is none.
    """
    counted = pc.binary_join_element_wise(
        pc.cast(lengths, pa.string()), " bytes withheld: they may hold secrets", ""
    )
    # Joined with nulls skipped, rows without any word would be dropped (Arrow 26).
    words = pc.coalesce(pc.binary_join_element_wise(detail, counted, "; "), counted)
    return pc.if_else(pc.fill_null(pc.greater(lengths, 0), fill_value=False), words, detail)


NO_LAYOUT = -1


@dataclass(frozen=True)
class Piece:
    """Values that were read alike: their places in the frames, and their columns."""

    place: NDArray[np.int64]
    column: Column
    layout: int
    unknown_tags: list[UnknownTags]


def read_values(
    kind: RecordType, frames: Frames, buffer: ByteBuffer
) -> tuple[list[Piece], Failures]:
    """Read the values of frames of one record type; tombstones are null structs."""
    failures = Failures()
    deleted = np.flatnonzero(frames.tombstone)
    if deleted.size and (piece := _read_at_once(kind, frames, buffer)) is not None:
        return [piece], failures
    pieces: list[Piece] = []
    if deleted.size:
        nothing = absent_struct(kind.value, buffer, deleted.size)
        pieces.append(Piece(deleted, nothing, NO_LAYOUT, []))
    living = np.flatnonzero(~frames.tombstone)
    versions = frames.version[living]
    present = distinct(versions)
    for version in present:
        place = living[versions == version] if len(present) > 1 else living
        if version in kind.versions:
            pieces += _read_version(kind, version, frames, place, buffer, failures)
        else:
            detail = f"{kind.name}: version {version}"
            failures.add(frames.row[place], Reason.UNSUPPORTED_VERSION, detail)
    return pieces, failures


def _read_at_once(kind: RecordType, frames: Frames, buffer: ByteBuffer) -> Piece | None:
    """Read values of one version and the tombstones among them; None where they are not all that.

    Apart they would have to be put in order again, all for the few tombstones there are.
    """
    version = int(frames.version.max())
    other = (frames.version != version) & ~frames.tombstone
    if version not in kind.versions or kind.layouts or other.any():
        return None
    cursor = Cursor.over(buffer, frames.value_start, frames.value_length)
    reader = value_reader(kind.name, version, None)
    column = reader.read_among_nulls(cursor, frames.tombstone)
    if column is None or (cursor.position != cursor.end).any():
        return None
    return Piece(np.arange(frames.row.size), column, NO_LAYOUT, [])


def _read_version(
    kind: RecordType,
    version: int,
    frames: Frames,
    place: NDArray[np.int64],
    buffer: ByteBuffer,
    failures: Failures,
) -> list[Piece]:
    """Read one version; where it has had several layouts, the first that fits exactly counts."""
    pieces: list[Piece] = []
    first_failure: tuple[Cursor, NDArray[np.int64]] | None = None
    for number, layout in enumerate(kind.layouts or (None,)):
        cursor = Cursor.over(buffer, frames.value_start[place], frames.value_length[place])
        column: Column = value_reader(kind.name, version, layout).read(cursor)
        cursor.require_exhausted(Reason.TRAILING_BYTES, "")
        if cursor.sound:
            living = np.arange(place.size)
        else:
            living = np.flatnonzero(~cursor.dead)
            column = take(column, living)
        if living.size:
            known = number if kind.layouts else NO_LAYOUT
            tags = _tags_by_place(cursor, place, living)
            pieces.append(Piece(place[living], column, known, tags))
        if cursor.sound:
            return pieces
        if first_failure is None:
            first_failure = (cursor, frames.row[place])
            tried = place
        place = place[cursor.dead]
    if first_failure is not None:
        cursor, rows = first_failure
        failed = np.where(np.isin(tried, place), rows, -1)
        failures.add_journal(cursor, failed, f"{kind.name} version {version}")
    return pieces


def _tags_by_place(
    cursor: Cursor, place: NDArray[np.int64], living: NDArray[np.int64]
) -> list[UnknownTags]:
    """Unknown tags of the living rows, by their place in the frames."""
    alive = np.zeros(place.size, np.bool_)
    alive[living] = True
    placed = []
    for tags in cursor.journal.unknown_tags:
        kept = alive[tags.row]
        if kept.any():
            rows = place[tags.row[kept]]
            placed.append(
                UnknownTags(rows, tags.path, tags.tag[kept], tags.start[kept], tags.length[kept])
            )
    return placed


def in_order(pieces: list[Piece]) -> tuple[NDArray[np.int64], Column]:
    """Join pieces in the order of their places."""
    place = np.concatenate([piece.place for piece in pieces])
    column = concat([piece.column for piece in pieces])
    if (place[1:] > place[:-1]).all():
        return place, column
    source = np.full(int(place.max()) + 1, -1)
    source[place] = np.arange(place.size)
    ordered = np.flatnonzero(source >= 0)
    return ordered, take(column, source[ordered])


def text_failures(kind: RecordType, column: Column) -> NDArray[np.bool_]:
    """Rows of a value column with a string that is not UTF-8."""
    return invalid_rows(column, struct_type(kind.value))


UNKNOWN_TAGS_TYPE = pa.list_(
    pa.field(
        "element",
        pa.struct([("path", pa.string()), ("tag", pa.int32()), ("data", pa.binary())]),
    )
)


def unknown_tags_array(
    pieces: list[Piece], place: NDArray[np.int64], buffer: ByteBuffer
) -> pa.Array:
    """Tagged fields newer than the schema, per record; null where there is none."""
    if not any(piece.unknown_tags for piece in pieces):
        return pa.nulls(place.size, UNKNOWN_TAGS_TYPE)
    found: dict[int, list[dict[str, object]]] = {}
    for tags in (tags for piece in pieces for tags in piece.unknown_tags):
        for row, tag, start, length in zip(
            tags.row.tolist(),
            tags.tag.tolist(),
            tags.start.tolist(),
            tags.length.tolist(),
            strict=True,
        ):
            data = buffer.data[start : start + length].tobytes()
            found.setdefault(row, []).append({"path": tags.path, "tag": tag, "data": data})
    return pa.array([found.get(row) for row in place.tolist()], UNKNOWN_TAGS_TYPE)
