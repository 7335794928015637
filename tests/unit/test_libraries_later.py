"""Pandas and SciPy are loaded where they are needed, not where others would only ask after them."""

from __future__ import annotations

import subprocess
import sys

import pytest

FIRST = "import sys; from analytics.libraries_later import release_libraries, withhold_libraries; "


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own: what is imported stays imported."""
    return subprocess.run(
        [sys.executable, "-c", FIRST + code], capture_output=True, text=True, check=False
    )


def test_arrow_does_without() -> None:
    told = python(
        "withhold_libraries(); import pyarrow.dataset as ds, pyarrow as pa; "
        "print(pa.table({'a': pa.array([1, None])}).to_pylist(), 'pandas' in sys.modules)"
    )
    assert told.stdout == "[{'a': 1}, {'a': None}] False\n", told.stderr


@pytest.mark.parametrize(
    ("library", "asked_after"), [("pyarrow.dataset", "pandas"), ("numba", "scipy")]
)
def test_without_withholding_it_it_is_loaded(library: str, asked_after: str) -> None:
    told = python(f"import {library}; print('{asked_after}' in sys.modules)")
    assert told.stdout == "True\n", told.stderr


def test_spark_gets_it() -> None:
    told = python(
        "withhold_libraries(); withhold_libraries(); import pyarrow.dataset; release_libraries(); "
        "from pyspark.sql.pandas.utils import require_minimum_pandas_version as required; "
        "required(); print('pandas' in sys.modules)"
    )
    assert told.stdout == "True\n", told.stderr


def test_loops_are_compiled_without_looking_for_linear_algebra() -> None:
    told = python(
        "withhold_libraries(); from analytics.dump.records.chunk_reader import walk_records; "
        "walk_records.compiled; print('numba' in sys.modules, 'scipy' in sys.modules)"
    )
    assert told.stdout == "True False\n", told.stderr
