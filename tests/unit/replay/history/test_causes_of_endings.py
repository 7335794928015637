"""Why a group was deleted is told by the offsets that went in the same act."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.contracts import contract_schema
from analytics.replay.history.events.causes_of_endings import with_causes_of_endings

AT = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = {"group_id": "fleet", "coordinator_partition": 3}
EVENT = {"event": "deleted", "detail": "as a classic group", "at": AT, "record_offset": 9}
GONE = {"event": "delete", "topic": "sensors", "effective_timestamp": AT}


def detail_of(event: dict[str, Any], *gone: dict[str, Any]) -> str:
    events = pl.DataFrame([{**GROUP, **EVENT, **event}], contract_schema("group_events"))
    rows = [{**GROUP, **GONE, "partition": nth, **each} for nth, each in enumerate(gone)]
    history = pl.DataFrame(rows, contract_schema("offset_history"))
    (detail,) = with_causes_of_endings(events, history)["detail"]
    return str(detail)


@pytest.mark.parametrize("cause", ["expiration", "group_deleted", "topic_deleted"])
def test_what_took_its_offsets_in_the_same_act_took_the_group(cause: str) -> None:
    gone = {"cause": cause, "confidence": "high"}
    said = f"as a classic group; cause: {cause.replace('_', ' ')} (high confidence)"
    assert detail_of({}, gone, gone) == said


@pytest.mark.parametrize(
    "gone",
    [
        [],
        [{"cause": "unknown", "confidence": "low"}],
        [{"cause": None, "confidence": None}],
        [{"cause": "expiration", "confidence": "high"}, {"cause": "unknown", "confidence": "low"}],
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


def test_a_tombstone_without_a_time_is_of_no_act() -> None:
    gone = {"cause": "expiration", "confidence": "high", "effective_timestamp": None}
    assert detail_of({"at": None}, gone) == "as a classic group; cause: unknown"


def test_other_events_stay_as_they_are() -> None:
    gone = {"cause": "expiration", "confidence": "high"}
    emptied = {"event": "emptied", "detail": "the last member left"}
    assert detail_of(emptied, gone) == "the last member left"
