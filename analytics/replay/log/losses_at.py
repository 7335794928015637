"""The losses of internal partitions as they matter at an instant, from a manifest.

At the end of the dump what compaction removed is no loss: it left the last record of every key. At
an earlier instant it may have removed what was in force then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from analytics.dump.inspection.found_losses import (
    OPEN_END,
    Loss,
    inside,
    losses_of_rows,
    merged,
)
from analytics.dump.inspection.survey import COMPACTION
from analytics.replay.log.lines import CANNOT_TELL, FollowedLine, parsed_time
from schemas import COMPACTED_TOPICS

if TYPE_CHECKING:
    from analytics.replay.log.ends_at import Ends

Key = tuple[str, int]
Row = Mapping[str, Any]

_DELETED = "records were deleted up to the log start"


def losses_at(
    manifest: Row,
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
            own = copies.get((*key, line.copy), {})
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


def _own_losses(line: FollowedLine, row: Row) -> Iterator[Loss]:
    """Yield what is lost of a followed line itself.

    Args:
        line: The line.
        row: Its copy, as the manifest has it.
    """
    if row:
        yield from inside(losses_of_row(row), line.diverges_at, OPEN_END)
        cleaned = cleaned_until(row)
        # Of offset 0 on: compaction of a line takes what a later record of it replaces.
        if cleaned > line.diverges_at:
            yield Loss(0, cleaned, _cleaned_in_words(row, cleaned))
    if line.at_that_time == CANNOT_TELL:
        lines = f"that of {line.copy} or that of {line.surviving_copy}"
        why = f"nothing shows which line was in force, {lines}"
        yield Loss(line.diverges_at, OPEN_END, why)


def elections_since(row: Row, ends: Ends) -> Iterator[Loss]:
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


def absent_leaders_at(row: Row, ends: Ends) -> Iterator[Loss]:
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


def losses_of_row(row: Row) -> list[Loss]:
    """Return the losses of a partition of a manifest."""
    if "losses" in row:
        return losses_of_rows(row["losses"])
    # Written by an older release.
    gaps = [gap for gap in row.get("gaps", ()) if gap["kind"] != COMPACTION]
    losses = [Loss(gap["first_offset"], gap["end_offset"], "a gap") for gap in gaps]
    damaged = [each["offset"] for each in row.get("damages", ()) if each["offset"] is not None]
    return merged([*losses, *(Loss(each, each + 1, "damaged bytes") for each in damaged)])


def cleaned_until(row: Row) -> int:
    """Return the offset of a partition up to which compaction may have removed records."""
    if row["topic"] not in COMPACTED_TOPICS:
        return 0
    dirty = row.get("first_dirty_offset")
    return int((row.get("complete_from") if dirty is None else dirty) or 0)


def what_took_history(row: Row) -> str:
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


def _cleaned_in_words(row: Row, start: int) -> str:
    return f"history before offset {start:,} {what_took_history(row)}"


def leading(manifest: Row) -> Iterator[Row]:
    """Yield the partitions of a manifest, each once: the copy whose line is decoded."""
    return (each for each in manifest["partitions"] if each.get("is_leading", True))


def _copies(manifest: Row) -> Iterator[Row]:
    return (each for each in manifest["partitions"] if each.get("copy") is not None)


def _removed_since(manifest: Row, row: Row, end: int | None) -> Iterator[Loss]:
    """Yield what was removed after the instant and may have counted then."""
    deleted = _first_kept(manifest, row)
    if deleted:
        yield Loss(0, deleted, _DELETED)
    cleaned = cleaned_until(row)
    if end is not None and end < cleaned:
        yield Loss(0, cleaned, _cleaned_in_words(row, cleaned))


def _first_kept(manifest: Row, row: Row) -> int:
    """Return the offset below which records were deleted that counted before the end of the dump.

    Those from the first file's start on are still there, unless they were left out.
    """
    first, start = row.get("first_offset"), row.get("log_start_offset")
    if first is None or not start:
        return 0
    return int(min(first, start) if _keeps_deleted(manifest) else start)


def _keeps_deleted(manifest: Row) -> bool:
    """Return whether what lies below log starts was decoded, too."""
    return bool(manifest["options"].get("keep_below_log_start", False))
