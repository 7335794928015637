"""What comes of expectations: passed, failed, or a check that broke; exact beyond 2^53; quiet."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.questions.data_quality.great_expectations_engine import INEXACT, Engine
from analytics.questions.data_quality.judged_table import (
    CHECKS,
    StoredTable,
    judged_tables,
    wrong_columns,
)
from schemas.expectation_suites import (
    IN_SET,
    NOT_NULL,
    OWN,
    WRITTEN,
    Expectation,
    suite_of,
    words,
)
from schemas.model import SchemaError

FAR = 2**62
ENGINE = Engine()


def judged(rows: pa.Table, *told: dict[str, Any]) -> list[dict[str, Any]]:
    expected = suite_of({"expectations": list(told)}, "lag", "ours.json")
    stored = StoredTable("lag", rows.schema, rows, ["partition"], rows.num_rows)
    return judged_tables([(stored, expected)], no_others, ENGINE)


def no_others(_: str, __: Sequence[str]) -> pa.Table:
    raise KeyError("no such table")


def outcomes(rows: pa.Table, *told: dict[str, Any]) -> list[tuple[str, int | None]]:
    return [(each["outcome"], each["unexpected_count"]) for each in judged(rows, *told)]


def expect(type_: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": type_, "kwargs": kwargs}


OFFSETS = pa.table(
    {
        "partition": pa.array([0, 1, 2, 3], pa.int32()),
        "lag": pa.array([FAR, FAR + 1, None, FAR + 2], pa.int64()),
        "log_end_offset": pa.array([FAR + 1, FAR + 1, FAR, FAR + 1], pa.int64()),
    }
)


def test_offsets_that_are_equal_as_floats_are_told_apart() -> None:
    assert float(FAR) == float(FAR + 2)
    found = outcomes(
        OFFSETS,
        expect("expect_rows_at_least", column="lag", value=FAR + 1),
        expect("expect_rows_at_most", column="lag", other="log_end_offset"),
        expect("expect_rows_to_differ_in", columns=["log_end_offset"]),
        expect("expect_column_values_to_be_unique", column="log_end_offset"),
        expect("expect_column_values_to_be_in_set", column="lag", value_set=[FAR, FAR + 2]),
        expect(
            "expect_column_pair_values_a_to_be_greater_than_b",
            column_A="log_end_offset",
            column_B="lag",
            or_equal=True,
            ignore_row_if="either_value_is_missing",
        ),
    )
    assert found == [
        *(("failed", 1), ("failed", 1), ("failed", 3), ("failed", 3), ("failed", 1)),
        ("failed", 1),
    ]


@pytest.mark.parametrize("offsets", [[], [None], [1, FAR, None, FAR + 1], [1, 1]])
def test_what_we_count_ourselves_the_library_counts_too(offsets: list[int | None]) -> None:
    rows = pa.table({"partition": range(len(offsets)), "lag": pa.array(offsets, pa.int64())})
    document = {
        "expectations": [
            expect(NOT_NULL, column="lag"),
            expect(IN_SET, column="lag", value_set=[1, FAR]),
        ]
    }
    stored = StoredTable("lag", rows.schema, rows, ["partition"], rows.num_rows)
    by_us, by_the_library = (
        [
            (each["outcome"], each["unexpected_count"])
            for each in judged_tables(
                [(stored, suite_of(document, "lag", suite))], no_others, ENGINE
            )
        ]
        for suite in (WRITTEN, "ours.json")
    )
    assert by_us == by_the_library


def test_an_example_is_named_by_its_key_with_its_exact_number() -> None:
    (row,) = judged(OFFSETS, expect("expect_rows_at_most", column="lag", other="log_end_offset"))
    assert row["example"] == (f'{{"partition": 3, "lag": {FAR + 2}, "log_end_offset": {FAR + 1}}}')
    (row,) = judged(OFFSETS, expect("expect_column_values_to_not_be_null", column="lag"))
    assert (row["outcome"], row["unexpected_count"], row["severity"]) == ("failed", 1, "warning")


def test_bounds_that_would_be_compared_as_floats_are_not_believed() -> None:
    within = "expect_column_values_to_be_between"
    far, near = judged(
        OFFSETS,
        expect(within, column="lag", min_value=FAR + 1),
        expect(within, column="partition", min_value=0, max_value=2),
    )
    assert (far["outcome"], far["reason"]) == ("broken", INEXACT)
    assert (near["outcome"], near["unexpected_count"]) == ("failed", 1)


def test_a_check_that_breaks_has_not_failed() -> None:
    found = judged(
        OFFSETS,
        expect("expect_column_values_to_be_unique", column="nothing"),
        expect("expect_the_unexpected", column="lag"),
        expect("expect_rows_of_another_kind", column="lag"),
        expect("expect_rows_to_be_in_table", columns=["lag"], table="lost"),
        expect("expect_column_values_to_match_regex", column="lag", regex="(["),
        expect("expect_rows_at_least", column="lag", value="much"),
        expect("expect_rows_at_least", column="partition", value=0),
    )
    assert [each["outcome"] for each in found] == [*["broken"] * 6, "passed"]
    assert all(each["reason"] for each in found[:6])
    assert all(each["unexpected_count"] is None for each in found[:6])


@pytest.mark.parametrize(
    ("start", "state_epoch", "kind", "holds"),
    [
        ([1, 2, 2], [0, None, None], "uuu", [True, True, True]),
        ([5, 2, 3], [0, None, None], "uuu", [True, False, True]),
        # Initialised anew, or deleted in between: another life.
        ([5, 2, 3], [0, 1, None], "uuu", [True, True, True]),
        ([5, None, 2], [0, None, 0], "utu", [True, None, True]),
        ([5, None, 2], [0, None, None], "uuu", [True, None, False]),
    ],
)
def test_a_start_offset_may_go_back_in_another_life_alone(
    start: list[int | None], state_epoch: list[int | None], kind: str, holds: list[bool | None]
) -> None:
    rows = pa.table(
        {
            "start_offset": pa.array(start, pa.int64()),
            "state_epoch": pa.array(state_epoch, pa.int32()),
            "kind": list(kind),
            "group_id": ["g"] * 3,
            "record_offset": pa.array([7, 8, 9], pa.int64()),
        }
    )
    told = {"column": "start_offset", "per": ["group_id"], "by": ["record_offset"]}
    said = {**told, "epoch": "state_epoch", "restarts": {"kind": ["t"]}}
    backwards = rows.take(pa.array([2, 1, 0]))
    check = CHECKS["expect_rows_never_to_go_back"]
    assert check(rows, said, lambda *_: rows).to_pylist() == holds
    assert check(backwards, said, lambda *_: rows).to_pylist() == holds[::-1]


def test_columns_are_those_of_the_contract_in_order_and_by_type() -> None:
    types = {"a": "bigint", "b": "array<string>", "c": "timestamp"}
    time = pa.timestamp("us", "UTC")
    sound = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.string())), ("c", time)])
    assert wrong_columns(sound, types) == []
    assert wrong_columns(pa.schema([sound.field(1), sound.field(0), sound.field(2)]), types) == [
        "columns are in another order"
    ]
    other = pa.schema([("a", pa.int32()), ("b", pa.string()), ("d", time)])
    assert wrong_columns(other, types) == [
        *("c is missing", "d is unknown", "a is int32, not bigint"),
        "b is string, not array<string>",
    ]


def test_a_vocabulary_comes_from_the_rules_and_a_wrong_suite_is_refused() -> None:
    assert "blocked" in words("share.statuses")
    with pytest.raises(SchemaError, match="no vocabulary"):
        words("share.nothing")
    for wrong in ({}, [], {"expectations": [{"kwargs": {}}]}):
        with pytest.raises(SchemaError):
            suite_of(wrong, "lag", "x")
    with pytest.raises(SchemaError, match="severity"):
        suite_of({"expectations": [{"type": "a", "severity": "awful"}]}, "lag", "x")


def test_names_of_own_checks_are_no_types_of_the_library() -> None:
    assert {each for each in CHECKS if not each.startswith(OWN)} == {IN_SET, NOT_NULL}
    one = Expectation("lag", "n", "expect_rows_at_least", {"column": "lag"}, "info", "s")
    assert one.is_own
    assert one.columns == ("lag",)


def test_it_is_quiet_and_leaves_nothing_in_the_home_directory(tmp_path: Path) -> None:
    program = (
        "import socket\n"
        "def refuse(*_): raise AssertionError('the network')\n"
        "socket.socket.connect = refuse\n"
        "import pyarrow as pa\n"
        "from analytics.questions.data_quality.great_expectations_engine import Engine\n"
        "from schemas.expectation_suites import suite_of\n"
        "told = [{'type': 'expect_column_values_to_not_be_null', 'kwargs': {'column': 'a'}}]\n"
        "suite = suite_of({'expectations': told}, 'lag', 'x')\n"
        "(one,) = Engine().judge(pa.table({'a': [1, None]}), suite)\n"
        "assert one.is_met is False and one.unexpected == 1\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={"HOME": str(home), "PATH": "", "PYTHONPATH": ":".join(filter(None, sys.path))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert [each.name for each in tmp_path.rglob("*")] == ["home"]


def test_nothing_of_it_is_loaded_before_a_table_is_judged() -> None:
    program = (
        "import analytics.questions.data_quality.question, sys; "
        "assert 'great_expectations' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
