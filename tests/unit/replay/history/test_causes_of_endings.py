"""Why a group was deleted is told by the offsets that went in the same act."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.contracts import contract_schema
from analytics.replay.history.group_life_events import with_causes_of_endings
from analytics.replay.log.losses import WHOLE, Coverage

AT = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = {"group_id": "fleet", "coordinator_partition": 3}
EVENT = {"event": "deleted", "detail": "as a classic group", "at": AT, "record_offset": 9}
GONE = {"event": "delete", "topic": "sensors", "effective_timestamp": AT}


def event_of(
    event: dict[str, Any], *gone: dict[str, Any], coverage: Coverage = WHOLE
) -> dict[str, Any]:
    events = pl.DataFrame([{**GROUP, **EVENT, **event}], contract_schema("group_events"))
    rows = [{**GROUP, **GONE, "partition": nth, **each} for nth, each in enumerate(gone)]
    history = pl.DataFrame(rows, contract_schema("offset_history"))
    (row,) = with_causes_of_endings(events, history, coverage).to_dicts()
    return row


def detail_of(event: dict[str, Any], *gone: dict[str, Any]) -> str:
    return str(event_of(event, *gone)["detail"])


@pytest.mark.parametrize("cause", ["expiration", "group_deleted", "topic_deleted"])
def test_what_took_its_offsets_in_the_same_act_took_the_group(cause: str) -> None:
    gone = {"cause": cause, "confidence": "high"}
    said = f"as a classic group; cause: {cause.replace('_', ' ')} (high confidence)"
    assert detail_of({}, gone, gone) == said


@pytest.mark.parametrize(
    "gone",
    [
        [],
        # Other acts, other groups, and commits say nothing of it.
        [
            {
                "cause": "expiration",
                "confidence": "high",
                "effective_timestamp": AT - timedelta(0, 1),
            }
        ],
        [{"cause": "expiration", "confidence": "high", "effective_timestamp": None}],
        [{"cause": "expiration", "confidence": "high", "group_id": "other"}],
        [{"cause": "expiration", "confidence": "high", "event": "commit"}],
    ],
)
def test_where_they_do_not_say_it_the_cause_is_unknown(gone: list[dict[str, Any]]) -> None:
    assert detail_of({}, *gone) == "as a classic group; cause: unknown"


@pytest.mark.parametrize(
    ("gone", "why"),
    [
        ([{"cause": "unknown", "confidence": "low"}], "low confidence"),
        (
            [
                {"cause": "expiration", "confidence": "high"},
                {"cause": "unknown", "confidence": "low"},
            ],
            "its offsets went for several reasons",
        ),
    ],
)
def test_offsets_that_do_not_tell_it_say_so(gone: list[dict[str, Any]], why: str) -> None:
    assert detail_of({}, *gone) == f"as a classic group; cause: unknown ({why})"


def test_what_is_lacking_of_the_offsets_that_went_is_lacking_of_the_group_as_well() -> None:
    gone = {
        "cause": "unknown",
        "confidence": "low",
        "complete": False,
        "missing": "records below 7",
    }
    event = event_of({}, gone)
    assert (event["complete"], event["missing"]) == (False, "records below 7")
    # Of a cause that is known nothing is lacking.
    told = event_of({}, {**gone, "cause": "expiration", "confidence": "high"})
    assert (told["complete"], told["missing"]) == (True, None)


@pytest.mark.parametrize(("start", "complete"), [(0, True), (8, True), (9, False), (20, False)])
def test_tombstones_of_offsets_that_compaction_may_have_taken_may_have_told_it(
    start: int, complete: bool
) -> None:
    coverage = Coverage(uncompacted_from={("__consumer_offsets", 3): start})
    event = event_of({}, coverage=coverage)
    assert event["detail"] == "as a classic group; cause: unknown"
    assert (event["complete"], event["missing"] is None) == (complete, complete)
    # Those that are there tell it.
    gone = {"cause": "expiration", "confidence": "high"}
    assert event_of({}, gone, coverage=coverage)["complete"] is True
    assert event_of({"event": "emptied"}, coverage=coverage)["complete"] is True


def test_offsets_of_topics_that_were_left_out_may_have_told_it() -> None:
    coverage = Coverage(has_topic_filter=True)
    event = event_of({}, coverage=coverage)
    assert event["complete"] is False
    assert "left out by --topic" in event["missing"]
    gone = {"cause": "expiration", "confidence": "high"}
    assert event_of({}, gone, coverage=coverage)["complete"] is True


def test_a_tombstone_without_a_time_is_of_no_act() -> None:
    gone = {"cause": "expiration", "confidence": "high", "effective_timestamp": None}
    assert detail_of({"at": None}, gone) == "as a classic group; cause: unknown"


def test_other_events_stay_as_they_are() -> None:
    gone = {"cause": "expiration", "confidence": "high"}
    emptied = {"event": "emptied", "detail": "the last member left"}
    assert detail_of(emptied, gone) == "the last member left"
