"""Values as numbers: what is equal, and only that, has the same one."""

from __future__ import annotations

import numpy as np
import polars as pl

from analytics.replay.groups.group_records import codes, combined, dense, grouped


def test_values_are_numbered_as_they_come_and_null_is_one_of_them() -> None:
    assert codes(pl.Series(["b", None, "a", "b", None])).tolist() == [0, 1, 2, 0, 1]
    assert codes(pl.Series([None, None], dtype=pl.String)).tolist() == [0, 0]
    assert codes(pl.Series([], dtype=pl.Int32)).tolist() == []


def test_combinations_that_no_number_holds_are_told_apart_as_well() -> None:
    columns = [np.array([0, most, most, 0]) for most in (2**31, 2**30, 2**29)]
    columns.append(np.array([0, 0, 1, 0]))
    assert dense(*columns)[0].tolist() == [0, 1, 2, 0]


def test_numbers_of_rows_do_not_run_over() -> None:
    rows, others = np.array([0, 2**20, 1], np.uint32), np.array([2**20, 0, 2**20])
    found = combined(rows, others)
    assert found.dtype == np.int64
    assert len(set(found.tolist())) == len(rows)


def test_rows_of_one_number_stay_in_order() -> None:
    order, begins = grouped(np.array([7, 3, 7, 3, 5]))
    assert (order.tolist(), begins.tolist()) == ([1, 3, 4, 0, 2], [0, 2, 3])
    assert [each.tolist() for each in grouped(np.array([], np.int64))] == [[], []]
