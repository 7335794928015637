"""Pandas is loaded where Spark needs it, not where PyArrow would only ask after it."""

from __future__ import annotations

import subprocess
import sys

FIRST = "import sys; from analytics.pandas_later import release_pandas, withhold_pandas; "


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own: what is imported stays imported."""
    return subprocess.run(
        [sys.executable, "-c", FIRST + code], capture_output=True, text=True, check=False
    )


def test_arrow_does_without() -> None:
    told = python(
        "withhold_pandas(); import pyarrow.dataset as ds, pyarrow as pa; "
        "print(pa.table({'a': pa.array([1, None])}).to_pylist(), 'pandas' in sys.modules)"
    )
    assert told.stdout == "[{'a': 1}, {'a': None}] False\n", told.stderr


def test_without_withholding_it_arrow_loads_it() -> None:
    told = python("import pyarrow.dataset; print('pandas' in sys.modules)")
    assert told.stdout == "True\n", told.stderr


def test_spark_gets_it() -> None:
    told = python(
        "withhold_pandas(); withhold_pandas(); import pyarrow.dataset; release_pandas(); "
        "from pyspark.sql.pandas.utils import require_minimum_pandas_version as required; "
        "required(); print('pandas' in sys.modules)"
    )
    assert told.stdout == "True\n", told.stderr
