"""What the tables of a workspace were decoded of, piece by piece: a later run keeps some.

A piece is a stretch of batches of one segment, from one batch to the end of another. What a run
read of it is known by a checksum, what became of its records by their counts, and where its rows
are by the files of the task that decoded it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from analytics.decode.chunks import RecordKind
from analytics.decode.tasks import SliceReport
from analytics.dump.batches.batch_bytes import BatchBytes
from analytics.errors import GroupscopeError, InputUnreadableError, WorkspaceError
from analytics.version import VERSION
from analytics.workspace import PIECES, numbered
from schemas.releases import FieldEvidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.decode.selection import Selection
    from analytics.dump.files.model import Slice
    from analytics.workspace import Part, Workspace
    from schemas.manifest import Manifest


class DecodedPiece(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Batches of one segment that were decoded without damage, and what became of their records.

    Attributes:
        copy: Whose segment.
        topic: Whose records.
        partition: Likewise.
        segment: The file, relative to the log directory.
        line: Of the decoded tables, as in `Slice`.
        from_position: Where its first batch begins.
        end_position: Where its last batch ends.
        summed_from: Where the checksum begins: at this piece, or at one before it.
        sha256: Of the bytes from there to `end_position`.
        first_offset: Of its first batch.
        end_offset: After its last batch.
        rules: What was left out of these offsets, as in `Slice`.
        records: That batches held.
        use: What the bytes of the batches are.
        min_timestamp: Earliest of a record, epoch milliseconds; None where none has one.
        max_timestamp: Latest, likewise.
        kinds: Records by what they are.
        control_markers: Records that are control markers.
        undecoded: Records that could not be decoded, by reason.
        record_bytes: As in `SliceReport`.
        left_out: Records by the rule that left them out.
        kinds_left_out: As in `SliceReport`.
        fields_left_out: Likewise.
    """

    copy: str
    topic: str
    partition: int
    segment: str
    line: str
    from_position: int
    end_position: int
    summed_from: int
    sha256: str
    first_offset: int
    end_offset: int
    rules: tuple[tuple[int, int, str], ...]
    records: int
    use: BatchBytes
    min_timestamp: int | None
    max_timestamp: int | None
    kinds: list[tuple[RecordKind, int]]
    control_markers: int
    undecoded: dict[str, int]
    record_bytes: dict[str, int]
    left_out: dict[str, int]
    kinds_left_out: list[RecordKind]
    fields_left_out: list[FieldEvidence]

    @property
    def file(self) -> tuple[str, str, str]:
        """The copy, the segment and the line."""
        return self.copy, self.segment, self.line

    def report(self, number: int) -> SliceReport:
        """Return what became of its records, as the task that decoded it reported it."""
        return SliceReport(
            number,
            kinds=Counter(dict(self.kinds)),
            control_markers=self.control_markers,
            undecoded=Counter(self.undecoded),
            record_bytes=Counter(self.record_bytes),
            left_out=Counter(self.left_out),
            kinds_left_out=set(self.kinds_left_out),
            fields_left_out=set(self.fields_left_out),
        )


class PartFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a table in the workspace: its table, its path there, and its rows."""

    table: str
    path: str
    rows: int


class DecodedTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The pieces that were decoded together, and the files that hold their rows.

    Attributes:
        pieces: What was decoded without damage.
        files: Where their rows are.
        has_others: The files hold rows of something else, too.
    """

    pieces: tuple[DecodedPiece, ...]
    files: tuple[PartFile, ...]
    has_others: bool


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: the release, the patterns of what was wanted, and all tasks."""

    groupscope_version: str
    groups: tuple[str, ...]
    exclude_groups: tuple[str, ...]
    data_topics: tuple[str, ...]
    tasks: tuple[DecodedTask, ...]


@dataclass(frozen=True)
class TaskRows:
    """What a task of this run decoded, or kept, before it is published; as `DecodedTask` has it."""

    pieces: tuple[DecodedPiece, ...]
    parts: tuple[Part, ...]
    has_others: bool = False


@dataclass(frozen=True)
class EarlierDecoding:
    """What an earlier run decoded.

    Attributes:
        space: Its workspace.
        tasks: What it decoded, and where that is; nothing where `refusal` says why.
        refusal: Why nothing of it can be kept, a sentence without its end; None where it can.
        digest: Of the file that says so, as the manifest has it.
    """

    space: Workspace
    tasks: tuple[DecodedTask, ...] = ()
    refusal: str | None = None
    digest: str | None = None

    def refused(self, why: str) -> EarlierDecoding:
        """Return the same, of which nothing can be kept."""
        return EarlierDecoding(self.space, refusal=why)

    def check_unchanged(self) -> None:
        """Check that no other run has made the workspace again since it was read.

        Raises:
            WorkspaceError: One has, or it is gone.
        """
        try:
            digest = self.space.manifest().get("decoded_pieces")
        except GroupscopeError:
            digest = None
        if digest is None or digest != self.digest:
            raise WorkspaceError(f"{self.space.location} was made again, or removed, meanwhile")


def clipped_rules(
    rules: Sequence[tuple[int, int, str]], first: int, end: int
) -> tuple[tuple[int, int, str], ...]:
    """Return what rules leave out of the offsets from ``first`` to before ``end``.

    Ranges of one rule that follow each other are one, however they came to be written.
    """
    clipped: list[tuple[int, int, str]] = []
    for low, high, rule in rules:
        begin, stop = max(low, first), min(high, end)
        if begin >= stop:
            continue
        if clipped and clipped[-1][1:] == (begin, rule):
            begin = clipped.pop()[0]
        clipped.append((begin, stop, rule))
    return tuple(clipped)


def piece_of(each: Slice, report: SliceReport, summed_from: int, digest: str) -> DecodedPiece:
    """Return what was decoded of a slice without damage.

    Args:
        each: The slice; a batch begins where it does.
        report: What became of it; its batches are not none.
        summed_from: Where the checksum begins.
        digest: The checksum of the bytes to the end of its last batch.
    """
    summary = report.summary
    assert summary is not None
    assert summary.first_offset is not None
    assert summary.end_offset is not None
    return DecodedPiece(
        copy=each.copy,
        topic=each.topic,
        partition=each.partition,
        segment=each.segment.name,
        line=each.line,
        from_position=each.from_position,
        end_position=each.from_position + summary.bytes_in_batches,
        summed_from=summed_from,
        sha256=digest,
        first_offset=summary.first_offset,
        end_offset=summary.end_offset,
        rules=clipped_rules(each.rules, summary.first_offset, summary.end_offset),
        records=summary.records,
        use=summary.use,
        min_timestamp=summary.min_timestamp,
        max_timestamp=summary.max_timestamp,
        kinds=sorted(report.kinds.items(), key=str),
        control_markers=report.control_markers,
        undecoded=dict(sorted(report.undecoded.items())),
        record_bytes=dict(sorted(report.record_bytes.items())),
        left_out=dict(sorted(report.left_out.items())),
        kinds_left_out=sorted(report.kinds_left_out, key=str),
        fields_left_out=sorted(report.fields_left_out, key=str),
    )


def pieces_text(tasks: Sequence[TaskRows], parts: Sequence[Part], selection: Selection) -> str:
    """Return the file of what was decoded.

    Args:
        tasks: What each decoded or kept.
        parts: All that is published, in the same order.
        selection: What was wanted.
    """
    places = dict(numbered(parts))
    document = _Document(
        VERSION,
        selection.groups,
        selection.exclude_groups,
        selection.topics,
        tuple(
            DecodedTask(
                each.pieces,
                tuple(PartFile(part.table, places[part.path], part.rows) for part in each.parts),
                each.has_others,
            )
            for each in tasks
            if each.pieces
        ),
    )
    return msgspec.json.encode(document).decode() + "\n"


def digest_of(text: str) -> str:
    """Return what the manifest has of the file."""
    return sha256(text.encode()).hexdigest()


def earlier_decoding(space: Workspace, manifest: Manifest, selection: Selection) -> EarlierDecoding:
    """Return what a workspace was decoded of, as far as it is of use to a run of this release.

    Args:
        space: With the decoded tables.
        manifest: Of it.
        selection: What is wanted now.
    """
    release = manifest.get("groupscope_version")
    if release != VERSION:
        return EarlierDecoding(space, refusal=f"groupscope {release} wrote it")
    expected = manifest.get("decoded_pieces")
    try:
        text = space.read(PIECES) if expected else None
        if text is None or digest_of(text) != expected:
            return EarlierDecoding(space, refusal="it does not say what its tables were decoded of")
        document = msgspec.json.decode(text, type=_Document)
    except (InputUnreadableError, WorkspaceError, msgspec.MsgspecError):
        return EarlierDecoding(space, refusal=f"its {PIECES} cannot be read")
    wanted = (selection.groups, selection.exclude_groups, selection.topics)
    if (document.groups, document.exclude_groups, document.data_topics) != wanted:
        return EarlierDecoding(space, refusal="it was decoded for other groups or topics")
    return EarlierDecoding(space, document.tasks, digest=expected)
