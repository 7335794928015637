"""Java's hashes and the order of its maps, as OpenJDK 17 printed them."""

from __future__ import annotations

import pytest

from analytics.assignors.group import (
    Group,
    Member,
    in_hash_order,
    members_in_order,
    partitions_in_order,
    sort_key,
    string_hash,
    table_size,
    topic_id_hash,
)

PUT = [
    "consumer-1",
    "consumer-2",
    "orders-worker-a",
    "é-ü",
    "orders-worker-b",
    "zeta",
    "𝄞",
    "C",
    "x-10",
    "member-10",
    "member-11",
    "q",
    "alpha",
    "beta",
]
WALKED = [
    "zeta",
    "C",
    "x-10",
    "consumer-2",
    "member-11",
    "consumer-1",
    "member-10",
    "𝄞",
    "q",
    "alpha",
    "é-ü",
    "orders-worker-a",
    "beta",
    "orders-worker-b",
]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("hello", 99162322),
        ("é", 233),
        ("\U0001d11e", 1772394),
        ("orders-worker-a", -601619526),
        ("consumer-1-7d3f2b60-8f1d-4b0e-a2b5-3c1d6a9f4e21", -242805018),
    ],
)
def test_strings_hash_by_utf_16_code_unit(text: str, code: int) -> None:
    assert string_hash(text) == code % 2**32


def test_topic_ids_hash_by_their_halves() -> None:
    assert topic_id_hash((-6100570007541758659, -7065670118522718461)) == 1055517614


def test_a_map_is_walked_bucket_by_bucket() -> None:
    assert in_hash_order(PUT, string_hash) == WALKED


def test_members_come_in_the_order_of_a_map_by_their_ids() -> None:
    group = Group({}, tuple(Member(name, frozenset()) for name in PUT))
    assert [member.id for member in members_in_order(group)] == WALKED


def test_a_set_of_numbers_is_not_always_ascending() -> None:
    assert partitions_in_order([0, 17, 33, 5, 64]) == [0, 64, 17, 33, 5]


@pytest.mark.parametrize(("count", "buckets"), [(0, 16), (12, 16), (13, 32), (24, 32), (25, 64)])
def test_a_map_doubles_when_three_quarters_are_full(count: int, buckets: int) -> None:
    assert table_size(count) == buckets


def test_strings_compare_by_utf_16_code_unit() -> None:
    """A character beyond the first plane begins with a surrogate, below the last ones in it."""
    assert sorted(["\uffee", "\U0001d11e", "a", "Z"], key=sort_key) == [
        "Z",
        "a",
        "\U0001d11e",
        "\uffee",
    ]
