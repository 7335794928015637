"""The lines of diverged logs: which one answers at an instant, and which are followed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from analytics.dump.files.model import METADATA_LOG
from analytics.replay.dump.choices import iso_time
from analytics.replay.dump.times import last_time
from schemas import CLUSTER_METADATA

if TYPE_CHECKING:
    from schemas.manifest import DivergenceEntry, LineEntry, Manifest, PieceEntry

# Which line of a diverged log answers at an instant.
#
# An unclean election throws away what only the old leader had. Until then that leader's line was
# the truth: it is what clients were answered. So an instant before the election is answered from
# the line that was then the leader's, and one at or after it from the line that survived.
#
# Without the metadata log an election is known to lie between the last record of the old leader
# and the first of the new one. In between, the old leader's line is followed, and it is said that
# the dump cannot tell which of the two led. Nor can it tell then whether the election was clean:
# what a clean one loses had never been committed, so no client saw it. The old leader's high
# watermark shows it where it covers the line.

LED, NOBODY_LED, CANNOT_TELL = "led", "nobody led", "cannot tell"
"""Whether the leader of a followed line led at the instant."""


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


def lines_at(
    divergences: Iterable[DivergenceEntry], at: datetime | None
) -> tuple[FollowedLine, ...]:
    """Return the lines to follow at an instant instead of the one that survived.

    Args:
        divergences: As the manifest has them.
        at: The instant; None is the end of the dump, where every surviving line is in force.
    """
    if at is None:
        return ()
    by_partition: dict[tuple[str, int], list[DivergenceEntry]] = defaultdict(list)
    for each in divergences:
        # A voter that Raft makes truncate its log had never committed what it loses, and a leader
        # that was in sync had all that was committed: clients never saw what such elections lose.
        if each["topic"] != CLUSTER_METADATA and each.get("unclean") is not False:
            by_partition[each["topic"], each["partition"]].append(each)
    found = (_followed(lines, at) for _, lines in sorted(by_partition.items()))
    return tuple(each for each in found if each is not None)


def _followed(lines: list[DivergenceEntry], at: datetime) -> FollowedLine | None:
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


def _epoch(line: DivergenceEntry) -> int:
    epoch = line["lost_leader_epoch"]
    return -1 if epoch is None else int(epoch)


def _ended_at(line: DivergenceEntry, later: Iterable[DivergenceEntry]) -> datetime | None:
    """Return when the line was left, at the latest: a later line that was lost too ends it."""
    ends = [parsed_time(line["elected_at"])]
    if line.get("election_shown_by") != METADATA_LOG:
        ends += [
            parsed_time(each["lost_from_timestamp"])
            for each in later
            if _epoch(each) > _epoch(line)
        ]
    return min((each for each in ends if each is not None), default=None)


def _at_that_time(line: DivergenceEntry, at: datetime) -> str:
    if line.get("election_shown_by") == METADATA_LOG:
        leaderless = parsed_time(line.get("leaderless_from"))
        return NOBODY_LED if leaderless is not None and at >= leaderless else LED
    last, committed = parsed_time(line["lost_to_timestamp"]), line.get("high_watermark")
    is_committed = committed is not None and committed >= line["end_offset"]
    return LED if is_committed and last is not None and at <= last else CANNOT_TELL


def _pieces(line: DivergenceEntry) -> Iterator[Piece]:
    own: list[PieceEntry] = [{"line": line["copy"], "first_offset": line["diverges_at"]}]
    starts = [(each["line"], each["first_offset"]) for each in line.get("pieces") or own]
    ends = [*(first for _, first in starts[1:]), None]
    for (copy, first), end in zip(starts, ends, strict=True):
        yield Piece(copy, first, end)


def parsed_time(text: str | None) -> datetime | None:
    """Return a time that a manifest has as text."""
    return None if text is None else datetime.fromisoformat(text)


# Which lines of diverged partitions are followed at an instant.

# Which logs count where a cleaner left swap files: those, or the segments they take the place of.
#
# A broker that starts again loads what a cleaner left in a swap file: so state at the end of the
# dump, faults of loading and use of logs are of that. The segments that it takes the place of lie
# beside it, and hold what happened: so history is of them, and all that is asked of an earlier
# instant, when the broker had not cleaned them.


def of_history(manifest: Manifest) -> Manifest:
    """Return a manifest that says of partitions what they were before swap files.

    Args:
        manifest: Of a workspace with decoded tables.
    """
    earlier = manifest.get("before_swaps")
    if earlier is None or "read_before_swaps" in manifest:
        return manifest
    swapped = sorted({(each["topic"], each["partition"]) for each in earlier["partitions"]})
    rows = [e for e in manifest["partitions"] if (e["topic"], e["partition"]) not in swapped]
    return {
        **manifest,
        "partitions": [*rows, *earlier["partitions"]],
        "record_types": [*manifest["record_types"], *earlier["record_types"]],
        "read_before_swaps": swapped,
    }


def at_instant(manifest: Manifest, *, is_end: bool) -> Manifest:
    """Return a manifest as it is of state at an instant.

    Args:
        manifest: Of a workspace with decoded tables.
        is_end: The instant is the end of the dump: a broker loads the swap files.
    """
    return manifest if is_end else of_history(manifest)


def read_before_swaps(manifest: Manifest) -> Sequence[tuple[str, int]]:
    """Return the partitions whose records a manifest tells of as they were before swap files."""
    return manifest.get("read_before_swaps", ())


def is_before_swaps(partitions: Sequence[tuple[str, int]]) -> pc.Expression:
    """Return whether a record is of one of some partitions; at least one."""
    return reduce(
        or_,
        [(pc.field("topic") == topic) & (pc.field("partition") == n) for topic, n in partitions],
    )


def is_elsewhere(partitions: Sequence[tuple[str, int]]) -> pc.Expression:
    """Return whether a record is of none of them, as is one without a partition."""
    is_nowhere = pc.field("partition").is_null() | pc.field("topic").is_null()
    return is_nowhere | ~is_before_swaps(partitions)


def followed_lines(manifest: Manifest, at: datetime | None) -> tuple[FollowedLine, ...]:
    """Return the lines that are followed instead of the surviving ones.

    A line that was chosen with `--prefer-copy` is followed at every instant.

    Args:
        manifest: Of a workspace with decoded tables.
        at: The instant; None is the end of the dump.
    """
    last = last_time(manifest)
    if manifest["options"].get("prefer_copy") or (at and last and at >= last):
        return ()
    return lines_at(_believed(manifest), at)


def _believed(manifest: Manifest) -> list[DivergenceEntry]:
    """Return the divergences, without a first time where a clock that differed may have said it.

    Records of such a line are cut at the instant one by one, as those of any other.
    """
    named: dict[tuple[str, int], int] = {}
    for clock in manifest.get("leader_clocks", ()):
        for led in clock["led"]:
            key = led["topic"], led["partition"]
            named[key] = min(led["leader_epoch"], named.get(key, led["leader_epoch"]))
    return [
        {**each, "lost_from_timestamp": None} if _may_be_of(each, named) else each
        for each in manifest.get("divergences", ())
    ]


def _may_be_of(line: DivergenceEntry, named: Mapping[tuple[str, int], int]) -> bool:
    first = named.get((line["topic"], line["partition"]))
    last = line.get("lost_leader_epoch")
    return first is not None and (last is None or last >= first)


def lines_metadata(lines: Iterable[FollowedLine]) -> list[LineEntry]:
    """Return the lines as manifests and answers have them."""
    return [
        {
            "topic": each.topic,
            "partition": each.partition,
            "copy": each.copy,
            "diverges_at": each.diverges_at,
            "surviving_copy": each.surviving_copy,
            "elected_at": None if each.elected_at is None else iso_time(each.elected_at),
            "leader": each.at_that_time,
        }
        for each in lines
    ]
