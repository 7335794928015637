"""Which pieces of an earlier decode run are kept: what its tables have of bytes that are the same.

A piece is kept where today's file has the same bytes from where the earlier checksum began to where
the piece ends, where the file as a whole is sound as today's log around it has it, and where
today's rules leave out the same of its offsets. So it does not matter how a log came to differ:
what was cleaned, truncated, written by another leader or deleted has other bytes, or none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.decode.decoded_pieces import clipped_rules
from analytics.dump.batches.batch_bytes import BatchBytes, Summary, add_horizons
from analytics.dump.batches.damage import DEFAULT_LIMITS
from analytics.dump.batches.header_columns import Headers
from analytics.dump.batches.layout import lay_out
from analytics.dump.batches.segment_stats import SegmentStats
from analytics.dump.files.file_digests import add_bytes
from analytics.dump.files.storage import ByteSource
from analytics.dump.records.segment_reader import stretches_to_read
from analytics.errors import InputUnreadableError
from analytics.failed_reads import shrunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from analytics.decode.decoded_pieces import DecodedPiece, EarlierDecoding
    from analytics.decode.tasks import SliceReport
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
        "refusal": earlier.refusal or _refusal_of_slices(earlier, slices),
        "partitions": list(partitions.values()),
    }


def _refusal_of_slices(earlier: EarlierDecoding, slices: Sequence[Slice]) -> str | None:
    """Return why nothing of today's logs can have been decoded; None where it can."""
    if not slices:
        return "no logs are read, and archived rows are decoded anew"
    names = sorted({piece.copy for each in earlier.tasks for piece in each.pieces})
    if not names or {each.copy for each in slices} & set(names):
        return None
    return f"it was made of copies of other names, {', '.join(names)} (NAME=PATH names a copy)"
