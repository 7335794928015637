"""A case file: a group written down as JSON, to try an assignor on (`docs/assignors.md`)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.assignors.group import Group, Member, TopicId
from analytics.errors import GroupscopeError

MOST_PARTITIONS = 2_000_000
"""No cluster has more; a slip of the keyboard may ask for billions, and fill the memory."""

_INT32 = range(-(1 << 31), 1 << 31)


class CaseError(GroupscopeError):
    """A case file is not one; the message says where and why."""


@dataclass(frozen=True)
class Case:
    """A group, and the assignor its file names, if it does."""

    group: Group
    assignor: str | None


def read_case(content: bytes | str) -> Case:
    """Return the case that a file holds; keys it does not know are left alone.

    Raises:
        CaseError: It is no JSON, or no case.
    """
    try:
        root = json.loads(content)
    except RecursionError:
        raise CaseError("not a case: nested too deeply") from None
    except ValueError as error:
        raise CaseError(f"not JSON: {error}") from None
    case = _object(root, "the file")
    if "cases" in case and "members" not in case:
        raise CaseError("the file holds a list of cases: give a file with one of them")
    topics = _topics(case)
    members = tuple(
        _member(entry, f"members[{place}]")
        for place, entry in enumerate(_list(_required(case, "members", "the file"), "members"))
    )
    _refuse_twins(members)
    group = Group(
        topics, members, _assignable(case), _replica_racks(case), _topic_ids(case, topics)
    )
    return Case(group, _text_or_none(case, "assignor", "the file"))


def _topics(case: Mapping[str, Any]) -> dict[str, int]:
    counts = {
        topic: _count(count, f"topics[{topic!r}]")
        for topic, count in _object(_required(case, "topics", "the file"), "topics").items()
    }
    if sum(counts.values()) > MOST_PARTITIONS:
        raise CaseError(f"topics: more than {MOST_PARTITIONS:,} partitions in all")
    return counts


def _member(entry: object, where: str) -> Member:
    member = _object(entry, where)
    current = _object(member.get("current") or {}, f"{where}.current")
    generation = member.get("generation")
    return Member(
        id=_text(_required(member, "id", where), f"{where}.id"),
        subscription=frozenset(
            _texts(_required(member, "subscription", where), f"{where}.subscription")
        ),
        current={
            topic: tuple(_partitions(partitions, f"{where}.current[{topic!r}]"))
            for topic, partitions in current.items()
        },
        instance_id=_text_or_none(member, "instanceId", where),
        rack=_text_or_none(member, "rack", where),
        generation=0 if generation is None else _int32(generation, f"{where}.generation"),
    )


def _refuse_twins(members: tuple[Member, ...]) -> None:
    seen: set[str] = set()
    for member in members:
        if member.id in seen:
            raise CaseError(f"members: two of them have the id {member.id!r}")
        seen.add(member.id)


def _assignable(case: Mapping[str, Any]) -> dict[str, frozenset[int]] | None:
    if case.get("assignable") is None:
        return None
    return {
        topic: frozenset(_partitions(partitions, f"assignable[{topic!r}]"))
        for topic, partitions in _object(case["assignable"], "assignable").items()
    }


def _replica_racks(case: Mapping[str, Any]) -> dict[str, tuple[frozenset[str], ...]] | None:
    if case.get("replicaRacks") is None:
        return None
    return {
        topic: tuple(
            # A replica on a broker without a rack is null.
            frozenset(_texts([r for r in _list(racks, where) if r is not None], where))
            for racks in _list(partitions, where)
        )
        for topic, partitions in _object(case["replicaRacks"], "replicaRacks").items()
        for where in (f"replicaRacks[{topic!r}]",)
    }


def _topic_ids(case: Mapping[str, Any], topics: Mapping[str, int]) -> dict[str, TopicId]:
    given = _object(case.get("topicIds") or {}, "topicIds")
    return {
        topic: _topic_id(topic_id, f"topicIds[{topic!r}]")
        for topic, topic_id in given.items()
        if topic in topics
    }


def _topic_id(value: object, where: str) -> TopicId:
    try:
        raw = base64.b64decode(_text(value, where) + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 16:
        raise CaseError(f"{where}: not a topic id as Kafka prints it (22 characters)")
    return (
        int.from_bytes(raw[:8], "big", signed=True),
        int.from_bytes(raw[8:], "big", signed=True),
    )


def _required(fields: Mapping[str, Any], key: str, where: str) -> object:
    if key not in fields:
        raise CaseError(f"{where}: {key!r} is missing")
    return fields[key]


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CaseError(f"{where}: an object is wanted, not {_kind(value)}")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise CaseError(f"{where}: a list is wanted, not {_kind(value)}")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise CaseError(f"{where}: a string is wanted, not {_kind(value)}")
    return value


def _text_or_none(fields: Mapping[str, Any], key: str, where: str) -> str | None:
    return None if fields.get(key) is None else _text(fields[key], f"{where}.{key}")


def _texts(value: object, where: str) -> list[str]:
    return [_text(entry, where) for entry in _list(value, where)]


def _partitions(value: object, where: str) -> list[int]:
    return [_count(entry, where) for entry in _list(value, where)]


def _count(value: object, where: str) -> int:
    number = _int32(value, where)
    if number < 0:
        raise CaseError(f"{where}: {number} is below 0")
    return number


def _int32(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise CaseError(f"{where}: an integer is wanted, not {_kind(value)}")
    if value not in _INT32:
        raise CaseError(f"{where}: {value} does not fit into 32 bits")
    return value


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
