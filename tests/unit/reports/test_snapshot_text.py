"""What `snapshot` says of a dump: as much as is there."""

from __future__ import annotations

from reports.run_summary import snapshot_text
from schemas.snapshot import Log, Snapshot, Unread


def log(partition: int, size: int, failure: str | None = None) -> Log:
    until = None if failure else "2026-11-27T00:00:00.000Z"
    name = "__consumer_offsets"
    return Log(name, partition, 1, 0, 0, 9, False, 9, size, 1, until, failure)


def text_of(logs: list[Log]) -> str:
    at = "2026-11-27T00:00:00.000Z"
    unread = [
        Unread(f"{each.topic}-{each.partition}", each.failure) for each in logs if each.failure
    ]
    taken = Snapshot(1, "0.1.0", at, at, "abc", 1, [], [], logs, [], unread)
    return snapshot_text(taken, "dump", 120)


def test_partitions_that_were_not_read_are_not_counted_as_read() -> None:
    assert "  __consumer_offsets: 2 partitions, 30 bytes\n" in text_of([log(0, 10), log(1, 20)])
    some = [log(0, 10), log(1, 5, "TOPIC_AUTHORIZATION_FAILED")]
    assert "  __consumer_offsets: 1 of 2 partitions, 15 bytes\n" in text_of(some)
