"""`snapshot.json` is held against its types: what is none is refused, with the place."""

from __future__ import annotations

import msgspec
import pytest

from schemas.errors import SchemaError
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
    ],
)
def test_what_is_none_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        read_snapshot(content, "f")
