"""From a row of `cases` to the `Case` that is judged."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from analytics.assignors.group import Group, Member, TopicId
from analytics.questions.balance.cases.case import CLASSIC, COUNT_SOURCES, SHARE, Case
from analytics.questions.balance.judgement.partition_names import counted

_LOWER_BOUND = "seen"
_CONSUMERS = "consumer"
_STABLE = "STABLE"

Row = Mapping[str, Any]


def case_of(row: Row) -> Case:
    """Return the case that a row of `cases` describes."""
    topics = {each["topic"]: each for each in row["topics"] or ()}
    wants = {m["member_id"]: frozenset(m["wants"] or ()) for m in row["members"]}
    everything = frozenset[str]().union(*wants.values())
    known = {name for name, each in topics.items() if each["partitions"] is not None}
    unknown = sorted(
        topic for topic in everything - known if topic in topics or not row["is_whole"]
    )
    sources = [topics[topic]["counted_by"] for topic in everything & known]
    return Case(
        group_id=row["group_id"],
        group_type=row["group_type"],
        epoch=row["epoch"],
        group=_group(row, topics, wants, known),
        protocol=row["protocol"],
        unknown=tuple(unknown),
        counted_by=COUNT_SOURCES[-1]
        if unknown
        else max(sources, key=COUNT_SOURCES.index, default=COUNT_SOURCES[0]),
        unreadable=_unreadable(row),
        unsettled=_unsettled(row),
        owned_before=_owned_before(row),
        moved=row.get("moved"),
        progress=_progress(row),
    )


def _group(
    row: Row,
    topics: Mapping[str, Row],
    subscriptions: Mapping[str, frozenset[str]],
    names: set[str],
) -> Group:
    counts = {name: int(topics[name]["partitions"]) for name in sorted(names)}
    members = []
    for each in row["members"]:
        current = {held["topic"]: tuple(held["partitions"]) for held in each["has"] or ()}
        members.append(
            Member(
                id=each["member_id"],
                # What nobody counts is told apart; the assignors pass over what does not exist.
                subscription=subscriptions[each["member_id"]] & names,
                current=current,
                instance_id=each["group_instance_id"],
                rack=each["rack_id"],
            )
        )
        if not row["is_whole"]:
            _count_what_is_held(counts, current)
    return Group(
        counts, tuple(members), _assignable(row, topics), topic_ids=_topic_ids(topics, counts)
    )


def _count_what_is_held(counts: dict[str, int], current: Mapping[str, tuple[int, ...]]) -> None:
    """Take partitions of a topic without a count for real, where nothing says that it is gone."""
    for topic, partitions in current.items():
        counts.setdefault(topic, 0)
        counts[topic] = max(counts[topic], *(number + 1 for number in partitions))


def _assignable(row: Row, topics: Mapping[str, Row]) -> dict[str, frozenset[int]] | None:
    if row["group_type"] != SHARE:
        return None
    told = {name: each["assignable"] for name, each in topics.items()}
    if all(each is None for each in told.values()):
        return None
    return {name: frozenset(each or ()) for name, each in told.items()}


def _topic_ids(topics: Mapping[str, Row], counts: Mapping[str, int]) -> dict[str, TopicId]:
    return {
        name: _topic_id(topics[name]["topic_id"])
        for name in counts
        if name in topics and topics[name]["topic_id"]
    }


def _topic_id(text: str) -> TopicId:
    raw = base64.urlsafe_b64decode(text + "==")
    return (
        int.from_bytes(raw[:8], "big", signed=True),
        int.from_bytes(raw[8:], "big", signed=True),
    )


def _unreadable(row: Row) -> str | None:
    if row["group_type"] == CLASSIC and row["protocol_type"] != _CONSUMERS:
        kind = row["protocol_type"] or "no protocol"
        return f"not a consumer group ({kind}): what its members share is not known"
    unread = [member["unread"] for member in row["members"] if member["unread"]]
    if unread:
        has = "has" if len(unread) == 1 else "have"
        return f"what {counted(len(unread), 'member')} {has} cannot be read: {unread[0]}"
    if row["unread"]:
        return str(row["unread"])
    silent = sum(member["wants"] is None for member in row["members"])
    if silent:
        return (
            f"what {counted(silent, 'member')} subscribed to cannot be read or is not in the dump"
        )
    return None


def _unsettled(row: Row) -> str | None:
    wanted = row["assignment_epoch"]
    if row["group_type"] == CLASSIC or wanted is None:
        return None
    if row["epoch"] > wanted:
        return (
            f"group epoch {row['epoch']} is ahead of assignment epoch {wanted}: "
            "nothing has been assigned since"
        )
    late = sum(
        member["member_epoch"] != wanted or (member["state"] or _STABLE) != _STABLE
        for member in row["members"]
    )
    if late:
        return (
            f"{counted(late, 'member')} of {len(row['members'])} have yet to take up epoch {wanted}"
        )
    return None


def _owned_before(row: Row) -> frozenset[tuple[str, int]] | None:
    before = row.get("owned_before")
    return None if before is None else frozenset((e["topic"], e["partition"]) for e in before)


def _progress(row: Row) -> dict[tuple[str, int], int] | None:
    advances = row.get("progress")
    if advances is None:
        return None
    return {(each["topic"], each["partition"]): each["advance"] for each in advances}
