"""The tables `assignment_balance` and `assignment_alternatives`, from cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from analytics.evaluate.balance.cases.case_rows import Row, case_of
from analytics.evaluate.balance.cases.shapes import MEMBER_IDS, SHAPE, with_shapes
from analytics.evaluate.balance.judgement.alternatives import alternatives
from analytics.evaluate.balance.judgement.judge import judge
from analytics.evaluate.contract_columns import in_key_order, table_of_frame
from analytics.replay.contract_frame import contract_frame, contract_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from schemas.evaluation_rules import BalanceRules

BALANCE, ALTERNATIVES = "assignment_balance", "assignment_alternatives"
_AT_ONCE = 10_000
"""Groups whose members and topics are Python's at the same time."""

_OF_ROW: Final = ("group_id", "epoch", "from_offset", "from_timestamp", "to_timestamp")
"""What rows of one shape differ in, beside the ids of members."""
_NAMES: Final = ("member_with_most", "member_with_fewest", "busiest_member")
_CAUSE, _IS_TEMPLATE = "cause", "is_template"
_MARK: Final = "\0"
"""Around the place of a member in a text."""
_LEAST_ID: Final = 36
"""Kafka's own ids end with a UUID. What is shorter may stand in a text by chance."""


class _Judged(NamedTuple):
    """Rows of a shape; members go by their place among the sorted ids.

    Attributes:
        balance: Of `assignment_balance`, and `is_template`: the cause has places of members.
        alternatives: Of `assignment_alternatives`.
        is_alone: The cause names members in a way that holds for this case alone.
    """

    balance: dict[str, Any]
    alternatives: list[dict[str, Any]]
    is_alone: bool


def evaluated(
    cases: pl.DataFrame, rules: BalanceRules, gaps: Mapping[str, str]
) -> dict[str, pa.Table]:
    """Judge every case, and run every fitting assignor on it; sorted by the tables' keys.

    Cases of one shape are judged once (`cases.shapes`).

    Args:
        cases: One row a group and stretch of time (`tables.cases_now`, `tables.cases_ever`).
        rules: Bands.
        gaps: Groups of which the dump lacks records that may matter, with why.
    """
    shaped = with_shapes(with_gaps(cases, gaps))
    judged = dict(_judged(shaped.unique(SHAPE, keep="first"), rules))
    if alone := [shape for shape, each in judged.items() if each.is_alone]:
        own = pl.int_range(pl.len(), dtype=pl.UInt32) + (max(judged) + 1)
        is_alone = pl.col(SHAPE).is_in(alone)
        shaped = shaped.with_columns(pl.when(is_alone).then(own).otherwise(SHAPE).alias(SHAPE))
        judged |= _judged(shaped.filter(pl.col(SHAPE) > max(judged)), rules)
    balance = [{SHAPE: shape, **each.balance} for shape, each in judged.items()]
    tried = [{SHAPE: shape, **row} for shape, each in judged.items() for row in each.alternatives]
    return {
        BALANCE: _table(BALANCE, shaped, balance),
        ALTERNATIVES: _table(ALTERNATIVES, shaped, tried),
    }


def with_gaps(cases: pl.DataFrame, gaps: Mapping[str, str]) -> pl.DataFrame:
    """Add `gap`: what the dump lacks of the group of a case, null for nothing."""
    gap = pl.col("group_id").replace_strict(dict(gaps), default=None, return_dtype=pl.String)
    return cases.with_columns(gap.alias("gap"))


def _judged(cases: pl.DataFrame, rules: BalanceRules) -> Iterator[tuple[int, _Judged]]:
    for some in cases.iter_slices(_AT_ONCE):
        for row in some.to_dicts():
            yield row[SHAPE], _of_case(row, rules)


def _of_case(row: Row, rules: BalanceRules) -> _Judged:
    case = case_of(row)
    if row["gap"] is not None:
        case = replace(case, unreadable=row["gap"])
    members = row[MEMBER_IDS]
    found = vars(judge(case, rules))
    text = found[_CAUSE] or ""
    names_members = any(member in text for member in members)
    is_template = names_members and _are_told_apart(row, members)
    places = {name: None if found[name] is None else members.index(found[name]) for name in _NAMES}
    cause = _with_places(text, members) if is_template else found[_CAUSE]
    return _Judged(
        {**found, **places, _CAUSE: cause, _IS_TEMPLATE: is_template},
        [vars(each) for each in alternatives(case)],
        is_alone=names_members and not is_template,
    )


def _are_told_apart(row: Row, members: Sequence[str]) -> bool:
    """Return whether a member's id in a text can be nothing else: long, and in no other name."""
    names = [row["group_id"], row["protocol"], row["unread"], row["gap"]]
    names += [each["topic"] for each in row["topics"] or ()] + list(members)
    whole = " ".join(each for each in names if each)
    is_own = all(len(each) >= _LEAST_ID and whole.count(each) == 1 for each in members)
    return is_own and _MARK not in whole


def _with_places(text: str, members: Sequence[str]) -> str:
    for place, member in enumerate(members):
        text = text.replace(member, f"{_MARK}{place}{_MARK}")
    return text


def _table(name: str, shaped: pl.DataFrame, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the rows of each case: those of its shape, with its own group, time and members."""
    of_shape: dict[str, Any] = {SHAPE: pl.UInt32, _IS_TEMPLATE: pl.Boolean}
    of_shape |= {
        each: pl.UInt32 if each in _NAMES else kind
        for each, kind in contract_schema(name).items()
        if each not in _OF_ROW
    }
    figures = pl.DataFrame(rows, of_shape)
    found = shaped.select(SHAPE, MEMBER_IDS, *_OF_ROW).join(figures, on=SHAPE)
    members = (
        pl.col(MEMBER_IDS).list.get(pl.col(each)).alias(each) for each in _NAMES if each in of_shape
    )
    found = _with_causes(found.with_columns(members))
    return table_of_frame(name, in_key_order(name, contract_frame(found, name)))


def _with_causes(found: pl.DataFrame) -> pl.DataFrame:
    """Put ids of members for their places in causes."""
    if not found[_IS_TEMPLATE].any():
        return found
    named = found.filter(_IS_TEMPLATE).with_columns(pl.col(_CAUSE).str.split(_MARK))
    others = found.filter(pl.col(_IS_TEMPLATE).not_().fill_null(value=True))
    most = named.select(pl.col(_CAUSE).list.len().max()).item()
    words = [pl.col(_CAUSE).list.get(number, null_on_oob=True) for number in range(most)]
    # Every other word is the place of a member.
    words[1::2] = [pl.col(MEMBER_IDS).list.get(each.cast(pl.UInt32)) for each in words[1::2]]
    causes = pl.concat_str(words, ignore_nulls=True).alias(_CAUSE)
    return pl.concat([others, named.with_columns(causes)])
