"""All cuts of a copy replayed at once, and what our tables say in the words brokers answer in.

Each cut becomes internal partitions of its own, and its groups get the cut's number before their
names: so one pass replays them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl

from analytics.replay.log.rules import ReplayRules, replay_rules
from tests.support.broker_state import BrokerState, CutAssignment, CutGroup, CutMember, CutOffset
from tests.support.replayed_tables import replayed_frames

if TYPE_CHECKING:
    from tests.support.cuts import Cut

OFFSETS = "__consumer_offsets"
APART = 1000  # more than any dump has partitions of the topic
Unstable = tuple[str, str, int]


@dataclass
class Replayed:
    """What we make of one cut. Pending offsets are those of partitions with a committed one."""

    groups: dict[str, CutGroup] = field(default_factory=dict)
    members: dict[tuple[str, str], CutMember] = field(default_factory=dict)
    assignments: set[CutAssignment] = field(default_factory=set)
    committed_offsets: set[CutOffset] = field(default_factory=set)
    unstable_offsets: set[Unstable] = field(default_factory=set)


def side_by_side(
    decoded: Mapping[str, pl.DataFrame], cuts: Sequence[Cut]
) -> dict[str, pl.DataFrame]:
    """Lay the cuts' records next to each other; partitions a cut does not name hold nothing."""
    rows = [
        (number, partition, end)
        for number, cut in enumerate(cuts)
        for (topic, partition), end in cut.end_offsets.items()
        if topic == OFFSETS
    ]
    schema = {"cut": pl.Int32, "partition": pl.Int32, "end_offset": pl.Int64}
    ends = pl.DataFrame(rows, schema, orient="row")
    places = ends.with_columns(laid_as=pl.col("partition") + pl.col("cut") * APART)
    return {
        name: laid_apart(
            frame.join(places, "partition").filter(pl.col("offset") < pl.col("end_offset")),
            pl.col("cut"),
        ).select(frame.columns)
        for name, frame in decoded.items()
    }


def laid_apart(frame: pl.DataFrame, number: pl.Expr) -> pl.DataFrame:
    """Move records to the partition `laid_as`, with a number before the names of their groups."""
    if "key" in frame.columns:
        names = {"group", "group_id"} & set(frame["key"].struct.fields)
        own = [
            pl.concat_str(number, pl.col("key").struct.field(name), separator="|").alias(name)
            for name in names
        ]
        frame = frame.with_columns(pl.col("key").struct.with_fields(*own))
    return frame.with_columns(partition=pl.col("laid_as"))


def replayed(
    decoded: Mapping[str, pl.DataFrame], topics: pl.DataFrame, rules: ReplayRules
) -> _ByCut:
    """Replay what `side_by_side` laid out.

    Args:
        decoded: The tables of `__consumer_offsets`, and `transaction_log` (it may be empty).
        topics: `topic` and `topic_id`.
        rules: Of the release.
    """
    frames = replayed_frames(decoded, topics, rules)
    return by_cut(
        {
            name: [SimpleNamespace(**row) for row in frame.iter_rows(named=True)]
            for name, frame in frames.items()
        }
    )


def by_cut(tables: Mapping[str, Iterable[Any]]) -> _ByCut:
    """Put the rows of state tables in the brokers' words.

    Args:
        tables: Rows with the columns of the tables as attributes; each group's name has the number
            of its cut and a bar before it.
    """
    found = _ByCut()
    for number, group, row in _split(tables["committed_offsets"]):
        found[number].committed_offsets.add(_offset(group, row))
    for number, group, row in _split(tables["pending_offsets"]):
        found[number].unstable_offsets.add((group, row.topic, row.partition))
    for number, group, row in _split(tables["groups"]):
        found[number].groups[group] = _group(group, row)
    for number, group, row in _split(tables["members"]):
        found[number].members[group, row.member_id] = _member(group, row)
    for number, group, row in _split(tables["assignments"]):
        # Brokers answer neither the targets of share groups nor the tasks that are given back.
        hidden = (row.group_type, row.kind) in {
            ("share", "target"),
            ("streams", "pending_revocation"),
        }
        if not hidden:
            found[number].assignments.add(_assignment(group, row))
    for each in found.values():
        # What a member is to get outlives its own record where compaction took that one: the
        # newer is above the cut. Brokers describe members, and it under them.
        each.assignments = {
            told for told in each.assignments if (told.group_id, told.member_id) in each.members
        }
        stable = {(told.group_id, told.topic, told.partition) for told in each.committed_offsets}
        each.unstable_offsets &= stable
    return found


class _ByCut(defaultdict[int, Replayed]):
    def __init__(self) -> None:
        super().__init__(Replayed)


def _split(rows: Iterable[Any]) -> Iterable[tuple[int, str, Any]]:
    for row in rows:
        number, _, group = row.group_id.partition("|")
        yield int(number), group, row


def _offset(group: str, row: Any) -> CutOffset:
    return CutOffset(
        group,
        row.topic,
        row.partition,
        row.committed_offset,
        row.committed_leader_epoch,
        row.metadata,
    )


def _group(group: str, row: Any) -> CutGroup:
    classic = row.group_type in {"classic", "simple"}
    return CutGroup(
        group_id=group,
        group_type="classic" if classic else row.group_type,
        protocol_type=row.protocol_type or "",
        state=row.state,
        epoch=None if classic else row.epoch,
        assignment_epoch=row.assignment_epoch,
        protocol=row.protocol,
        member_count=row.member_count,
    )


def _member(group: str, row: Any) -> CutMember:
    topics = row.subscribed_topics
    return CutMember(
        group_id=group,
        group_type=row.group_type,
        member_id=row.member_id,
        group_instance_id=row.group_instance_id,
        client_id=row.client_id,
        client_host=row.client_host,
        rack_id=row.rack_id,
        member_epoch=None if row.group_type == "classic" else row.member_epoch,
        subscribed_topics=None if topics is None else tuple(sorted(topics)),
        subscribed_regex=row.subscribed_regex,
        is_classic=row.is_classic if row.group_type in {"consumer", "streams"} else None,
        process_id=row.process_id,
        topology_epoch=row.topology_epoch,
    )


def _assignment(group: str, row: Any) -> CutAssignment:
    return CutAssignment(
        group,
        row.member_id,
        row.kind,
        row.role,
        row.subtopology_id,
        row.topic,
        row.topic_id,
        row.partition,
    )


def fenced_groups(ours: Replayed, told: BrokerState) -> set[str]:
    """Return the groups of which the broker lost members after it had loaded their records.

    Their sessions were over before it was asked: it fenced them, with a new group epoch for each;
    a classic group it had listed in the state that we say, and then described as Empty. All
    that is left of such a group has to be as we say.
    """
    there: dict[str, set[str]] = defaultdict(set)
    for each in told.members:
        there[each.group_id].add(each.member_id)
    fenced = set()
    listed = dict(told.left_since)
    for group in told.groups:
        mine = ours.groups.get(group.group_id)
        if mine is not None and mine.state == listed.get(group.group_id):
            fenced.add(group.group_id)
        if mine is None or group.epoch is None or mine.epoch is None or group.epoch <= mine.epoch:
            continue
        lost = {member for name, member in ours.members if name == group.group_id}
        lost -= there[group.group_id]
        if 0 < len(lost) <= group.epoch - mine.epoch:
            fenced.add(group.group_id)
    return fenced


def differences(
    ours: Replayed, told: BrokerState, *, asked_for_pending: bool
) -> dict[str, tuple[list[object], list[object]]]:
    """Return what only we say, and what only the broker says, by table."""
    fenced = fenced_groups(ours, told)
    there = {(each.group_id, each.member_id) for each in told.members}
    mine: dict[str, set[object]] = {
        "groups": {each for each in _as_ready(ours.groups, told) if each.group_id not in fenced},
        "members": {
            each for key, each in ours.members.items() if key[0] not in fenced or key in there
        },
        "assignments": {
            each
            for each in _as_told(ours.assignments, told.release)
            if (each.topic_id is None or each.topic is not None)
            and (each.group_id not in fenced or (each.group_id, each.member_id) in there)
        },
        "committed_offsets": set(ours.committed_offsets),
        "unstable_offsets": set(ours.unstable_offsets),
    }
    theirs: dict[str, set[object]] = {
        "groups": {each for each in told.groups if each.group_id not in fenced},
        "members": {replace(each, subscription=None, assignment=None) for each in told.members},
        "assignments": set(told.assignments),
        "committed_offsets": set(told.committed_offsets),
        "unstable_offsets": set(told.unstable_offsets),
    }
    if not asked_for_pending:
        del mine["unstable_offsets"]
    return {
        table: (sorted(rows - theirs[table], key=str), sorted(theirs[table] - rows, key=str))
        for table, rows in mine.items()
        if rows != theirs[table]
    }


def _as_ready(ours: Mapping[str, CutGroup], told: BrokerState) -> Iterator[CutGroup]:
    """Give streams groups of a running 4.1 the state it says: it forgets it when it loads them."""
    states = {each.group_id: each.state for each in told.groups}
    recorded = replay_rules(told.release).streams_readiness_is_recorded
    for group_id, each in ours.items():
        unknown = each.group_type == "streams" and each.state == "NotReady" and not recorded
        yield replace(each, state=states.get(group_id, each.state)) if unknown else each


def _as_told(assignments: Iterable[CutAssignment], release: str) -> Iterator[CutAssignment]:
    """Name what is given back as a broker does: a member's own since 4.3, nobody's before."""
    tells = tuple(map(int, release.split(".")[:2])) >= (4, 3)
    for each in assignments:
        if each.kind != "pending_revocation":
            yield each
        elif tells:
            yield replace(each, kind="current")


def told_of(state: BrokerState, here: set[int], partitions: int) -> BrokerState:
    """Keep what a broker said of groups whose internal partition is at hand.

    Args:
        state: What it said.
        here: The partitions of `__consumer_offsets` at hand.
        partitions: How many the topic has.
    """

    def held(group: str) -> bool:
        return home_of(group, partitions) in here

    return replace(
        state,
        groups=tuple(each for each in state.groups if held(each.group_id)),
        members=tuple(each for each in state.members if held(each.group_id)),
        assignments=tuple(each for each in state.assignments if held(each.group_id)),
        committed_offsets=tuple(each for each in state.committed_offsets if held(each.group_id)),
        unstable_offsets=tuple(each for each in state.unstable_offsets if held(each[0])),
    )


def home_of(group: str, partitions: int) -> int:
    """Return the internal partition of a group: Java's hash over UTF-16, its absolute value."""
    code = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partitions
