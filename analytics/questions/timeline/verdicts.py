"""The verdicts on each offset of a group: everything that happened to it, the worst first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Final

from analytics.decode.losses.unjudged_elections import Unjudged
from analytics.questions.lag.offsets import BELOW_FIRST
from analytics.questions.timeline.election_losses import election_losses
from analytics.questions.timeline.happenings import happenings, incomplete
from analytics.questions.timeline.history import TRANSACTION_COMMIT, OffsetHistory
from analytics.questions.timeline.lost_lines import LostLine
from analytics.questions.timeline.topic_lives import TopicLives
from analytics.questions.timeline.words import (
    BELOW_LOG_START,
    CANNOT_TELL,
    NEVER_COMMITTED,
    NO_LOSS_SINCE,
    PENDING,
    WITHOUT_GROUP,
    Place,
    Row,
    Verdict,
    place_of,
    rank,
    record_of,
    verdict_row,
)
from schemas import table

_KEY: Final = table("offset_verdicts").key


@dataclass(frozen=True)
class VerdictEvidence:
    """What verdicts are made of, all of it up to one instant.

    Attributes:
        history: Changes of offsets of the groups asked about.
        committed: Rows of `committed_offsets`: what is in force at the instant.
        pending: Rows of `pending_offsets`.
        assigned: Partitions that members own or shall own.
        groups: The groups asked about, and their partition of the offsets topic.
        gaps: Why the history of a group has gaps, where it has.
        lines: Lines of the offsets topic that did not survive.
        unjudged: By internal partition, the last election that may have lost commits unseen.
        uncompacted_from: By internal partition, the offset before which compaction took records.
        what_took: By internal partition, what became of the records before that offset, as in
            "was compacted".
        log_starts: Log start offsets of data partitions, by topic and partition.
        topics: What became of topics.
        out_of_reach: Verdicts on offsets that lie where no client is sent any more.
        until: The instant; None for the end of the dump.
    """

    history: OffsetHistory
    committed: Sequence[Row] = ()
    pending: Sequence[Row] = ()
    assigned: Collection[Place] = ()
    groups: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[str, str] = field(default_factory=dict)
    lines: Sequence[LostLine] = ()
    unjudged: Mapping[int, Unjudged] = field(default_factory=dict)
    uncompacted_from: Mapping[int, int] = field(default_factory=dict)
    what_took: Mapping[int, str] = field(default_factory=dict)
    log_starts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    topics: TopicLives = field(default_factory=TopicLives)
    out_of_reach: Sequence[Verdict] = ()
    until: datetime | None = None

    @cached_property
    def incomplete(self) -> dict[Place, Row]:
        """The last change of each place before which records are lost."""
        return incomplete(self.history)

    def passed_over(self, place: Place) -> str | None:
        """Return what a group never committed of a partition that it took on after others.

        Only where all of its commits are in the history, and the log still has what lies below.
        """
        group, topic, partition = place
        start, home = self.log_starts.get((topic, partition)), self.groups.get(group)
        is_whole = home is not None and not self.uncompacted_from.get(home)
        if start is None or not is_whole or group in self.gaps or place in self.incomplete:
            return None
        begun, span = self._begun.get((group, topic)), self.history.of(place)
        if begun is None or not span:
            return None
        rows = self.history.rows
        epoch, first = (rows[name][span.start].as_py() for name in ("epoch", "committed_offset"))
        if epoch is None or epoch <= begun or first is None or first <= start:
            return None
        return BELOW_FIRST.format(start, first - 1)

    @cached_property
    def _begun(self) -> dict[tuple[str, str], int]:
        """By group and topic, the epoch of its first commit."""
        rows = self.history.rows
        found = rows.group_by(["group_id", "topic"]).aggregate([("epoch", "min")]).to_pylist()
        return {
            (each["group_id"], each["topic"]): each["epoch_min"]
            for each in found
            if each["epoch_min"] is not None
        }

    def not_whole_before(self, start: int, home: int) -> str:
        """Return that history before an offset of an internal partition is not whole, in words."""
        what = self.what_took.get(home, "was compacted")
        return f"history before offset {start} of __consumer_offsets-{home} {what}"

    def unjudged_election(self, home: int) -> Unjudged | None:
        """Return the last election of an internal partition that may have lost commits unseen."""
        found = self.unjudged.get(home)
        return None if found is None or _is_later(found.at, self.until) else found


def verdicts(evidence: VerdictEvidence) -> list[Verdict]:
    """Return a verdict for everything that happened to each offset, the worst first.

    An offset to which nothing happened has one verdict: no loss found since a time, or never
    committed. Where a part of its history cannot be judged, that is a verdict too.
    """
    found = [
        *evidence.out_of_reach,
        *happenings(evidence.history),
        *election_losses(evidence.lines, evidence.history, evidence.uncompacted_from),
        *_in_force(evidence),
        *_without_group(evidence),
    ]
    found = [each for each in found if not _is_later(each["at"], evidence.until)]
    found = _with_compacted(evidence, found)
    befallen = {place_of(each) for each in found}
    found += _not_told(evidence, {place_of(each) for each in found})
    found += [_pending(each) for each in evidence.pending]
    found += _no_losses(evidence, befallen)
    found += _never_committed(evidence, {place_of(each) for each in found})
    found += _not_told_of_groups(evidence)
    return in_order(found)


def _with_compacted(evidence: VerdictEvidence, rows: Sequence[Verdict]) -> list[Verdict]:
    """Say with the first that happened to an offset that compaction may have taken what was before.

    Where nothing happened the verdict itself says since when.
    """
    first: dict[Place, Verdict] = {}
    for each in sorted(rows, key=lambda each: each["at"].timestamp() if each["at"] else 0):
        first.setdefault(place_of(each), each)
    told = []
    for each in rows:
        start = evidence.uncompacted_from.get(evidence.groups.get(each["group_id"], -1), 0)
        if start and each["reason"] is None and first[place_of(each)] is each:
            home = evidence.groups[each["group_id"]]
            told.append({**each, "reason": evidence.not_whole_before(start, home)})
        else:
            told.append(each)
    return told


def in_order(rows: Iterable[Verdict]) -> list[Verdict]:
    """Return verdicts, the worst first.

    What cannot be told of one thing for several reasons is one verdict, which has them all.
    """
    return sorted(_with_all_reasons(rows), key=_order)


def _with_all_reasons(rows: Iterable[Verdict]) -> list[Verdict]:
    several: dict[tuple[object, ...], list[Verdict]] = {}
    for each in rows:
        several.setdefault(tuple(each[name] for name in _KEY), []).append(each)
    told: list[Verdict] = []
    for same in several.values():
        if same[0]["verdict"] == CANNOT_TELL:
            reasons = dict.fromkeys(each["reason"] for each in same if each["reason"])
            told.append({**same[0], "reason": "; ".join(reasons) or None})
        else:
            told += same
    return told


def _order(row: Verdict) -> tuple[object, ...]:
    word, cost = rank(row)
    at = row["at"].timestamp() if row["at"] else 0
    number = -1 if row["partition"] is None else row["partition"]
    return word, row["group_id"], cost, row["topic"] or "", number, at


def _in_force(evidence: VerdictEvidence) -> Iterator[Verdict]:
    """Yield what became of the records that offsets in force point at."""
    for row in evidence.committed:
        if row.get("complete") is False:
            continue
        place, offset = place_of(row), row["committed_offset"]
        topic = evidence.topics.since(row) or {}
        if "verdict" in topic:
            yield verdict_row(place, **{"was": offset, "reason": None, **topic})
            continue
        start = evidence.log_starts.get((row["topic"], row["partition"]))
        if start is not None and offset is not None and offset < start:
            yield verdict_row(
                place,
                BELOW_LOG_START,
                was=offset,
                cost=offset - start,
                reason=_below(start, evidence.history.highest_of(place, row["topic_id"])),
            )


def _without_group(evidence: VerdictEvidence) -> Iterator[Verdict]:
    """Yield commits of transactions that outlived their group (since 4.0).

    No tombstone of a group takes what is pending. Its marker puts the offset in force, and makes no
    group: a fetch finds none, until a member or a commit makes it again (KAFKA-19163, -19164).
    """
    told = {place_of(row) for row in evidence.committed}
    for row in evidence.history.last_in_force():
        if place_of(row) not in told and row["event"] == TRANSACTION_COMMIT:
            offset = row["committed_offset"]
            yield verdict_row(
                place_of(row),
                WITHOUT_GROUP,
                at=row["effective_timestamp"],
                was=row["previous_offset"],
                became=offset,
                record=record_of(row, row["effective_offset"]),
                reason=f"the group was removed while {offset} was pending, then the transaction "
                f"committed: {offset} is in force once a group of this name is there again",
            )


def _below(start: int, highest: int | None) -> str:
    reason = f"the log begins at {start}: a consumer goes where auto.offset.reset says"
    if highest is None or highest < start:
        return reason
    return f"{reason}; {highest} had been committed before, so nothing unread was deleted"


def _not_told(evidence: VerdictEvidence, befallen: set[Place]) -> Iterator[Verdict]:
    """Yield what cannot be told of an offset that has a history."""
    homes = {place_of(row): row["coordinator_partition"] for row in evidence.committed}
    for place in dict.fromkeys([*evidence.history.places, *befallen]):
        if place in evidence.incomplete:
            row = evidence.incomplete[place]
            yield verdict_row(
                place, CANNOT_TELL, at=row["effective_timestamp"], reason=row["missing"]
            )
        home = homes.get(place, evidence.groups.get(place[0]))
        unjudged = None if home is None else evidence.unjudged_election(home)
        if unjudged is not None:
            yield verdict_row(place, CANNOT_TELL, at=unjudged.at, reason=unjudged.reason)
    for row in evidence.committed:
        if row.get("complete") is False:
            yield verdict_row(place_of(row), CANNOT_TELL, reason=row["missing"])


def _not_told_of_groups(evidence: VerdictEvidence) -> Iterator[Verdict]:
    """Yield why offsets of a group may have been lost of which nothing is left."""
    for group, home in evidence.groups.items():
        place = group, None, None
        if unjudged := evidence.unjudged_election(home):
            yield verdict_row(place, CANNOT_TELL, at=unjudged.at, reason=unjudged.reason)
        if group in evidence.gaps:
            yield verdict_row(place, CANNOT_TELL, reason=evidence.gaps[group])


def _no_losses(evidence: VerdictEvidence, befallen: set[Place]) -> Iterator[Verdict]:
    """Yield since when nothing befell an offset, where nothing did."""
    for row in evidence.committed:
        place = place_of(row)
        if place in befallen or row.get("complete") is False:
            continue
        unjudged = evidence.unjudged_election(row["coordinator_partition"])
        times = [_whole_since(evidence, place, row), *([unjudged.at] if unjudged else [])]
        if any(each is None for each in times):
            continue
        since = max(each for each in times if each is not None)
        topic = evidence.topics.since(row) or {}
        untold = topic.get("reason") or evidence.topics.not_known(row["topic"])
        said = [each for each in (evidence.passed_over(place), untold) if each is not None]
        yield verdict_row(
            place, f"{NO_LOSS_SINCE} {_iso(since)}", at=since, reason="; ".join(said) or None
        )


def _whole_since(evidence: VerdictEvidence, place: Place, row: Row) -> datetime | None:
    """Return the time of the first change from which on a history has no gap.

    Compaction leaves the last record of each key: from that on nothing is missing. What it left
    behind where nothing was compacted has all changes.
    """
    if place in evidence.incomplete:
        since: datetime | None = evidence.incomplete[place]["effective_timestamp"]
        return since
    start = evidence.uncompacted_from.get(row["coordinator_partition"], 0)
    return evidence.history.last_time_before(place, start) or row["commit_timestamp"]


def _pending(row: Row) -> Verdict:
    offset, producer = row["committed_offset"], row.get("producer_id")
    whose = "" if producer is None else f" of producer {producer}"
    verdict, reason = PENDING, f"{offset} is committed when the transaction{whose} is"
    if row.get("complete") is False:
        verdict = CANNOT_TELL
        reason = f"whether the transaction{whose} has committed {offset}: {row['missing']}"
    return verdict_row(
        place_of(row), verdict, at=row["commit_timestamp"], record=record_of(row), reason=reason
    )


def _never_committed(evidence: VerdictEvidence, judged: set[Place]) -> Iterator[Verdict]:
    for place in sorted(set(evidence.assigned) - judged - evidence.history.places.keys()):
        home = evidence.groups.get(place[0])
        reason, at = evidence.gaps.get(place[0]), None
        if reason is None and home is not None and evidence.uncompacted_from.get(home):
            compacted = evidence.not_whole_before(evidence.uncompacted_from[home], home)
            reason = f"{compacted}, perhaps with a commit and its tombstone"
        elif reason is None and home is not None and (unjudged := evidence.unjudged_election(home)):
            reason, at = unjudged.reason, unjudged.at
        word = NEVER_COMMITTED if reason is None else CANNOT_TELL
        yield verdict_row(place, word, at=at, reason=reason)


def _is_later(at: datetime | None, until: datetime | None) -> bool:
    return at is not None and until is not None and at > until


def _iso(at: datetime) -> str:
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
