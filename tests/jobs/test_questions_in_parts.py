"""Questions to a large workspace look at some groups at a time: the answers are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.questions.balance import held_in_epochs
from analytics.questions.balance.question import BALANCE, BalanceSettings
from analytics.questions.expiration import expiry_tables
from analytics.questions.expiration.question import EXPIRATION, ExpirationSettings
from analytics.questions.question import Question
from analytics.questions.rebalances import rebalance_tables
from analytics.questions.rebalances.question import REBALANCES, RebalanceSettings
from analytics.replay.dump.written_instants import BeforeEnd
from analytics.replayed.replayed_workspace import ReplayedWorkspace
from jobs.cli.console import Console
from jobs.workspaces.replayed import replayed


def rows_of(
    question: Question[Any, Any], settings: object, state: ReplayedWorkspace
) -> dict[str, pa.Table]:
    answer = question.ask(state, settings)
    return {**answer.tables, **answer.figures}


@pytest.mark.parametrize("as_of", [None, BeforeEnd(60_000)], ids=["end", "earlier"])
@pytest.mark.parametrize(
    ("question", "settings", "module"),
    [
        (EXPIRATION, ExpirationSettings((1, 10080), with_requests=False), expiry_tables),
        (BALANCE, BalanceSettings(history=True), held_in_epochs),
        (REBALANCES, RebalanceSettings(), rebalance_tables),
    ],
    ids=["expiration", "balance", "rebalances"],
)
def test_the_answer_rests_on_no_number_of_groups_at_a_time(
    failover_dump: Path,
    monkeypatch: pytest.MonkeyPatch,
    question: Question[Any, Any],
    settings: object,
    module: object,
    as_of: BeforeEnd | None,
) -> None:
    needs = question.needs_of(settings)
    with replayed(
        Console(quiet=True), inputs=[str(failover_dump)], needs=needs, as_of=as_of
    ) as state:
        whole = rows_of(question, settings, state)
        assert sum(rows.num_rows for rows in whole.values()) > 20
        for at_once in (50, 400):
            monkeypatch.setattr(module, "AT_ONCE", at_once)
            for name, rows in rows_of(question, settings, state).items():
                assert rows.equals(whole[name]), name
