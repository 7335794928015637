"""How records grow with a group, and how many more fit: worked by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from analytics.questions.usage.bucket_answers import (
    HEADER,
    NO_LIMIT,
    NOT_GROWN,
    ONLY_ONE,
    growth_rows,
    record_growth,
)
from analytics.questions.usage.cleaner import LogSettings
from analytics.questions.usage.records import CLASSIC_GROUPS, records_of
from schemas import CONSUMER_OFFSETS
from schemas.usage_rules import usage_rules

RULES = usage_rules()
MEMBERS = pa.list_(pa.struct([("session_timeout", pa.int32())]))
VALUE = pa.struct([("members", MEMBERS), ("current_state_timestamp", pa.int64())])


def records(*told: tuple[str, int, int | None]) -> pa.RecordBatch:
    """Rows of `group_metadata`: group, members, bytes; None bytes is an archived row."""
    values = [
        {"members": [{"session_timeout": 1}] * members, "current_state_timestamp": None}
        for _, members, _ in told
    ]
    nothing = pa.nulls(len(told), pa.int64())
    return pa.RecordBatch.from_pydict(
        {
            **dict.fromkeys(("partition", "offset", "producer_id", "batch_offset"), nothing),
            "record_type": pa.array([2] * len(told), pa.int16()),
            "timestamp": pa.nulls(len(told), pa.timestamp("us", "UTC")),
            "is_transactional": pa.array([False] * len(told), pa.bool_()),
            "is_tombstone": pa.array([False] * len(told), pa.bool_()),
            "record_bytes": pa.array([size for *_, size in told], pa.int32()),
            "key": pa.array(
                [{"group": name} for name, *_ in told], pa.struct([("group", pa.string())])
            ),
            "value": pa.array(values, VALUE),
        }
    )


def grown(*told: tuple[str, int, int | None], **given: str) -> list[dict[str, Any]]:
    rows = records_of(CONSUMER_OFFSETS, CLASSIC_GROUPS, records(*told), ["members"])
    settings = LogSettings.of(RULES, given=given)
    found: list[dict[str, Any]] = record_growth(
        growth_rows(rows), RULES.growing, settings
    ).to_pylist()
    return found


def test_one_more_takes_what_the_line_between_the_shortest_and_the_longest_says() -> None:
    limit = {"message.max.bytes": "10000"}
    (row,) = grown(("g", 2, 500), ("g", 1, 300), ("g", 4, 890), ("g", 4, 900), **limit)

    assert (row["least"], row["least_bytes"], row["most"], row["most_bytes"]) == (1, 300, 4, 900)
    assert (row["bytes_each"], row["basis"], row["grows_with"]) == (200, "history", "members")
    # 10,000 - 61 - 900 are 45 times 200, and something.
    assert (row["more_fit"], row["limit_source"], row["reason"]) == (45, "config", None)
    assert 900 + HEADER + 45 * 200 <= 10_000 < 900 + HEADER + 46 * 200


def test_records_of_one_length_say_at_most_what_one_more_takes() -> None:
    (row,) = grown(("g", 3, 600), ("g", 3, 580))
    assert (row["bytes_each"], row["basis"]) == (200, "record")


def test_where_fewest_more_fit_comes_first_and_a_full_record_has_no_room() -> None:
    rows = grown(("a", 1, 100), ("b", 2, 1_048_588 - HEADER), ("c", 1, 4000))
    assert [(row["group_id"], row["more_fit"]) for row in rows[:1]] == [("b", 0)]
    assert [row["group_id"] for row in rows] == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ([("g", 0, 100)], ONLY_ONE),
        ([("g", 1, 100), ("g", 2, 90)], NOT_GROWN),
        ([("g", 1, 100), ("g", 2, 2_000_000)], NO_LIMIT),
    ],
)
def test_what_is_not_known_is_said(told: list[tuple[str, int, int]], reason: str) -> None:
    (row,) = grown(*told)
    assert row["more_fit"] is None
    assert row["reason"] == reason


def test_archived_rows_tell_no_bytes() -> None:
    assert grown(("g", 1, None)) == []
