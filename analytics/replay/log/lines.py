"""Which line of a diverged log answers at an instant.

An unclean election throws away what only the old leader had. Until then that leader's line was the
truth: it is what clients were answered. So an instant before the election is answered from the line
that was then the leader's, and one at or after it from the line that survived.

Without the metadata log an election is known to lie between the last record of the old leader and
the first of the new one. In between, the old leader's line is followed, and it is said that the
dump cannot tell which of the two led. Nor can it tell then whether the election was clean: what a
clean one loses had never been committed, so no client saw it. The old leader's high watermark shows
it where it covers the line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analytics.dump.files.model import METADATA_LOG
from schemas import CLUSTER_METADATA

LED, NOBODY_LED, CANNOT_TELL = "led", "nobody led", "cannot tell"
"""Whether the leader of a followed line led at the instant."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Piece:
    """Where records of a line are decoded: under `diverged/<copy>/`, in `[first, end)`."""

    copy: str
    first: int
    end: int | None


@dataclass(frozen=True)
class FollowedLine:
    """A line that did not survive, and is followed because its leader led at the instant.

    Attributes:
        topic: The internal topic.
        partition: Its partition.
        copy: Whose line it is.
        diverges_at: First offset at which it differs from the line that survived.
        pieces: Where its own records are.
        surviving_copy: A copy that has the line that survived.
        elected_at: When a leader of the surviving line was elected; None where nothing says.
        at_that_time: `led`, `nobody led` or `cannot tell`.
    """

    topic: str
    partition: int
    copy: str
    diverges_at: int
    pieces: tuple[Piece, ...]
    surviving_copy: str
    elected_at: datetime | None
    at_that_time: str


def lines_at(divergences: Iterable[Row], at: datetime | None) -> tuple[FollowedLine, ...]:
    """Return the lines to follow at an instant instead of the one that survived.

    Args:
        divergences: As the manifest has them.
        at: The instant; None is the end of the dump, where every surviving line is in force.
    """
    if at is None:
        return ()
    by_partition: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for each in divergences:
        # A voter that Raft makes truncate its log had never committed what it loses, and a leader
        # that was in sync had all that was committed: clients never saw what such elections lose.
        if each["topic"] != CLUSTER_METADATA and each.get("unclean") is not False:
            by_partition[each["topic"], each["partition"]].append(each)
    found = (_followed(lines, at) for _, lines in sorted(by_partition.items()))
    return tuple(each for each in found if each is not None)


def _followed(lines: list[Row], at: datetime) -> FollowedLine | None:
    """Return the line that had not ended yet; of several, the one that ended first."""
    ordered = sorted(lines, key=_epoch)
    for position, each in enumerate(ordered):
        elected = _ended_at(each, ordered[position + 1 :])
        first = parsed_time(each["lost_from_timestamp"])
        if elected is not None and at >= elected:
            continue
        if first is not None and at < first:
            return None
        return FollowedLine(
            topic=each["topic"],
            partition=each["partition"],
            copy=each["copy"],
            diverges_at=each["diverges_at"],
            pieces=tuple(_pieces(each)),
            surviving_copy=each["surviving_copy"],
            elected_at=elected,
            at_that_time=_at_that_time(each, at),
        )
    return None


def _epoch(line: Row) -> int:
    epoch = line["lost_leader_epoch"]
    return -1 if epoch is None else int(epoch)


def _ended_at(line: Row, later: Iterable[Row]) -> datetime | None:
    """Return when the line was left, at the latest: a later line that was lost too ends it."""
    ends = [parsed_time(line["elected_at"])]
    if line.get("election_shown_by") != METADATA_LOG:
        ends += [
            parsed_time(each["lost_from_timestamp"])
            for each in later
            if _epoch(each) > _epoch(line)
        ]
    return min((each for each in ends if each is not None), default=None)


def _at_that_time(line: Row, at: datetime) -> str:
    if line.get("election_shown_by") == METADATA_LOG:
        leaderless = parsed_time(line.get("leaderless_from"))
        return NOBODY_LED if leaderless is not None and at >= leaderless else LED
    last, committed = parsed_time(line["lost_to_timestamp"]), line.get("high_watermark")
    is_committed = committed is not None and committed >= line["end_offset"]
    return LED if is_committed and last is not None and at <= last else CANNOT_TELL


def _pieces(line: Row) -> Iterator[Piece]:
    own = [{"line": line["copy"], "first_offset": line["diverges_at"]}]
    starts = [(each["line"], each["first_offset"]) for each in line.get("pieces") or own]
    ends = [*(first for _, first in starts[1:]), None]
    for (copy, first), end in zip(starts, ends, strict=True):
        yield Piece(copy, first, end)


def parsed_time(text: str | None) -> datetime | None:
    """Return a time that a manifest has as text."""
    return None if text is None else datetime.fromisoformat(text)
