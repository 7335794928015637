"""KIP-211, "Motivation" and "Compatibility": its table of OffsetCommit versions, applied."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from analytics.questions.expiration.commit_requests import commit_requests
from schemas.expiration_rules import expiration_eras

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
WEEK, HOUR = timedelta(days=7), timedelta(hours=1)
SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("commit_timestamp", pa.timestamp("us", "UTC")),
        ("expire_timestamp", pa.timestamp("us", "UTC")),
    ]
)


def rows(
    era: str, *expire: datetime | None, is_assumed: bool = False, group: str = "g"
) -> dict[str, dict[str, Any]]:
    """Return rows by request, of commits at noon with these expire times."""
    committed = [
        {"group_id": group, "commit_timestamp": NOON, "expire_timestamp": each} for each in expire
    ]
    found = commit_requests(
        pa.Table.from_pylist(committed, SCHEMA),
        expiration_eras()[era],
        round(WEEK.total_seconds() * 1000),
        is_assumed=is_assumed,
    ).to_pylist()
    assert {row["rules"] for row in found} <= {era}
    return {row["request"]: row for row in found}


@pytest.mark.parametrize(
    ("request_version", "stores", "expires_at"),
    [
        ("0", "elsewhere", None),
        # "Commit Timestamp + Offset Retention": now, and the broker's retention.
        ("1", "expire_time", NOON + WEEK),
        ("2-3", "expire_time", NOON + WEEK),
        ("transaction", "expire_time", NOON + WEEK),
        # What only the request said, no record tells where none fits.
        ("1 with a timestamp", "expire_time", NOON + WEEK),
        ("2-3 with a retention", "expire_time", NOON + WEEK),
    ],
)
def test_the_texts_table_before_it(
    request_version: str, stores: str, expires_at: datetime | None
) -> None:
    row = rows("pre-2.1", NOON + WEEK)[request_version]
    assert (row["stores"], row["first_expires_at"]) == (stores, expires_at)
    assert row["may_be"] == (0 if stores == "elsewhere" else 1)


def test_a_retention_that_is_not_the_brokers_was_asked_for() -> None:
    found = rows("pre-2.1", NOON + HOUR, NOON + WEEK)
    assert {name: row["may_be"] for name, row in found.items()} == {
        "0": 0,
        "1": 1,
        "1 with a timestamp": 2,
        "2-3": 1,
        "2-3 with a retention": 2,
        "transaction": 1,
    }
    asked = found["2-3 with a retention"]
    assert (asked["first_expires_at"], asked["last_expires_at"]) == (NOON + HOUR, NOON + WEEK)
    assert asked["longest_retention_ms"] == WEEK / timedelta(milliseconds=1)


def test_where_the_retention_is_assumed_nobody_can_tell_whose_it_is() -> None:
    found = rows("pre-2.1", NOON + WEEK, is_assumed=True)
    assert (found["1"]["may_be"], found["2-3 with a retention"]["may_be"]) == (None, 1)


@pytest.mark.parametrize("era", ["2.1-2.3", "3.2-3.9", "current"])
def test_since_2_1_only_who_asks_for_a_retention_gets_an_expire_time(era: str) -> None:
    plain, asked = rows(era, None), rows(era, NOON + HOUR)
    assert {name for name, row in plain.items() if row["stores"] == "expire_time"} == {
        "2-4 with a retention"
    }
    assert plain["5 and later"]["may_be"] == plain["1"]["may_be"] == 1
    assert plain["2-4 with a retention"]["may_be"] == 0
    assert plain["2-4 with a retention"]["first_expires_at"] is None
    assert asked["2-4 with a retention"]["first_expires_at"] == NOON + HOUR
    assert asked["5 and later"]["may_be"] == 0


def test_the_text_drops_the_field_with_version_4() -> None:
    found = rows("kip-211", None, NOON + HOUR)
    assert list(found) == ["0", "1", "2-3", "2-3 with a retention", "4"]
    assert (found["4"]["stores"], found["4"]["may_be"]) == ("no_expire_time", 1)
    assert found["2-3 with a retention"]["last_expires_at"] == NOON + HOUR


def test_no_commits_no_rows() -> None:
    assert rows("current") == {}
