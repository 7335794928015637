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
from analytics.evaluate.contract_columns import table_of_frame
from analytics.replay.contract_frame import contract_frame, contract_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from schemas.evaluation_rules import BalanceRules

BALANCE, ALTERNATIVES = "assignment_balance", "assignment_alternatives"
_AT_ONCE = 10_000
"""Groups whose members and topics are Python's at the same time."""

_OF_ROW: Final = ("group_id", "epoch", "from_offset", "from_timestamp", "to_timestamp")
"""What rows of one shape differ in, beside the ids of members."""
_KEY: Final = _OF_ROW[:-1]
"""Of both tables, but for the assignor."""
_NAMES: Final = ("member_with_most", "member_with_fewest", "busiest_member")
_CAUSE, _WORDS, _ASSIGNOR = "cause", "words", "assignor"
_MARK: Final = "\0"
"""Around the place of a member in a text."""
_LEAST_ID: Final = 36
"""Kafka's own ids end with a UUID. What is shorter may stand in a text by chance."""


class _Judged(NamedTuple):
    """Rows of a shape; members go by their place among the sorted ids.

    Attributes:
        balance: Of `assignment_balance`, and for the cause its words: every other one is the place
            of a member.
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
    rows = shaped.select(SHAPE, MEMBER_IDS, *_OF_ROW).sort(_KEY, nulls_last=True)
    return {BALANCE: _balance(rows, balance), ALTERNATIVES: _alternatives(rows, tried)}


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
    words = _with_places(text, members).split(_MARK) if is_template else [text]
    return _Judged(
        {**found, **places, _CAUSE: None, _WORDS: None if found[_CAUSE] is None else words},
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


def _balance(rows: pl.DataFrame, judged: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the row of each case: that of its shape, with its own group, time and members."""
    places = dict.fromkeys(_NAMES, pl.UInt32())
    figures = _figures(BALANCE, judged, {**places, _WORDS: pl.List(pl.String())})
    # Every other word is the place of a member.
    most = figures.select(pl.col(_WORDS).list.len().max().fill_null(0)).item()
    words = [f"{_WORDS}_{number}" for number in range(most)]
    split = (
        pl.col(_WORDS)
        .list.get(number, null_on_oob=True)
        .cast(pl.UInt32 if number % 2 else pl.String)
        .alias(word)
        for number, word in enumerate(words)
    )
    found = rows.join(figures.with_columns(split), on=SHAPE, maintain_order="left")
    of_member = [*_NAMES, *words[1::2]]
    named = found.with_columns(
        pl.col(MEMBER_IDS).list.get(pl.col(each)).alias(each) for each in of_member
    )
    cause = pl.concat_str(words, ignore_nulls=True) if words else pl.lit(None)
    is_told = pl.col(_WORDS).is_not_null()
    return _table(BALANCE, named.with_columns(pl.when(is_told).then(cause).alias(_CAUSE)))


def _alternatives(rows: pl.DataFrame, tried: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the rows of each case: those of its shape, with its own group and time."""
    figures = _figures(ALTERNATIVES, tried, {}).sort(SHAPE, _ASSIGNOR)
    return _table(
        ALTERNATIVES,
        rows.drop(MEMBER_IDS).join(figures, on=SHAPE, maintain_order="left_right"),
    )


def _figures(
    name: str, rows: Sequence[Mapping[str, Any]], types: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """Return what rows of shapes have in columns of a table, or in others by their types."""
    of_table = {each: kind for each, kind in contract_schema(name).items() if each not in _OF_ROW}
    return pl.DataFrame(rows, {SHAPE: pl.UInt32(), **of_table, **types})


def _table(name: str, rows: pl.DataFrame) -> pa.Table:
    return table_of_frame(name, contract_frame(rows, name))
