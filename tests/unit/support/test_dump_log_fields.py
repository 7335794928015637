"""The comparison of a decoded struct with printed JSON notices every kind of difference."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from schemas import embedded
from tests.support.dump_log_fields import Comparison, Tally, snake_case
from tests.support.encoder import encode_embedded

PRINTED: dict[str, Any] = {
    "partitionId": 3,
    "topicId": "gtb2stGYRk-vWZ2zAozmoA",
    "isr": [1, 2],
    "addingReplicas": [],
    "note": "a",
    "raw": "AAE=",
    "fenced": True,
    "inner": [{"firstOffset": 9007199254740993}],
    "nothing": None,
}
DECODED: dict[str, Any] = {
    "partition_id": 3,
    "topic_id": "gtb2stGYRk-vWZ2zAozmoA",
    "isr": [1, 2],
    "adding_replicas": [],
    "note": "a",
    "raw": b"\x00\x01",
    "fenced": True,
    "inner": [{"first_offset": 9007199254740993, "newer": None}],
    "nothing": None,
    "leader": -2,  # a tag that was not written
    "eligible_leader_replicas": None,
}


def differences(printed: dict[str, Any], decoded: dict[str, Any] | None) -> list[str]:
    tally = Tally()
    Comparison(tally, "partition_change_record", 2).struct("value", printed, decoded)
    assert tally.fields
    return tally.differences


def test_a_row_that_says_the_same() -> None:
    assert differences(PRINTED, DECODED) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("partition_id", 4),
        ("partition_id", None),
        ("partition_id", 3.0),
        ("topic_id", "A" * 22),
        ("isr", [2, 1]),
        ("isr", [1, 2, 3]),
        ("isr", [1]),
        ("isr", None),
        ("adding_replicas", None),
        ("note", ""),
        ("note", None),
        ("raw", b"\x00\x02"),
        ("raw", None),
        ("fenced", 1),
        ("inner", [{"first_offset": 9007199254740992, "newer": None}]),
        ("inner", [{"first_offset": 9007199254740993, "newer": 0}]),
        ("nothing", []),
        ("leader", None),
        ("leader", -1),
        ("eligible_leader_replicas", []),
    ],
)
def test_a_row_that_says_something_else(column: str, value: object) -> None:
    decoded = copy.deepcopy(DECODED)
    decoded[column] = value
    assert len(differences(PRINTED, decoded)) >= 1


def test_a_row_without_a_column_or_without_a_value() -> None:
    decoded = {name: value for name, value in DECODED.items() if name != "isr"}
    assert differences(PRINTED, decoded) == ["value: no column 'isr'"]
    assert len(differences(PRINTED, None)) == 1


SUBSCRIPTION = {"topics": ["t"], "userData": None, "ownedPartitions": []}
SUBSCRIPTION_ROW: dict[str, Any] = {
    "topics": ["t"],
    "user_data": None,
    "owned_partitions": [],
    "generation_id": None,
    "rack_id": None,
}
SUBSCRIPTION_BYTES = encode_embedded(
    embedded("consumer_protocol_subscription"),
    1,
    {"topics": ["t"], "user_data": None, "owned_partitions": []},
)


@pytest.mark.parametrize(
    ("raw", "decoded", "same"),
    [
        (SUBSCRIPTION_BYTES, SUBSCRIPTION_ROW, True),
        (SUBSCRIPTION_BYTES[:-1], SUBSCRIPTION_ROW, False),
        (SUBSCRIPTION_BYTES, None, False),
        (SUBSCRIPTION_BYTES, SUBSCRIPTION_ROW | {"topics": []}, False),
        (SUBSCRIPTION_BYTES, SUBSCRIPTION_ROW | {"generation_id": -1}, False),
    ],
)
def test_embedded_messages_are_compared_raw_and_decoded(
    raw: bytes, decoded: object, *, same: bool
) -> None:
    row = {"subscription": raw, "subscription_decoded": decoded}
    assert (differences({"subscription": SUBSCRIPTION}, row) == []) is same


def test_bytes_the_tool_could_not_parse_are_not_parsed_by_us_either() -> None:
    printed = {"subscription": "AA=="}
    assert differences(printed, {"subscription": b"\x00", "subscription_decoded": None}) == []
    row = {"subscription": b"\x00", "subscription_decoded": SUBSCRIPTION_ROW}
    assert len(differences(printed, row)) == 1


def test_what_a_text_form_leaves_out_is_not_compared() -> None:
    tally = Tally()
    printed = {"producerId": 7, "transactionPartitions": [("t", 0), ("t", 1)]}
    row = {
        "producer_id": 7,
        "transaction_partitions": [{"topic": "t", "partition_ids": [1, 0]}],
        "transaction_start_timestamp_ms": 5,
    }
    Comparison(tally, "transaction_log", 1, is_partial=True).struct("value", printed, row)
    assert (tally.fields, tally.differences) == (2, [])


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("expireTimestamp", "expire_timestamp"),
        ("isr", "isr"),
        ("isMigratingZkBroker", "is_migrating_zk_broker"),
    ],
)
def test_columns_are_the_names_in_snake_case(name: str, column: str) -> None:
    assert snake_case(name) == column
