"""Where the records of internal partitions end that count at an instant, and what lies beside."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from analytics.epoch_times import iso_time, milliseconds_of
from analytics.replay.dump.followed_lines import is_before_swaps, is_elsewhere, read_before_swaps
from analytics.replay.dump.written_instants import moment
from analytics.replay.log.as_of import COMMITS
from analytics.replay.log.losses_at import leading, losses_of_row
from analytics.workspace import BEFORE_SWAPS, DECODED, Workspace, reading

Key = tuple[str, int]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Beside:
    """The records on either side of a cut by time: offset, and time in epoch milliseconds.

    Attributes:
        before: The last one up to the time before the cut; None where there is none. Records
            without a time that lie between both may be of either side.
        after: The first one that is later; None where there is none.
    """

    before: tuple[int, int] | None = None
    after: tuple[int, int] | None = None

    def first_that_may_be_lost(self, log_start: int) -> int:
        """Return from which offset on a log may have held others at the time, cut back since."""
        return log_start if self.before is None else self.before[0] + 1

    @property
    def words(self) -> str:
        """Where in the log a leader was elected that wrote nothing up to the time."""
        match self.before, self.after:
            case (first, first_ms), (last, last_ms):
                return (
                    f"between the records at offsets {first:,} and {last:,}, "
                    f"{iso_time(first_ms)} to {iso_time(last_ms)}"
                )
            case (first, first_ms), None:
                return f"after the record at offset {first:,}, {iso_time(first_ms)}"
            case None, (last, last_ms):
                return f"before the record at offset {last:,}, {iso_time(last_ms)}"
        return "after the time asked for"


@dataclass(frozen=True)
class Ends:
    """Where the records end that count at an instant.

    Attributes:
        offsets: By partition the end offsets asked for.
        later: By partition the first offset of a record that is later than the time asked for.
        is_end: Everything counts.
        time: The time asked for; None where it is the end of the dump, or end offsets are.
        beside: By partition whose elections nothing tells of, what lies beside the cut.
    """

    offsets: Mapping[Key, int] = field(default_factory=dict)
    later: Mapping[Key, int] = field(default_factory=dict)
    is_end: bool = True
    time: datetime | None = None
    beside: Mapping[Key, Beside] = field(default_factory=dict)

    def of(self, key: Key) -> int | None:
        """Return where a partition ends; None is its end in the dump."""
        ends = (self.offsets.get(key), self.later.get(key))
        return min((each for each in ends if each is not None), default=None)


def ends_at(
    source: Workspace | None,
    manifest: Row,
    timestamp_ms: int | None,
    topics: Collection[str],
    offsets: Mapping[Key, int] | None = None,
) -> Ends:
    """Return where the records end that count at an instant, as far as anybody asks.

    Args:
        source: The workspace with the decoded tables; without one, no records are looked at.
        manifest: Its manifest.
        timestamp_ms: The time; None is the end of the dump.
        topics: Topics.
        offsets: End offsets that are asked for.
    """
    ends = offsets or {}
    is_end = timestamp_ms is None and not ends
    if source is None or timestamp_ms is None:
        time = None if timestamp_ms is None else moment(timestamp_ms)
        return Ends(ends, {}, is_end, time)
    later = first_later(source, manifest, timestamp_ms, topics)
    beside = _beside(source, manifest, timestamp_ms, topics, later)
    return Ends(ends, later, is_end, moment(timestamp_ms), beside)


def first_later(
    source: Workspace, manifest: Row, timestamp_ms: int | None, topics: Collection[str]
) -> dict[Key, int]:
    """Return by partition the first offset of a record that is later than a time.

    Only of partitions of which anything is, or may be, lost or compacted: of others nobody asks.
    A commit without a time of its own (message format 0) says one in its value, as in the cut.

    Args:
        source: The workspace with the decoded tables.
        manifest: Its manifest.
        timestamp_ms: The time; None is the end of the dump.
        topics: Topics.
    """
    asked = {
        (each["topic"], each["partition"])
        for each in leading(manifest)
        if each["topic"] in topics
        and (
            each.get("complete_from")
            or losses_of_row(each)
            or each.get("unjudged_elections")
            or each.get("absent_leaders")
        )
    }
    if timestamp_ms is None or not asked:
        return {}
    first: dict[Key, int] = {}
    for topic, records, time in _timed(source, manifest, {topic for topic, _ in asked}):
        numbers = [partition for of, partition in asked if of == topic]
        where = pc.field("partition").isin(numbers) & time.is_later_than(timestamp_ms)
        with reading(time.path):
            rows = records.to_table(["partition", "offset"], filter=_of(topic) & where)
        for each in rows.group_by("partition").aggregate([("offset", "min")]).to_pylist():
            key, offset = (topic, each["partition"]), each["offset_min"]
            first[key] = min(offset, first.get(key, offset))
    return first


def _beside(
    source: Workspace,
    manifest: Row,
    timestamp_ms: int,
    topics: Collection[str],
    later: Mapping[Key, int],
) -> dict[Key, Beside]:
    """Return what lies beside the cuts of partitions that say nothing of their elections."""
    asked = sorted(
        (each["topic"], each["partition"])
        for each in leading(manifest)
        if each["topic"] in topics
        and any(one["leader_epoch"] is None for one in each.get("unjudged_elections") or ())
    )
    found: dict[Key, Beside] = dict.fromkeys(asked, Beside())
    offset = pc.field("offset")
    for topic, records, time in _timed(source, manifest, {topic for topic, _ in asked}):
        for key in [each for each in asked if each[0] == topic]:
            cut = later.get(key)
            own = _of(topic) & (pc.field("partition") == key[1])
            up_to = own & time.is_not_later_than(timestamp_ms)
            with reading(time.path):
                before = time.last(records, up_to if cut is None else up_to & (offset < cut))
                after = None if cut is None else time.last(records, own & (offset == cut))
            held = found[key]
            found[key] = Beside(max(before, held.before, key=_place), after or held.after)
    return found


def _place(record: tuple[int, int] | None) -> int:
    return -1 if record is None else record[0]


def _of(topic: str) -> pc.Expression:
    return pc.field("topic") == topic


@dataclass(frozen=True)
class _Times:
    """What says when the records of a table were written.

    Attributes:
        path: Of the table.
        kind: Of its column `timestamp`.
        has_value: Records without a time say one in their value.
    """

    path: str
    kind: pa.DataType
    has_value: bool

    def is_later_than(self, timestamp_ms: int) -> pc.Expression:
        own = pc.field("timestamp")
        is_later = own > pa.scalar(moment(timestamp_ms), self.kind)
        return (
            is_later | (own.is_null() & (timestamp_ms < _COMMIT_TIMESTAMP))
            if self.has_value
            else is_later
        )

    def is_not_later_than(self, timestamp_ms: int) -> pc.Expression:
        own = pc.field("timestamp")
        is_not = own <= pa.scalar(moment(timestamp_ms), self.kind)
        said = (_COMMIT_TIMESTAMP > 0) & (timestamp_ms >= _COMMIT_TIMESTAMP)
        return is_not | (own.is_null() & said) if self.has_value else is_not

    def last(self, records: ds.Dataset, where: pc.Expression) -> tuple[int, int] | None:
        """Return the last of some records: its offset, and its time in epoch milliseconds."""
        columns = {"offset": pc.field("offset"), "own": pc.field("timestamp")}
        if self.has_value:
            columns["said"] = _COMMIT_TIMESTAMP
        last: tuple[int, int] | None = None
        for each in records.to_batches(columns=columns, filter=where):
            if each.num_rows:
                row = each.slice(pc.index(each["offset"], pc.max(each["offset"])).as_py(), 1)
                (told,) = row.to_pylist()
                own = told["own"]
                at = told["said"] if own is None else milliseconds_of(own)
                last = max((told["offset"], at), last, key=_place)
        return last


_COMMIT_TIMESTAMP: Final = pc.field("value", "commit_timestamp")


def _timed(
    source: Workspace, manifest: Row, topics: Collection[str]
) -> Iterator[tuple[str, ds.Dataset, _Times]]:
    """Yield topic, records and what says their times, of each table that has any of a topic."""
    for name, topic in sorted(_tables(manifest, topics)):
        for folder, where in _folders(manifest):
            path = source.path(f"{folder}/{name}")
            if source.filesystem.get_file_info(path).type is not fs.FileType.Directory:
                continue
            with reading(path):
                records = ds.dataset(path, filesystem=source.filesystem, format="parquet")
            kind = records.schema.field("timestamp").type
            kept = records if where is None else records.filter(where)
            yield topic, kept, _Times(path, kind, name == COMMITS)


def _folders(manifest: Row) -> Iterator[tuple[str, pc.Expression | None]]:
    """Yield where decoded tables are, with which of their records count."""
    swapped = read_before_swaps(manifest)
    if swapped:
        yield f"{BEFORE_SWAPS}/{DECODED}", is_before_swaps(swapped)
    yield DECODED, is_elsewhere(swapped) if swapped else None


def _tables(manifest: Row, topics: Collection[str]) -> set[tuple[str, str]]:
    return {
        (each["table"], each["topic"])
        for each in manifest["record_types"]
        if each["topic"] in topics and each["table"] and each["records"]
    }
