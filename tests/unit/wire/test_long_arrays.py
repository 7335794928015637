"""A very long array in one record costs time by its bytes, not a round per element."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from analytics.wire import fields
from analytics.wire.columns import Binary, Group, Repeated, string_array, struct_array, struct_type
from analytics.wire.cursor import ByteBuffer, Cursor, Reason
from analytics.wire.decoder import value_reader
from schemas import record_type

MEMBER = "ConsumerGroupMemberMetadata"


def varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def compact(text: bytes) -> bytes:
    return varint(len(text) + 1) + text


def member(topics: list[bytes]) -> bytes:
    """A member's metadata (version 0): no instance, no rack, client c on host h."""
    names = varint(len(topics) + 1) + b"".join(compact(topic) for topic in topics)
    return b"\x00\x00" + compact(b"c") + compact(b"h") + names + b"\x00" + bytes(4) + b"\x00\x00"


def read(values: list[bytes]) -> tuple[Group, Cursor]:
    length = np.array([len(each) for each in values], np.int64)
    buffer = ByteBuffer(np.frombuffer(b"".join(values), np.uint8))
    cursor = Cursor.over(buffer, np.cumsum(length) - length, length)
    group = value_reader(MEMBER, 0, None).read(cursor)
    cursor.require_exhausted(Reason.TRAILING_BYTES, "")
    return group, cursor


def topics_of(group: Group) -> list[list[str]]:
    column = group.columns["subscribed_topic_names"]
    assert isinstance(column, Repeated)
    assert isinstance(column.items, Binary)
    names = iter(string_array(column.items).to_pylist())
    return [[next(names) for _ in range(count)] for count in column.count.tolist()]


def test_long_and_short_arrays_in_one_read_keep_their_order() -> None:
    wanted = [[b"topic-%d" % number for number in range(count)] for count in (3, 5000, 0, 1, 700)]
    group, cursor = read([member(topics) for topics in wanted])
    assert not cursor.dead.any()
    assert topics_of(group) == [[topic.decode() for topic in topics] for topics in wanted]


def test_a_long_array_takes_a_bounded_number_of_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = 0
    claim = Cursor.claim

    def counted(cursor: Cursor, *arguments: object) -> object:
        nonlocal rounds
        rounds += 1
        return claim(cursor, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Cursor, "claim", counted)
    group, cursor = read([member([b""] * 300_000)])
    assert not cursor.dead.any()
    assert group.columns["subscribed_topic_names"].size == 1
    assert rounds < 20 * fields.LONG


@pytest.mark.parametrize("element", [0, 63, 64, 1500, 1999])
def test_a_long_array_with_one_impossible_element_fails_alone_and_says_where(element: int) -> None:
    topics = [b"topic-%04d" % number for number in range(2000)]
    broken = bytearray(member(topics))
    length = broken.index(topics[element]) - 1
    broken[length] = 0x7F  # as if 126 bytes long: what follows is read at the wrong places
    group, cursor = read([member([b"a"]), bytes(broken), member([b"b"])])
    assert cursor.dead.tolist() == [False, True, False]
    assert [path for _, path in cursor.journal.causes] == ["subscribedTopicNames"]
    assert topics_of(group)[0] == ["a"]
    assert topics_of(group)[2] == ["b"]


def test_messages_inside_the_elements_of_a_long_array_are_parsed() -> None:
    """A classic group of many members, alone in its chunk."""
    topics = struct.pack(">hih6sii", 1, 1, 6, b"orders", -1, 0)
    member_bytes = struct.pack(
        f">h1shh1sh1siii{len(topics)}si",
        1,
        b"m",
        -1,
        1,
        b"c",
        1,
        b"h",
        1,
        2,
        len(topics),
        topics,
        0,
    )
    count = 3 * fields.LONG
    value = struct.pack(">h8sih5sh1sqi", 8, b"consumer", 1, 5, b"range", 1, b"m", 0, count)
    content = np.frombuffer(value + count * member_bytes, np.uint8)
    cursor = Cursor.over(ByteBuffer(content), np.array([0]), np.array([content.size]))
    group = value_reader("GroupMetadata", 3, None).read(cursor)
    cursor.require_exhausted(Reason.TRAILING_BYTES, "")
    assert not cursor.dead.any()
    members = struct_array(group, struct_type(record_type("GroupMetadata").value))[0]["members"]
    parsed = [each["subscription_decoded"]["topics"] for each in members.as_py()]
    assert parsed == [["orders"]] * count
