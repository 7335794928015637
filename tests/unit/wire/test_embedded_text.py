"""What a client wrote never costs the broker's record: its bytes are kept, read or not."""

from __future__ import annotations

import pyarrow as pa

from analytics.decode.chunks import UNDECODED_TABLE, Decoded, decode_chunk
from analytics.decode.tables import Origin
from analytics.dump.records.raw_rows import raw_records
from schemas import embedded, record_type
from tests.support.encoder import encode_embedded, encode_key, encode_value

KIND = record_type("GroupMetadata")
SOUND = encode_embedded(
    embedded("consumer_protocol_subscription"), 0, {"topics": ["orders"], "user_data": None}
)
NOT_UTF8 = SOUND.replace(b"orders", b"or\xffers")


def decoded(*subscriptions: bytes) -> Decoded:
    """Decode one classic group whose members subscribed with these bytes."""
    members = [
        {
            "member_id": f"m{place}",
            "group_instance_id": None,
            "client_id": "c",
            "client_host": "/127.0.0.1",
            "rebalance_timeout": 1,
            "session_timeout": 1,
            "subscription": subscription,
            "assignment": b"",
        }
        for place, subscription in enumerate(subscriptions)
    ]
    value = {
        "protocol_type": "consumer",
        "generation": 1,
        "protocol": "range",
        "leader": "m0",
        "current_state_timestamp": 0,
        "members": members,
    }
    row = {
        "offset": 0,
        "timestamp": 0,
        "key": encode_key(KIND, 2, {"group": "g"}),
        "value": encode_value(KIND, 3, value),
    }
    return decode_chunk(raw_records(pa.RecordBatch.from_pylist([row])), [], Origin(KIND.topic, 0))


def test_a_subscription_that_is_not_utf8_is_null_and_the_group_is_there() -> None:
    found = decoded(SOUND, NOT_UTF8)
    assert UNDECODED_TABLE not in found.batches
    (row,) = found.batches["group_metadata"].to_pylist()
    sound, broken = row["value"]["members"]
    assert sound["subscription_decoded"]["topics"] == ["orders"]
    assert broken["subscription_decoded"] is None
    assert broken["subscription"] == NOT_UTF8
