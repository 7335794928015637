"""The law finds a confident row that differs, and takes every mark for what it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from schemas import table, tables
from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG, Held
from tests.verdicts.law import Answers, declared, hold_equal, hold_law

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GROUP = {"group_id": "orders-app", "topic": "orders", "partition": 0}


@dataclass(frozen=True)
class Made(Answers):
    """An audit whose tables are given."""

    folder: Path = Path()
    code: int = 0
    said: str = ""
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    at: datetime | None = None

    def instant(self) -> datetime | None:
        """Return when it ends."""
        return self.at

    def table(self, name: str) -> pl.DataFrame | None:
        """Return a table with all columns of its contract."""
        if name not in self.rows:
            return None
        empty = dict.fromkeys(column.name for column in table(name).columns)
        return pl.DataFrame([{**empty, **row} for row in self.rows[name]])


def _words(held: Held) -> tuple[int, int, int]:
    return held.count(RIGHT), held.count(CANNOT_TELL), held.count(WRONG)


def _offsets(*, code: int = 0, said: str = "", **row: Any) -> Made:
    return Made(code=code, said=said, rows={"committed_offsets": [{**GROUP, **row}]})


WHOLE = _offsets(committed_offset=7, complete=True)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (_offsets(committed_offset=7, complete=True), (1, 0, 0)),
        (_offsets(committed_offset=7, complete=True, copy="broker-2"), (1, 0, 0)),
        (_offsets(committed_offset=5, complete=True), (0, 0, 1)),
        (_offsets(committed_offset=5, complete=False, missing="its beginning"), (0, 1, 0)),
        (_offsets(committed_offset=7, complete=True, partition=1), (0, 0, 1)),
        # A row of a table that has marks is not excused by what the command says beside it.
        (_offsets(committed_offset=5, complete=True, code=3, said="orders-app"), (0, 0, 1)),
    ],
)
def test_a_row_that_claims_to_be_complete_is_as_the_whole_dump_has_it(
    part: Made, words: tuple[int, int, int]
) -> None:
    assert _words(hold_law(WHOLE, part)["committed_offsets"]) == words


def test_a_table_without_marks_is_covered_where_the_command_names_the_group() -> None:
    def faults(offset: int, code: int = 0, said: str = "") -> Made:
        row = {"group_id": "orders-app", "epoch": 1, "cause": "topic_grew"}
        row |= {"coordinator_partition": 9, "from_offset": offset}
        return Made(code=code, said=said, rows={"rebalance_causes": [row]})

    def words(part: Made) -> tuple[int, int, int]:
        return _words(hold_law(faults(1), part)["rebalance_causes"])

    assert words(faults(1)) == (1, 0, 0)
    assert words(faults(2)) == (0, 0, 1)
    assert words(faults(2, 3, "cannot tell: __consumer_offsets-9 is not whole")) == (0, 1, 0)
    assert words(faults(2, 3, "cannot tell: __consumer_offsets-8 is not whole")) == (0, 0, 1)


def _since(time: int, word: str = "no_loss_found") -> Made:
    instant = datetime(2026, 1, 1, time, tzinfo=UTC)
    since, at = (instant, None) if word == "no_loss_found" else (None, instant)
    row = {**GROUP, "verdict": word, "since": since, "at": at}
    return Made(rows={"offset_verdicts": [row]})


def test_a_bound_may_be_later_and_hides_nothing_that_was_after_it() -> None:
    def words(whole: Made, part: Made) -> tuple[int, int, int]:
        return _words(hold_law(whole, part)["offset_verdicts"])

    assert words(_since(3), _since(5)) == (1, 0, 0)
    assert words(_since(5), _since(3)) == (0, 0, 1)
    assert words(_since(4, "lost_by_election"), _since(5)) == (1, 0, 0)
    assert words(_since(6, "lost_by_election"), _since(5)) == (0, 0, 1)
    # What is beyond a bound that the whole dump has, too, is no loss, but an open transaction.
    (bound,), (pending,) = (
        each.rows["offset_verdicts"] for each in (_since(3), _since(6, "pending"))
    )
    assert words(Made(rows={"offset_verdicts": [bound, pending]}), _since(5)) == (1, 0, 0)


def test_what_is_measured_up_to_the_instant_may_be_less_by_how_much_earlier_that_is() -> None:
    def lag(second: int, behind_ms: int, left_ms: int) -> Made:
        row = {**GROUP, "time_lag_ms": behind_ms, "loss_in_ms": left_ms, "complete": True}
        at = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
        status = {**GROUP, "from_timestamp": at, "status": "OK"}
        return Made(rows={"lag": [row], "status_history": [status]}, at=at)

    def words(part: Made) -> list[tuple[int, int, int]]:
        helds = hold_law(lag(9, 5000, 100_000), part)
        return [_words(helds[name]) for name in ("lag", "status_history")]

    assert words(lag(9, 5000, 100_000)) == [(1, 0, 0), (1, 0, 0)]
    assert words(lag(7, 3000, 102_000)) == [(1, 0, 0), (1, 0, 0)]
    assert words(lag(7, 4000, 102_000)) == [(0, 0, 1), (1, 0, 0)]
    # Nothing that is taken away makes it later.
    assert words(lag(11, 7000, 98_000)) == [(0, 0, 1), (0, 0, 1)]


def test_what_is_counted_since_a_time_is_less_only_where_that_is_later() -> None:
    def lag(first: int, commits: int, committed: int = 7) -> Made:
        at = datetime(2026, 1, 1, first, tzinfo=UTC)
        row = {**GROUP, "first_commit_at": at, "commits": commits, "complete": True}
        return Made(rows={"lag": [{**row, "committed_offset": committed}]})

    def words(part: Made) -> tuple[int, int, int]:
        return _words(hold_law(lag(5, 9), part)["lag"])

    assert words(lag(6, 4)) == (1, 0, 0)
    assert words(lag(5, 4)) == (0, 0, 1)
    assert words(lag(4, 9)) == (0, 0, 1)
    # All else is as it was.
    assert words(lag(6, 4, committed=8)) == (0, 0, 1)


def test_a_row_that_counts_what_is_marked_is_marked() -> None:
    def churn(compacted: int, changes: int) -> Made:
        row = {"group_id": "orders-app", "compacted": compacted, "top_client_changes": changes}
        return Made(rows={"group_churn": [row]})

    def words(part: Made) -> tuple[int, int, int]:
        return _words(hold_law(churn(0, 2), part)["group_churn"])

    assert words(churn(1, 1)) == (0, 1, 0)
    assert words(churn(0, 1)) == (0, 0, 1)


def test_an_audit_that_lacks_nothing_is_equal_in_rows_and_exit_code() -> None:
    def words(part: Made) -> tuple[int, int, int]:
        helds = hold_equal(WHOLE, part)
        return _words(helds["committed_offsets"])

    assert words(_offsets(committed_offset=7, complete=True)) == (1, 0, 0)
    assert words(_offsets(committed_offset=7, complete=False, missing="much")) == (0, 0, 1)
    # A cell that is empty now is another one here.
    assert words(_offsets(committed_offset=None, complete=True)) == (0, 0, 1)
    # A row more and a row less.
    assert words(_offsets(committed_offset=7, complete=True, partition=1)) == (0, 0, 2)
    code = hold_equal(WHOLE, _offsets(code=3, committed_offset=7, complete=True))["exit code"]
    assert _words(code) == (0, 0, 1)


def test_a_count_of_what_is_marked_is_a_mark() -> None:
    def churn(epochs: int, compacted: int) -> Made:
        row = {"group_id": "orders-app", "epochs": epochs, "compacted": compacted, "complete": True}
        return Made(rows={"group_churn": [row]})

    def words(part: Made) -> tuple[int, int, int]:
        return _words(hold_law(churn(9, 0), part)["group_churn"])

    assert words(churn(8, 1)) == (0, 1, 0)
    assert words(churn(8, 0)) == (0, 0, 1)


def test_a_table_that_is_about_the_log_as_it_is_is_not_held_where_that_was_cleaned() -> None:
    row = {"group_id": "g", "topic": "__consumer_offsets", "record_offset": 3, "complete": True}
    none, some = Made(rows={"load_faults": []}), Made(rows={"load_faults": [row]})
    assert _words(hold_law(none, some)["load_faults"]) == (0, 0, 1)
    assert "load_faults" not in hold_law(none, some, leave_out=frozenset({"load_faults"}))


def test_with_clocks_that_step_a_key_is_the_same_without_its_times() -> None:
    def moved(time: int) -> Made:
        at = datetime(2026, 1, 1, time, tzinfo=UTC)
        return Made(rows={"status_history": [{**GROUP, "from_timestamp": at, "status": "OK"}]})

    def words(part: Made, leave_out: frozenset[str]) -> tuple[int, int, int]:
        return _words(hold_law(moved(1), part, leave_out=leave_out)["status_history"])

    assert words(moved(2), frozenset()) == (0, 0, 1)
    assert words(moved(2), frozenset({"timestamp"})) == (1, 0, 0)


def test_what_is_declared_is_there() -> None:
    """A table or a column that was renamed would be held no more."""
    free = declared()
    assert free["tables"].keys() <= tables().keys()
    every = {column.name for each in tables().values() for column in each.columns}
    assert free["columns"].keys() <= every
    assert {*free["clocks"]["columns"], *free["instant"]["columns"]} <= every
    assert {*free["logs"]["tables"]} <= tables().keys()
    for name, names in [
        *free["filters"]["columns"].items(),
        *free["filters"]["of_groups"].items(),
    ]:
        assert {*names} <= {column.name for column in table(name).columns}, name
    for name, counted in free["since"].items():
        if name != "about":
            every = {column.name for column in table(name).columns}
            assert {counted["at"], *counted["columns"]} <= every, name
    for part in ("columns_of", "marks"):
        for name, columns in free[part].items():
            assert columns.keys() <= {column.name for column in table(name).columns}, name
