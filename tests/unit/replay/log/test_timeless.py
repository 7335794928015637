"""Records without a time at an instant: those behind a later record are later, and do not count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.replay.log.log_times import AsOf, cut_all
from tests.support.decoded_frames import frames_of

NOON = datetime(2018, 7, 1, 12, tzinfo=UTC)
TABLES = ("offset_commit", "group_metadata")


def milliseconds(minute: float) -> int:
    return round((NOON + timedelta(minutes=minute)).timestamp() * 1000)


def record(
    partition: int, offset: int, *, written: float | None = None, says: float | None = None
) -> dict[str, Any]:
    """Return a record written, or that says to be committed, so many minutes after noon."""
    at = None if written is None else NOON + timedelta(minutes=written)
    place = {"topic": "__consumer_offsets", "partition": partition, "offset": offset}
    value = None if says is None else {"offset": 1, "commit_timestamp": milliseconds(says)}
    key = {"group": "g", "topic": "t", "partition": 0}
    return {**place, "timestamp": at, "is_tombstone": value is None, "key": key, "value": value}


def counted(minute: float, *commits: dict[str, Any]) -> list[tuple[int, int]]:
    group = {**record(1, 20), "key": {"group": "g"}}
    cut = cut_all(
        frames_of({"offset_commit": commits, "group_metadata": [group]}, TABLES),
        AsOf(timestamp_ms=milliseconds(minute)),
    )
    return sorted(
        row for table in TABLES for row in cut[table].select("partition", "offset").iter_rows()
    )


def test_a_record_without_a_time_behind_a_later_one_is_later() -> None:
    told = counted(
        10,
        record(1, 1, written=1),
        record(1, 2, says=2),
        record(1, 3),
        record(1, 4, says=11),  # its own value says that it is later
        record(1, 5),
        record(1, 6, written=12),
        record(1, 7, says=9),  # what a client chose to say does not make it earlier
        record(2, 1, says=3),
        record(2, 2),
        record(3, 1, written=3),
        record(3, 2, written=11),
        record(3, 3, written=9),  # times need not be in order: its own decides
    )
    assert told == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1), (3, 3)]


def test_where_nothing_is_later_all_count() -> None:
    told = counted(60, record(1, 1, says=2), record(1, 2), record(2, 3, written=5))
    assert told == [(1, 1), (1, 2), (1, 20), (2, 3)]
