"""Questions whose parts are answered in tasks on Spark are answered as they are here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from analytics.engine.part_runs import GroupPart, PartAnswer, PartRunner
from analytics.questions.balance import balance_tables, through_history
from analytics.questions.balance.question import BALANCE, BalanceSettings
from analytics.questions.diff import question as diff_question
from analytics.questions.diff.question import DIFF, DiffSettings
from analytics.questions.expiration import question as expiration_question
from analytics.questions.expiration.question import EXPIRATION, ExpirationSettings
from analytics.questions.lag import question as lag_question
from analytics.questions.lag.question import LAG, LagSettings
from analytics.questions.question import Question
from analytics.questions.rebalances import rebalance_tables
from analytics.questions.rebalances.question import REBALANCES, RebalanceSettings
from analytics.questions.restore import question as restore_question
from analytics.questions.restore.question import RESTORE, RestoreSettings
from analytics.questions.share import question as share_question
from analytics.questions.share.question import SHARE, BacklogSettings
from analytics.questions.timeline import group_verdicts
from analytics.questions.timeline.question import TIMELINE, TimelineSettings
from analytics.questions.usage import question as usage_question
from analytics.questions.usage.question import USAGE, UsageSettings
from analytics.replay.dump.choices import BeforeEnd
from analytics.replayed.replayed_workspace import ReplayedWorkspace
from analytics.spark_tasks import run_tasks
from jobs.cli.console import Console
from jobs.workspaces.replayed import replayed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def state(failover_dump: Path) -> Iterator[ReplayedWorkspace]:
    asked = (LAG, REBALANCES, BALANCE, EXPIRATION, TIMELINE, USAGE, DIFF, RESTORE, SHARE)
    needs = {name for question in asked for name in question.needs}
    with replayed(Console(quiet=True), inputs=[str(failover_dump)], needs=[*needs]) as found:
        yield found


def rows_of(
    question: Question[Any, Any], settings: object, state: ReplayedWorkspace
) -> Mapping[str, Any]:
    answer = question.ask(state, settings)
    figures = {
        name: each.whole() if hasattr(each, "whole") else each
        for name, each in answer.figures.items()
    }
    return {**answer.tables, **figures}


@pytest.mark.parametrize(
    ("question", "settings", "limit"),
    [
        pytest.param(LAG, LagSettings(), (lag_question, 150), marks=pytest.mark.long),
        (LAG, LagSettings("group", min_lag=1), (lag_question, 150)),
        (LAG, LagSettings("topic"), (lag_question, 150)),
        (REBALANCES, RebalanceSettings(), (rebalance_tables, 60)),
        (BALANCE, BalanceSettings(), (balance_tables, 150)),
        (BALANCE, BalanceSettings(history=True), (through_history, 40)),
        pytest.param(
            EXPIRATION,
            ExpirationSettings((1, 10080)),
            (expiration_question, 150),
            marks=pytest.mark.long,
        ),
        (EXPIRATION, ExpirationSettings((1, 10080), most=5), (expiration_question, 150)),
        pytest.param(TIMELINE, TimelineSettings(), (group_verdicts, 150), marks=pytest.mark.long),
        (TIMELINE, TimelineSettings(time_to=BeforeEnd(120_000)), (group_verdicts, 150)),
        (USAGE, UsageSettings("group"), (usage_question, 150)),
        (SHARE, BacklogSettings("group"), (share_question, 150)),
    ],
    ids=[
        *("lag", "lag by group", "lag by topic", "rebalances", "balance"),
        *("balance through history", "expiration", "the worst of expiration"),
        *("timeline", "timeline to a time", "usage", "share"),
    ],
)
def test_tasks_answer_as_this_process_does(
    spark: SparkSession,
    state: ReplayedWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    question: Question[Any, Any],
    settings: object,
    limit: tuple[object, int],
    tmp_path: Path,
) -> None:
    assert_same_in_tasks(spark, state, monkeypatch, question, settings, limit, tmp_path)


def test_tasks_compare_two_states_as_this_process_does(
    spark: SparkSession,
    state: ReplayedWorkspace,
    failover_dump: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    with replayed(
        Console(quiet=True),
        inputs=[str(failover_dump)],
        needs=[*{*DIFF.needs, *RESTORE.needs}],
        as_of=BeforeEnd(200_000),
    ) as before:
        for asked, question, settings, module in (
            (state, DIFF, DiffSettings(before), diff_question),
            (before, RESTORE, RestoreSettings(state), restore_question),
        ):
            assert_same_in_tasks(
                spark, asked, monkeypatch, question, settings, (module, 150), tmp_path
            )


def assert_same_in_tasks(
    spark: SparkSession,
    state: ReplayedWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    question: Question[Any, Any],
    settings: object,
    limit: tuple[object, int],
    tmp_path: Path,
) -> None:
    whole = rows_of(question, settings, state)
    module, at_once = limit
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    counts: list[int] = []

    def on_spark(count: int, run: Callable[[int], Any]) -> Sequence[Any]:
        counts.append(count)
        return run_tasks(spark, count, run)

    in_tasks = replace(state, runner=PartRunner(str(tmp_path), on_spark))
    for name, rows in rows_of(question, settings, in_tasks).items():
        assert rows == whole[name], name
    assert max(counts) > 1


def read_rows(number: int) -> dict[str, pl.DataFrame]:
    return {"groups": pl.DataFrame({"group_id": [f"group-{number}"]})}


def with_process(rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    return PartAnswer({}, (rows["groups"]["group_id"].to_list(), os.getpid()))


def test_a_single_part_starts_no_spark(tmp_path: Path) -> None:
    def on_spark(*_: object) -> Sequence[Any]:
        raise AssertionError

    answers = PartRunner(str(tmp_path), on_spark).run(
        with_process, [GroupPart(partial(read_rows, 0))]
    )
    assert answers.sums == [(["group-0"], os.getpid())]
    assert not list(tmp_path.iterdir())
