"""Records that do not decode, and archived rows without a place: kept, counted, named as lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.decode.chunks import UNDECODED_TABLE
from analytics.decode.tables import UNDECODED, labels, may_hold_secrets
from analytics.dump.inspection.found_losses import Loss, lacks, loss_rows, losses_of_rows, merged
from analytics.dump.inspection.survey import NOT_ARCHIVED, NOT_DECODED, Gap
from analytics.dump.records.raw_rows_files import FLAW
from analytics.locations import local_path, open_location
from analytics.time_columns import times_of
from analytics.wire.cursor import Reason
from analytics.workspace import DECODED, DIVERGED
from schemas import COORDINATOR_TOPICS, INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from analytics.decode.archived_rows import RowsReport
    from analytics.decode.tasks import PartWriter
    from analytics.workspace import Part
    from schemas.manifest import Manifest, PartitionEntry, UnplacedRowEntry

# Records of coordinators' topics that do not decode: lost to every answer that they may change.

_UNDECODED: Final = "undecoded"
_WHY: Final = "a record that cannot be decoded"
_GARBAGE: Final = b"\x01"
"""Keys from here on do not begin with the high byte of a version that anybody gave a type."""
_MOST: Final = 1000


def may_be_of_any_group(rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """Return for each row of `undecoded` whether it may have changed what is known of a group.

    A type that a newer release writes says nothing about the types that are known.

    Args:
        rows: `reason` and `key`.
    """
    is_new = pc.and_(
        pc.equal(rows["reason"].cast(pa.string()), str(Reason.UNKNOWN_RECORD_TYPE)),
        pc.less(rows["key"].cast(pa.binary()), pa.scalar(_GARBAGE, pa.binary())),
    )
    return pc.invert(pc.fill_null(is_new, fill_value=False))


def runs(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return runs of offsets, each as its first and the one after its last."""
    sorted_offsets = np.unique(offsets)
    if not sorted_offsets.size:
        return []
    pieces = np.split(sorted_offsets, np.flatnonzero(np.diff(sorted_offsets) > 1) + 1)
    return [(int(piece[0]), int(piece[-1]) + 1) for piece in pieces]


def with_undecoded_losses(manifest: Manifest, parts: Sequence[Part], staging: str) -> Manifest:
    """Return a manifest in which records of logs that do not decode are losses of their partition.

    Damaged batches are losses already.

    Args:
        manifest: Of a dump that was decoded.
        parts: What was decoded.
        staging: Where the parts are.
    """
    found = _undecoded_of(parts, staging)
    if not found:
        return manifest
    rows: list[PartitionEntry] = []
    for row in manifest["partitions"]:
        key = row["topic"], row["partition"]
        copy = None if row.get("is_leading", True) else row.get("copy")
        losses = found.get((copy, *key))
        rows.append(row if losses is None or row.get("copy") is None else _with(row, losses))
    return {**manifest, "partitions": rows}


def _with(row: PartitionEntry, losses: Sequence[Loss]) -> PartitionEntry:
    every = merged([*losses_of_rows(row["losses"]), *losses])
    said = lacks(row["topic"], row["partition"], every)
    ends = [row["end_offset"] if each.is_open else each.end for each in every]
    return {
        **row,
        "losses": loss_rows(every),
        "lacks": said,
        "complete_from": max(row.get("complete_from") or 0, *(each or 0 for each in ends)),
    }


def _undecoded_of(
    parts: Sequence[Part], staging: str
) -> dict[tuple[str | None, str, int], list[Loss]]:
    """Return losses by copy (None for the line that is decoded), topic and partition."""
    filesystem = open_location(staging)[0]
    paths: dict[str | None, list[str]] = defaultdict(list)
    for each in parts:
        folder, _, name = each.table.rpartition("/")
        if name == _UNDECODED and each.rows:
            is_diverged = folder.startswith(f"{DIVERGED}/")
            copy = folder.removeprefix(f"{DIVERGED}/").removesuffix(f"/{DECODED}")
            paths[copy if is_diverged else None].append(each.path)
    found: dict[tuple[str | None, str, int], list[Loss]] = {}
    for line, files in paths.items():
        # A damaged batch has no offset of its own.
        records = ds.dataset(files, filesystem=filesystem).to_table(
            columns=["topic", "partition", "offset", "reason", "key"],
            filter=pc.field("topic").isin(COORDINATOR_TOPICS) & pc.field("offset").is_valid(),
        )
        records = records.filter(may_be_of_any_group(records))
        grouped = records.group_by(["topic", "partition"]).aggregate([("offset", "list")])
        for row in grouped.to_pylist():
            spans = runs(np.array(row["offset_list"], np.int64))
            over = max(len(spans) - _MOST, 0)
            spans = [(spans[0][0], spans[over][1]), *spans[over + 1 :]]
            key = line, row["topic"], row["partition"]
            found[key] = [Loss(first, end, _WHY) for first, end in spans]
    return found


# Archived rows that do not say where they were: kept among the undecoded, counted, and named.
#
# Such a row may be any one of its partition, or of any partition where it names none: what these
# lack is no longer known to be nothing.

_HARMLESS = [topic for topic in INTERNAL_TOPICS if not may_hold_secrets(topic)]
_BLOCK = 8 << 20
MOST_NAMED = 20
"""Of rows that are named, each with its place in its file."""


class UnplacedRow(NamedTuple):
    """A row that does not say where it was.

    Attributes:
        file: Its file.
        row: Its number there, from 1; None of a line of JSON.
        line: The line of JSON.
        flaw: What is wrong with it.
    """

    file: str
    row: int | None
    line: str | None
    flaw: str


@dataclass
class UnplacedRows:
    """Rows that do not say where they were.

    Attributes:
        counts: By topic and partition, as far as they are known.
        named: Some of them.
    """

    counts: Counter[tuple[str | None, int | None]] = field(default_factory=Counter)
    named: list[UnplacedRow] = field(default_factory=list)

    def add(self, rows: pa.RecordBatch) -> None:
        """Count and name rows; `flaw` says what is wrong with each."""
        places = pa.table({"topic": rows["topic"], "partition": rows["partition"]})
        counted = places.group_by(["topic", "partition"]).aggregate([([], "count_all")])
        for each in counted.to_pylist():
            self.counts[each["topic"], each["partition"]] += each["count_all"]
        more = rows.slice(0, max(MOST_NAMED - len(self.named), 0))
        self.named += [
            UnplacedRow(each["file"], each["row"], each["line"], each[FLAW])
            for each in more.to_pylist()
        ]

    def extend(self, other: UnplacedRows) -> None:
        """Take over others."""
        self.counts += other.counts
        self.named = [*self.named, *other.named][:MOST_NAMED]


def placed_rows(
    batches: Iterable[pa.RecordBatch], unplaced: UnplacedRows, writer: PartWriter
) -> Iterator[pa.RecordBatch]:
    """Yield rows that say where they were; count the others and write them as undecoded."""
    for batch in batches:
        is_placed = pc.is_null(batch[FLAW])
        others = batch.filter(pc.invert(is_placed))
        if others.num_rows:
            unplaced.add(others)
            writer.write(f"decoded/{UNDECODED_TABLE}", _undecoded(others))
        yield batch.filter(is_placed) if others.num_rows else batch


def _undecoded(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of `undecoded`; their bytes are kept where they cannot hold a secret setting.

    Of a row that names no topic nobody knows.
    """
    size = rows.num_rows
    number = rows["row"].cast(pa.string())
    detail = pc.coalesce(pc.binary_join_element_wise("row", number, rows[FLAW], " "), rows[FLAW])
    has_content = pc.or_(pc.is_valid(rows["key"]), pc.is_valid(rows["value"]))
    value = pc.if_else(has_content, rows["value"], rows["line"].cast(pa.binary()))
    is_harmless = pc.is_in(rows["topic"], pa.array(_HARMLESS, pa.string()))
    value = pc.if_else(is_harmless, value, pa.scalar(None, pa.binary()))
    time = rows["timestamp"].fill_null(-1).to_numpy(zero_copy_only=False)
    known = {
        "topic": rows["topic"].dictionary_encode(),
        "partition": rows["partition"],
        "offset": rows["offset"],
        "timestamp": times_of(time),
        "key": rows["key"],
        "value": value,
        "reason": labels(np.zeros(size, np.int64), [str(Reason.UNPLACED_ROW)]),
        "detail": detail,
        "segment": rows["file"].dictionary_encode(),
    }
    columns = [
        known[each.name].cast(each.type) if each.name in known else pa.nulls(size, each.type)
        for each in UNDECODED
    ]
    return pa.RecordBatch.from_arrays(columns, schema=UNDECODED)


def named_rows(unplaced: UnplacedRows) -> list[UnplacedRowEntry]:
    """Return some rows that do not say where they were: `file`, `row` (or line), `flaw`.

    A line of JSON is looked up in its file.
    """
    numbers = _line_numbers(unplaced.named)
    return [
        {
            "file": local_path(each.file),
            "row": each.row if each.line is None else numbers.get((each.file, each.line)),
            "flaw": each.flaw,
        }
        for each in unplaced.named
    ]


def _line_numbers(rows: Iterable[UnplacedRow]) -> dict[tuple[str, str], int]:
    """Return the numbers of lines, from 1, each the first that reads so; of some at least."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for each in rows:
        if each.line is not None:
            wanted[each.file].add(each.line)
    found = {}
    for path, lines in wanted.items():
        filesystem, name = open_location(path)
        with filesystem.open_input_stream(name) as stream:
            for line, number in _numbered(stream, {each.encode() for each in lines}):
                found[path, line.decode()] = number
    return found


def _numbered(stream: pa.NativeFile, lines: set[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield the lines that are wanted, each once and with its number."""
    before, rest = 0, b""
    while lines:
        block = stream.read(_BLOCK)
        content = rest + block
        cut = content.rfind(b"\n") + 1 if block else len(content)
        whole, rest = content[:cut], content[cut:]
        framed = b"\n" + whole.replace(b"\r\n", b"\n") + (b"" if block else b"\n")
        for line in sorted(lines):
            at = framed.find(b"\n" + line + b"\n")
            if at >= 0:
                lines.discard(line)
                yield line, before + framed.count(b"\n", 0, at + 1)
        before += framed.count(b"\n") - 1
        if not block:
            return


def add_gaps(reports: Iterable[RowsReport], unplaced: UnplacedRows) -> None:
    """Say of partitions that a row which names no place may be what they lack.

    That may be an offset without a row, whoever vouches that nothing was left out of the archive,
    or one beyond the last.
    """
    for each in reports:
        if any(_may_be(each, *place) for place in unplaced.counts):
            end = each.end_offset
            gaps = [
                gap._replace(kind=NOT_DECODED) if gap.kind == NOT_ARCHIVED else gap
                for gap in each.gaps
            ]
            each.gaps = [*gaps, Gap(end, end + 1, NOT_DECODED)]


def _may_be(report: RowsReport, topic: str | None, partition: int | None) -> bool:
    return topic in (None, report.topic) and partition in (None, report.partition)
