"""The checkpoint of a real query over a real broker's topics, and what its group committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.brokers.spark_query import play
from tests.support.kafka_jars import JarsUnavailableError
from tests.support.query_plan import PLAN

if TYPE_CHECKING:
    from tests.conftest import Groupscope

QUERY = Path(__file__).resolve().parents[1] / "data" / "regions" / "query"


def check(groupscope: Groupscope, checkpoint: Path, log_dir: Path) -> None:
    result = groupscope(
        *("region", checkpoint, "--dump", log_dir, "--checkpoint-group", "etl"),
        *("--format", "json"),
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    rows = [(row["checkpoint_sequence_id"], row["complete"]) for row in found["rows"]]
    assert rows == [(0, True), (1, True)]
    plan = {
        (row["topic"], row["partition"]): (
            *(row["seek_offset"], row["commit_is"], row["ahead_by"], row["log_is"]),
        )
        for row in found["region_seek_plan"]
    }
    assert plan == PLAN
    words = [(row["finding"], row["topic"]) for row in found["region_findings"]]
    assert ("checkpoint_of_another_topic", "returns") in words
    assert ("committed_ahead", "orders") in words
    assert ("committed_behind", "orders") in words


def test_a_query_is_held_against_what_its_group_committed(groupscope: Groupscope) -> None:
    check(groupscope, QUERY / "checkpoint", QUERY / "broker-1")


@pytest.mark.maven
def test_a_query_made_anew_is_too(groupscope: Groupscope, tmp_path: Path) -> None:
    try:
        checkpoint, log_dir = play(tmp_path)
    except JarsUnavailableError as reason:
        pytest.skip(str(reason))
    check(groupscope, checkpoint, log_dir)
