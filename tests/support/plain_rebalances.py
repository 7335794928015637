"""What `rebalances` and `group_churn` must say of a printed log: one record after the other.

Written from docs/rebalances.md. A generation or group epoch begins with the first record that names
it; who came and went before that record led to it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.plain_coordinator import FAMILIES, read_subscription
from tests.support.plain_log import PlainRecord

CHURN = ("joined", "left", "restarted", "fenced", "subscription_changed")
NO_TIME = -1
AWAY = -2
"""Member epoch of a static member that will come back."""
Row = dict[str, Any]


@dataclass
class Life:
    """A group from its first record to its deletion, or to another type."""

    family: str
    number: int
    rows: list[Row] = field(default_factory=list)
    members: dict[str, str | None] = field(default_factory=dict)
    """Static name by member id."""
    wants: dict[str, Any] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    """Static members that left and may come back."""
    changes: dict[str, set[str]] = field(default_factory=dict)
    generation: int | None = None
    """The epoch in force; of a converted group that of its life before."""
    carried: set[str] = field(default_factory=set)
    """Members of the life before a conversion of which no record here has been seen yet."""
    gone_now: dict[str, str | None] = field(default_factory=dict)
    """Members, with their static names, that were removed at this very time."""
    is_untold: list[bool] = field(default_factory=list)
    """Of each of `rows`, whether what told of members since the one before may be gone."""

    def change(self, what: str, member: str) -> None:
        """Note a change that leads to the next epoch."""
        self.changes.setdefault(what, set()).add(member)


class PlainRebalances:
    """The groups of one partition of `__consumer_offsets`."""

    def __init__(self, cleaned_until: int = 0) -> None:
        """Begin with nothing.

        Args:
            cleaned_until: How far the cleaner has been: below, the first record that is left of a
                group may repeat what older ones told that are gone.
        """
        self._cleaned_until = cleaned_until
        self.lives: dict[str, list[Life]] = {}
        self._open: dict[str, Life] = {}
        self._closed: dict[str, Life] = {}
        """Lives that ended at this very time: what follows at once is a conversion of them."""

    def replay(self, records: Iterable[PlainRecord]) -> None:
        """Apply records."""
        at = None
        for record in records:
            if record.timestamp != at:
                self._closed.clear()
                for life in self._open.values():
                    life.gone_now.clear()
            at = record.timestamp
            if record.control_type is not None or record.table == "offset_commit":
                continue
            if record.table == "group_metadata":
                self._classic(record)
            else:
                self._modern(record)

    def _life(self, name: str, family: str) -> Life:
        there = self._open.get(name)
        if there is None or there.family != family:
            lives = self.lives.setdefault(name, [])
            there = Life(family, len(lives) + 1)
            lives.append(there)
            if name in self._closed:
                _convert(self._closed.pop(name), there)
            self._open[name] = there
        return there

    def _close(self, name: str) -> None:
        life = self._open.pop(name, None)
        if life is not None:
            self._closed[name] = life

    def _classic(self, record: PlainRecord) -> None:
        name, value = record.key["group"], record.value
        if value is None:
            self._close(name)
            return
        life = self._life(name, "classic")
        members = {each["member_id"]: each.get("group_instance_id") for each in value["members"]}
        wants = {each["member_id"]: _topics(each) for each in value["members"]}
        self._compare(life, members, wants)
        if life.rows and life.rows[-1]["epoch"] == value["generation"]:
            _merge(life.rows[-1], life.changes)
            life.rows[-1]["stored_again"] += 1
            life.rows[-1]["member_count"] = len(members)
        elif value["generation"] or members:
            self._begin(life, record, value["generation"], len(members))
        life.changes = {}
        life.generation = value["generation"]
        life.members, life.wants = members, wants

    @staticmethod
    def _compare(life: Life, members: Mapping[str, str | None], wants: Mapping[str, Any]) -> None:
        gone = {each: static for each, static in life.members.items() if each not in members}
        back = {
            each: static
            for each, static in members.items()
            if each not in life.members and static and static in gone.values()
        }
        for member in members:
            if member in back:
                life.change("restarted", member)
            elif member not in life.members:
                life.change("joined", member)
            elif life.wants[member] not in {None, wants[member]}:
                life.change("subscription_changed", member)
        for member, static in gone.items():
            if static is None or static not in back.values():
                life.change("left", member)

    def _may_repeat(self, life: Life, record: PlainRecord, epoch: int) -> bool:
        is_first = life.number == 1 and not life.rows and life.generation is None
        return (
            is_first
            and record.offset < self._cleaned_until
            and (life.family == "classic" or epoch > 1)
        )

    def _may_lack(self, life: Life, record: PlainRecord, epoch: int) -> bool:
        """Whether the cleaner may have taken what told of members since the epoch before.

        A generation has all of its members in one record; else each member has its own.
        """
        since = life.rows[-1]["from_offset"] if life.rows else record.offset
        is_missing = life.family == "classic" and epoch > (life.generation or 0) + 1
        is_first = self._may_repeat(life, record, epoch)
        is_alone = life.family != "classic" and bool(life.rows)
        return is_first or (since < self._cleaned_until and (is_missing or is_alone))

    def _begin(
        self, life: Life, record: PlainRecord, epoch: int, members: int | None = None
    ) -> None:
        before = life.rows[-1] if life.rows else None
        for member in life.carried:
            life.members.pop(member, None)
            life.change("left", member)
        life.carried = set()
        at = None if record.timestamp == NO_TIME else record.timestamp
        since = life.generation
        if since is None:
            since = 0 if life.family == "classic" else epoch - 1
        since_previous = None
        if before is not None and at is not None and before["at"] is not None:
            since_previous = at - before["at"]
        row: Row = {
            "life": life.number,
            "group_type": life.family,
            "epoch": epoch,
            "at": at,
            "since_previous_ms": since_previous,
            "member_count": len(life.members) if members is None else members,
            "missing_before": max(epoch - since - 1, 0),
            "stored_again": 0,
            "leader_epoch": None if record.leader_epoch < 0 else record.leader_epoch,
            "from_offset": record.offset,
            **{name: set() for name in CHURN},
        }
        if self._may_repeat(life, record, epoch):
            life.changes.pop("joined", None)
        life.is_untold.append(self._may_lack(life, record, epoch))
        _merge(row, life.changes)
        life.changes, life.generation = {}, epoch
        life.rows.append(row)

    def _modern(self, record: PlainRecord) -> None:
        family, _, kind = record.table.partition("_group_")
        name, value = record.key["group_id"], record.value
        if family not in FAMILIES or (value is None and name not in self._open):
            return
        if kind == "metadata":
            if value is None:
                self._close(name)
                return
            life = self._life(name, family)
            if not life.rows or life.rows[-1]["epoch"] != value["epoch"]:
                self._begin(life, record, value["epoch"])
        elif kind == "member_metadata":
            self._member(self._life(name, family), record)
        elif kind == "current_member_assignment" and value is not None:
            life, member = self._life(name, family), record.key["member_id"]
            (life.away.add if value["member_epoch"] == AWAY else life.away.discard)(member)

    def _member(self, life: Life, record: PlainRecord) -> None:
        member, value = record.key["member_id"], record.value
        life.carried.discard(member)
        if value is None:
            if member in life.members:
                self._leaves(life, member)
            return
        static = value.get("instance_id")
        wants = (
            sorted(value.get("subscribed_topic_names") or ()),
            value.get("subscribed_topic_regex") or None,
        )
        if member not in life.members:
            self._joins(life, member, static)
        elif life.wants[member] not in {None, repr(wants)}:
            life.change("subscription_changed", member)
        life.members[member], life.wants[member] = static, repr(wants)

    @staticmethod
    def _leaves(life: Life, member: str) -> None:
        static = life.members.pop(member)
        del life.wants[member]
        life.gone_now[member] = static
        if static is None or static not in life.members.values():
            life.change("fenced" if member in life.away else "left", member)

    @staticmethod
    def _joins(life: Life, member: str, static: str | None) -> None:
        gone = [each for each, named in life.gone_now.items() if static and named == static]
        for each in gone:
            for word in ("fenced", "left"):
                life.changes.get(word, set()).discard(each)
        is_back = gone or (static and static in life.members.values())
        life.change("restarted" if is_back else "joined", member)

    def rows(self) -> dict[tuple[str, int], Row]:
        """Return the columns of `rebalances` that are held against this; lists are ascending."""
        return {
            (name, row["from_offset"]): {
                **row,
                # Nobody is known to have done it, and what the cleaner took may have told of some.
                **{each: sorted(row[each]) or (None if is_untold else []) for each in CHURN},
            }
            for name, lives in self.lives.items()
            for life in lives
            for row, is_untold in zip(life.rows, life.is_untold, strict=True)
        }

    def churn(self) -> dict[str, Row]:
        """Return the columns of `group_churn` that are held against this."""
        found = {}
        for name, lives in self.lives.items():
            rows = [row for life in lives for row in life.rows]
            if not rows:
                continue
            times = [row["at"] for row in rows if row["at"] is not None]
            between = [
                row["since_previous_ms"] for row in rows if row["since_previous_ms"] is not None
            ]
            is_untold = any(each for life in lives for each in life.is_untold)
            found[name] = {
                "group_type": rows[-1]["group_type"],
                "epochs": len(rows),
                "from_timestamp": min(times, default=None),
                "to_timestamp": max(times, default=None),
                "stored_again": sum(row["stored_again"] for row in rows),
                "median_seconds_between": statistics.median(between) / 1000 if between else None,
                **{
                    each: sum(len(row[each]) for row in rows) or (None if is_untold else 0)
                    for each in CHURN
                },
            }
        return found


def _convert(old: Life, new: Life) -> None:
    """Take over the members of a group that becomes one of another type."""
    members = {**old.members, **old.gone_now}
    new.members, new.wants = dict(members), dict.fromkeys(members)
    new.carried = set(members) if new.family != "classic" else set()
    new.generation = old.generation


def _merge(row: Row, changes: Mapping[str, set[str]]) -> None:
    for name, members in changes.items():
        row[name] |= members


def _topics(member: Mapping[str, Any]) -> Any:
    if not member["subscription"]:
        return None
    said = read_subscription(member)
    return None if said is None else repr(sorted(said["topics"]))
