"""Groups and topics are selected by name, ``glob*`` or ``/regex/``."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.decode.selection import Selection, names_wanted, pattern
from analytics.wire.columns import Binary, Group
from analytics.wire.cursor import ByteBuffer


def names(*texts: str) -> Binary:
    content = [text.encode() for text in texts]
    length = np.array([len(each) for each in content], np.int64)
    data = np.frombuffer(b"".join(content), np.uint8)
    return Binary(ByteBuffer(data), np.cumsum(length) - length, length)


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("billing", "billing", "billing-2"),
        ("a.b", "a.b", "axb"),
        ("bill*", "billing", "mybill"),
        ("group-?", "group-1", "group-12"),
        ("/bill(ing)?/", "bill", "billing-2"),
        ("/", "/", ""),
        ("line\nbreak", "line\nbreak", "line"),
    ],
)
def test_a_pattern_matches_whole_names(text: str, matching: str, other: str) -> None:
    assert pattern(text).fullmatch(matching)
    assert not pattern(text).fullmatch(other)


def test_a_broken_regex_is_refused_with_its_text() -> None:
    with pytest.raises(ValueError, match=r"/\(/ is no regular expression"):
        pattern("/(/")


def test_excluded_groups_are_left_out_of_the_included_ones() -> None:
    key = Group({"group": names("a-1", "a-2", "b-1")}, 3)
    selection = Selection(groups=("a-*",), exclude_groups=("a-2",))
    assert selection.selects(key).tolist() == [True, False, False]


def test_a_key_without_a_group_is_always_wanted() -> None:
    key = Group({"transactional_id": names("tx")}, 1)
    assert Selection(groups=("nothing",)).selects(key).tolist() == [True]


def test_topics_select_offsets_only_where_the_key_names_one() -> None:
    key = Group({"group": names("g", "g"), "topic": names("orders", "audit")}, 2)
    assert Selection(topics=("ord*",)).selects(key).tolist() == [True, False]


def test_a_name_that_looks_like_a_pattern_is_a_name_where_it_is_there() -> None:
    there = ["/re/", "re", "*", "star"]
    assert names_wanted(there, ["/re/"], there=there) == ["/re/"]
    assert names_wanted(there, ["*"], there=there) == ["*"]
    assert names_wanted(there, ["st*"], there=there) == ["star"]
    assert names_wanted(there, [], ["/re/", "*"], there=there) == ["re", "star"]


def test_before_all_names_are_known_it_is_both() -> None:
    assert names_wanted(["/re/", "re", "other"], ["/re/"]) == ["/re/", "re"]


@pytest.mark.parametrize("asked", [("bill*",), ("/.*/",), ("*",), ("billing",)])
def test_a_row_of_no_group_is_of_none_that_is_asked_for(asked: tuple[str, ...]) -> None:
    assert names_wanted(["billing", None], asked) == ["billing"]
    assert names_wanted(["orders", None], (), asked[:1])[-1] is None
