"""Internal partitions at an instant: where their records end, and what is lost of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.dump.inspection.found_losses import (
    OPEN_END,
    Loss,
    inside,
    losses_of_rows,
    merged,
)
from analytics.dump.inspection.survey import COMPACTION
from analytics.epoch_times import iso_time, milliseconds_of
from analytics.replay.dump.choices import moment
from analytics.replay.dump.followed_lines import (
    CANNOT_TELL,
    FollowedLine,
    is_before_swaps,
    is_elsewhere,
    parsed_time,
    read_before_swaps,
)
from analytics.replay.log.log_times import COMMITS
from analytics.workspace import BEFORE_SWAPS, DECODED, Workspace, reading, table_in
from schemas import COMPACTED_TOPICS

if TYPE_CHECKING:
    from schemas.manifest import Manifest, PartitionEntry

# The losses of internal partitions as they matter at an instant, from a manifest.
#
# At the end of the dump what compaction removed is no loss: it left the last record of every key.
# At an earlier instant it may have removed what was in force then.

Key = tuple[str, int]

_DELETED = "records were deleted up to the log start"


def losses_at(
    manifest: Manifest,
    ends: Ends,
    lines: Iterable[FollowedLine] = (),
    *,
    are_elections_clean: bool = False,
) -> dict[Key, list[Loss]]:
    """Return by partition what is lost of what counts at an instant; nothing of whole ones.

    Args:
        manifest: Of a workspace with decoded tables.
        ends: Where the records end that count then.
        lines: The lines that are followed instead of the surviving ones.
        are_elections_clean: A person vouches for those of which the dump cannot tell.
    """
    followed = {(each.topic, each.partition): each for each in lines}
    copies = {(each["topic"], each["partition"], each["copy"]): each for each in _copies(manifest)}
    found = {}
    for row in leading(manifest):
        key = row["topic"], row["partition"]
        losses = losses_of_row(row)
        if not ends.is_end and _keeps_deleted(manifest):
            # Before they were deleted they counted, and they are there.
            losses = inside(losses, row.get("log_start_offset") or 0, OPEN_END)
        line, end = followed.get(key), ends.of(key)
        if not ends.is_end:
            counts_to = end if line is None else line.diverges_at
            losses = [*losses, *_removed_since(manifest, row, counts_to)]
        if line is not None:
            own = copies.get((*key, line.copy))
            losses = [*inside(losses, 0, line.diverges_at), *_own_losses(line, own)]
            # Which record is the first later one is known of the surviving line only.
            end = ends.offsets.get(key)
        kept = inside(losses, 0, OPEN_END if end is None else end)
        if line is None and not are_elections_clean:
            kept = merged([*kept, *elections_since(row, ends)])
        if line is None:
            kept = merged([*kept, *absent_leaders_at(row, ends)])
        if kept:
            found[key] = kept
    return found


def _own_losses(line: FollowedLine, row: PartitionEntry | None) -> Iterator[Loss]:
    """Yield what is lost of a followed line itself.

    Args:
        line: The line.
        row: Its copy, as the manifest has it; None where it has none.
    """
    if row is not None:
        yield from inside(losses_of_row(row), line.diverges_at, OPEN_END)
        cleaned = cleaned_until(row)
        # Of offset 0 on: compaction of a line takes what a later record of it replaces.
        if cleaned > line.diverges_at:
            yield Loss(0, cleaned, _cleaned_in_words(row, cleaned))
    if line.at_that_time == CANNOT_TELL:
        lines = f"that of {line.copy} or that of {line.surviving_copy}"
        why = f"nothing shows which line was in force, {lines}"
        yield Loss(line.diverges_at, OPEN_END, why)


def elections_since(row: PartitionEntry, ends: Ends) -> Iterator[Loss]:
    """Yield what the dump may lack of an instant before an election that may have lost commits.

    Until then the leader before may have had records that its successor never got; a log that is
    cut back to the successor's shows none of them. All that stood before them survived, and all
    that was written after the election has later offsets: so of an instant before it that may be
    missing which lay behind the last record up to the instant, and nothing before that.

    Args:
        row: A partition of a manifest.
        ends: Where the records end that count at the instant.
    """
    if ends.time is None:
        return
    end = ends.of((row["topic"], row["partition"]))
    for each in row.get("unjudged_elections") or ():
        at, first = parsed_time(each["at"]), each["first_offset"]
        if at is not None:
            is_later = at > ends.time
        elif each["leader_epoch"] is not None:
            # It was before the new leader's first record: is that of the instant or earlier?
            is_later = first >= ((row["end_offset"] or 0) if end is None else end)
        else:
            is_later = True
        if not is_later:
            continue
        why, beside = each["why"], ends.beside.get((row["topic"], row["partition"]))
        if each["leader_epoch"] is None and beside is not None:
            # Whichever election it was: what came after the cut was written by the leader elected.
            first = beside.first_that_may_be_lost(first)
            why = f"{why}; it would have been {beside.words}"
        yield Loss(first, OPEN_END, f"{why} (see --assume clean-elections)")


def absent_leaders_at(row: PartitionEntry, ends: Ends) -> Iterator[Loss]:
    """Yield what the dump lacks of an instant since which another broker led, whose log is absent.

    Args:
        row: A partition of a manifest.
        ends: Where the records end that count at the instant.
    """
    end = ends.of((row["topic"], row["partition"]))
    for each in row.get("absent_leaders") or ():
        since, first = parsed_time(each["since"]), each["first_offset"]
        is_before = since is not None and ends.time is not None and ends.time < since
        # A log that follows the leader is whole up to each of its records.
        is_followed = end is not None and end <= first
        if not is_before and not is_followed:
            yield Loss(first, OPEN_END, each["why"])


def losses_of_row(row: PartitionEntry) -> list[Loss]:
    """Return the losses of a partition of a manifest."""
    if "losses" in row:
        return losses_of_rows(row["losses"])
    # Written by an older release.
    gaps = [gap for gap in row.get("gaps", ()) if gap["kind"] != COMPACTION]
    losses = [Loss(gap["first_offset"], gap["end_offset"], "a gap") for gap in gaps]
    damaged = [each["offset"] for each in row.get("damages", ()) if each["offset"] is not None]
    return merged([*losses, *(Loss(each, each + 1, "damaged bytes") for each in damaged)])


def cleaned_until(row: PartitionEntry) -> int:
    """Return the offset of a partition up to which compaction may have removed records.

    A batch that lacks records of its own was cleaned, whatever the cleaner's checkpoint says:
    brokers write it behind a pass (``LogCleanerManager.doneCleaning``), and one that was copied
    before says less than the segments.
    """
    if row["topic"] not in COMPACTED_TOPICS:
        return 0
    dirty = row.get("first_dirty_offset")
    noted = row.get("complete_from") if dirty is None else dirty
    return max(noted or 0, row.get("thinned_end") or 0)


def what_took_history(row: PartitionEntry) -> str:
    """Return what became of the records before `complete_from`, as in "was compacted".

    Args:
        row: A partition of a manifest that has such an offset, or one that was cleaned up to.
    """
    start = row.get("complete_from") or cleaned_until(row)
    reaching = [each for each in losses_of_row(row) if each.first < start <= each.end]
    if not reaching:
        return "was compacted"
    last = reaching[-1]
    return f"was {last.why}" if last.is_below_start else f"is not whole: {last.why}"


def _cleaned_in_words(row: PartitionEntry, start: int) -> str:
    return f"history before offset {start:,} {what_took_history(row)}"


def leading(manifest: Manifest) -> Iterator[PartitionEntry]:
    """Yield the partitions of a manifest, each once: the copy whose line is decoded."""
    return (each for each in manifest["partitions"] if each.get("is_leading", True))


def _copies(manifest: Manifest) -> Iterator[PartitionEntry]:
    return (each for each in manifest["partitions"] if each.get("copy") is not None)


def _removed_since(manifest: Manifest, row: PartitionEntry, end: int | None) -> Iterator[Loss]:
    """Yield what was removed after the instant and may have counted then."""
    deleted = _first_kept(manifest, row)
    if deleted:
        yield Loss(0, deleted, _DELETED)
    cleaned = cleaned_until(row)
    if end is not None and end < cleaned:
        yield Loss(0, cleaned, _cleaned_in_words(row, cleaned))


def _first_kept(manifest: Manifest, row: PartitionEntry) -> int:
    """Return the offset below which records were deleted that counted before the end of the dump.

    Those from the first file's start on are still there, unless they were left out.
    """
    first, start = row.get("first_offset"), row.get("log_start_offset")
    if first is None or not start:
        return 0
    return int(min(first, start) if _keeps_deleted(manifest) else start)


def _keeps_deleted(manifest: Manifest) -> bool:
    """Return whether what lies below log starts was decoded, too."""
    return bool(manifest["options"].get("keep_below_log_start", False))


# Where the records of internal partitions end that count at an instant, and what lies beside.


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
    manifest: Manifest,
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
    source: Workspace, manifest: Manifest, timestamp_ms: int | None, topics: Collection[str]
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
    manifest: Manifest,
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
    source: Workspace, manifest: Manifest, topics: Collection[str]
) -> Iterator[tuple[str, ds.Dataset, _Times]]:
    """Yield topic, records and what says their times, of each table that has any of a topic."""
    for name, topic in sorted(_tables(manifest, topics)):
        for folder, where in _folders(manifest):
            path = source.path(f"{folder}/{name}")
            with reading(path):
                records = table_in(source.filesystem, path)
            if records is None:
                continue
            kind = records.schema.field("timestamp").type
            kept = records if where is None else records.filter(where)
            yield topic, kept, _Times(path, kind, name == COMMITS)


def _folders(manifest: Manifest) -> Iterator[tuple[str, pc.Expression | None]]:
    """Yield where decoded tables are, with which of their records count."""
    swapped = read_before_swaps(manifest)
    if swapped:
        yield f"{BEFORE_SWAPS}/{DECODED}", is_before_swaps(swapped)
    yield DECODED, is_elsewhere(swapped) if swapped else None


def _tables(manifest: Manifest, topics: Collection[str]) -> set[tuple[str, str]]:
    return {
        (each["table"], each["topic"])
        for each in manifest["record_types"]
        if each["topic"] in topics and each["table"] and each["records"]
    }
