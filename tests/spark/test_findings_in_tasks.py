"""Findings that are made in tasks on Spark are those that this process makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analytics.engine.part_runs import PartRunner
from analytics.questions.findings import found as subject
from analytics.questions.findings import rows_for_rules
from analytics.questions.findings.findings_of import findings_of
from analytics.questions.findings.found import changes_in_parts
from analytics.questions.findings.rows_for_rules import judged_tables
from analytics.spark_tasks import run_tasks
from analytics.tables.parted_table import PartedTable
from jobs.asking import PHRASING
from jobs.audit.run import NEEDS
from jobs.cli.console import Console
from jobs.workspaces.replayed import replayed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKED_OF = {"input": "DUMP", "dump": "DUMP"}


def test_tasks_find_what_this_process_does(
    spark: SparkSession, failover_audited: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    counts: list[int] = []

    def on_spark(count: int, run: Callable[[int], Any]) -> Sequence[Any]:
        counts.append(count)
        return run_tasks(spark, count, run)

    runner = PartRunner(str(tmp_path), on_spark)
    with replayed(Console(quiet=True), inputs=[str(failover_audited)], needs=NEEDS) as state:
        whole = findings_of(state, judged_tables(state), ASKED_OF, PHRASING)
        monkeypatch.setattr(rows_for_rules, "AT_ONCE", 20)
        in_tasks = replace(state, runner=runner)
        found = findings_of(in_tasks, judged_tables(in_tasks), ASKED_OF, PHRASING)
    rows = whole.findings.whole()
    assert found.findings.whole() == rows
    assert (dict(found.counts), found.accepted) == (dict(whole.counts), whole.accepted)
    # What gives offsets back, and the findings.
    assert len(counts) == 2
    monkeypatch.setattr(subject, "AT_ONCE", 40)
    changed = changes_in_parts(found.findings, PartedTable.held(rows.slice(5)), runner)
    assert len(counts) == 3
    assert min(counts) > 1
    told = changed.whole()
    assert told.drop_columns(["change"]) == rows
    assert told["change"].to_pylist() == ["new"] * 5 + ["still_there"] * (rows.num_rows - 5)
