"""Group records of KIP-932's late text that no release wrote are kept with their bytes."""

from __future__ import annotations

import struct
from io import BytesIO

import pytest

from analytics.decode.chunks import Decoded, decode_chunk
from analytics.decode.tables import Origin
from analytics.dump.records.segment_reader import read_segment
from schemas import record_type
from tests.support.encoder import encode_key, encode_value
from tests.support.segments import NOW, Record, batch


def decoded(key: bytes, value: bytes) -> Decoded:
    (chunk,) = read_segment(BytesIO(batch([Record(0, NOW, key, value)]).data))
    return decode_chunk(chunk.records, chunk.damages, Origin("__consumer_offsets", 0, "a", "b"))


@pytest.mark.parametrize("timeout", [-1, 300_000, 2**31 - 1])
def test_a_rebalance_timeout_behind_a_member(timeout: int) -> None:
    """ShareGroupMemberMetadataValue: RebalanceTimeoutMs, int32, default -1."""
    kind = record_type("ShareGroupMemberMetadata")
    member = {"rack_id": None, "client_id": "c", "client_host": "/h", "subscribed_topic_names": []}
    value = encode_value(kind, 0, member)
    key = encode_key(kind, 10, {"group_id": "G1", "member_id": "M1"})
    assert list(decoded(key, value).batches) == ["share_group_member_metadata"]
    # The empty section of tagged fields comes behind the last field.
    found = decoded(key, value[:-1] + struct.pack(">i", timeout) + value[-1:])
    assert list(found.batches) == ["undecoded"]
    assert found.batches["undecoded"]["value"][0].as_py()[-5:-1] == struct.pack(">i", timeout)


def test_a_type_behind_the_epoch_of_a_group() -> None:
    """ConsumerGroupMetadataValue, struck: version 1 adds Type, 3 for a share group."""
    kind = record_type("ConsumerGroupMetadata")
    key = encode_key(kind, 3, {"group_id": "G1"})
    found = decoded(key, struct.pack(">hib", 1, 7, 3) + b"\0")
    assert list(found.batches) == ["undecoded"]


def test_the_epoch_of_a_share_group_is_as_4_0_has_it() -> None:
    """ShareGroupMetadataKey, version 11, and a value that is its epoch."""
    kind = record_type("ShareGroupMetadata")
    key = encode_key(kind, 11, {"group_id": "G1"})
    found = decoded(key, struct.pack(">hi", 0, 7) + b"\0")
    (row,) = found.batches["share_group_metadata"].to_pylist()
    assert (row["value"]["epoch"], row["value_layout"]) == (7, "4.0")
