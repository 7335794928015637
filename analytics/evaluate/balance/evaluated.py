"""The tables `assignment_balance` and `assignment_alternatives`, from cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analytics.evaluate.balance.cases.case import Case
from analytics.evaluate.balance.cases.case_rows import Row, case_of
from analytics.evaluate.balance.judgement.alternatives import alternatives
from analytics.evaluate.balance.judgement.judge import judge
from analytics.evaluate.contract_table import table_of
from schemas import table

if TYPE_CHECKING:
    import polars as pl

    from schemas.evaluation_rules import BalanceRules

BALANCE, ALTERNATIVES = "assignment_balance", "assignment_alternatives"
_AT_ONCE = 10_000
"""Groups whose members and topics are Python's at the same time."""


def evaluated(
    cases: pl.DataFrame, rules: BalanceRules, gaps: Mapping[str, str]
) -> dict[str, pa.Table]:
    """Judge every case, and run every fitting assignor on it; sorted by the tables' keys.

    Args:
        cases: One row a group and stretch of time (`tables.cases_now`, `tables.cases_ever`).
        rules: Bands.
        gaps: Groups of which the dump lacks records that may matter, with why.
    """
    parts = {name: [table_of(name, [])] for name in (BALANCE, ALTERNATIVES)}
    for some in cases.iter_slices(_AT_ONCE):
        for name, rows in _of_cases(some.to_dicts(), rules, gaps).items():
            parts[name].append(table_of(name, rows))
    return {
        name: pa.concat_tables(found).sort_by([(each, "ascending") for each in table(name).key])
        for name, found in parts.items()
    }


def case_with_gaps(row: Row, gaps: Mapping[str, str]) -> Case:
    """Return the case of a row, unreadable where the dump lacks records of its group."""
    case = case_of(row)
    return replace(case, unreadable=gaps.get(case.group_id, case.unreadable))


def span_of(row: Row) -> dict[str, Any]:
    """Return the time that a case stands for."""
    return {name: row[name] for name in ("from_offset", "from_timestamp", "to_timestamp")}


def _of_cases(
    cases: Iterable[Row], rules: BalanceRules, gaps: Mapping[str, str]
) -> dict[str, list[dict[str, Any]]]:
    judged, tried = list[dict[str, Any]](), list[dict[str, Any]]()
    for row in cases:
        case, span = case_with_gaps(row, gaps), span_of(row)
        judged.append({**span, **vars(judge(case, rules))})
        tried += ({**span, **vars(each)} for each in alternatives(case))
    return {BALANCE: judged, ALTERNATIVES: tried}
