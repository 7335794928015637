"""Subscriptions and assignments without their last fields, as some clients write them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from analytics.wire.columns import Binary, struct_array, struct_type
from analytics.wire.cursor import ByteBuffer, Journal
from analytics.wire.decoder import early_readers, embedded_readers
from analytics.wire.structs import EmbeddedReader
from schemas import embedded
from schemas.model import EmbeddedUse
from tests.support.encoder import encode_embedded

SUBSCRIPTION = embedded("consumer_protocol_subscription")
ASSIGNMENT = embedded("consumer_protocol_assignment")
KAFKA_GO = base64.b64decode("AAEAAAABAAZvcmRlcnP/////")
"""Written by kafka-go 0.4.51: version 1, `orders`, no user data, and no owned partitions."""

FAUST = b"\0\4" + KAFKA_GO[2:]
"""As faust 0.15.3 writes it: the same, and says that it is version 4."""

NEWEST = {
    "topics": ["orders"],
    "user_data": b"u",
    "owned_partitions": [{"topic": "orders", "partitions": [1]}],
    "generation_id": 7,
    "rack_id": "r",
}


def read(message: Any, *contents: bytes) -> list[Any]:
    """Read bytes that lie side by side: no row sees those of another."""
    length = np.array([len(each) for each in contents], np.int64)
    column = Binary(
        ByteBuffer(np.frombuffer(b"".join(contents), np.uint8)), np.cumsum(length) - length, length
    )
    reader = EmbeddedReader(
        EmbeddedUse(message.name), message, embedded_readers(message), early_readers(message)
    )
    found = reader.read(Journal.of(column.size), np.arange(column.size), column)
    rows: list[Any] = struct_array(found, struct_type(message.row)).to_pylist()
    return rows


def test_missing_fields_have_kafkas_defaults_and_it_is_said_how_many_were_there() -> None:
    go, faust, whole = read(SUBSCRIPTION, KAFKA_GO, FAUST, encode_embedded(SUBSCRIPTION, 3, NEWEST))
    assert go == {
        "topics": ["orders"],
        "user_data": None,
        "owned_partitions": [],
        "generation_id": None,
        "rack_id": None,
        "fields_written": 2,
    }
    assert faust == go | {"generation_id": -1}
    assert whole == NEWEST | {"fields_written": None}


@pytest.mark.parametrize("version", range(4))
def test_bytes_are_read_where_they_end_behind_a_field_and_nowhere_else(version: int) -> None:
    whole = encode_embedded(SUBSCRIPTION, version, NEWEST)
    rows = read(SUBSCRIPTION, *(whole[:size] for size in range(1, len(whole) + 1)))
    fields = len(SUBSCRIPTION.struct.at(version, None))
    written = [row["fields_written"] for row in rows if row is not None]
    assert written == [*range(1, fields), None]
    assert [row is None for row in rows].count(False) == fields


def test_bytes_behind_the_last_field_are_ignored_as_kafka_does() -> None:
    (row,) = read(SUBSCRIPTION, encode_embedded(SUBSCRIPTION, 1, NEWEST) + b"\0\1\2")
    assert (row["topics"], row["fields_written"]) == (["orders"], None)


def test_an_assignment_without_user_data_is_read() -> None:
    given = {"assigned_partitions": [{"topic": "orders", "partitions": [0]}], "user_data": None}
    whole = encode_embedded(ASSIGNMENT, 0, given)
    early, broken, sound = read(ASSIGNMENT, whole[:-4], whole[:-5], whole)
    assert early == given | {"fields_written": 1}
    assert broken is None
    assert sound == given | {"fields_written": None}


def test_a_version_alone_is_no_message() -> None:
    assert read(SUBSCRIPTION, b"\0\1", b"\0", b"") == [None, None, None]
