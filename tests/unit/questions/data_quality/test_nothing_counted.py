"""Where checks of our own count nothing, rows are what great-expectations would say, unloaded."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from analytics.questions.data_quality.great_expectations_engine import Engine
from analytics.questions.data_quality.judged_table import Counted, StoredTable, judged_tables
from analytics.questions.data_quality.question import expectations_of
from schemas import tables
from schemas.expectation_suites import Expectation

BY_LIBRARY = Engine(of_zeros=True)
"""The oracle."""


def no_others(_: str, __: Sequence[str]) -> Iterator[None]:
    raise AssertionError("nothing is looked up")


def counted_in_all_tables(
    seed: int, share: float
) -> list[tuple[StoredTable, Sequence[Expectation]]]:
    """Return all that is expected of all tables, each with a count that is 0 but for a share."""
    drawn = random.Random(seed)
    found, nothing = [], pa.table({})
    for name, contract in tables().items():
        expected = expectations_of(name, {})
        counts = {}
        for place, _ in enumerate(expected):
            is_sound = drawn.random() >= share
            unexpected = 0 if is_sound else drawn.choice([1, 7, 2**53 + 1, 2**63 - 1])
            counts[place] = Counted(unexpected, None if is_sound else {"offset": unexpected})
        stored = StoredTable(name, nothing.schema, nothing, contract.key, 2**63 - 1, counts)
        found.append((stored, expected))
    return found


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 1])
def test_rows_of_all_tables_are_those_of_the_library(share: float) -> None:
    counted = counted_in_all_tables(7, share)

    rows = judged_tables(counted, no_others, Engine())

    assert len(rows) > 1_000
    assert rows == judged_tables(counted, no_others, BY_LIBRARY)
    assert (share > 0) == any(each["outcome"] == "failed" for each in rows)
    assert (share < 1) == any(each["outcome"] == "passed" for each in rows)


@pytest.mark.parametrize("counts", [[], [0], [0, 0, 0], [0, 1], [2**63 - 1]])
def test_counts_are_judged_as_the_library_does(counts: list[int]) -> None:
    assert Engine().judge_counts(counts) == BY_LIBRARY.judge_counts(counts)


@pytest.mark.parametrize(
    ("call", "is_loaded"),
    [
        ("Engine().judge_counts([0, 0])", False),
        ("Engine().judge_counts([0, 1])", True),
        ("Engine(of_zeros=True).judge_counts([0, 0])", True),
    ],
)
def test_the_library_is_loaded_where_it_judges(call: str, is_loaded: bool) -> None:
    """To load it takes seconds: here it cannot be loaded."""
    program = (
        "import sys\n"
        "from analytics.questions.data_quality.great_expectations_engine import Engine\n"
        "assert 'great_expectations' not in sys.modules\n"
        "sys.modules['great_expectations'] = None\n"
        f"{call}\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == int(is_loaded), result.stderr
    assert ("ModuleNotFoundError: import of great_expectations" in result.stderr) == is_loaded
