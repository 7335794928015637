"""Committed offsets of two states: what became of each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics.questions.diff.changes import (
    INCOMPLETE_GROUPS,
    LEFT_OUT_TOPICS,
    LOST_LINES,
    OFFSET_COLUMNS,
    changed_offsets,
    topics_born_again,
)

WHEN = datetime(2026, 11, 21, 9, tzinfo=UTC)
SCHEMA: dict[str, Any] = {
    "group_id": pl.String,
    "topic": pl.String,
    "partition": pl.Int32,
    "committed_offset": pl.Int64,
    "committed_leader_epoch": pl.Int32,
    "commit_timestamp": pl.Datetime("us", "UTC"),
    "coordinator_partition": pl.Int32,
    "record_offset": pl.Int64,
    "missing": pl.String,
}
NO_ELECTION = LOST_LINES.to_frame()
ALL_TOPICS = LEFT_OUT_TOPICS.to_frame()
TOPICS: dict[str, Any] = {
    "topic": pl.String,
    "topic_id": pl.String,
    "deleted_at": pl.Datetime("us", "UTC"),
}
NOTHING_BORN = pl.DataFrame(schema={"topic": pl.String, "note": pl.String})


def state(*rows: tuple[str, int, int | None, int | None]) -> pl.DataFrame:
    """Offsets of the topic t: group, partition, offset, leader epoch."""
    return pl.DataFrame(
        [
            dict(zip(OFFSET_COLUMNS, (group, "t", number, offset, epoch, WHEN), strict=False))
            for group, number, offset, epoch in rows
        ],
        SCHEMA,
    )


def incomplete(**reasons: str) -> pl.DataFrame:
    rows = {"group_id": list(reasons), "reason": list(reasons.values())}
    return pl.DataFrame(rows, INCOMPLETE_GROUPS)


def changes(
    before: pl.DataFrame, after: pl.DataFrame, **reasons: str
) -> dict[tuple[str, int], Any]:
    rows = changed_offsets(
        before, after, incomplete(**reasons), NOTHING_BORN, NO_ELECTION, ALL_TOPICS
    ).to_dicts()
    return {
        (row["group_id"], row["partition"]): (row["change"], row["difference"], row["reason"])
        for row in rows
    }


def test_each_difference_has_its_word() -> None:
    before = state(("g", 0, 5, 1), ("g", 1, 5, 1), ("g", 2, 5, 1), ("g", 3, 5, 1), ("g", 4, 5, 1))
    after = state(("g", 0, 9, 1), ("g", 1, 2, 1), ("g", 3, 5, 2), ("g", 4, 5, 1), ("g", 5, 0, None))
    assert changes(before, after) == {
        ("g", 0): ("moved", 4, None),
        ("g", 1): ("went_back", -3, None),
        ("g", 2): ("vanished", None, None),
        ("g", 3): ("leader_epoch_changed", 0, None),
        ("g", 5): ("appeared", None, None),
    }


def test_where_one_state_does_not_tell_all_of_a_group_nothing_of_it_is_sure() -> None:
    before, after = state(("g", 0, 5, 1), ("g", 1, 5, 1), ("h", 0, 5, 1)), state(("g", 0, 6, 1))
    assert changes(before, after, g="to: records are missing") == {
        ("g", 0): ("cannot_tell", 1, "to: records are missing"),
        ("g", 1): ("cannot_tell", None, "to: records are missing"),
        ("h", 0): ("vanished", None, None),
    }


def test_an_offset_that_a_lost_record_may_have_changed_is_not_sure_even_where_it_is_equal() -> None:
    def lacks(rows: pl.DataFrame, *missing: str | None) -> pl.DataFrame:
        return rows.with_columns(missing=pl.Series(missing, dtype=pl.String))

    before = state(("g", 0, 5, 1), ("g", 1, 5, 1), ("g", 2, 5, 1), ("g", 3, 5, 1))
    after = state(("g", 0, 5, 1), ("g", 1, 7, 1), ("g", 2, 5, 1), ("g", 3, 5, 1))
    found = changes(
        lacks(before, "a segment", None, "a segment", None),
        lacks(after, "a segment", "a marker", "a marker", None),
    )
    assert found == {
        ("g", 0): ("cannot_tell", 0, "a segment"),
        ("g", 1): ("cannot_tell", 2, "to: a marker"),
        ("g", 2): ("cannot_tell", 0, "from: a segment; to: a marker"),
    }


def test_a_state_is_no_different_from_itself() -> None:
    same = state(("g", 0, 5, None), ("g", 1, 0, 3), ("", 0, 1, None))
    assert changes(same, same) == {}
    assert changes(same.slice(0, 0), same.slice(0, 0)) == {}


def test_a_topic_that_was_created_again_is_named() -> None:
    def topics(*rows: tuple[str, str, datetime | None]) -> pl.DataFrame:
        return pl.DataFrame([dict(zip(TOPICS, row, strict=True)) for row in rows], TOPICS)

    born = topics_born_again(
        topics(("t", "A", None), ("u", "U", None)),
        topics(("t", "A", WHEN), ("t", "B", None), ("u", "U", None), ("v", "V", None)),
    )
    assert born.to_dicts() == [{"topic": "t", "note": "the topic was created again: A is now B"}]
    rows = changed_offsets(
        state(("g", 0, 5, 1)), state(("g", 0, 2, 0)), incomplete(), born, NO_ELECTION, ALL_TOPICS
    ).to_dicts()
    assert [(row["change"], row["note"]) for row in rows] == [
        ("went_back", "the topic was created again: A is now B")
    ]


def test_what_one_state_was_made_without_did_not_vanish() -> None:
    left_out = pl.DataFrame({"topic": ["t"], "left_out": ["to: t was left out"]}, LEFT_OUT_TOPICS)
    nothing = state().slice(0, 0)
    rows = changed_offsets(
        state(("g", 0, 5, 1)), nothing, incomplete(), NOTHING_BORN, NO_ELECTION, left_out
    ).to_dicts()
    assert [(row["change"], row["reason"]) for row in rows] == [
        ("cannot_tell", "to: t was left out")
    ]


@pytest.mark.parametrize("seed", range(3))
def test_random_states_equal_a_plain_comparison(seed: int) -> None:
    random = np.random.default_rng(seed)

    def drawn() -> dict[tuple[str, int], tuple[int, int | None]]:
        return {
            (f"g{group}", int(number)): (int(offset), None if epoch == 0 else int(epoch))
            for group, number, offset, epoch in random.integers(0, [4, 6, 4, 3], size=(40, 4))
        }

    old, new = drawn(), drawn()
    expected = {}
    for key in old.keys() | new.keys():
        if old.get(key) == new.get(key):
            continue
        if key not in new:
            expected[key] = "vanished"
        elif key not in old:
            expected[key] = "appeared"
        elif old[key][0] == new[key][0]:
            expected[key] = "leader_epoch_changed"
        else:
            expected[key] = "moved" if new[key][0] > old[key][0] else "went_back"
    found = changes(
        state(*((*key, *value) for key, value in old.items())),
        state(*((*key, *value) for key, value in new.items())),
    )
    assert {key: change for key, (change, _, _) in found.items()} == expected
