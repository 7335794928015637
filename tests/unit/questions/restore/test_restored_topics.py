"""Which id a topic has that offsets are brought back to: the best source's, or none is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl

from analytics.questions.restore.question import topics_there

TOPICS: dict[str, Any] = {
    "topic": pl.String,
    "topic_id": pl.String,
    "partitions": pl.Int32,
    "deleted_at": pl.Datetime("us", "UTC"),
    "source": pl.String,
}
A, B = "A" * 22, "B" * 22


def there(*rows: tuple[str | None, int | None, str], deleted: int = 0) -> list[dict[str, Any]]:
    """Lives of the topic `t`, the first few deleted."""
    lives = [
        {
            "topic": "t",
            "topic_id": topic_id,
            "partitions": partitions,
            "deleted_at": datetime(2026, 1, 1, tzinfo=UTC) if number < deleted else None,
            "source": source,
        }
        for number, (topic_id, partitions, source) in enumerate(rows)
    ]
    found: list[dict[str, Any]] = topics_there(pl.DataFrame(lives, TOPICS)).to_dicts()
    return found


def topic(
    topic_id: str | None, partitions: int | None, *, several: bool = False, named: bool = False
) -> dict[str, Any]:
    return {
        "topic": "t",
        "topic_id": topic_id,
        "partitions": partitions,
        "has_several_ids": several,
        "is_only_named": named,
    }


def test_a_life_that_ended_is_not_there() -> None:
    assert there((B, 4, "metadata_log"), (A, 3, "metadata_log"), deleted=1) == [topic(A, 3)]
    assert there((A, 3, "metadata_log"), deleted=1) == []


def test_the_best_source_says_which_id_it_is_and_any_how_many_partitions() -> None:
    assert there((A, None, "partition_metadata"), (B, 6, "record")) == [topic(A, 6)]
    assert there((B, 3, "metadata_log"), (A, None, "partition_metadata")) == [topic(B, 3)]


def test_of_two_ids_from_one_source_none_is_told() -> None:
    assert there((A, 3, "record"), (B, 3, "record")) == [topic(None, 3, several=True)]


def test_a_name_without_an_id_is_a_topic_all_the_same() -> None:
    assert there((None, None, "record")) == [topic(None, None)]


def test_of_an_older_life_that_only_records_name_a_living_topic_takes_nothing() -> None:
    assert there((B, 3, "record"), (A, 4, "metadata_log")) == [topic(A, 4)]


def test_a_topic_that_a_metadata_log_lacks_and_records_name_may_be_gone() -> None:
    # The log begins at a snapshot that was written after the topic was deleted, or ends earlier.
    elsewhere = {"topic": "u", "topic_id": B, "partitions": 1, "source": "metadata_log"}
    lives = [{"topic": "t", "topic_id": A, "partitions": 3, "source": "record"}, elsewhere]
    rows = topics_there(pl.DataFrame(lives, TOPICS)).sort("topic").to_dicts()
    assert rows[0] == topic(A, 3, named=True)
    assert not rows[1]["is_only_named"]
    # So may one whose last life in that log was deleted, and of which records name another.
    assert there((B, 4, "metadata_log"), (A, 3, "record"), deleted=1) == [topic(A, 3, named=True)]
    # Its directory shows it.
    lives[0]["source"] = "partition_metadata"
    rows = topics_there(pl.DataFrame(lives, TOPICS)).sort("topic").to_dicts()
    assert rows[0] == topic(A, 3)
