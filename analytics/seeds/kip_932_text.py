"""Replay of `__share_group_state` by a late text of KIP-932, with both readings beside each other.

"For each share-partition it finds, it needs to replay the latest ShareSnapshot and any subsequent
ShareUpdate records whose snapshot epoch matches." Releases apply updates whatever epoch they name.
Otherwise ranges are put together as releases do it: the text does not say how.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import contract_rows
from analytics.decode.frames import Frames, read_frames
from analytics.decode.tables import in_order, read_values
from analytics.decode.tasks import SliceReport, select
from analytics.dump.batches.headers import Headers
from analytics.dump.batches.segment_stats import SegmentStats
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.files.data_topics import data_topics
from analytics.dump.files.inputs import recognize
from analytics.dump.files.model import MAX_OFFSET, Plan, Slice
from analytics.dump.inspection.manifest import surveys_of_slices
from analytics.dump.records.segment_reader import SegmentReader
from analytics.errors import InputNotRecognizedError, InputUnreadableError
from analytics.failed_reads import failed_here
from analytics.replay import share_fold
from analytics.replay.log.losses import MARKS, with_marks_of
from analytics.replay.share_fold import fold
from analytics.wire.columns import invalid_rows, struct_type, take, to_array
from analytics.wire.cursor import ByteBuffer, Cursor, Reason
from analytics.wire.decoder import dialect_reader, key_reader
from schemas import SHARE_GROUP_STATE, record_type
from schemas.catalog import KIP_932_TEXT, dialect_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.dump.batches.batch_bytes import Damage
    from analytics.dump.batches.segment_stats import SegmentSurvey
    from analytics.dump.records.raw_records import RawRecords
    from schemas.model import RecordType

    Numbers = NDArray[np.int64]

# A partition of `__share_group_state` to readings of its records, and from where it is whole.
#
# There are two readings, which bytes alone may not tell apart. An update of the text and one of
# a release have fields of the same widths: where one has state epoch, snapshot epoch and start
# offset, the other has snapshot epoch, leader epoch and start offset.

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
        except InputUnreadableError as error:
            if each.unreadable is None:
                raise failed_here(error) from error
            is_readable = False
        surveys.append((each, stats.survey(damages, reader.summary.tail)))
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


NAMES: Final = ("share_readings", "share_partitions", "share_batches")
_KEY: Final = ("coordinator_partition", "group_id", "topic_id", "partition")
_TEXT: Final = ("state_epoch", "snapshot_epoch", "start_offset", "state_batches")
_RELEASED: Final = ("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset")
_LARGEST_EPOCH: Final = 2**31 - 1
APPLIED, NO_TEXT, LARGE_EPOCH, BEFORE_SNAPSHOT, NO_SNAPSHOT, OTHER_SNAPSHOT = range(6)
_REASONS: Final = (
    *(None, "no_text", "epoch_beyond_31_bits", "before_snapshot", "no_snapshot"),
    "other_snapshot",
)
_STATES: Final = {0: "AVAILABLE", 1: "ACQUIRED", 2: "ACKNOWLEDGED", 4: "ARCHIVED"}
_FITS: Final = np.array(["neither", "release", "text", "both"], object)


def text_tables(logs: Sequence[ShareStateLog], topics: Mapping[str, str]) -> dict[str, pa.Table]:
    """Return `share_readings`, `share_partitions` and `share_batches`.

    Args:
        logs: One for each partition of the state topic.
        topics: Names by id.
    """
    if not any(each.parts for each in logs):
        nothing: dict[str, Any] = {"partition": []}
        return {name: contract_rows(name, nothing) for name in NAMES}
    rows = _together(logs)
    key, head, fate = _judged(rows)
    states = fold(_applied(rows, fate))
    partitions = contract_rows(
        "share_partitions", _partitions(logs, rows, (key, head, fate), states, topics)
    )
    return {
        "share_readings": contract_rows("share_readings", _readings(rows, fate, topics)),
        "share_partitions": partitions,
        "share_batches": contract_rows("share_batches", _batches(states, topics, partitions)),
    }


def _together(logs: Sequence[ShareStateLog]) -> pa.Table:
    """Return all records, by key and offset."""
    parts = [_part(log.partition, each) for log in logs for each in log.parts]
    table = pa.concat_tables(parts, promote_options="permissive")
    return table.sort_by([(name, "ascending") for name in (*_KEY, "record_offset")])


def _part(coordinator: int, part: Mapping[str, Any]) -> pa.Table:
    size = len(part["offset"])
    columns: dict[str, Any] = {
        "coordinator_partition": np.full(size, coordinator, np.int32),
        "record_offset": part["offset"],
        "kind": np.full(size, part["kind"], np.int8),
        "is_tombstone": part["is_tombstone"],
        "fits_text": pc.is_valid(part["text"]),
        "fits_release": pc.is_valid(part["released"]),
    }
    for name in _KEY[1:]:
        columns[name] = pc.struct_field(part["key"], name)
    for name in _TEXT:
        columns[name] = pc.struct_field(part["text"], name)
    there = {
        part["released"].type.field(each).name for each in range(part["released"].type.num_fields)
    }
    for name in _RELEASED:
        columns[f"released_{name}"] = (
            pc.struct_field(part["released"], name).cast(pa.int64())
            if name in there
            else pa.nulls(size, pa.int64())
        )
    return pa.table(columns)


def _judged(rows: pa.Table) -> tuple[Numbers, Numbers, Numbers]:
    """Return the key of each record, the row of each key's last snapshot, and what records are.

    The row is -1 where a key has none, or only updates behind its last tombstone.
    """
    key = _dense(rows)
    count = int(key.max()) + 1 if key.size else 0
    place = np.arange(key.size)
    kind, gone = rows["kind"].to_numpy(), rows["is_tombstone"].to_numpy()
    last = np.full(count, -1)
    np.maximum.at(last, key, np.where(kind == SNAPSHOT, place, -1))
    is_headless = np.append(gone, False)[last] | (last < 0)
    head = np.where(is_headless, -1, last)
    epoch = pc.fill_null(rows["snapshot_epoch"], -1).to_numpy()
    state_epoch = pc.fill_null(rows["state_epoch"], -1).to_numpy()
    fate = np.full(key.size, APPLIED)
    fate[epoch != np.append(epoch, -2)[head][key]] = OTHER_SNAPSHOT
    # A snapshot that does not fit is as good as none.
    fits = np.append(rows["fits_text"].to_numpy(), False)
    fate[~fits[head][key]] = NO_SNAPSHOT
    fate[(epoch > _LARGEST_EPOCH) | (state_epoch > _LARGEST_EPOCH)] = LARGE_EPOCH
    fate[~fits[:-1]] = NO_TEXT
    fate[place < last[key]] = BEFORE_SNAPSHOT
    fate[gone & (place == last[key])] = APPLIED
    fate[gone & (kind == UPDATE)] = NO_TEXT
    return key, head, fate


def _dense(rows: pa.Table) -> Numbers:
    """Number the keys of rows that are sorted by them."""
    differs = np.zeros(rows.num_rows, np.bool_)
    for name in _KEY:
        codes = rows[name].combine_chunks().dictionary_encode().indices.to_numpy()
        differs[1:] |= codes[1:] != codes[:-1]
    numbers: Numbers = np.cumsum(differs)
    return numbers


def _applied(rows: pa.Table, fate: Numbers) -> pa.Table:
    """Return the records that make states, as the fold takes them."""
    chosen = rows.filter(pa.array((fate == APPLIED) & ~rows["is_tombstone"].to_numpy()))
    size = chosen.num_rows
    is_snapshot = chosen["kind"].to_numpy() == SNAPSHOT
    columns = {
        **{name: chosen[name] for name in (*_KEY, "record_offset", *_TEXT)},
        "kind": np.where(is_snapshot, share_fold.SNAPSHOT, share_fold.UPDATE),
        "is_early_layout": np.zeros(size, np.bool_),
        "leader_epoch": np.full(size, -1),
    }
    arrays = [
        _typed(columns[each.name], each.type) if each.name in columns else pa.nulls(size, each.type)
        for each in share_fold.RECORDS
    ]
    return pa.table(arrays, schema=share_fold.RECORDS)


def _typed(values: Any, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:  # noqa: ANN401
    if isinstance(values, pa.ChunkedArray):
        return values.cast(kind)
    return pa.array(values, kind)


def _readings(rows: pa.Table, fate: Numbers, topics: Mapping[str, str]) -> dict[str, Any]:
    gone = rows["is_tombstone"].to_numpy()
    kind = np.where(rows["kind"].to_numpy() == SNAPSHOT, "snapshot", "update")
    text, release = rows["fits_text"].to_numpy(), rows["fits_release"].to_numpy()
    start = rows["start_offset"]
    return {
        **{name: rows[name] for name in (*_KEY, "record_offset")},
        **{f"released_{name}": rows[f"released_{name}"] for name in _RELEASED},
        "kind": np.where(gone, "tombstone", kind),
        "topic": _named(rows["topic_id"], topics),
        "fits": np.where(gone, "both", _FITS[2 * text + release]),
        "state_epoch": rows["state_epoch"],
        "snapshot_epoch": rows["snapshot_epoch"],
        "start_offset": pc.if_else(pc.equal(start, -1), None, start),
        "ok": fate == APPLIED,
        "reason": np.array(_REASONS, object)[fate],
    }


def _partitions(
    logs: Sequence[ShareStateLog],
    rows: pa.Table,
    judged: tuple[Numbers, Numbers, Numbers],
    states: pa.Table,
    topics: Mapping[str, str],
) -> dict[str, Any]:
    """Return a row for each state, and for each key of which no state can be told."""
    key, head, fate = judged
    missing = _missing(logs, rows, judged)
    mismatches = np.bincount(key[fate == OTHER_SNAPSHOT], minlength=len(head))
    # A key that ends with its tombstone has no state, and nothing is missing of it.
    last = np.flatnonzero(np.append(key[1:] != key[:-1], True)[: key.size])
    is_gone = rows["is_tombstone"].to_numpy()[last]
    found = rows.take(pa.array(last[~is_gone])).select(_KEY)
    found = found.append_column("missing", pa.array(missing[~is_gone], pa.string()))
    found = found.append_column("epoch_mismatches", pa.array(mismatches[~is_gone]))
    told = states.drop_columns(["epoch_mismatches", "batches", "has_snapshot"])
    # A join wants no lists, and gives no order; the contract sorts.
    joined = found.join(told, list(_KEY), join_type="left outer")
    columns = {name: joined[name] for name in joined.column_names}
    return columns | {
        "topic": _named(joined["topic_id"], topics),
        "phase": pa.array(["unknown"] * joined.num_rows),
        "complete": pc.is_null(joined["missing"]),
        "leader_epoch": pa.nulls(joined.num_rows, pa.int32()),
    }


def _missing(
    logs: Sequence[ShareStateLog], rows: pa.Table, judged: tuple[Numbers, Numbers, Numbers]
) -> NDArray[np.object_]:
    """Return for each key what is missing, in words; None where nothing is."""
    key, head, fate = judged
    by_number = {each.partition: each for each in logs}
    offset = rows["record_offset"].to_numpy()
    coordinator = rows["coordinator_partition"].to_numpy()
    unread = np.bincount(key[np.isin(fate, (NO_TEXT, LARGE_EPOCH))], minlength=len(head))
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: key.size])
    said = np.full(len(head), None, object)
    for number in range(len(head)):
        log = by_number[int(coordinator[first[number]])]
        base = head[number]
        reasons = []
        if base < 0:
            reasons.append("no snapshot of it is in the log, and updates say nothing without one")
        elif offset[base] < log.complete_from:
            reasons.append("records behind its last snapshot may be missing from the log")
        if unread[number]:
            reasons.append(f"records of it that do not fit the text: {unread[number]}")
        if log.unread:
            reasons.append(f"records of the log that cannot be read: {log.unread}")
        said[number] = "; ".join(reasons) or None
    return said


def _batches(states: pa.Table, topics: Mapping[str, str], partitions: pa.Table) -> dict[str, Any]:
    lists = states["batches"].combine_chunks()
    parent = pc.list_parent_indices(lists)
    first, last, state, count = lists.flatten().flatten()
    owner = states.select(_KEY[1:]).take(parent)
    lacking = pl.DataFrame(partitions.select([*_KEY[1:], "missing"]))
    marks = with_marks_of(pl.DataFrame(owner), lacking, _KEY[1:])
    words = [_STATES.get(each, "UNKNOWN") for each in state.to_pylist()]
    return {
        **{name: owner[name] for name in owner.column_names},
        "topic": _named(owner["topic_id"], topics),
        "first_offset": first,
        "last_offset": last,
        "delivery_state": state,
        "delivery_state_name": pa.array(words, pa.string()),
        "delivery_count": count,
        **{name: marks[name].to_arrow() for name in MARKS},
    }


def _named(ids: pa.ChunkedArray, topics: Mapping[str, str]) -> pa.Array:
    index = pc.index_in(ids, value_set=pa.array(list(topics), pa.string()))
    return pa.array(list(topics.values()), pa.string()).take(index.combine_chunks())
