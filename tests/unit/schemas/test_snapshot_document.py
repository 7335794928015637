"""`snapshot.json` is held against its types: what is none is refused, with the place."""

from __future__ import annotations

import msgspec
import pytest

from schemas.reading import SchemaError
from schemas.snapshot import SNAPSHOT_VERSION, Snapshot, read_snapshot

SNAPSHOT = Snapshot(
    snapshot_version=SNAPSHOT_VERSION,
    groupscope_version="1",
    taken_at="2026-11-27T15:00:00.000Z",
    finished_at="2026-11-27T15:00:01.000Z",
    cluster_id=None,
    controller_id=None,
    brokers=[],
    topics=[],
    logs=[],
    groups=[],
    unread=[],
)
WRITTEN = msgspec.json.encode(SNAPSHOT)
_TOPIC = (
    b'"topics":[{"topic":"t","topic_id":null,"is_internal":false,"configs":null,"partitions":'
    b'[{"partition":0,"leader":1,"leader_epoch":0,"replicas":[],"isr":[],"log_start_offset":0,'
    b'"log_end_offset":%d,"later_end_offset":null,"error":null}]}]'
)
TOPIC_BEYOND, TOPIC_BELOW = _TOPIC % 2**63, _TOPIC % -1


def test_it_is_read_as_it_was_written() -> None:
    assert read_snapshot(WRITTEN, "f") == SNAPSHOT


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "this is no snapshot.json"),
        (WRITTEN[:-9], "this is no snapshot.json"),
        (b"[" * 100_000, "this is no snapshot.json"),
        (WRITTEN.replace(b'"brokers":[]', b'"brokers":[1]'), r"\$.brokers\[0\]"),
        (WRITTEN.replace(b'"logs"', b'"dogs"'), "dogs"),
        (WRITTEN.replace(b'_version":1,', b'_version":2,'), "this release reads version 1"),
        (WRITTEN.replace(b'"2026-11-27T15:00:00.000Z"', b'"soon"'), "this is no snapshot.json"),
        (WRITTEN.replace(b"15:00:01.000Z", b"15:00:01.000"), "finished_at has no time zone"),
        (WRITTEN.replace(b'"topics":[]', TOPIC_BEYOND), r"Expected `int` <= 9223372036854775807"),
        (WRITTEN.replace(b'"topics":[]', TOPIC_BELOW), r"Expected `int` >= 0"),
    ],
)
def test_what_is_none_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        read_snapshot(content, "f")
