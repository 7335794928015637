"""What `lag` must say of a printed log: commit by commit, partition by partition, slow, and plain.

Written from docs/lag.md, the columns of `lag` and the verdicts of its rules. Samples of ends within
a history, and what rests on them (trend, Burrow's status, time lag), are not told here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.support.plain_coordinator import PlainCoordinator
from tests.support.reference_groups import ClassicGroup, ModernGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.support.plain_log import PlainRecord, PlainTopic
    from tests.support.reference_offsets import GroupRecord

Row = dict[str, Any]
Place = tuple[str, str, int]
"""Group, topic, partition."""
STUCK_MS = 5 * 60_000
JUMP_TIMES, JUMP_RECORDS, JUMP_AFTER = 20, 1000, 5
NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"


@dataclass(frozen=True)
class Said:
    """A commit that took effect: when that was, what it said; its offset is None for none."""

    at: int
    offset: Any
    committed_at: int
    epoch: int | None
    topic_id: str | None


@dataclass
class Moved:
    """How one partition of a group moved: its commits in order, and the step that each one was."""

    commits: list[Said] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    in_force: Said | None = None

    def commit(self, now: Said) -> None:
        """Take a commit; an offset below 0 is none."""
        if now.offset is not None:
            before = self.in_force.offset if self.in_force else None
            self.commits.append(now)
            self.steps.append(None if before is None else now.offset - before)
        self.in_force = now

    def of_topic(self) -> list[Said]:
        """The commits since the topic's id was last another one."""
        found: list[Said] = []
        known = None
        for each in self.commits:
            if each.topic_id is not None and known not in (None, each.topic_id):
                found = []
            known = each.topic_id or known
            found.append(each)
        return found

    def numbers(self) -> Row:
        """The columns that tell of commits."""
        if not self.commits:
            return dict.fromkeys(_OF_COMMITS)
        count = len(self.commits)
        forward = [
            (commit, step)
            for commit, step in zip(self.commits, self.steps, strict=True)
            if step is not None and step > 0
        ]
        return {
            "commits": count,
            "unchanged_commits": self.steps.count(0),
            "unchanged_share": self.steps.count(0) / count,
            "rewinds": sum(step is not None and step < 0 for step in self.steps),
            "jumps": self._jumps(),
            "advanced": sum(step for _, step in forward),
            "last_advance_at": max((each.at for each, _ in forward if each.at >= 0), default=None),
            **self._rates(forward),
            "highest_committed": max(each.offset for each in self.of_topic()),
            "first_committed": self.of_topic()[0].offset,
        }

    def _rates(self, forward: list[tuple[Said, int]]) -> Row:
        """Return when the first and the last commit were, and rates: of those that have a time."""
        timed = [each for each in self.commits if each.at >= 0]
        times = [each.at for each in timed]
        first, last = min(times, default=None), max(times, default=None)
        found: Row = {"first_commit_at": first, "last_commit_at": last}
        if first is None or last is None or last == first:
            names = ("commits_per_second", "records_per_second", "records_per_ms")
            return {**found, **dict.fromkeys(names)}
        # What the first of them advanced by was read before it.
        records = sum(step for each, step in forward if each.at >= 0 and each is not timed[0])
        rate = Fraction(records, last - first)
        return {
            **found,
            "commits_per_second": (len(timed) - 1) * 1000 / (last - first),
            "records_per_second": float(rate * 1000),
            "records_per_ms": rate,
        }

    def _jumps(self) -> int:
        found, forward = 0, list[int]()
        for step in self.steps:
            if step is None or step <= 0:
                continue
            if (
                len(forward) >= JUMP_AFTER
                and step >= JUMP_RECORDS
                and step // JUMP_TIMES >= sum(forward) // len(forward)
            ):
                found += 1
            forward.append(step)
        return found


_OF_COMMITS = (
    *("commits", "unchanged_commits", "unchanged_share", "rewinds", "jumps", "advanced"),
    *("first_commit_at", "last_commit_at", "last_advance_at", "commits_per_second"),
    *("records_per_second", "records_per_ms", "highest_committed", "first_committed"),
)


@dataclass(frozen=True)
class Around:
    """What is known beside the offsets topic.

    Attributes:
        topics: Those that are there, by name; empty where no metadata log tells.
        ends: Where logs start and end, by topic and partition.
        now: The instant, in milliseconds.
    """

    topics: Mapping[str, PlainTopic]
    ends: Mapping[tuple[str, int], tuple[int, int]]
    now: int


class PlainLag:
    """One partition of `__consumer_offsets`."""

    def __init__(self, release: str, *, may_lack: bool) -> None:
        """Begin with nothing; `may_lack`: history was compacted or deleted, commits may be gone."""
        self._coordinator = PlainCoordinator(release)
        self._moved: dict[Place, Moved] = defaultdict(Moved)
        self._may_lack = may_lack
        self._epochs: dict[int, int | None] = {}

    def replay(self, log: Iterable[PlainRecord]) -> None:
        """Apply records, and keep what each of them put in force."""
        for record in log:
            if record.control_type is not None or record.table == "offset_commit":
                self._changed_by(record)
            else:
                self._coordinator.replay(record)

    def _changed_by(self, record: PlainRecord) -> None:
        committed = self._coordinator.offsets.committed
        places = set(committed)
        if record.control_type is None:
            places = {(record.key["group"], record.key["topic"], record.key["partition"])}
        before = {place: committed.get(place) for place in places}
        self._coordinator.replay(record)
        if record.control_type is None:
            group = self._coordinator.groups.get(record.key["group"])
            self._epochs[record.offset] = _epoch(group)
        for place in places if record.control_type is None else {*places, *committed}:
            commit = committed.get(place)
            if commit is None and before.get(place) is not None:
                self._moved[place].in_force = None
            elif commit is not None and commit is not before.get(place):
                self._moved[place].commit(self._said(record, commit.record))

    def _said(self, record: PlainRecord, commit: GroupRecord) -> Said:
        """Return a commit that takes effect by a record: by itself, or a marker."""
        assert commit.value is not None
        offset, identity = commit.value["offset"], commit.value.get("topic_id")
        return Said(
            record.timestamp,
            offset if offset >= 0 else None,
            commit.value["commit_timestamp"],
            self._epochs[commit.offset],
            identity if identity != NO_TOPIC_ID else None,
        )

    def rows(self, around: Around) -> Iterator[tuple[Place, Row]]:
        """The columns of `lag` that are held against this, by place."""
        for name, group in self._coordinator.groups.items():
            if isinstance(group, ModernGroup) and group.family == "share":
                continue
            owners = self._owners(name, group, around)
            wanted = self._coordinator.wanted(name)
            places = {place for place in self._coordinator.offsets.committed if place[0] == name}
            places |= owners.keys() | set(_awaited(name, wanted, around))
            begun = self._begun(name)
            for place in places:
                yield place, self._row(place, owners.get(place, set()), wanted, around, begun)

    def _owners(self, name: str, group: Any, around: Around) -> dict[Place, set[str]]:
        found: dict[Place, set[str]] = defaultdict(set)
        names = {each.topic_id: each.name for each in around.topics.values()}
        sources = self._coordinator.sources(name)
        for member, items in self._coordinator.held(name).items():
            for item, partition in items or ():
                if isinstance(group, ClassicGroup):
                    topics = {item}
                elif group.family == "streams":
                    topics = sources.get(item, set())
                else:
                    topics = {names[item]} if item in names else set()
                for topic in topics:
                    found[name, topic, partition].add(member)
        return found

    def _begun(self, name: str) -> dict[str, int]:
        """Return by topic the epoch of the first commit of any of its partitions."""
        found: dict[str, int] = {}
        for (group, topic, _), moved in self._moved.items():
            firsts = moved.of_topic()[:1] if group == name else []
            for first in firsts:
                if first.epoch is not None:
                    found[topic] = min(first.epoch, found.get(topic, first.epoch))
        return found

    def _row(
        self,
        place: Place,
        owners: set[str],
        wanted: Mapping[str, set[str] | None],
        around: Around,
        begun: Mapping[str, int],
    ) -> Row:
        _, topic, partition = place
        moved = self._moved.get(place, Moved())
        start, end = around.ends.get((topic, partition), (None, None))
        force = moved.in_force
        committed = force.offset if force else None
        present = around.topics.get(topic)
        is_other = (
            force is not None
            and force.topic_id is not None
            and present is not None
            and force.topic_id != present.topic_id
        )
        row: Row = {
            "owners": owners,
            "kind": _kind(committed, owners, topic, wanted),
            "committed_offset": committed,
            "commit_timestamp": force.committed_at if force else None,
            "topic_id": force.topic_id if force else None,
            "log_start_offset": start,
            "log_end_offset": end,
            **moved.numbers(),
        }
        row |= self._parts(row, is_other=is_other)
        row |= _drain(row, around.now)
        row["verdict"] = _verdict(row, around.now, is_other=is_other)
        row["is_passed_over"] = self._is_passed_over(moved, row, begun.get(topic))
        return row

    def _parts(self, row: Row, *, is_other: bool) -> Row:
        """Return the number, and what it hides."""
        committed, start, end = (
            row[name] for name in ("committed_offset", "log_start_offset", "log_end_offset")
        )
        below_first = None
        if row["first_committed"] is not None and start is not None and not is_other:
            below_first = None if self._may_lack else max(0, row["first_committed"] - start)
        names = ("lag", "records_to_read", "offsets_below_start", "offsets_beyond_end")
        parts: Row = {
            **dict.fromkeys((*names, "lost_offsets")),
            "offsets_below_first": below_first,
        }
        if is_other or end is None:
            return parts
        position = start if committed is None else committed
        below = max(0, start - position)
        reached = max(position, row["highest_committed"] or 0)
        lost = max(0, start - reached)
        return {
            "lag": end - position,
            "records_to_read": max(0, end - max(position, start)),
            "offsets_below_start": below,
            "offsets_beyond_end": max(0, position - end),
            "lost_offsets": None if lost and self._may_lack else lost,
            "offsets_below_first": below_first,
        }

    def _is_passed_over(self, moved: Moved, row: Row, begun: int | None) -> bool:
        first = next(iter(moved.of_topic()), None)
        if first is None or first.epoch is None or begun is None:
            return False
        is_later = first.epoch > begun
        # What lies below the log start is said first.
        return is_later and bool(row["offsets_below_first"]) and not row["offsets_below_start"]


def _epoch(group: Any) -> int | None:
    if isinstance(group, ModernGroup):
        return group.epoch
    return group.value["generation"] if isinstance(group, ClassicGroup) else None


def _awaited(name: str, wanted: Mapping[str, set[str] | None], around: Around) -> Iterator[Place]:
    for topics in wanted.values():
        for topic in topics or ():
            if topic in around.topics:
                for partition in range(around.topics[topic].partitions):
                    yield name, topic, partition


def _kind(
    committed: int | None, owners: set[str], topic: str, wanted: Mapping[str, set[str] | None]
) -> str:
    if committed is None:
        return "never_committed"
    if owners:
        return "assigned"
    # Who has members, and knows what each of them subscribes to, knows what none of them does.
    is_clear = wanted and all(topics is not None for topics in wanted.values())
    is_subscribed = any(topic in (topics or ()) for topics in wanted.values())
    return "stale" if is_clear and not is_subscribed else "unassigned"


def _drain(row: Row, now: int) -> Row:
    """Return when nothing would be left, where no trend is known."""
    lag, rate = row["lag"], row.pop("records_per_ms")
    if lag is None:
        return {"drain_ms": None, "drain_bound": "unknown"}
    if lag <= 0:
        return {"drain_ms": 0, "drain_bound": "exact"}
    if not _is_lately(row["last_advance_at"], now):
        # One commit of lately may have advanced from anywhere.
        is_only = row["commits"] == 1 and _is_lately(row["last_commit_at"], now)
        return {"drain_ms": None, "drain_bound": "unknown" if is_only else "never"}
    if rate is None:
        return {"drain_ms": None, "drain_bound": "unknown"}
    if not rate:
        return {"drain_ms": None, "drain_bound": "never"}
    return {"drain_ms": math.ceil(lag / rate), "drain_bound": "at_least"}


def _is_lately(at: int | None, now: int) -> bool:
    return at is not None and now - at <= STUCK_MS


def _verdict(row: Row, now: int, *, is_other: bool) -> str:
    """Return the first verdict that holds, the worst first."""
    is_moving, is_lately = (
        _is_lately(row[name], now) for name in ("last_advance_at", "last_commit_at")
    )
    # Where the log starts is not known, retention may have taken what is next.
    stale = "stale" if row["log_start_offset"] is not None else "cannot_tell"
    is_again = is_lately and (row["commits"] or 0) > 1
    conditions = {
        "other_topic": is_other,
        "lost_records": row["lost_offsets"],
        "below_log_start": row["offsets_below_start"],
        "beyond_end": row["offsets_beyond_end"],
        stale: row["kind"] == "stale",
        "moving": row["lag"] is None and is_moving,
        "idle": row["lag"] is None,
        "caught_up": row["lag"] == 0,
        "never_committed": row["kind"] == "never_committed",
        "unread": not row["owners"],
        "commits_without_progress": not is_moving and is_again,
        "behind": is_moving or is_lately,
        "silent": True,
    }
    return next(verdict for verdict, holds in conditions.items() if holds)
