"""When a dump ends is judged by every partition's own log, and by the others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from analytics.replay.dump.times import dump_end

Row = dict[str, Any]
NOW = 1_763_000_120_000
DAY = 86_400_000
FUTURE = 2_147_483_647_000
OFFSETS, METADATA, SHARES = "__consumer_offsets", "__cluster_metadata", "__share_group_state"


def stretch(first: int, last: int, batches: int, offset: int = 0) -> Row:
    return {
        "first_offset": offset,
        "end_offset": offset + batches,
        "first_ms": first,
        "last_ms": last,
        "batches": batches,
    }


def log(*stretches: tuple[int, int, int], partition: int = 0, topic: str = OFFSETS) -> Row:
    """Return a partition of a manifest, of stretches (first time, last time, batches)."""
    offset, rows = 0, []
    for first, last, batches in stretches:
        rows.append(stretch(first, last, batches, offset))
        offset += batches
    return {"topic": topic, "partition": partition, "stretches": rows}


def at(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


SOUND = (NOW - 3_600_000, NOW, 50)


def test_a_dump_ends_with_its_last_record() -> None:
    end = dump_end([log(SOUND), log((NOW - 10, NOW + 5, 3), partition=1)])
    assert (end.time, end.notes, end.doubt) == (at(NOW + 5), (), None)


def test_a_dump_without_times_has_no_end() -> None:
    assert dump_end([{"topic": OFFSETS, "partition": 0}]).time is None


def test_a_jump_ahead_that_later_records_take_back_is_not_believed() -> None:
    before, jump, after = (NOW - 3_600_000, NOW - 60_000, 20), (FUTURE, FUTURE, 3), (NOW, NOW, 10)
    end = dump_end([log(before, jump, after), log(SOUND, partition=1)])
    assert (end.time, end.doubt) == (at(NOW), None)
    assert "__consumer_offsets-0, offsets 20 to 22" in end.notes[0]
    assert "2038-01-19T03:14:07.000Z is not believed" in end.notes[0]


def test_it_is_not_believed_either_where_more_records_say_it_than_take_it_back() -> None:
    end = dump_end([log((NOW - DAY, NOW - 60_000, 5), (FUTURE, FUTURE + 9, 90), (NOW, NOW, 2))])
    assert end.time == at(NOW)


def test_two_jumps_are_both_not_believed() -> None:
    jumps = (FUTURE, FUTURE, 1), (NOW - 50, NOW - 50, 3), (FUTURE * 2, FUTURE * 2, 1), SOUND
    end = dump_end([log((NOW - DAY, NOW - 100, 5), *jumps)])
    assert (end.time, len(end.notes)) == (at(NOW), 2)


def test_times_at_the_epoch_take_nothing_back() -> None:
    for place in (((0, 0, 3), SOUND), (SOUND, (0, 0, 3)), (SOUND, (0, 0, 3), (NOW, NOW, 2))):
        end = dump_end([log(*place), log(SOUND, partition=1)])
        assert (end.time, end.doubt) == (at(NOW), None), place


def test_a_clock_that_was_set_back_by_an_hour_ends_nothing_earlier() -> None:
    ahead = (NOW - DAY, NOW, 50), (NOW - 3_600_000, NOW - 3_590_000, 5)
    assert dump_end([log(*ahead)]).time == at(NOW)


def test_a_last_record_far_beyond_the_metadata_log_is_not_believed() -> None:
    logs = [
        log((NOW - DAY, NOW, 500), topic=METADATA),
        log(SOUND),
        log(SOUND, (FUTURE, FUTURE, 1), partition=1),
    ]
    end = dump_end(logs)
    assert (end.time, end.doubt) == (at(NOW), None)
    assert "everything else ends at" in end.notes[0]


def test_a_last_record_far_beyond_everything_is_doubted_where_no_metadata_log_is() -> None:
    for topic in (OFFSETS, SHARES, METADATA):
        end = dump_end([log(SOUND, partition=1), log(SOUND, (FUTURE, FUTURE, 1), topic=topic)])
        assert end.time == at(NOW)
        assert end.doubt is not None, topic
        assert "or at 2038-01-19T03:14:07.000Z" in end.doubt


def test_a_partition_that_alone_goes_on_for_weeks_is_believed() -> None:
    busy = log((NOW - DAY, NOW + 30 * DAY, 400), partition=1)
    later = log((NOW + 20 * DAY, NOW + 30 * DAY, 400), partition=1)
    for one in (busy, later):
        end = dump_end([log(SOUND), one])
        assert (end.time, end.doubt) == (at(NOW + 30 * DAY), None)


def test_a_quiet_week_is_nothing_strange() -> None:
    end = dump_end([log((NOW - DAY, NOW, 50), (NOW + 6 * DAY, NOW + 6 * DAY, 1))])
    assert (end.time, end.doubt) == (at(NOW + 6 * DAY), None)
