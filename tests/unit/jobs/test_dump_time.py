"""An instant is held against what the dump holds: never answered as if it were known."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.errors import CannotTellError
from analytics.replay.dump.choices import BeforeEnd, moment
from analytics.replay.dump.times import remarks, resolved, resolved_time

HOUR = 3_600_000
NOON = 1_795_262_400_000
"""2026-11-21T12:00:00Z, when the surviving line ends."""


def log(number: int, copy: str, first: str, last: str, end: int) -> dict[str, Any]:
    return {
        "topic": "__consumer_offsets",
        "partition": number,
        "copy": copy,
        "is_leading": copy == "broker-2",
        "first_timestamp": f"2026-11-21T{first}:00.000Z",
        "last_timestamp": f"2026-11-21T{last}:00.000Z",
        "end_offset": end,
    }


PARTITIONS = [
    log(0, "broker-2", "08:00", "11:00", 30),
    log(1, "broker-2", "09:00", "12:00", 40),
    log(1, "broker-1", "07:00", "13:00", 90),
]
MANIFEST: dict[str, Any] = {"options": {}, "partitions": PARTITIONS}
PREFERRED: dict[str, Any] = {"options": {"prefer_copy": "broker-1"}, "partitions": PARTITIONS}


def said(instant: int | None, **ends: int) -> list[str]:
    named = {("__consumer_offsets", int(name[1:])): end for name, end in ends.items()}
    return list(remarks(instant, named, MANIFEST))


def test_a_relative_time_is_before_the_last_record_of_what_is_decoded() -> None:
    assert resolved(BeforeEnd(HOUR), MANIFEST) == NOON - HOUR
    assert resolved(BeforeEnd(HOUR), PREFERRED) == NOON
    assert resolved_time(BeforeEnd(HOUR), MANIFEST) == moment(NOON - HOUR)
    for absolute in (NOON, "end", None):
        assert resolved(absolute, MANIFEST) == absolute
    assert resolved_time(None, MANIFEST) is None


def test_nothing_is_before_an_end_that_has_no_time() -> None:
    with pytest.raises(CannotTellError, match="no record of this dump has a time"):
        resolved(BeforeEnd(HOUR), {"options": {}, "partitions": []})


def test_nothing_is_known_before_the_first_record() -> None:
    assert said(NOON - 4 * HOUR) == []
    with pytest.raises(CannotTellError) as refused:
        said(NOON - 4 * HOUR - 1)
    assert str(refused.value) == (
        "the records of this dump begin at 2026-11-21T08:00:00.000Z: nothing is known of "
        "2026-11-21T07:59:59.999Z"
    )


def test_nothing_is_known_at_a_time_where_no_record_has_one() -> None:
    times = {"first_timestamp": None, "last_timestamp": None}
    timeless = [{**PARTITIONS[0], **times, "records": 7}]
    with pytest.raises(CannotTellError, match="no record of this dump has a time"):
        list(remarks(NOON, {}, {"options": {}, "partitions": timeless}))


def test_after_the_last_record_the_answer_is_as_of_then() -> None:
    assert said(NOON) == []
    (remark,) = said(NOON + 1)
    assert remark == (
        "this dump ends at 2026-11-21T12:00:00.000Z: 2026-11-21T12:00:00.001Z is answered as of "
        "then"
    )


def test_an_offset_beyond_the_end_is_said_and_one_of_no_partition_refused() -> None:
    assert said(None, p0=30, p1=0) == []
    assert said(None, p1=41) == [
        "__consumer_offsets-1 ends at offset 40: 41 is answered as of its end"
    ]
    assert list(remarks(None, {("__consumer_offsets", 1): 90}, PREFERRED)) == []
    with pytest.raises(CannotTellError, match="no copy of __consumer_offsets-2"):
        said(None, p2=1)
