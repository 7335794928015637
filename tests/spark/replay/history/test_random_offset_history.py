"""Random logs of commits: the history of offsets equals what is told record by record."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.reference_offset_history import Change, Log, random_log
from tests.support.told_offset_history import told_offset_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGS, ACTS = 500, 30


def found(spark: SparkSession, logs: list[Log], release: str) -> dict[str, list[Change]]:
    """Return rows of `offset_history` by group, in order of effect."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for log in logs:
        for name, told in log.rows.items():
            rows[name] += told
    made = told_offset_history(spark, rows, release)
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
