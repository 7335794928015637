"""Random logs of commits: the history of offsets equals what is told record by record."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from analytics.replay.coverage import WHOLE
from analytics.replay.graph import needed_for, resolve
from analytics.replay.group_records import KINDS
from analytics.replay.history.tables import HISTORY
from analytics.replay.rules import replay_rules
from schemas import table
from tests.support.decoded_frames import frames_of
from tests.support.reference_offset_history import Change, Log, random_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGS, ACTS = 500, 30
TABLES = (*KINDS, "offset_commit", "control_markers")
OTHERS = ("removals", "elections")
NO_REMOVALS = "coordinator_partition int, record_offset bigint, cause string, confidence string"
NO_ELECTIONS = (
    "topic string, partition int, leader_epoch int, unclean boolean, takes_over boolean, "
    "since timestamp"
)


def found(spark: SparkSession, logs: list[Log], release: str) -> dict[str, list[Change]]:
    """Return rows of `offset_history` by group, in order of effect."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for log in logs:
        for name, told in log.rows.items():
            rows[name] += told
    given = {
        "cut": frames_of(spark, rows, TABLES),
        "topics": spark.createDataFrame([], table("topics").ddl(not_null=False)),
        "rules": replay_rules(release),
        "coverage": WHOLE,
        "removals": spark.createDataFrame([], NO_REMOVALS),
        "elections": spark.createDataFrame([], NO_ELECTIONS),
    }
    steps = [step for step in needed_for(HISTORY, ["offset_history"]) if step.makes not in OTHERS]
    made = resolve(steps, given)["offset_history"]
    names = [*Change._fields, "group_id"]
    by_group: dict[str, list[Change]] = defaultdict(list)
    for *values, group in made.select(*names).collect():
        by_group[group].append(Change(*values))
    return by_group


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_history_of_offsets_equals_the_reference(spark: SparkSession, release: str) -> None:
    clears = release == "4.3"
    logs = [random_log(number, ACTS, clears_pending=clears) for number in range(LOGS)]
    by_group = found(spark, logs, release)
    for log in logs:
        expected = [
            # Nobody but the coordinator deletes, and why is told by other records than these.
            each._replace(origin="unknown") if each.event == "delete" else each
            for each in log.changes
        ]
        told = sorted(by_group[log.group], key=lambda each: (each.effective_offset, each.partition))
        assert told == sorted(expected, key=lambda each: (each.effective_offset, each.partition)), (
            log.group
        )
