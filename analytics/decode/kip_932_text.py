"""A partition of `__share_group_state` to readings of its records, and from where it is whole.

There are two readings, which bytes alone may not tell apart. An update of the text and one of a
release have fields of the same widths: where one has state epoch, snapshot epoch and start offset,
the other has snapshot epoch, leader epoch and start offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from analytics.decode.records.frames import Frames, read_frames
from analytics.decode.records.values import in_order, read_values
from analytics.decode.tasks import SliceReport, select
from analytics.dump.batches.header_columns import Headers
from analytics.dump.batches.segment_stats import SegmentStats
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.files.data_topics import data_topics
from analytics.dump.files.inputs import recognize
from analytics.dump.files.model import MAX_OFFSET, Plan, Slice
from analytics.dump.inspection.manifest import surveys_of_slices
from analytics.dump.records.segment_reader import SegmentReader
from analytics.errors import InputNotRecognizedError, InputUnreadableError
from analytics.wire.arrow import invalid_rows, struct_type, to_array
from analytics.wire.columns import take
from analytics.wire.cursor import ByteBuffer, Cursor
from analytics.wire.decoder import dialect_reader, key_reader
from analytics.wire.failure import Reason
from schemas import SHARE_GROUP_STATE, record_type
from schemas.dialects import KIP_932_TEXT, dialect_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.damage import Damage
    from analytics.dump.batches.segment_stats import SegmentSurvey
    from analytics.dump.records.raw_records import RawRecords
    from schemas.model import RecordType

_LOOKED_FOR: Final = (
    f"--dialect {KIP_932_TEXT} reads {SHARE_GROUP_STATE} of log directories, partition directories "
    "and segments"
)

SNAPSHOT, UPDATE = 0, 1
_TABLES = ("share_snapshot", "share_update")
"""Record types in the order of their ids."""


@dataclass(frozen=True)
class ShareStateLog:
    """What a partition of the state topic holds.

    Attributes:
        partition: Its number.
        parts: As `_share_readings` gives them, in the order of the log.
        complete_from: From this offset on every record is there; `MAX_OFFSET` where nothing tells.
        unread: Records that have no sound key; None of them is of a known share partition.
    """

    partition: int
    parts: Sequence[dict[str, Any]]
    complete_from: int
    unread: int


def state_plan(
    arguments: Sequence[str], topic_partition: str | None
) -> tuple[Plan, dict[str, str]]:
    """Return what is to be read, and names of topics by id.

    Raises:
        InputNotRecognizedError: There is no partition of the state topic.
    """
    found = recognize(arguments, topic_partition)
    if found.raw_rows or found.workspaces:
        wrong = [each.argument for each in found.raw_rows] + list(found.workspaces)
        raise InputNotRecognizedError(f"{wrong[0]}: {_LOOKED_FOR}")
    planned = plan(found, PlanOptions(topics=frozenset({SHARE_GROUP_STATE})))
    if not planned.slices:
        raise InputNotRecognizedError(
            f"{arguments[0]}: there is no {SHARE_GROUP_STATE} here. {_LOOKED_FOR}"
        )
    names = {each.topic_id: each.topic for each in data_topics(planned.copies) if each.topic_id}
    return planned, names


def state_slices(planned: Plan) -> dict[int, list[Slice]]:
    """Return the slices of the line that survived, by partition."""
    slices: dict[int, list[Slice]] = defaultdict(list)
    for each in planned.slices:
        if not each.line:
            slices[each.partition].append(each)
    return dict(sorted(slices.items()))


def read_state(planned: Plan, partition: int, slices: Sequence[Slice]) -> ShareStateLog:
    """Read a partition."""
    parts: list[dict[str, Any]] = []
    surveys: list[tuple[Slice, SegmentSurvey]] = []
    unread, is_readable = 0, True
    for each in slices:
        reader, stats = SegmentReader(each), SegmentStats(each.segment)
        damages: list[Damage] = []
        report = SliceReport(0)
        try:
            for chunk in reader.chunks():
                stats.add(Headers.of_batches(chunk.records.batches))
                damages += chunk.damages
                found, failed = _share_readings(select(each, chunk.records, report))
                parts += found
                unread += failed
        except InputUnreadableError:
            is_readable = False
        surveys.append(
            (each, stats.survey(damages, reader.summary.tail, changed=reader.summary.shrank))
        )
    leading = planned.leading.get((SHARE_GROUP_STATE, partition))
    whole_from = [
        survey.complete_from
        for survey in surveys_of_slices(planned, surveys)
        if survey.partition.key == (SHARE_GROUP_STATE, partition)
        and survey.partition.copy == leading
    ]
    known = whole_from[0] if whole_from and is_readable else None
    return ShareStateLog(partition, parts, MAX_OFFSET if known is None else known, unread)


def offsets_of(part: dict[str, Any]) -> pa.Array:
    """Return the offsets of a part."""
    return pa.array(part["offset"], pa.int64())


def kinds_of(part: dict[str, Any]) -> pa.Array:
    """Return the record type of each record of a part."""
    return pa.array(np.full(len(part["offset"]), part["kind"], np.int8))


def _share_readings(records: RawRecords) -> tuple[list[dict[str, Any]], int]:
    """Return columns by record type, and how many records are neither, or have no sound key.

    Returns:
        For each record type: `kind`, `offset`, `is_tombstone`, `key`, `text` and `released`; the
        last two are structs, null where the reading does not take all bytes.
    """
    rows = np.flatnonzero(~records.batches.is_control[records.batch])
    buffer = ByteBuffer(records.data)
    frames, failures = read_frames(SHARE_GROUP_STATE, records, rows, buffer)
    unread = failures.count
    found = []
    for number, table in enumerate(_TABLES):
        ours = frames.take(np.flatnonzero(frames.record_type == number))
        kind = record_type(table)
        cursor = Cursor.over(buffer, ours.key_start, ours.key_length)
        key = key_reader(kind.name).read(cursor)
        cursor.require_exhausted(Reason.TRAILING_BYTES, "key")
        wanted = struct_type(kind.key)
        sound = np.flatnonzero(~(cursor.dead | invalid_rows(key, wanted)))
        unread += ours.row.size - sound.size
        ours = ours.take(sound)
        found.append(
            {
                "kind": number,
                "offset": records.offset[ours.row],
                "is_tombstone": ours.tombstone,
                "key": to_array(take(key, sound), wanted),
                "text": _text(table, ours, buffer),
                "released": _released(kind, ours, buffer),
            }
        )
    known = np.isin(frames.record_type, (SNAPSHOT, UPDATE))
    return found, unread + int((~known).sum())


def _text(table: str, frames: Frames, buffer: ByteBuffer) -> pa.Array:
    """Read values as the text has them."""
    kind = dialect_types(KIP_932_TEXT)[table]
    place = np.flatnonzero(~frames.tombstone & np.isin(frames.version, [0]))
    cursor = Cursor.over(buffer, frames.value_start[place], frames.value_length[place])
    column = dialect_reader(KIP_932_TEXT, table, 0).read(cursor)
    cursor.require_exhausted(Reason.TRAILING_BYTES, "")
    living = np.flatnonzero(~cursor.dead)
    values = to_array(take(column, living), struct_type(kind.value))
    return _spread(values, place[living], frames.row.size)


def _released(kind: RecordType, frames: Frames, buffer: ByteBuffer) -> pa.Array:
    """Read values as releases write them, in whichever of their layouts."""
    pieces, _failures = read_values(kind, frames, buffer)
    if not pieces:
        return pa.nulls(frames.row.size, struct_type(kind.value))
    place, column = in_order(pieces)
    values = to_array(column, struct_type(kind.value))
    living = np.flatnonzero(~frames.tombstone[place])
    return _spread(values.take(pa.array(living)), place[living], frames.row.size)


def _spread(values: pa.Array, place: NDArray[np.int64], size: int) -> pa.Array:
    """Return values at their places, and nulls elsewhere."""
    index = np.full(size, -1)
    index[place] = np.arange(place.size)
    return values.take(pa.array(index, mask=index < 0))
