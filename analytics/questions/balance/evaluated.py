"""The tables `assignment_balance` and `assignment_alternatives`, from cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from analytics.assignors.group import bucket, table_size
from analytics.contracts import contract_frame, contract_schema, table_of_frame
from analytics.questions.balance.case import CLASSIC, Row, case_of
from analytics.questions.balance.judge import alternatives, judge
from analytics.replay.log.topic_homes import string_hashes

if TYPE_CHECKING:
    from schemas.evaluation_rules import BalanceRules

# Cases that differ in names, times and settled epochs alone have one shape, and are judged once.
#
# Assignors and judgement know a member by its place among the ids of members in order, by its place
# in Java's map of them, and by its group instance id. An id that is not plain ASCII stands for
# itself: Java and Python may put such ids in another order.

SHAPE: Final = "shape"
MEMBER_IDS: Final = "member_ids"
_CASE: Final = "case"
_OF_CASE: Final = (
    *("group_type", "protocol_type", "protocol", "unread", "moved", "is_whole", "gap"),
    *("topics", "owned_before"),
)
_OF_MEMBER: Final = ("group_instance_id", "rack_id", "unread", "wants", "has")
_EPOCHS: Final = ("epoch", "assignment_epoch")
_STABLE: Final = "STABLE"
_PLACE: Final = "place_in_map"


def with_shapes(cases: pl.DataFrame) -> pl.DataFrame:
    """Add `shape` (a number) and `member_ids` (sorted) to cases.

    Args:
        cases: What `case_rows.case_of` reads, and `gap`: what the dump lacks of the group, or null.
    """
    cases = cases.with_row_index(_CASE)
    members = _members(cases)
    is_said = (pl.col("group_type") != CLASSIC) & ~pl.col("is_settled")
    epochs = (pl.when(is_said).then(each).alias(each) for each in _EPOCHS)
    known = [each for each in _OF_CASE if each in cases.columns]
    keys = (
        cases.select(_CASE, *_EPOCHS, *known)
        .with_columns(members.drop(_CASE))
        .select(_CASE, *known, *epochs, "members")
    )
    if "progress" in cases.columns:
        keys = keys.join(_progress(cases), on=_CASE, how="left", maintain_order="left")
    every = [each for each in keys.columns if each != _CASE]
    shapes = (
        keys.group_by(every, maintain_order=True)
        .agg(_CASE)
        .select(_CASE)
        .with_row_index(SHAPE)
        .explode(_CASE)
        .sort(_CASE)
    )
    ids = pl.col("members").list.eval(pl.element().struct.field("member_id"))
    return cases.with_columns(ids.alias(MEMBER_IDS), shapes[SHAPE]).drop(_CASE)


def _progress(cases: pl.DataFrame) -> pl.DataFrame:
    """Return `progress` in topics that members have: no other counts."""
    owned = (
        cases.select(_CASE, "members")
        .explode("members")
        .select(_CASE, pl.col("members").struct.field("has"))
        .explode("has")
        .select(_CASE, pl.col("has").struct.field("topic"))
        .unique()
    )
    return (
        cases.select(_CASE, "progress")
        .drop_nulls("progress")
        .explode("progress")
        .unnest("progress")
        .join(owned, on=[_CASE, "topic"], how="semi")
        .sort(_CASE, "topic", "partition")
        .group_by(_CASE)
        .agg(pl.struct("topic", "partition", "advance").alias("progress"))
    )


def _members(cases: pl.DataFrame) -> pl.DataFrame:
    """Return the members of each case without their ids: `case`, `members`, `is_settled`.

    A row a case, in order.
    """
    members = (
        cases.select(_CASE, "group_type", *_EPOCHS, "members").explode("members").unnest("members")
    )
    is_plain = pl.col("member_id").str.len_bytes() == pl.col("member_id").str.len_chars()
    # Of a classic group nothing is looked at that only a member says of epochs.
    is_late = pl.col("member_epoch").ne_missing(pl.col("assignment_epoch")) | (
        pl.col("state").fill_null(_STABLE) != _STABLE
    )
    is_classic = pl.col("group_type") == CLASSIC
    is_settled = ~is_late & (pl.col("epoch") <= pl.col("assignment_epoch"))
    about = pl.struct(
        _PLACE,
        pl.when(~is_plain).then("member_id").alias("odd_id"),
        pl.when(~is_classic).then(is_late).alias("is_late"),
        *_OF_MEMBER,
    )
    return (
        members.with_columns(_places(members))
        .group_by(_CASE, maintain_order=True)
        .agg(about.alias("members"), is_settled.fill_null(value=False).all().alias("is_settled"))
    )


def _places(members: pl.DataFrame) -> pl.Series:
    """Return the place of each member in Java's map of all members of its case.

    Those of a case are one after the other.
    """
    ids, case = members["member_id"], members[_CASE].to_numpy()
    distinct = ids.unique()
    hashes = ids.replace_strict(
        distinct, pl.Series(string_hashes(distinct)), return_dtype=pl.Int64
    ).to_numpy()
    _, first, of_case, counts = np.unique(
        case, return_index=True, return_inverse=True, return_counts=True
    )
    sizes = np.array([0] + [table_size(each) for each in range(1, counts.max(initial=0) + 1)])
    buckets = bucket(hashes, sizes[counts][of_case])
    places = np.empty(len(case), np.int64)
    # What shares a bucket comes in the order of ids.
    places[np.lexsort((buckets, of_case))] = np.arange(len(case)) - first[of_case]
    return pl.Series(_PLACE, places)


BALANCE, ALTERNATIVES = "assignment_balance", "assignment_alternatives"
_AT_ONCE = 10_000
"""Groups whose members and topics are Python's at the same time."""
_ROWS_AT_ONCE = 100_000
"""Cases of which rows of tables are made at the same time."""

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


class JudgedCases(NamedTuple):
    """What is told of cases: little, as what those of one shape have alike is there once.

    Attributes:
        rows: Cases in order: their shapes, what differs in each, and the ids of members.
        balance: Of `assignment_balance` a row a shape: members go by their places.
        alternatives: Of `assignment_alternatives` likewise.
    """

    rows: pl.DataFrame
    balance: pl.DataFrame
    alternatives: pl.DataFrame


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


def judged(cases: pl.DataFrame, rules: BalanceRules, gaps: Mapping[str, str]) -> JudgedCases:
    """Judge some cases, each shape once (`cases.shapes`)."""
    shaped = with_shapes(with_gaps(cases, gaps))
    found = dict(_judged(shaped.unique(SHAPE, keep="first"), rules))
    if alone := [shape for shape, each in found.items() if each.is_alone]:
        own = pl.int_range(pl.len(), dtype=pl.UInt32) + (max(found) + 1)
        is_alone = pl.col(SHAPE).is_in(alone)
        shaped = shaped.with_columns(pl.when(is_alone).then(own).otherwise(SHAPE).alias(SHAPE))
        found |= _judged(shaped.filter(pl.col(SHAPE) > max(found)), rules)
    balance = [{SHAPE: shape, **each.balance} for shape, each in found.items()]
    tried = [{SHAPE: shape, **row} for shape, each in found.items() for row in each.alternatives]
    words = {**dict.fromkeys(_NAMES, pl.UInt32()), _WORDS: pl.List(pl.String())}
    return JudgedCases(
        shaped.select(SHAPE, MEMBER_IDS, *_OF_ROW).sort(_KEY, nulls_last=True),
        _figures(BALANCE, balance, words),
        _figures(ALTERNATIVES, tried, {}).sort(SHAPE, _ASSIGNOR),
    )


def tables_of(parts: Sequence[JudgedCases]) -> dict[str, pa.Table]:
    """Return both tables of judged cases; no two parts have cases of the same group."""
    rows, balance, tried = (pl.concat(each) for each in zip(*_with_own_shapes(parts), strict=True))
    ordered = rows.sort("group_id", maintain_order=True)
    return {
        BALANCE: pa.concat_tables(_balance(some, balance) for some in _slices(ordered)),
        ALTERNATIVES: pa.concat_tables(_alternatives(some, tried) for some in _slices(ordered)),
    }


def _with_own_shapes(parts: Sequence[JudgedCases]) -> Iterator[Iterable[pl.DataFrame]]:
    """Number shapes so that no two parts have the same."""
    so_far = 0
    for part in parts:
        yield [each.with_columns(pl.col(SHAPE) + so_far) for each in part]
        so_far += part.balance.select(pl.col(SHAPE).max().fill_null(0) + 1).item()


def _slices(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield rows some at a time, at least once: frames of all of them would be as large again."""
    return rows.iter_slices(_ROWS_AT_ONCE) if rows.height else iter([rows])


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


def _balance(rows: pl.DataFrame, figures: pl.DataFrame) -> pa.Table:
    """Return the row of each case: that of its shape, with its own group, time and members."""
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


def _alternatives(rows: pl.DataFrame, figures: pl.DataFrame) -> pa.Table:
    """Return the rows of each case: those of its shape, with its own group and time."""
    of_case = rows.drop(MEMBER_IDS)
    return _table(ALTERNATIVES, of_case.join(figures, on=SHAPE, maintain_order="left_right"))


def _figures(
    name: str, rows: Sequence[Mapping[str, Any]], types: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    """Return what rows of shapes have in columns of a table, or in others by their types."""
    of_table = {each: kind for each, kind in contract_schema(name).items() if each not in _OF_ROW}
    return pl.DataFrame(rows, {SHAPE: pl.UInt32(), **of_table, **types})


def _table(name: str, rows: pl.DataFrame) -> pa.Table:
    return table_of_frame(name, contract_frame(rows, name))
