"""Burrow's verdicts, rule by rule and edge by edge, as worked by hand from its published rules."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.evaluate.lag.burrow.status import StatusFold
from analytics.evaluate.lag.commits.end_offset_samples import SAMPLES, EndOffsetSamples
from schemas.evaluation_rules import BurrowRules, lag_rules
from tests.unit.evaluate.lag.commits import commits_of, folded

CASES = json.loads((Path(__file__).parents[3] / "cases" / "lag" / "burrow.json").read_text())[
    "cases"
]
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = round(EPOCH.timestamp() * 1000)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}: {case['name']}")
def test_burrow_says(case: dict[str, Any]) -> None:
    rules = BurrowRules(
        case.get("intervals", 10), case.get("min_distance", 0), case.get("allowed_lag", 0)
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
    commits = commits_of([(0, offset, at, at) for at, offset in case["commits"]], EPOCH)
    fold = StatusFold(rules, EndOffsetSamples.of(samples))
    changes = pa.concat_tables(folded([commits], fold, EPOCH_MS + case["now"])).to_pylist()

    assert (changes[-1]["status"] if changes else "NOT_EVALUABLE") == case["status"]


def test_there_are_cases_of_every_rule() -> None:
    assert len(CASES) >= 40
    assert {case["status"] for case in CASES} == {
        *("OK", "WARN", "STOP", "STALL", "REWIND", "NOT_EVALUABLE")
    }


def test_burrows_own_defaults_are_shipped() -> None:
    assert lag_rules().burrow == BurrowRules(10, 0, 0, 604_800)
