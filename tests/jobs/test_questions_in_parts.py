"""Questions to a large workspace look at some groups at a time: the answers are the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from analytics.gaps.group_selection import select_groups
from analytics.questions.balance import held_in_epochs
from analytics.questions.balance.balance_tables import NEEDS_OF_HISTORY
from analytics.questions.balance.question import evaluate_balance
from analytics.questions.expiration import expiry_tables
from analytics.questions.expiration.question import NEEDS, chosen_rules, evaluate_expiration
from analytics.questions.rebalances import rebalance_tables
from analytics.questions.rebalances.question import NEEDS as NEEDS_OF_REBALANCES
from analytics.questions.rebalances.question import evaluate_rebalances
from analytics.replay.dump.written_instants import BeforeEnd
from analytics.replayed.end_offsets import end_offsets_at
from analytics.replayed.replayed_workspace import ReplayedWorkspace
from jobs.cli.console import Console
from jobs.runs.replay.replayed import replayed
from schemas.evaluation_rules import balance_rules, rebalance_rules

Answer = Callable[[ReplayedWorkspace], dict[str, pa.Table]]


def expiration(state: ReplayedWorkspace) -> dict[str, pa.Table]:
    rules = chosen_rules(state, state.settings, (1, 10080))
    ends = end_offsets_at(state, None)
    asked = select_groups(state)
    found = evaluate_expiration(state, asked, rules, ends, state.settings, with_requests=False)
    return {**found.tables, "fates": found.fates, "notes": found.notes}


def balance(state: ReplayedWorkspace) -> dict[str, pa.Table]:
    return evaluate_balance(state, balance_rules(), through_history=True).tables


def rebalances(state: ReplayedWorkspace) -> dict[str, pa.Table]:
    return {**evaluate_rebalances(state, rebalance_rules()).tables}


@pytest.mark.parametrize("as_of", [None, BeforeEnd(60_000)], ids=["end", "earlier"])
@pytest.mark.parametrize(
    ("answer", "needs", "module"),
    [
        (expiration, NEEDS, expiry_tables),
        (balance, NEEDS_OF_HISTORY, held_in_epochs),
        (rebalances, NEEDS_OF_REBALANCES, rebalance_tables),
    ],
    ids=["expiration", "balance", "rebalances"],
)
def test_the_answer_rests_on_no_number_of_groups_at_a_time(
    failover_dump: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    needs: tuple[str, ...],
    module: object,
    as_of: BeforeEnd | None,
) -> None:
    with replayed(
        Console(quiet=True), inputs=[str(failover_dump)], needs=needs, as_of=as_of
    ) as state:
        whole = answer(state)
        assert sum(rows.num_rows for rows in whole.values()) > 20
        for at_once in (50, 400):
            monkeypatch.setattr(module, "AT_ONCE", at_once)
            for name, rows in answer(state).items():
                assert rows.equals(whole[name]), name
