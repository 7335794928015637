"""Questions to a large workspace look at some groups at a time: the answers are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from analytics.engine.part_runs import PartRunner, RunTasks, in_threads
from analytics.gaps.group_selection import select_groups
from analytics.questions.balance import balance_tables, through_history
from analytics.questions.balance.question import BALANCE, BalanceSettings
from analytics.questions.describe import description
from analytics.questions.diff import question as diff_question
from analytics.questions.diff.question import DIFF, DiffSettings
from analytics.questions.expiration import commit_requests
from analytics.questions.expiration import question as expiration_question
from analytics.questions.expiration.question import EXPIRATION, ExpirationSettings
from analytics.questions.lag import question as lag_question
from analytics.questions.lag.question import LAG, LagSettings
from analytics.questions.question import Answer, Question
from analytics.questions.rebalances import rebalance_tables
from analytics.questions.rebalances.question import REBALANCES, RebalanceSettings
from analytics.questions.restore import question as restore_question
from analytics.questions.restore.question import RESTORE, RestoreSettings
from analytics.questions.share import question as share_question
from analytics.questions.share.question import SHARE, BacklogSettings
from analytics.questions.table_orders import order_of
from analytics.questions.timeline import group_verdicts
from analytics.questions.timeline import question as timeline_question
from analytics.questions.timeline.question import TIMELINE, TimelineSettings
from analytics.questions.usage import question as usage_question
from analytics.questions.usage.question import USAGE, UsageSettings
from analytics.replay.dump.choices import BeforeEnd
from analytics.replayed.replayed_workspace import ReplayedWorkspace
from jobs.cli.console import Console
from jobs.commands.expiration import described_offsets
from jobs.workspaces.replayed import replayed

SHARE_GROUPS = Path(__file__).parents[1] / "data" / "dumps" / "kafka-4.3.1-story"


Lots = Sequence[tuple[int, RunTasks | None]]
"""How many rows are looked at together, and what runs the tasks."""


@pytest.fixture(
    params=[*(pytest.param(each, marks=pytest.mark.long) for each in ("small", "large")), "several"]
)
def lots(request: pytest.FixtureRequest) -> Callable[[int], Lots]:
    """Take at how many rows there are several lots; give the lots to ask for.

    Small lots are many, each of which costs as much as all rows together.
    """
    if request.param == "small":
        return lambda _: ((50, None), (50, in_threads), (400, None))
    if request.param == "large":
        return lambda rows: ((rows, in_threads), (2 * rows, None))
    return lambda rows: ((rows, in_threads),)


def rows_of(answer: Answer) -> Mapping[str, Any]:
    figures = {
        name: each.whole() if hasattr(each, "whole") else each
        for name, each in answer.figures.items()
    }
    return {**answer.tables, **figures}


@pytest.fixture(
    scope="module",
    params=[pytest.param(None, marks=pytest.mark.long), BeforeEnd(60_000)],
    ids=["end", "earlier"],
)
def state(failover_workspace: Path, request: pytest.FixtureRequest) -> Iterator[ReplayedWorkspace]:
    needs = {
        name
        for question in (EXPIRATION, BALANCE, REBALANCES, LAG, TIMELINE)
        for name in question.needs
    }
    needs |= {"offset_history", *description.NEEDS}
    with replayed(
        Console(quiet=True), inputs=[str(failover_workspace)], needs=[*needs], as_of=request.param
    ) as found:
        yield found


@pytest.mark.parametrize(
    ("question", "settings", "module", "several"),
    [
        (EXPIRATION, ExpirationSettings((1, 10080)), expiration_question, 200),
        (EXPIRATION, ExpirationSettings((1, 10080), most=7), expiration_question, 200),
        (EXPIRATION, ExpirationSettings((1, 10080)), commit_requests, 50),
        (BALANCE, BalanceSettings(), balance_tables, 50),
        (BALANCE, BalanceSettings(history=True), through_history, 50),
        (REBALANCES, RebalanceSettings(), rebalance_tables, 50),
        (LAG, LagSettings(by="partition"), lag_question, 200),
        *(
            pytest.param(LAG, LagSettings(by=by), lag_question, 200, marks=pytest.mark.long)
            for by in ("group", "topic")
        ),
        (LAG, LagSettings(by="member"), lag_question, 200),
        (LAG, LagSettings(by="group", min_lag=1), lag_question, 200),
        pytest.param(TIMELINE, TimelineSettings(), group_verdicts, 200, marks=pytest.mark.long),
        (TIMELINE, TimelineSettings(time_to=BeforeEnd(120_000)), group_verdicts, 200),
        (TIMELINE, TimelineSettings(), timeline_question, 50),
    ],
    ids=[
        *("expiration", "the worst of expiration", "requests of expiration"),
        *("balance", "balance through history", "rebalances"),
        *("lag", "lag by group", "lag by topic", "lag by member", "lag of who is behind"),
        *("timeline", "timeline to a time", "timeline of events"),
    ],
)
def test_the_answer_rests_on_no_number_of_groups_at_a_time(
    state: ReplayedWorkspace,
    question: Question[Any, Any],
    settings: object,
    module: ModuleType,
    several: int,
    lots: Callable[[int], Lots],
    tmp_path: Path,
) -> None:
    assert_same_in_parts(question, settings, state, module, lots(several), tmp_path)


def test_who_owns_offsets_rests_on_no_number_of_groups_at_a_time(
    state: ReplayedWorkspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make = partial(described_offsets, state.release)
    described = description.described_groups(state, select_groups(state).rows)
    whole = make(described.description)
    assert whole["consumer_id"].null_count < whole.num_rows
    at_once = description.offsets_of_all(state, make)
    monkeypatch.setattr(description, "AT_ONCE", 50)
    parted = description.offsets_of_all(replace(state, runner=PartRunner(str(tmp_path))), make)
    assert len(parted.rows.parts) > 1
    for each in (at_once, parted):
        assert each.rows.whole() == whole
        assert set(each.warnings) == set(described.warnings)


@pytest.mark.parametrize("state", [None], indirect=True, ids=["end"])
@pytest.mark.parametrize(
    "settings",
    [UsageSettings("group"), UsageSettings("topic", groups=("*a*",))],
    ids=["of all groups", "of some groups"],
)
def test_usage_rests_on_no_number_of_records_at_a_time(
    state: ReplayedWorkspace,
    settings: UsageSettings,
    lots: Callable[[int], Lots],
    tmp_path: Path,
) -> None:
    assert_same_in_parts(USAGE, settings, state, usage_question, lots(400), tmp_path)


@pytest.fixture(scope="module")
def share_state() -> Iterator[ReplayedWorkspace]:
    """A dump with many share groups."""
    with replayed(Console(quiet=True), inputs=[str(SHARE_GROUPS)], needs=SHARE.needs) as found:
        yield found


@pytest.mark.parametrize(
    "by",
    ["group", *(pytest.param(by, marks=pytest.mark.long) for by in ("partition", "topic"))],
)
def test_share_rests_on_no_number_of_groups_at_a_time(
    share_state: ReplayedWorkspace, by: str, lots: Callable[[int], Lots], tmp_path: Path
) -> None:
    settings = BacklogSettings(by)
    whole = SHARE.ask(share_state, settings)
    assert_same_in_parts(SHARE, settings, share_state, share_question, lots(200), tmp_path)
    in_parts = replace(share_state, runner=PartRunner(str(tmp_path)))
    with mock.patch.object(share_question, "AT_ONCE", 400):
        parted = SHARE.ask(in_parts, settings)
    assert parted.gaps == whole.gaps
    assert parted.warnings == whole.warnings


@pytest.fixture(scope="module")
def two_states(
    failover_workspace: Path,
) -> Iterator[tuple[ReplayedWorkspace, ReplayedWorkspace]]:
    """The bundled dump before its election, and at its end."""
    asked: dict[str, Any] = {
        "inputs": [str(failover_workspace)],
        "needs": [*{*DIFF.needs, *RESTORE.needs}],
    }
    console = Console(quiet=True)
    with (
        replayed(console, **asked, as_of=BeforeEnd(200_000)) as before,
        replayed(console, **asked) as after,
    ):
        yield before, after


def test_differences_rest_on_no_number_of_groups_at_a_time(
    two_states: tuple[ReplayedWorkspace, ReplayedWorkspace],
    lots: Callable[[int], Lots],
    tmp_path: Path,
) -> None:
    before, after = two_states
    settings = DiffSettings(before)
    assert_same_in_parts(DIFF, settings, after, diff_question, lots(200), tmp_path)


def test_what_is_given_back_rests_on_no_number_of_groups_at_a_time(
    two_states: tuple[ReplayedWorkspace, ReplayedWorkspace],
    lots: Callable[[int], Lots],
    tmp_path: Path,
) -> None:
    before, after = two_states
    settings = RestoreSettings(after)
    assert_same_in_parts(RESTORE, settings, before, restore_question, lots(200), tmp_path)


def assert_same_in_parts(
    question: Question[Any, Any],
    settings: object,
    state: ReplayedWorkspace,
    module: ModuleType,
    lots: Lots,
    folder: Path,
) -> None:
    whole = rows_of(question.ask(state, settings))
    assert sum(each.num_rows for each in whole.values() if isinstance(each, pa.Table)) > 20
    parts = []
    for at_once, run_tasks in lots:
        parted = replace(state, runner=PartRunner(str(folder), run_tasks))
        with mock.patch.object(module, "AT_ONCE", at_once):
            answer = question.ask(parted, settings)
        for name, rows in rows_of(answer).items():
            assert rows == whole[name], name
        assert_in_known_order(answer)
        parts.append(max(len(answer.rows(name).parts) for name in answer.tables))
    assert parts[0] > 1


def assert_in_known_order(answer: Answer) -> None:
    """Hold that who reads a table of parts from a workspace knows in which order it is."""
    if set(answer.tables_to_keep) <= set(answer.tables):
        for name in answer.tables_to_keep:
            rows = answer.rows(name)
            if len(rows.parts) > 1:
                assert [*rows.order.columns] == [*order_of(name).columns], name
