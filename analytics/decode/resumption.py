"""Which pieces of an earlier decode run are kept: what its tables have of bytes that are the same.

A piece is kept where today's file has the same bytes from where the earlier checksum began to where
the piece ends, where the file as a whole is sound as today's log around it has it, and where
today's rules leave out the same of its offsets. So it does not matter how a log came to differ:
what was cleaned, truncated, written by another leader or deleted has other bytes, or none.

Rows that an earlier run decoded, in the workspace of this one: whole files, or some rows.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from analytics.decode.decoded_pieces import TaskRows, clipped_rules
from analytics.decode.tasks import ROWS_PER_GROUP, PartWriter
from analytics.dump.batches.batch_bytes import DEFAULT_LIMITS, BatchBytes, Summary, add_horizons
from analytics.dump.batches.headers import Headers
from analytics.dump.batches.layout import lay_out
from analytics.dump.batches.segment_stats import SegmentStats
from analytics.dump.files.storage import ByteSource
from analytics.dump.records.segment_reader import add_bytes, stretches_to_read
from analytics.errors import InputUnreadableError, WorkspaceError
from analytics.failed_reads import shrunk
from analytics.locations import make_folder, open_location
from analytics.spark_tasks import run_tasks
from analytics.workspace import Part, Workspace, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from analytics.decode.decoded_pieces import DecodedPiece, DecodedTask, EarlierDecoding, PartFile
    from analytics.decode.tasks import Settings, SliceReport
    from analytics.dump.batches.layout import Layout
    from analytics.dump.batches.segment_stats import SegmentSurvey
    from analytics.dump.files.model import Slice
    from schemas.manifest import ResumedEntry, ResumedPartitionEntry


NEW: Final = "new"
"""No earlier piece begins where the slice, or what is left of it, does."""
CHANGED: Final = "changed"
"""The bytes are others: cleaned, truncated, or another leader's."""
OTHER_RULES: Final = "other_rules"
"""Others of the offsets are left out: the log start moved, or another copy has them."""
DAMAGED: Final = "damaged"
"""Not all of the file is batches that can be believed: what is, is judged anew."""
UNREADABLE: Final = "unreadable"
"""The system refuses it to this process."""
_THREADS: Final = 2


@dataclass(frozen=True)
class Match:
    """What of a slice an earlier run decoded.

    Attributes:
        pieces: Those that are kept, one after the other from the first byte of the slice.
        why: Why what lies behind them is decoded, one of the codes above; None where nothing does.
        survey: Of the whole slice, where something is kept.
        summary: Likewise; without what only records tell.
        sha256: Of the slice to the end of its last batch, likewise.
    """

    pieces: tuple[DecodedPiece, ...] = ()
    why: str | None = NEW
    survey: SegmentSurvey | None = None
    summary: Summary | None = None
    sha256: str = ""

    @property
    def end_position(self) -> int:
        """Where what is kept ends."""
        return self.pieces[-1].end_position

    @property
    def is_whole(self) -> bool:
        """Whether no batch lies behind what is kept."""
        assert self.survey is not None
        return self.survey.end_position == self.end_position

    def report(self, number: int, rest: SliceReport | None) -> SliceReport:
        """Return what became of the whole slice.

        Args:
            number: Of the slice.
            rest: What became of what lies behind the pieces; None where nothing does.
        """
        assert self.summary is not None
        whole, *others = (each.report(number) for each in self.pieces)
        for each in (*others, *((rest,) if rest else ())):
            whole.add(each)
        read = [rest.summary] if rest and rest.summary else []
        whole.summary = replace(self.summary, use=BatchBytes())
        sums: tuple[DecodedPiece | Summary, ...] = (*self.pieces, *read)
        for each in sums:
            whole.summary.records += each.records
            whole.summary.use.add(each.use)
        least = [each.min_timestamp for each in sums if each.min_timestamp is not None]
        most = [each.max_timestamp for each in sums if each.max_timestamp is not None]
        whole.summary.min_timestamp = min(least, default=None)
        whole.summary.max_timestamp = max(most, default=None)
        assert self.survey is not None
        whole.survey = replace(self.survey, first_timestamp=whole.summary.min_timestamp)
        whole.sha256 = self.sha256
        return whole


NOTHING_KEPT: Final = Match()


def rest_of(each: Slice, match: Match) -> Slice | None:
    """Return what of a slice has to be decoded; None where nothing has."""
    if not match.pieces:
        return each
    if match.is_whole:
        return None
    return replace(each, from_position=match.end_position, batches=None, records=None)


def matches_of(
    slices: Sequence[Slice],
    earlier: EarlierDecoding,
    run: Callable[[int, Callable[[int], Match]], Sequence[Match]] | None = None,
) -> list[Match]:
    """Return for each slice what an earlier run decoded of it.

    Args:
        slices: What is to be read.
        earlier: What was decoded.
        run: Calls a function for each number below the first argument, on other machines; None
            does so in this process.

    Raises:
        ReadFailedError: A store or a network fails, or a file has become shorter.
    """
    by_file: dict[tuple[str, str, str], list[DecodedPiece]] = defaultdict(list)
    for piece in chain.from_iterable(each.pieces for each in earlier.tasks):
        by_file[piece.file].append(piece)
    files = [(each.copy, each.segment.name, each.line) for each in slices]
    wanted = [number for number, file in enumerate(files) if file in by_file]
    work = [(slices[number], tuple(by_file[files[number]])) for number in wanted]
    look = partial(_match_in, work)
    if run is None:
        with ThreadPoolExecutor(_THREADS) as threads:
            found = list(threads.map(look, range(len(work))))
    else:
        found = list(run(len(work), look))
    matches = [NOTHING_KEPT] * len(slices)
    for number, match in zip(wanted, found, strict=True):
        matches[number] = match
    return matches


def _match_in(work: Sequence[tuple[Slice, tuple[DecodedPiece, ...]]], number: int) -> Match:
    return match_of(*work[number])


def match_of(each: Slice, pieces: Iterable[DecodedPiece]) -> Match:
    """Return which pieces of a file's earlier tables hold what a slice of it would give.

    Args:
        each: The slice.
        pieces: What was decoded of the file.

    Raises:
        ReadFailedError: A store or a network fails, or the file has become shorter.
    """
    if each.unreadable is not None:
        return Match(why=UNREADABLE)
    start = each.from_position
    begun = {piece.from_position: piece for piece in pieces if piece.summed_from == start}
    if start not in begun:
        return NOTHING_KEPT
    try:
        with ByteSource(each.segment.path) as source:
            if source.size < each.to_position:
                raise shrunk(source.name, source.size, each.to_position)
            return _match_of_file(source, each, begun)
    except InputUnreadableError:
        # Whoever decodes it says so.
        return Match(why=UNREADABLE)


def _match_of_file(source: ByteSource, each: Slice, begun: dict[int, DecodedPiece]) -> Match:
    sums, kept, why = sha256(), [], NEW
    position = each.from_position
    while position in begun:
        piece = begun[position]
        if piece.end_position > each.to_position:
            why = CHANGED
            break
        further = sums.copy()
        add_bytes(further, source, position, piece.end_position)
        if further.hexdigest() != piece.sha256:
            why = CHANGED
            break
        if clipped_rules(each.rules, piece.first_offset, piece.end_offset) != piece.rules:
            why = OTHER_RULES
            break
        sums, position = further, piece.end_position
        kept.append(piece)
    if not kept:
        return Match(why=why)
    layout = lay_out(source, each.from_position, each.to_position, each.sense, check_crc=True)
    if not _is_sound(layout, kept, each):
        return Match(why=DAMAGED)
    end = int(layout.batches.end[-1])
    add_bytes(sums, source, position, end)
    to_last_batch = sums.hexdigest()
    summary = _summary_of(layout, each)
    if each.from_position == 0:
        add_bytes(sums, source, end, source.size)
        summary.sha256 = sums.hexdigest()
    if source.shrank_to is not None:
        raise shrunk(source.name, source.shrank_to, source.size)
    stats = SegmentStats(each.segment)
    for batches in stretches_to_read(layout.batches):
        stats.add(Headers.of_batches(batches))
    is_whole = kept[-1].end_position == end
    return Match(
        tuple(kept),
        None if is_whole else why,
        stats.survey((), layout.tail),
        summary,
        to_last_batch,
    )


def _is_sound(layout: Layout, pieces: Sequence[DecodedPiece], each: Slice) -> bool:
    """Return whether a file is batches and nothing else, and what is kept ends where one does.

    What records of one read may come to, decompressed, grows with the bytes before them: where the
    pieces took more than their share, what follows is judged with them.
    """
    if layout.damages or layout.implausible_epochs or not len(layout.batches):
        return False
    size = pieces[-1].end_position - each.from_position
    taken = sum(piece.use.uncompressed for piece in pieces)
    is_at_an_end = bool(np.isin(pieces[-1].end_position, layout.batches.end))
    return is_at_an_end and taken <= size * DEFAULT_LIMITS.max_expansion


def _summary_of(layout: Layout, each: Slice) -> Summary:
    batches = layout.batches
    summary = Summary(
        bytes_read=each.to_position - each.from_position,
        bytes_in_batches=int(batches.size.sum()),
        tail=layout.tail,
        batches=len(batches),
        codecs=Counter(batches.codec.tolist()),
        magics=Counter(batches.magic.tolist()),
        first_offset=int(batches.base_offset[0]),
        end_offset=int(batches.last_offset[-1]) + 1,
    )
    add_horizons(summary.horizons, batches)
    return summary


def resumed_entry(
    earlier: EarlierDecoding, slices: Sequence[Slice], matches: Sequence[Match]
) -> ResumedEntry:
    """Return what the manifest has of what was kept, partition by partition of each copy.

    Args:
        earlier: What was decoded.
        slices: What is read.
        matches: What of each was decoded earlier.
    """
    partitions: dict[tuple[str, str, int], ResumedPartitionEntry] = {}
    for each, match in zip(slices, matches, strict=True):
        kept = match.end_position - each.from_position if match.pieces else 0
        entry = partitions.setdefault(
            (each.copy, each.topic, each.partition),
            {
                "copy": each.copy,
                "topic": each.topic,
                "partition": each.partition,
                "bytes_kept": 0,
                "bytes_decoded": 0,
                "why": [],
            },
        )
        entry["bytes_kept"] += kept
        rest = rest_of(each, match)
        entry["bytes_decoded"] += 0 if rest is None else rest.to_position - rest.from_position
        if match.why is not None and match.why not in entry["why"]:
            entry["why"] = sorted([*entry["why"], match.why])
    return {
        "resumed_from": earlier.space.location,
        "resumed_copies": _copies_of(earlier),
        "refusal": earlier.refusal or _refusal_of_slices(earlier, slices),
        "partitions": list(partitions.values()),
    }


def _copies_of(earlier: EarlierDecoding) -> list[str]:
    return sorted({piece.copy for each in earlier.tasks for piece in each.pieces})


def _refusal_of_slices(earlier: EarlierDecoding, slices: Sequence[Slice]) -> str | None:
    """Return why nothing of today's logs can have been decoded; None where it can."""
    if not slices:
        return "no logs are read, and archived rows are decoded anew"
    names = _copies_of(earlier)
    if not names or {each.copy for each in slices} & set(names):
        return None
    return f"it was made of copies of other names, {', '.join(names)} (NAME=PATH names a copy)"


_Place = tuple[tuple[str, str, str], int]
"""A piece: its file and where it begins."""


def kept_rows(
    spark: SparkSession | None,
    earlier: EarlierDecoding,
    matches: Sequence[Match],
    settings: Settings,
) -> list[tuple[int, TaskRows]]:
    """Bring what is kept of an earlier run into the staging folder.

    Files of which all pieces are kept are linked where the file system knows links, else copied; of
    others the rows of those pieces are written anew.

    Args:
        spark: The session; None does all in this process.
        earlier: What was decoded.
        matches: Of each slice that is read.
        settings: Where to.

    Returns:
        Of each task of the earlier run of which something is kept the number of the first slice
        that it has rows of, and what it has.

    Raises:
        WorkspaceError: A file of the earlier workspace is damaged or gone, or another run has made
            it again meanwhile: nothing that was brought counts.
    """
    numbers: dict[_Place, int] = {}
    for number, match in enumerate(matches):
        numbers.update({_place(piece): number for piece in match.pieces})
    kept: list[tuple[int, TaskRows]] = []
    parted: list[tuple[tuple[DecodedPiece, ...], DecodedTask]] = []
    for place, task in enumerate(earlier.tasks):
        pieces = tuple(piece for piece in task.pieces if _place(piece) in numbers)
        if pieces and len(pieces) == len(task.pieces) and not task.has_others:
            folder = f"{settings.staging}/kept-{place:05d}"
            kept.append((_first(pieces, numbers), TaskRows(pieces, _linked(earlier, task, folder))))
        elif pieces:
            parted.append((pieces, task))
    write = partial(_written, earlier.space.location, parted, settings)
    written = (
        [write(number) for number in range(len(parted))]
        if spark is None
        else run_tasks(spark, len(parted), write)
    )
    for (pieces, _), parts in zip(parted, written, strict=True):
        kept.append((_first(pieces, numbers), TaskRows(pieces, tuple(parts))))
    if kept:
        # Files of other rows may have had the same names when they were linked or read.
        earlier.check_unchanged()
    return kept


def _place(piece: DecodedPiece) -> _Place:
    return piece.file, piece.from_position


def _first(pieces: Iterable[DecodedPiece], numbers: Mapping[_Place, int]) -> int:
    return min(numbers[_place(each)] for each in pieces)


def _linked(earlier: EarlierDecoding, task: DecodedTask, folder: str) -> tuple[Part, ...]:
    """Return the files of a task as parts of this run."""
    filesystem, root = open_location(folder)
    make_folder(filesystem, root)
    parts = []
    for number, file in enumerate(task.files):
        part = Part(file.table, f"{root}/{number:03d}.parquet", file.rows)
        with reading(earlier.space.path(file.path)):
            _link(earlier.space, file, filesystem, part.path)
        parts.append(part)
    return tuple(parts)


def _link(space: Workspace, file: PartFile, filesystem: fs.FileSystem, target: str) -> None:
    source = space.path(file.path)
    is_local = all(isinstance(each, fs.LocalFileSystem) for each in (space.filesystem, filesystem))
    if not is_local:
        fs.copy_files(
            source,
            target,
            source_filesystem=space.filesystem,
            destination_filesystem=filesystem,
        )
        return
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise WorkspaceError(f"{source} is gone") from None
    except OSError:
        # Another disk, or one that knows no links.
        shutil.copyfile(Path(source), Path(target))


def _written(
    location: str,
    parted: Sequence[tuple[tuple[DecodedPiece, ...], DecodedTask]],
    settings: Settings,
    number: int,
) -> list[Part]:
    """Write the rows of some pieces of a task into files of their own."""
    space = Workspace(location)
    pieces, task = parted[number]
    with PartWriter(settings.attempt("parted", number)) as writer:
        for file in task.files:
            folder = file.table.rpartition("/")[0]
            own = [each for each in pieces if settings.folder(each.line) == folder]
            path = space.path(file.path)
            with reading(path):
                content = pq.ParquetFile(path, filesystem=space.filesystem)
                batches = content.iter_batches(ROWS_PER_GROUP) if own else ()
                for batch in batches:
                    rows = batch.filter(_is_of(batch, own))
                    if rows.num_rows:
                        writer.write(file.table, rows)
        return writer.finish()


def _is_of(batch: pa.RecordBatch, pieces: Sequence[DecodedPiece]) -> pa.Array:
    """Mark the rows that were decoded of pieces."""
    position = batch["batch_position"]
    wanted = pa.array([False] * batch.num_rows, pa.bool_())
    for each in pieces:
        here = pc.and_(pc.equal(batch["copy"], each.copy), pc.equal(batch["segment"], each.segment))
        here = pc.and_(here, pc.greater_equal(position, each.from_position))
        here = pc.and_(here, pc.less(position, each.end_position))
        wanted = pc.or_(wanted, here)
    return wanted


def all_parts(tasks: Iterable[TaskRows]) -> list[Part]:
    """Return the files of tasks, in their order."""
    return list(chain.from_iterable(each.parts for each in tasks))
