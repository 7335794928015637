"""Records that a partition's log once had and the dump lacks: where, and what shows it.

What compaction removed is no loss: it left the last record of every key. Archived rows lack offsets
that no row has, and rows that do not decode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analytics.dump.inspection.survey import NOT_ARCHIVED, NOT_DECODED

OPEN_END = 1 << 62
"""End of a loss of which nobody knows how far it reaches."""
WITHIN_FILE = "is_within_file"
_MOST_NAMED = 3

UNDECIDED = "archived rows do not show transactions"
"""Why a commit of archived rows may never have taken effect."""
_WHY = {
    NOT_ARCHIVED: "no archived row",
    NOT_DECODED: "a row that cannot be decoded",
}


@dataclass(frozen=True, order=True)
class Loss:
    """Offsets whose records may be lost.

    Attributes:
        first: The first of them.
        end: The offset after the last of them; `OPEN_END` where the log's end is lost.
        why: What shows it, in words.
        known_to: How far an open loss reaches at least.
        is_within_file: They lie between two batches of one file: whoever reads that file, as a
            coordinator that loads it, does not meet them, either.
    """

    first: int
    end: int
    why: str
    known_to: int = 0
    is_within_file: bool = False

    @property
    def is_open(self) -> bool:
        """Whether nobody knows how far it reaches."""
        return self.end >= OPEN_END

    @property
    def in_words(self) -> str:
        """The loss in words, as in "offsets 24 to 356 (a segment file is missing)"."""
        if self.is_open:
            where = f"all from offset {self.first:,} on"
        elif self.end - self.first == 1:
            where = f"offset {self.first:,}"
        else:
            where = f"offsets {self.first:,} to {self.end - 1:,}"
        return f"{where} ({self.why})"


def merged(losses: Iterable[Loss]) -> list[Loss]:
    """Return losses in order, those that overlap or touch as one."""
    found: list[Loss] = []
    for each in sorted(losses):
        if each.end <= each.first:
            continue
        if found and each.first <= found[-1].end:
            last = found[-1]
            why = last.why if each.why in last.why else f"{last.why}; {each.why}"
            known_to = max(last.known_to, each.known_to)
            is_within_file = last.is_within_file and each.is_within_file
            found[-1] = Loss(last.first, max(last.end, each.end), why, known_to, is_within_file)
        else:
            found.append(each)
    return found


def inside(losses: Iterable[Loss], first: int, end: int) -> list[Loss]:
    """Return what of losses lies in `[first, end)`."""
    return merged(
        replace(each, first=max(each.first, first), end=min(each.end, end)) for each in losses
    )


def filled_up(losses: Iterable[Loss], filled: Iterable[tuple[int, int]]) -> list[Loss]:
    """Return what is left of losses where other copies gave offsets (first, end)."""
    left = merged(losses)
    for first, end in sorted(filled):
        left = [piece for loss in left for piece in _without(loss, first, end)]
    return left


def _without(loss: Loss, first: int, end: int) -> list[Loss]:
    if end <= loss.first or first >= loss.end:
        return [loss]
    pieces = [replace(loss, end=first)] if loss.first < first else []
    # Where the end is lost, another copy that reaches what is known of it has the end.
    reaches = loss.is_open and end >= max(loss.known_to, loss.first + 1)
    if end < loss.end and not reaches:
        pieces.append(replace(loss, first=end))
    return pieces


def loss_rows(losses: Iterable[Loss]) -> list[dict[str, Any]]:
    """Return losses as the manifest has them; `end_offset` is null where nobody knows it."""
    return [
        {
            "first_offset": each.first,
            "end_offset": None if each.is_open else each.end,
            "why": each.why,
            **({WITHIN_FILE: True} if each.is_within_file else {}),
        }
        for each in losses
    ]


def losses_of_rows(rows: Iterable[Mapping[str, Any]]) -> list[Loss]:
    """Return losses of the manifest's rows."""
    return [
        Loss(
            row["first_offset"],
            OPEN_END if row["end_offset"] is None else row["end_offset"],
            row["why"],
            is_within_file=row.get(WITHIN_FILE, False),
        )
        for row in rows
    ]


def lacks(topic: str, partition: int, losses: Sequence[Loss]) -> str:
    """Return what a partition lacks, as in "__consumer_offsets-2 lacks offsets 24 to 356 (...)"."""
    named = ", ".join(each.in_words for each in losses[:_MOST_NAMED])
    more = len(losses) - _MOST_NAMED
    return f"{topic}-{partition} lacks {named}" + (f" and {more} more ranges" if more > 0 else "")


def _archived_losses(gaps: Iterable[Mapping[str, Any]], *, is_whole: bool = False) -> list[Loss]:
    """Return what may be lost of a partition of archived rows.

    Args:
        gaps: As the manifest has them.
        is_whole: Nothing was left out of the archive, so that an offset without a row is no loss.
    """
    return merged(
        Loss(gap["first_offset"], gap["end_offset"], _WHY[gap["kind"]])
        for gap in gaps
        if not (is_whole and gap["kind"] == NOT_ARCHIVED)
    )


def with_archived_losses(manifest: Mapping[str, Any], *, is_whole: bool = False) -> dict[str, Any]:
    """Return a manifest that says what its partitions of archived rows lack.

    Args:
        manifest: Of decoded tables.
        is_whole: As `_archived_losses` takes it.
    """
    rows = []
    for row in manifest["partitions"]:
        if row.get("copy", "") is not None:
            rows.append(row)
            continue
        losses = _archived_losses(row["gaps"], is_whole=is_whole)
        said = lacks(row["topic"], row["partition"], losses) if losses else None
        rows.append({**row, "losses": loss_rows(losses), "lacks": said})
    return {**manifest, "partitions": rows}
