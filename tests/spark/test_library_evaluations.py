"""Questions of a state: what commands answer, on the caller's session."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics import State, open_dump
from analytics.errors import SettingRefusedError, WorkspaceError
from analytics.library import state as library_state
from analytics.questions.diff.question import DIFF
from analytics.questions.lag import question as lag_question
from analytics.questions.question import UnknownQuestionError, audited_questions
from analytics.questions.restore.question import RESTORE
from analytics.spark_tasks import run_tasks
from schemas import table
from schemas.reading import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from tests.conftest import Groupscope

FROM = "2026-11-21T09:20:00Z"
OF_TWO_STATES = {"diff": "since", "restore": "against"}
DIFFERENCES = {
    "offset": (
        *("group_id", "topic", "partition", "change", "from_committed_offset"),
        *("to_committed_offset", "difference", "cause", "copy"),
    ),
    "group": ("group_id", "change", "from_epoch", "to_epoch", "from_state", "to_state"),
    "share_partition": ("group_id", "topic_id", "partition", "change", "to_start_offset"),
    "member": ("group_id", "member_id", "previous_member_id", "change"),
}
RETENTIONS = ("--retention-minutes", "1,1440")


@pytest.fixture(scope="module")
def state(failover_workspace: Path, spark: SparkSession) -> Iterator[State]:
    with open_dump(str(failover_workspace)) as dump:
        yield dump.replay(spark)


@pytest.fixture(scope="module")
def earlier(failover_workspace: Path, spark: SparkSession) -> Iterator[State]:
    """The same before the election."""
    with open_dump(str(failover_workspace)) as dump:
        yield dump.replay(spark, as_of=FROM)


@pytest.mark.parametrize(
    ("question", "options", "arguments"),
    [
        pytest.param("timeline", ("--group", "*"), {}, marks=pytest.mark.long),
        ("timeline", ("--group", "*", "--from", FROM), {"time_from": FROM}),
        ("expiration", RETENTIONS, {"retention_minutes": (1, 1440)}),
        pytest.param("balance", (), {}, marks=pytest.mark.long),
        ("balance", ("--history",), {"history": True}),
        ("rebalances", ("--storm-epochs", "2"), {"storm_epochs": 2}),
        ("lag", ("--by", "group"), {"by": "group"}),
        ("share", (), {}),
        ("usage", (), {}),
    ],
)
def test_answers_are_those_of_the_command(
    groupscope: Groupscope,
    failover_workspace: Path,
    state: State,
    tmp_path: Path,
    question: str,
    options: tuple[str, ...],
    arguments: dict[str, Any],
) -> None:
    out = tmp_path / "out"
    ran = groupscope(question, failover_workspace, *options, "--format", "json", "--out", out)
    answer = state.ask(question, **arguments)

    made = sorted((out / "evaluations").iterdir())
    # What is a table of the replay is kept as that.
    kept = {name for name in answer.tables if table(name).kind == "evaluation"}
    assert {each.name for each in made} == kept
    for folder in made:
        name = folder.name
        assert _rows(answer.table(name).toArrow()) == _rows(pq.read_table(folder)), name
    assert list(answer.cannot_tell) == json.loads(ran.stdout)["cannot_tell"]


def test_two_states_differ_as_the_command_says(
    groupscope: Groupscope, failover_workspace: Path, state: State, earlier: State
) -> None:
    ran = groupscope("diff", failover_workspace, "--from", FROM, "--format", "json")
    rows = json.loads(ran.stdout)["rows"]
    answer = state.diff(since=earlier.replayed)
    for kind, columns in DIFFERENCES.items():
        of_kind = [each for each in rows if each["kind"] == kind]
        assert of_kind
        assert {tuple(row[name] for name in columns) for row in of_kind} == {
            tuple(row) for row in answer.table(f"changed_{kind}s").select(*columns).collect()
        }
    assert list(answer.cannot_tell) == json.loads(ran.stdout)["cannot_tell"]
    with pytest.raises(SettingRefusedError, match="nothing to compare"):
        state.diff()


def test_offsets_are_restored_as_the_command_says(
    groupscope: Groupscope,
    failover_workspace: Path,
    state: State,
    earlier: State,
    tmp_path: Path,
) -> None:
    options = ("--group", "*", "--as-of", FROM, "--out", tmp_path / "out", "--format", "json")
    ran = groupscope("restore", failover_workspace, *options)
    rows = [each for each in json.loads(ran.stdout)["rows"] if each["kind"] == "offset"]
    columns = ("group_id", "topic", "partition", "verdict", "committed_offset", "reason")
    plan = earlier.restore(against=state.replayed).restore_plan
    assert rows
    assert [tuple(each[name] for name in columns) for each in rows] == [
        tuple(each) for each in plan.select(*columns).collect()
    ]
    with pytest.raises(SettingRefusedError, match="nothing to restore"):
        earlier.restore()


def test_columns_are_those_of_the_contract(state: State) -> None:
    balance = state.balance().assignment_balance
    assert balance.columns == [each.name for each in table("assignment_balance").columns]
    assert balance.count() > 0


def test_what_a_harmed_dump_cannot_tell_is_said(
    failover_dump: Path, spark: SparkSession, state: State, tmp_path: Path
) -> None:
    home = state.groups.where("group_id = 'parcel-router'").first().coordinator_partition
    harmed = tmp_path / "dump"
    shutil.copytree(failover_dump, harmed)
    for log in harmed.glob(f"*/__consumer_offsets-{home}/*.log"):
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    with open_dump(str(harmed)) as dump:
        harmed_state = dump.replay(spark)
        # What its cluster answered is no part of a dump that is no snapshot.
        asked = [each for each in audited_questions() if each.name != "cluster"]
        for question in (*asked, DIFF, RESTORE):
            name = OF_TWO_STATES.get(question.name)
            other = {} if name is None else {name: harmed_state.replayed}
            answer = harmed_state.ask(question.name, **other)
            assert any(f"__consumer_offsets-{home}" in each for each in answer.cannot_tell)


def test_a_table_that_was_not_replayed_is_an_error_and_no_empty_answer(
    failover_workspace: Path, spark: SparkSession
) -> None:
    with open_dump(str(failover_workspace)) as dump:
        few = dump.replay(spark, tables=["groups"])
        with pytest.raises(WorkspaceError, match="has no table"):
            few.balance()


def test_a_threshold_that_is_none_is_an_error(state: State) -> None:
    with pytest.raises(SchemaError, match="storm_epoch"):
        state.with_settings(thresholds={"rebalances": {"storm_epoch": 2}}).rebalances()


def test_a_name_that_is_none_is_an_error_that_names_the_nearest(state: State) -> None:
    with pytest.raises(UnknownQuestionError, match="did you mean 'balance'"):
        state.ask("balnce")
    with pytest.raises(TypeError, match="did you mean 'history'"):
        state.ask("balance", histroy=True)
    with pytest.raises(AttributeError, match="did you mean 'committed_offsets'"):
        _ = state.commited_offsets
    with pytest.raises(AttributeError, match="did you mean 'assignment_balance'"):
        _ = state.balance().assigment_balance


def test_an_answer_is_shown_in_a_notebook(state: State) -> None:
    answer = state.balance()
    assert "assignment_balance" in answer._repr_html_()
    assert repr(answer).startswith("<answer to balance: assignment_balance: ")
    assert "groups" in state._repr_html_()


def test_tables_are_also_those_of_polars_and_pandas(state: State) -> None:
    answer = state.balance()
    rows = answer.assignment_balance.count()
    assert answer.to_polars("assignment_balance").height == rows
    assert len(answer.to_pandas("assignment_balance")) == rows


def _rows(rows: pa.Table) -> list[str]:
    columns = sorted(rows.column_names)
    return sorted(str(each) for each in rows.select(columns).to_pylist())


def test_a_large_state_is_asked_in_tasks_of_the_callers_session(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = state.lag(by="group")
    counts: list[int] = []

    def counted(spark: SparkSession, count: int, run: Callable[[int], Any]) -> list[Any]:
        counts.append(count)
        return run_tasks(spark, count, run)

    monkeypatch.setattr(library_state, "is_small_workspace", lambda _: False)
    monkeypatch.setattr(library_state, "run_tasks", counted)
    monkeypatch.setattr(lag_question, "AT_ONCE", 400)
    in_tasks = state.lag(by="group")
    assert max(counts) > 1
    assert repr(in_tasks) == repr(here)
    for name in here.tables:
        assert in_tasks.to_arrow(name).equals(here.to_arrow(name)), name
        assert in_tasks.table(name).count() == here.to_arrow(name).num_rows
