"""The earlier run that `--resume` names, and what people are shown of what was kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.decode.decoded_pieces import EarlierDecoding, earlier_decoding
from analytics.decode.resumption import CHANGED, DAMAGED, OTHER_RULES, UNREADABLE
from analytics.errors import AbsentFileError, CannotTellError, WorkspaceError
from analytics.locations import absolute_location
from analytics.tables.decoded_records import decoded_workspace
from analytics.workspace import Workspace
from reports.plain_text import ranges, size_of

if TYPE_CHECKING:
    from analytics.decode.selection import Selection
    from schemas.manifest import ResumedEntry

_WHY: Final = {
    CHANGED: "segments were cleaned, truncated or written by another leader",
    OTHER_RULES: "the log starts later, or another copy has their records",
    DAMAGED: "segments are damaged",
    UNREADABLE: "segments cannot be read",
}
"""Why segments are decoded that had been decoded, as people read it."""


def resumed_workspace(location: str) -> Workspace:
    """Return a workspace that a person names, by what it is called from wherever it is read.

    Raises:
        AbsentFileError: It is no workspace, finished or not.
    """
    space = Workspace(absolute_location(location))
    if not space.is_marked:
        raise AbsentFileError(f"--resume {location}: no workspace of groupscope is there")
    return space


def earlier_run(location: str, selection: Selection) -> EarlierDecoding:
    """Return what a workspace that a person names was decoded of.

    Raises:
        AbsentFileError: It is no workspace, finished or not.
    """
    space = resumed_workspace(location)
    try:
        manifest = space.manifest()
        if manifest.get("redacted"):
            return EarlierDecoding(space, refusal="it was redacted")
        source = decoded_workspace(space)
        return earlier_decoding(source, source.manifest(), selection)
    except CannotTellError:
        return EarlierDecoding(space, refusal="it is of a dialect")
    except WorkspaceError as error:
        return EarlierDecoding(space, refusal=str(error))


def resumed_in_words(resumed: ResumedEntry) -> str:
    """Say what was kept of an earlier run, which segments it had were decoded again, and why."""
    where = resumed["resumed_from"]
    kept = sum(each["bytes_kept"] for each in resumed["partitions"])
    decoded = sum(each["bytes_decoded"] for each in resumed["partitions"])
    if resumed["refusal"] is not None or not kept:
        why = resumed["refusal"] or "no segment of this dump begins as one that it was made of"
        return f"nothing is kept from {where}: {why}"
    places: dict[tuple[str, str], set[int]] = {}
    for each in resumed["partitions"]:
        for code in _WHY.keys() & set(each["why"]):
            places.setdefault((code, each["topic"]), set()).add(each["partition"])
    again = "".join(
        f"; {topic} {ranges(numbers)}: {_WHY[code]}"
        for (code, topic), numbers in sorted(places.items())
    )
    return (
        f"rows of {size_of(kept)} of logs are kept from {where}, "
        f"{size_of(decoded)} were decoded{again}"
    )
