"""Burrow's verdicts, rule by rule and edge by edge, as worked by hand from its published rules."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.questions.lag.burrow import status_history
from analytics.questions.lag.movement import in_order
from analytics.questions.lag.pace import log_ends
from analytics.replayed.end_offsets import SAMPLES
from schemas.evaluation_rules import BurrowRules, lag_rules
from tests.unit.questions.lag.commits import commits_of

CASES = json.loads((Path(__file__).parents[3] / "cases" / "lag" / "burrow.json").read_text())[
    "cases"
]
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = round(EPOCH.timestamp() * 1000)


FAR_MS = 12 * 365 * 86_400_000


def statuses_of(
    case: dict[str, Any], commits: list[tuple[int, int | None, int, int]]
) -> list[dict[str, Any]]:
    rules = BurrowRules(
        case.get("intervals", 10),
        case.get("min_distance", 0),
        case.get("allowed_lag", 0),
        expire_group=604_800,
    )
    samples = pa.Table.from_pylist(
        [
            {
                "topic": "t",
                "partition": 0,
                "timestamp": EPOCH + timedelta(milliseconds=at),
                "log_start_offset": 0,
                "log_end_offset": end,
            }
            for at, end in case["ends"]
        ],
        schema=SAMPLES,
    )
    keys, rows = in_order(commits_of(commits, EPOCH))
    return status_history(keys, rows, log_ends(samples), rules, EPOCH_MS + case["now"]).to_dicts()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}: {case['name']}")
def test_burrow_says(case: dict[str, Any]) -> None:
    changes = statuses_of(case, [(0, offset, at, at) for at, offset in case["commits"]])

    assert (changes[-1]["status"] if changes else "NOT_EVALUABLE") == case["status"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}: {case['name']}")
def test_a_commit_of_a_time_that_is_not_believed_hides_what_came_after_it(
    case: dict[str, Any],
) -> None:
    """Without it in the window Burrow would be said to see a group that has stopped."""
    commits = [(0, offset, at, at) for at, offset in case["commits"]]
    whole = statuses_of(case, commits)
    for place, (partition, offset, at, _) in enumerate(commits):
        ahead = (partition, offset, at, at + FAR_MS)
        found = statuses_of(case, [*commits[:place], ahead, *commits[place + 1 :]])
        before = max((at for *_, at in commits[:place]), default=-1)
        assert found == [
            each
            for each in whole
            if each["to_timestamp"] is not None
            and each["to_timestamp"] <= EPOCH + timedelta(milliseconds=before)
        ]


def test_there_are_cases_of_every_rule() -> None:
    assert len(CASES) >= 40
    assert {case["status"] for case in CASES} == {
        *("OK", "WARN", "STOP", "STALL", "REWIND", "NOT_EVALUABLE")
    }


def test_burrows_own_defaults_are_shipped() -> None:
    shipped = lag_rules().burrow
    assert shipped == BurrowRules(10, 0, 0, 604_800, shipped.about)
